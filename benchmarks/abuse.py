"""Abuse test: hostile requests against a real server, and what a second user notices.

Run by hand: python benchmarks/abuse.py --minutes 10 --addresses 40. Starts its own server. The attacker, at one or
several addresses from 127.0.1.1 on and in a process of its own with a low priority, sends all kinds of
`abuse_requests.py` at once: addresses, contents, configs in links, previews, files dropped in sessions, slow readers
and more. A second visitor, at 127.0.0.2, asks for a plain picture and for the health check four times a second. Prints
the memory of the server and of its workers, the second visitor's times, answers by kind and status, and tracebacks.
The last lines compare each with its limit. `abuse_kinds.py` sends other kinds, each alone. Linux only: other systems
have no second loopback address.

With --costs it prints memory and processor time of the slowest known addresses instead, each on a fresh server.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.abuse_requests import KINDS, SLOWEST, hostile_contents, request
from benchmarks.watched_server import ROOT, list_descendants, read_cpu_seconds, read_memory, watched_server

USER = "127.0.0.2"
PLAIN = "/rope-viz/picture/scaling/comparison.packed?base={base}"
HEALTH = "/_stcore/health"
INTERVAL = 0.25
AT_ONCE = 3
"""Requests of each kind at one time."""
LARGEST = 500
"""MB that the server's process may take."""


@dataclass
class Observations:
    """Times in seconds of the second visitor, peaks of memory in MB, and the attacker's answers by status."""

    pictures: list[float] = field(default_factory=list)
    health: list[float] = field(default_factory=list)
    problems: Counter[str] = field(default_factory=Counter)
    server: list[float] = field(default_factory=list)
    workers: list[float] = field(default_factory=list)


def attack(
    url: str, seconds: float, addresses: int, seed: int, results: multiprocessing.Queue[dict[tuple[str, int], int]]
) -> None:
    """Attack a server for some seconds with all kinds at once; put the number of answers by kind and status."""
    os.nice(10)
    hostile_contents()

    async def all_at_once() -> Counter[tuple[str, int]]:
        observations, end = Counter[tuple[str, int]](), time.monotonic() + seconds

        async def repeat(number: int, kind: str) -> None:
            chance = random.Random(seed + number)
            while time.monotonic() < end:
                source = f"127.0.1.{chance.randint(1, addresses)}"
                try:
                    observations[kind, await KINDS[kind](url, source, chance)] += 1
                except OSError:
                    observations[kind, 0] += 1

        await asyncio.gather(*(repeat(number, kind) for number, kind in enumerate([*KINDS] * AT_ONCE)))
        return observations

    results.put(dict(asyncio.run(all_at_once())))


async def use(url: str, seconds: float, pid: int, observations: Observations) -> None:
    """Ask for pictures and the health check as the second visitor, and watch the memory."""
    end, number = time.monotonic() + seconds, 0

    async def timed(path: str, times: list[float]) -> None:
        start = time.monotonic()
        try:
            status = await request(url, path, source=USER)
        except OSError as error:
            observations.problems[str(error)] += 1
            return
        times.append(time.monotonic() - start)
        if status != 200:
            observations.problems[f"{path.partition('?')[0]}: {status}"] += 1

    tasks = set()
    while time.monotonic() < end:
        number += 1
        for path, times in ((PLAIN.format(base=10_000 + number), observations.pictures), (HEALTH, observations.health)):
            tasks.add(task := asyncio.ensure_future(timed(path, times)))
            task.add_done_callback(tasks.discard)
        watch(pid, observations)
        await asyncio.sleep(INTERVAL)
    await asyncio.gather(*tasks)


def watch(pid: int, observations: Observations) -> None:
    """Record the resident memory of the server and of each process that it started."""
    observations.server.append(read_memory(pid))
    observations.workers += [read_memory(child) for child in list_descendants(pid)] or [0.0]


def print_times(name: str, times: list[float], most: tuple[float, float]) -> bool:
    """Print one line of times with its limits; return whether it keeps them."""
    ordered = sorted(times) or [0.0]
    p50, p99 = (ordered[int(share * (len(ordered) - 1))] for share in (0.5, 0.99))
    print(
        f"{name:10s} n {len(times):5d}   p50 {p50:.3f} s   p99 {p99:.3f} s (limit {most[0]})   "
        f"max {ordered[-1]:.3f} s (limit {most[1]})"
    )
    return p99 <= most[0] and ordered[-1] <= most[1]


def measure_abuse(options: argparse.Namespace) -> int:
    """Attack a server and print what was observations; return 1 if a limit was broken."""
    seconds, observations = 60.0 * options.minutes, Observations()
    with watched_server(options.root) as server:
        asyncio.run(use(server.url, 2.0, server.pid, Observations()))
        before = server.read_memory()
        results: multiprocessing.Queue[dict[tuple[str, int], int]] = multiprocessing.Queue()
        task = (server.url, seconds, options.addresses, options.seed, results)
        attacker = multiprocessing.Process(target=attack, args=task)
        attacker.start()
        asyncio.run(use(server.url, seconds, server.pid, observations))
        answers = results.get(timeout=300)
        attacker.join()
        time.sleep(options.after)
        after, count = server.read_memory(), server.read_cached()
        left, log = len(list_descendants(server.pid)), server.read_log()
    print("the attacker's answers by status (0: closed by one side)")
    for kind in KINDS:
        print(f"  {kind:16s}", {status: count for (own, status), count in sorted(answers.items()) if own == kind})
    failed = sum(number for (_, status), number in answers.items() if status == 500)
    met = [
        print_times("pictures", observations.pictures, (1.0, 3.0)),
        print_times("health", observations.health, (0.3, 1.0)),
        max(observations.server) <= LARGEST,
        after - before <= 150 + count,
        not failed and not log.count("Traceback") and not observations.problems,
    ]
    print(
        f"server {before:.0f} MB at its start, at most {max(observations.server):.0f} MB "
        f"(limit {LARGEST}), {after:.0f} MB "
        f"{options.after:.0f} s later (limit {before + 150 + count:.0f}; caches {count:.0f} MB by their own count)"
    )
    print(f"workers at most {max(observations.workers):.0f} MB each, {left} at the end")
    print(
        f"answers of 500: {failed}   tracebacks: {log.count('Traceback')}   "
        f"second visitor's problems: {dict(observations.problems)}"
    )
    if log.strip():
        print("log:", log[-3000:])
    print("all limits met" if all(met) else "a limit was broken")
    return 0 if all(met) else 1


async def measure_costs(root: Path, address: str) -> tuple[int, float, float, float]:
    """Return status, seconds, MB more at the peak and processor seconds of one address on a fresh server."""
    with watched_server(root) as server:
        pid = server.pid
        await request(server.url, PLAIN.format(base=10_000), source=USER)
        await asyncio.sleep(3.0)
        cpu: dict[int, float] = {}

        def look() -> float:
            """Record the processor time of each process, as some end with the answer; return the memory of all."""
            pids = [pid, *list_descendants(pid)]
            for each in pids:
                cpu[each] = max(cpu.get(each, 0.0), read_cpu_seconds(each))
            return sum(map(read_memory, pids))

        memory, before, start = look(), sum(cpu.values()), time.monotonic()
        peak, asked = memory, asyncio.ensure_future(request(server.url, f"/rope-viz/picture/{address}", source=USER))
        while not asked.done():
            peak = max(peak, look())
            await asyncio.sleep(0.02)
        look()
        return asked.result(), time.monotonic() - start, peak - memory, sum(cpu.values()) - before


def main() -> int:
    """Attack a server started here, or measure single addresses."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--addresses", type=int, default=1, help="of the attacker: 127.0.1.1 and the following")
    parser.add_argument("--after", type=float, default=75.0, help="seconds to wait before memory is measured again")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout to serve")
    parser.add_argument("--costs", action="store_true", help="memory and processor time of the slowest addresses")
    parser.add_argument("--smallest", action="store_true", help="a few seconds")
    options = parser.parse_args()
    if options.smallest:
        options.minutes, options.after = 0.05, 0.0
    if not options.costs:
        broken = measure_abuse(options)
        return 0 if options.smallest else broken
    for address in SLOWEST[-1:] if options.smallest else SLOWEST:
        status, seconds, megabytes, cpu = asyncio.run(measure_costs(options.root, address))
        print(f"{status}  {cpu:5.1f} s of processor  {seconds:5.1f} s  {megabytes:5.0f} MB more  {address}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
