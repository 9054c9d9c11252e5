"""Abuse test: hostile requests against a real server, and what a second user notices.

Run by hand: python benchmarks/abuse.py --minutes 10. Starts its own server. One visitor, at 127.0.0.1 and in a process
of its own with a low priority, sends random and slow addresses, large, deep and dense contents, half bodies, and hangs
up early. A second visitor, at 127.0.0.2, asks for a plain picture and for the health check four times a second. Prints
the memory of the server and of its workers, the second visitor's times, answers by status, and tracebacks. The last
lines compare each with its limit. Linux only: other systems have no second loopback address.

With --costs it prints memory and processor time of the slowest known addresses instead, each on a fresh server.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import io
import json
import multiprocessing
import os
import random
import re
import secrets
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from rope_viz.figures.files import FORMS
from rope_viz.pictures import blob_store, registry
from tests.browser.processes import Server, find_free_port, running_process, wait_for_answer

ROOT = Path(__file__).resolve().parents[1]
ATTACKER, USER = "127.0.0.1", "127.0.0.2"
PLAIN = "/rope-viz/picture/scaling/comparison.packed?base={base}"
HEALTH = "/_stcore/health"
INTERVAL = 0.25
SLOWEST = (
    "frequencies/heatmap.png?width=4800px&height=4800px&dpi=140",
    "recall/needle.png?method=yarn&recall.length=16384&recall.at=1024",
    "recall/loss.png?recall.chain=2048",
    "recall/needle.svg?recall.at=903",
    "precision/scores.pdf?height=4800px",
    "scaling/comparison.png?width=50in",
    "recall/lengths.png",
    "heads/across.png?width=4800px&height=4800px",
    "decay/bases.packed",
    "heads/across.svg?width=50in",
    "decay/curves.packed?decay.backend=torch-cpu",
)
"""The addresses that took longest before they had limits, the slowest first."""
HOSTILE = ("", "nan", "1e999", "-1", "0", "\0", "<script>", "' or 1=1", "../../etc/passwd", "٣", "9" * 400, "[" * 900)
# Runs Streamlit, and writes what the caches hold by their own count into a file, whose name is the first argument.
COUNTING = """
import pathlib, sys, threading, time
from rope_viz.pictures import blob_store
from rope_viz.ui import picture_route
path = pathlib.Path(sys.argv.pop(1))
def count():
    while True:
        path.write_text(str(blob_store.STORE.size + picture_route.GALLERY.size))
        time.sleep(1)
threading.Thread(target=count, daemon=True).start()
from streamlit.web.cli import main
main()
"""


@dataclass
class Observations:
    """Times in seconds of the second visitor, peaks of memory in MB, and the attacker's answers by status."""

    pictures: list[float] = field(default_factory=list)
    health: list[float] = field(default_factory=list)
    problems: Counter[str] = field(default_factory=Counter)
    server: list[float] = field(default_factory=list)
    workers: list[float] = field(default_factory=list)


async def request(
    url: str, path: str, *, source: str, method: str = "GET", body: bytes = b"", leave: float | None = None
) -> int:
    """Send one request from an address of this machine; return the status, 0 for a connection that was closed.

    `leave` hangs up after so many seconds.
    """
    parts = urlsplit(url)
    read, write = await asyncio.open_connection(parts.hostname, parts.port, local_addr=(source, 0), limit=1 << 26)
    try:
        lines = [f"{method} {path} HTTP/1.1", f"Host: {parts.netloc}", "Connection: close", "Accept-Encoding: gzip"]
        if method == "POST":
            lines += ["rope-viz: kept", f"Content-Length: {len(body)}"]
        write.write("\r\n".join([*lines, "", ""]).encode("utf-8", "replace"))
        for start in range(0, len(body), 1 << 20):
            write.write(body[start : start + (1 << 20)])
            await write.drain()
        answer = await asyncio.wait_for(read.read(), leave or 120)
        found = re.match(rb"HTTP/1\.1 (\d+)", answer)
        return int(found[1]) if found else 0
    except (TimeoutError, OSError):
        return 0
    finally:
        write.close()


def random_address(chance: random.Random) -> str:
    """Return an address with random and hostile values."""
    picture = chance.choice(registry.pictures())
    query = {"model": chance.choice(["llama-3.1-8b", "qwen3-8b-yarn", "deepseek-v3", "kimi-k2-instruct"])}
    for choice in chance.sample(picture.uses, min(len(picture.uses), chance.randint(0, 4))):
        options = list(getattr(choice, "options", ()))
        number = str(chance.choice([1, 16, 903, 2048, 16384, 10_000_000, -5, 1e30]))
        query[choice.key] = chance.choice([*options, number, chance.choice(HOSTILE)])
    form = chance.choice(["packed", *FORMS])
    if chance.random() < 0.3:
        query |= {"width": chance.choice(["50in", "94px", "4800px", "1e9"]), "height": "4800px"}
    if chance.random() < 0.2:
        query |= {"part": str(chance.randint(0, 12)), "view": "0.5,2.5"}
    return f"{picture.address}.{form}?{urlencode(query)}"


@functools.cache
def hostile_contents() -> list[tuple[str, str, bytes]]:
    """Return (picture, end of the query, content) of contents that are large, deep or dense."""
    found = []
    for size in (1_000, 30_000, 300_000):
        answers = [
            {"method": f"m{i}", "length": i + 1, "depth": i / size, "repeat": 0, "right": True} for i in range(size)
        ]
        packed = io.BytesIO()
        np.savez_compressed(packed, q=np.zeros(size * 100, dtype=bool))
        evaluation = json.dumps({"version": 1, "answers": answers}).encode()
        scaling = {"scaling": {"name": "yarn"}, "x": [1] * size}
        own = "decay.show=own&decay.source"
        found += [
            ("decay/curves", f"{own}=file&decay.file", b"a.npz\0" + packed.getvalue()),
            ("decay/curves", f"{own}=file&decay.file", b"a.csv\0" + b"1," * size),
            ("decay/curves", f"{own}=typed&decay.typed", json.dumps({"q": "1 " * size}).encode()),
            ("recall/yours", "recall.file", b"a.json\0" + evaluation),
            ("recall/yours", "recall.file", b"a.json\0" + b"[" * size),
            ("runtimes/curves", "model=custom&own", json.dumps({f"k{i}": i for i in range(size)}).encode()),
            ("runtimes/curves", "model=custom&own", b'{"a":[' + b"[]," * size + b"1]}"),
            ("frequencies/wavelengths", "spec", json.dumps(scaling).encode()),
        ]
    return found


async def attack_once(url: str, chance: random.Random) -> int:
    """Send one hostile request; return its status."""
    kind = chance.random()
    leave = chance.choice([None, 1.0, 4.0])
    if kind < 0.45:
        return await request(url, f"/rope-viz/picture/{random_address(chance)}", source=ATTACKER, leave=leave)
    if kind < 0.6:
        return await request(url, f"/rope-viz/picture/{chance.choice(SLOWEST)}", source=ATTACKER, leave=leave)
    if kind < 0.65:
        slow = f"recall/needle.packed?part=9&recall.length=16384&method=yarn&base={chance.randint(10_000, 99_999)}"
        return await request(url, f"/rope-viz/picture/{slow}", source=ATTACKER, leave=leave)
    if kind < 0.7:
        page = f"/{quote(chance.choice(['scaling', 'recall', 'nowhere', 'a/b/c']))}?{urlencode({'model': 'x' * 9000})}"
        return await request(url, page, source=ATTACKER)
    address, query, content = chance.choice(hostile_contents())
    salted = secrets.token_bytes(blob_store.SALT) + content
    body = len(salted).to_bytes(4, "little") + salted
    path = (
        f"/rope-viz/picture/{address}.{chance.choice(['packed', 'svg', 'json'])}?{query}={blob_store.name_of(salted)}"
    )
    if kind < 0.75:
        return await half_body(url, path, body)
    return await request(url, path, source=ATTACKER, method="POST", body=body, leave=leave)


async def half_body(url: str, path: str, body: bytes) -> int:
    """Send the first half of a large body, and wait for what the server does."""
    parts = urlsplit(url)
    read, write = await asyncio.open_connection(parts.hostname, parts.port, local_addr=(ATTACKER, 0))
    head = f"POST {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nrope-viz: kept\r\nContent-Length: {40 << 20}\r\n\r\n"
    try:
        write.write(head.encode() + body[: len(body) // 2] + bytes(8 << 20))
        answer = await asyncio.wait_for(read.read(), 90)
        found = re.match(rb"HTTP/1\.1 (\d+)", answer)
        return int(found[1]) if found else 0
    except (TimeoutError, OSError):
        return 0
    finally:
        write.close()


def attack(url: str, seconds: float, seed: int, results: multiprocessing.Queue[dict[int, int]]) -> None:
    """Attack a server for some seconds, sixteen requests at a time; put the number of answers by status."""
    os.nice(10)
    hostile_contents()

    async def all_at_once() -> Counter[int]:
        observations, end = Counter[int](), time.monotonic() + seconds

        async def one(number: int) -> None:
            chance = random.Random(seed + number)
            while time.monotonic() < end:
                try:
                    observations[await attack_once(url, chance)] += 1
                except OSError:
                    observations[0] += 1

        await asyncio.gather(*(one(number) for number in range(16)))
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
    observations.server.append(resident(pid))
    observations.workers += [resident(each) for each in descendants(pid)] or [0.0]


def resident(pid: int) -> float:
    """Return the resident memory of a process in MB, 0 if it has ended."""
    with contextlib.suppress(OSError, StopIteration):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))
    return 0.0


def descendants(pid: int) -> list[int]:
    """Return the processes that a process started, and theirs."""
    found = []
    for folder in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError):
            found += [int(each) for each in (folder / "children").read_text().split()]
    return found + [each for child in found for each in descendants(child)]


@contextlib.contextmanager
def counted_server(root: Path = ROOT) -> Iterator[tuple[Server, Path]]:
    """Run a server that writes its log and its caches' own count into files; yield it and their folder."""
    with tempfile.TemporaryDirectory() as folder:
        at, port = Path(folder), find_free_port()
        options = ["--server.headless", "true", "--server.port", str(port)]
        command = [sys.executable, "-c", COUNTING, str(at / "count"), "run", "app.py", *options]
        with (at / "log").open("wb") as log, running_process(command, cwd=root, stderr=log) as process:
            url = f"http://127.0.0.1:{port}"
            wait_for_answer(process, url + HEALTH)
            yield Server(url, process), at


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
    """Attack a server and print the observations; return 1 if a limit was broken."""
    seconds, observations = 60.0 * options.minutes, Observations()
    with counted_server(options.root) as (server, folder):
        asyncio.run(use(server.url, 2.0, server.process.pid, Observations()))
        before = resident(server.process.pid)
        results: multiprocessing.Queue[dict[int, int]] = multiprocessing.Queue()
        attacker = multiprocessing.Process(target=attack, args=(server.url, seconds, options.seed, results))
        attacker.start()
        asyncio.run(use(server.url, seconds, server.process.pid, observations))
        answers = results.get(timeout=180)
        attacker.join()
        time.sleep(options.after)
        after, count = resident(server.process.pid), int((folder / "count").read_text() or 0) / (1 << 20)
        left, log = len(descendants(server.process.pid)), (folder / "log").read_text(errors="replace")
    print(f"the attacker's answers by status: {dict(sorted(answers.items()))}; 0: closed by one side")
    passed = [
        print_times("pictures", observations.pictures, (1.5, 4.0)),
        print_times("health", observations.health, (0.5, 2.0)),
        max(observations.server) <= 900,
        after - before <= 150 + count,
        not answers.get(500) and not log.count("Traceback") and not observations.problems,
    ]
    print(
        f"server {before:.0f} MB at its start, at most {max(observations.server):.0f} MB (limit 900), {after:.0f} MB "
        f"{options.after:.0f} s later (limit {before + 150 + count:.0f}; caches {count:.0f} MB by their own count)"
    )
    print(f"workers at most {max(observations.workers):.0f} MB each, {left} at the end")
    print(
        f"answers of 500: {answers.get(500, 0)}   tracebacks: {log.count('Traceback')}   "
        f"second visitor's problems: {dict(observations.problems)}"
    )
    if log.strip():
        print("log:", log[-3000:])
    print("all limits passed" if all(passed) else "a limit was broken")
    return 0 if all(passed) else 1


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process, 0 if it has ended."""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


async def measure_costs(root: Path, address: str) -> tuple[int, float, float, float]:
    """Return status, seconds, MB more at the peak and processor seconds of one address on a fresh server."""
    with counted_server(root) as (server, _):
        pid = server.process.pid
        await request(server.url, PLAIN.format(base=10_000), source=USER)
        await asyncio.sleep(3.0)
        cpu: dict[int, float] = {}

        def read_memory() -> float:
            """Record the processor time of each process, as some end with the answer; return the memory of all."""
            pids = [pid, *descendants(pid)]
            for each in pids:
                cpu[each] = max(cpu.get(each, 0.0), cpu_seconds(each))
            return sum(map(resident, pids))

        memory, before, start = read_memory(), sum(cpu.values()), time.monotonic()
        peak, asked = memory, asyncio.ensure_future(request(server.url, f"/rope-viz/picture/{address}", source=USER))
        while not asked.done():
            peak = max(peak, read_memory())
            await asyncio.sleep(0.02)
        read_memory()
        return asked.result(), time.monotonic() - start, peak - memory, sum(cpu.values()) - before


def main() -> int:
    """Attack a server started here, or measure single addresses."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
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
    for address in SLOWEST:
        status, seconds, megabytes, cpu = asyncio.run(measure_costs(options.root, address))
        print(f"{status}  {cpu:5.1f} s of processor  {seconds:5.1f} s  {megabytes:5.0f} MB more  {address}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
