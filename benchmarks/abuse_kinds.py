"""Abuse by kind: each hostile kind alone for some minutes, and what a second visitor notices of it.

Run by hand: python benchmarks/abuse_kinds.py --seconds 180. Each kind gets a server of its own. The attacker is at
127.0.1.1 and the following addresses, in a process of its own with a low priority. A second visitor, at 127.0.0.2,
asks all the time for the health check, for pictures that must be drawn, for pictures of an own config, and opens
pages. Prints a line for each kind, with PASS or FAIL, and ends with exit code 1 after any FAIL. The last kind needs
no server: commands that ask servers which never come to an end.

--kinds takes some of the kinds by parts of their names, --list prints the names. Linux only: other systems have no
second loopback address.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import io
import itertools
import json
import multiprocessing
import os
import random
import re
import secrets
import socket
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import websockets
from streamlit.proto.WidgetStates_pb2 import WidgetState

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.abuse_requests import PICTURE, drop_file, pack_contents, request, upload
from benchmarks.dripping_servers import measure_commands
from benchmarks.hostile_texts import DOORS, choose_text, make_config, make_query
from benchmarks.sessions import FAILURES, Run, connect, finish_run, make_rerun, run_page
from benchmarks.visitor import PAGES, Visitor
from benchmarks.watched_server import ROOT, watched_server

VISITOR = "127.0.0.2"
MIB = 1 << 20
LIMITS = {"health": 1.0, "picture": 2.0, "own config": 4.0, "page": float("inf")}
"""Seconds that the second visitor may wait. A page has no limit, but each must open."""
LARGEST = 500
"""MB that the server's process may take."""
MORE = 200
"""MB that it may have more than at its start, once the attacker has left."""
FORBIDDEN = ("500", "page with an error")
"""Answers to the attacker that are faults."""
ATTACKER_ENDS = 20.0
"""Seconds that the attacker may take to close its connections."""
LISTS = "[" + "[]," * 1_900_000 + "[]]"
"""JSON of 5.7 MB that takes 130 MB as Python's lists."""
LONG = json.dumps("x" * (5 * MIB))
HEATMAP = f"{PICTURE}/frequencies/heatmap.html"


class Attack:
    """An attack on a server: its address, the attacker's randomness, and the answers by what they were."""

    def __init__(self, url: str, seed: int = 0) -> None:
        self.url = url
        self.chance = random.Random(seed)
        self.answers = Counter[str]()
        self._numbers = itertools.count(1)

    def next_number(self) -> int:
        """Return a number that was not returned before."""
        return next(self._numbers)

    async def repeat(self, act: Callable[[], Awaitable[object]], pause: float = 0.2) -> None:
        """Do something again and again, also after a refusal."""
        while True:
            try:
                await act()
            except websockets.InvalidStatus as refusal:
                self.answers[f"refused with {refusal.response.status_code}"] += 1
            except websockets.ConnectionClosed as closed:
                self.answers[f"closed with {closed.rcvd.code if closed.rcvd else 'no code'}"] += 1
            except FAILURES as error:
                self.answers[type(error).__name__] += 1
            await asyncio.sleep(pause)

    async def ask(self, path: str, source: str, *, method: str = "GET", body: bytes = b"") -> None:
        """Send one request and count its answer."""
        status = await request(self.url, path, source=source, method=method, body=body)
        self.answers[str(status)] += 1

    def count_run(self, run: Run) -> None:
        """Count a run, and whether its page had an error."""
        self.answers["page with an error" if run.exceptions else "run"] += 1


def source(number: int) -> str:
    """Return the attacker's address of a number, from 0 on."""
    return f"127.0.1.{number + 1}"


async def do_nothing(attack: Attack) -> None:
    """Leave the server to the second visitor: the times of this machine without an attack."""
    await asyncio.Event().wait()


# Reruns of pages


async def storm(attack: Attack, *, count: int, rate: float, pages: tuple[str, ...], reads: bool) -> None:
    """Send so many reruns a second over each of several connections of one address, without waiting."""

    async def flood() -> None:
        options = {"source": source(0), "ping_interval": None, "max_queue": 1}
        async with connect(attack.url, **options) as connection:
            reader = asyncio.create_task(read_all(connection)) if reads else None
            try:
                due = time.monotonic()
                while True:
                    query = {"base": str(10_000 + attack.next_number())}
                    await connection.send(make_rerun(attack.chance.choice(pages), query))
                    attack.answers["sent"] += 1
                    due = max(due + 1 / rate, time.monotonic() - 1.0)
                    await asyncio.sleep(max(0.0, due - time.monotonic()))
            finally:
                if reader:
                    reader.cancel()

    await asyncio.gather(*(attack.repeat(flood) for _ in range(count)))


async def read_all(connection: websockets.ClientConnection) -> None:
    """Take everything that a server sends."""
    async for _ in connection:
        pass


async def wait_for_each(attack: Attack, *, count: int) -> None:
    """Rerun pages over several connections of one address, each once the last run is done."""

    async def run_on() -> None:
        async with connect(attack.url, source=source(0)) as connection:
            while True:
                query = {"base": str(10_000 + attack.next_number())}
                attack.count_run(await run_page(connection, attack.chance.choice(PAGES), query))

    await asyncio.gather(*(attack.repeat(run_on) for _ in range(count)))


# Values of controls


def make_message(field: str, content: str) -> str:
    """Return a component's state with a large content, as JSON, in one field of its message."""
    fields = {"name": '"x"', "value": "1", "turn": "1"} | {field: content}
    written = ", ".join(f'"{name}": {value}' for name, value in fields.items())
    return '{"message": {' + written + "}}"


async def send_large(attack: Attack, *, tabs: int, field: str, content: str) -> None:
    """Send a large message to every component of two pages, from several tabs of one address."""
    value = make_message(field, content)

    async def use_tab() -> None:
        async with connect(attack.url, source=source(0)) as connection:
            for page in itertools.cycle(("decay", "scaling")):
                first = await run_page(connection, page, {})
                for control in first.list_controls("bidi_component"):
                    state = WidgetState(id=control, json_value=value)
                    await connection.send(make_rerun(page, {}, state))
                    attack.count_run(await finish_run(connection, seconds=20))

    await asyncio.gather(*(attack.repeat(use_tab) for _ in range(tabs)))


async def send_texts(attack: Attack, *, tabs: int) -> None:
    """Send texts of 5 MiB to every text field, and to what a browser stores and restores."""
    stored = (
        {"restore": {"own": {"text": "x" * (5 * MIB), "tab": True}}},
        {"restore": {"held": {"decay.typed": "x" * (5 * MIB), "rotation.x": [[]] * 100_000}}},
        {"message": {"name": "stored", "turn": 7, "value": ["x" * 40] * 100_000}},
    )
    values = [json.dumps(value) for value in stored]

    async def use_tab() -> None:
        async with connect(attack.url, source=source(0)) as connection:
            for page in itertools.cycle(("decay", "rotation", "recall")):
                first = await run_page(connection, page, {})
                texts = first.list_controls("text_area", "text_input")
                states = [WidgetState(id=control, string_value="x" * (5 * MIB)) for control in texts]
                states += [
                    WidgetState(id=control, json_value=value)
                    for control in first.list_controls("bidi_component")
                    if control.endswith("shell")
                    for value in values
                ]
                for state in states:
                    await connection.send(make_rerun(page, {}, state))
                    attack.count_run(await finish_run(connection, seconds=20))

    await asyncio.gather(*(attack.repeat(use_tab) for _ in range(tabs)))


# Connections


async def stay_idle(attack: Attack, *, runs: bool) -> None:
    """Keep 104 connections from each of two addresses, which answer pings; at most, each runs a page once."""

    async def stay(number: int) -> None:
        async with connect(attack.url, source=source(number % 2)) as connection:
            attack.answers["open"] += 1
            if runs:
                await connection.send(make_rerun("scaling", {}))
            await read_all(connection)
        attack.answers["closed by the server"] += 1

    await asyncio.gather(*(attack.repeat(functools.partial(stay, number), pause=1.0) for number in range(208)))


async def open_class(attack: Attack) -> None:
    """Open 120 pages at once from one address, keep them for 20 s, and do so again."""
    while True:
        await asyncio.gather(*(open_student(attack) for _ in range(120)))


async def open_student(attack: Attack) -> None:
    """Open a page as a browser does, and keep it for 20 s."""
    status = await request(attack.url, "/scaling", source=source(0))
    attack.answers[f"page {status}"] += 1
    if status != 200:
        await asyncio.sleep(20.0)
        return
    try:
        async with connect(attack.url, source=source(0)) as connection:
            attack.count_run(await run_page(connection, "scaling", {}))
            await asyncio.sleep(20.0)
    except FAILURES as error:
        attack.answers[f"connection: {type(error).__name__}"] += 1
        await asyncio.sleep(20.0)


async def leave_early(attack: Attack) -> None:
    """Ask for 300 pictures at once from 12 addresses, and hang up after 0.4 s."""

    async def ask(number: int) -> None:
        path = f"{PICTURE}/scaling/comparison.packed?base={20_000 + attack.next_number()}"
        status = await request(attack.url, path, source=source(number % 12), leave=0.4)
        attack.answers["left" if status == 0 else str(status)] += 1

    await asyncio.gather(*(attack.repeat(functools.partial(ask, number), pause=0.0) for number in range(300)))


# Bodies and answers


async def send_slowly(attack: Attack, *, addresses: int) -> None:
    """Send 8 bodies of 48 MiB from each address, each at 18 KiB/s."""
    parts = urlsplit(attack.url)
    path = f"{PICTURE}/decay/curves.packed?decay.show=own"
    head = f"POST {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nrope-viz: kept\r\nContent-Length: {48 * MIB}\r\n\r\n"

    async def send(number: int) -> None:
        read, write = await asyncio.open_connection(
            parts.hostname, parts.port, local_addr=(source(number % addresses), 0)
        )
        answer = asyncio.create_task(read.readline())
        try:
            write.write(head.encode())
            while not answer.done():
                write.write(bytes(18 << 10))
                await write.drain()
                await asyncio.wait({answer}, timeout=1.0)
            line = answer.result().split()
            attack.answers[line[1].decode() if len(line) > 1 else "closed"] += 1
        finally:
            answer.cancel()
            write.close()

    await asyncio.gather(*(attack.repeat(functools.partial(send, number)) for number in range(8 * addresses)))


async def read_little(attack: Attack, *, every: float | None) -> None:
    """Ask for a cached file of 5.9 MB with 240 clients of 8 addresses, and read nothing, or 16 bytes sometimes."""
    parts = urlsplit(attack.url)
    await request(attack.url, HEATMAP, source=source(0))
    loop = asyncio.get_running_loop()

    async def ask(number: int) -> None:
        client = socket.socket()
        # The system would take some megabytes for a client that reads nothing.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.setblocking(False)
        client.bind((source(number % 8), 0))
        try:
            await loop.sock_connect(client, (parts.hostname, parts.port))
            # Without compression: the system's own buffers would hold most of the packed file.
            head = f"GET {HEATMAP} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n"
            await loop.sock_sendall(client, head.encode())
            attack.answers["asked"] += 1
            while every is None:
                await asyncio.sleep(1.0)
                # A reset ends the wait; what has arrived stays unread.
                if client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                    break
            while every is not None and await loop.sock_recv(client, 16):
                await asyncio.sleep(every)
            attack.answers["closed by the server"] += 1
        finally:
            client.close()

    await asyncio.gather(*(attack.repeat(functools.partial(ask, number)) for number in range(240)))


@functools.cache
def pack_zeros() -> bytes:
    """Return an npz of 8.5 kB with 8 Mi numbers."""
    packed = io.BytesIO()
    np.savez_compressed(packed, q=np.zeros(8 * MIB, np.int8))
    return b"a.npz\0" + packed.getvalue()


async def send_packed(attack: Attack, *, asks_again: bool) -> None:
    """Send such an npz 40 times at once from 8 addresses, or once from two, which then ask for it 120 times at once."""
    path = f"{PICTURE}/decay/curves.packed?decay.show=own&decay.source=file&decay.file="

    async def send(number: int) -> None:
        (name,), body = pack_contents(pack_zeros())
        await attack.ask(path + name, source(number % 8), method="POST", body=body)

    async def ask(name: str, number: int) -> None:
        await attack.ask(f"{path}{name}&base={20_000 + attack.next_number()}", source(number))

    if not asks_again:
        return await all_of(attack.repeat(functools.partial(send, number), pause=0.0) for number in range(40))
    asks = []
    for number in range(2):
        (name,), body = pack_contents(pack_zeros())
        await attack.ask(path + name, source(number), method="POST", body=body)
        asks += [functools.partial(ask, name, number)] * 120
    return await all_of(attack.repeat(each, pause=0.0) for each in asks)


async def all_of(endless: object) -> None:
    """Wait for coroutines that never end."""
    await asyncio.gather(*endless)  # type: ignore[misc]


# Texts


async def send_hostile_texts(attack: Attack) -> None:
    """Send surrogates and control characters in every field of every door, by requests and by pages."""

    async def ask(number: int) -> None:
        method, path, body = DOORS[number % len(DOORS)](attack.chance)
        await attack.ask(path, source(number % 4), method=method, body=body)

    async def use_pages(number: int) -> None:
        async with connect(attack.url, source=source(number % 4)) as connection:
            page = attack.chance.choice(PAGES)
            message = make_rerun(page, {})
            for _ in range(10):
                await connection.send(message)
                run = await finish_run(connection)
                attack.count_run(run)
                message = make_hostile_run(attack.chance, page, run)
                if attack.chance.random() < 0.3:
                    message = await drop_hostile(attack, source(number % 4), page, run)

    requests = [attack.repeat(functools.partial(ask, number), pause=0.0) for number in range(16)]
    pages = [attack.repeat(functools.partial(use_pages, number)) for number in range(4)]
    await asyncio.gather(*requests, *pages)


async def drop_hostile(attack: Attack, source: str, page: str, run: Run) -> bytes:
    """Upload a config with a hostile text, and return the message of a run that finds it in a field for files."""
    fields = run.list_controls("file_uploader")
    if not fields:
        return make_rerun(page, {})
    file = secrets.token_hex(8)
    content = json.dumps(make_config(attack.chance)).encode()
    status = await upload(attack.url, source, run.session, content, file)
    attack.answers[f"upload {status}"] += 1
    name = choose_text(attack.chance).encode("utf-8", "replace").decode()
    state = drop_file(attack.chance.choice(fields), file, len(content), f"{name}.json")
    return make_rerun(page, {}, state)


def make_hostile_run(chance: random.Random, page: str, run: Run) -> bytes:
    """Return the message of a run with a hostile query, or with a hostile value in one of the page's controls."""
    if chance.random() < 0.5 or not run.controls:
        return make_rerun(page, make_query(chance))
    text = choose_text(chance)
    if chance.random() < 0.5:
        control = chance.choice(run.list_controls("bidi_component"))
        field = chance.choice(["name", "value", "turn"])
        return make_rerun(page, {}, WidgetState(id=control, json_value=make_message(field, json.dumps(text))))

    # A form takes its texts when its button is pressed.
    pasted = json.dumps(make_config(chance))
    plain = text.encode("utf-8", "replace").decode()
    texts = [
        WidgetState(id=control, string_value=chance.choice([pasted, plain]))
        for control in run.list_controls("text_area", "text_input")
    ]
    buttons = [
        WidgetState(id=control, trigger_value=True)
        for control in run.list_controls("button")
        if "FormSubmitter" in control
    ]
    return make_rerun(page, {}, *texts, *buttons)


@dataclass(frozen=True)
class Kind:
    """A hostile kind: what attacks a server, and the second visitor's address."""

    attack: Callable[[Attack], Awaitable[None]]
    visitor: str = VISITOR


def make_storms() -> dict[str, Kind]:
    """Return the storms of reruns, read and not read, over one page and over all."""
    storms = {}
    for pages, where in ((PAGES[:1], "one page"), (PAGES, "many pages")):
        for reads, how in ((True, "read"), (False, "unread")):
            run = functools.partial(storm, count=10, rate=16, pages=pages, reads=reads)
            storms[f"reruns 10 x 16/s, {where}, {how}"] = Kind(run)
    for count, rate in ((1, 160), (3, 16)):
        run = functools.partial(storm, count=count, rate=rate, pages=PAGES, reads=True)
        storms[f"reruns {count} x {rate}/s"] = Kind(run)
    return storms


def make_large_messages() -> dict[str, Kind]:
    """Return the large messages to all components, by the field that is large."""
    contents = (("turn", LISTS, 1), ("turn", LISTS, 4), ("value", LISTS, 1), ("name", LISTS, 1), ("turn", LONG, 4))
    return {
        f"{'lists' if content is LISTS else 'text'} as {field}, tabs {tabs}": Kind(
            functools.partial(send_large, tabs=tabs, field=field, content=content)
        )
        for field, content, tabs in contents
    }


KINDS: dict[str, Kind] = {
    "no attack": Kind(do_nothing),
    **make_storms(),
    "reruns 40 that wait": Kind(functools.partial(wait_for_each, count=40)),
    **make_large_messages(),
    "texts of 5 MiB, tabs 4": Kind(functools.partial(send_texts, tabs=4)),
    "idle sockets": Kind(functools.partial(stay_idle, runs=False)),
    "idle sockets after a run": Kind(functools.partial(stay_idle, runs=True)),
    "hostile texts": Kind(send_hostile_texts),
    "slow bodies 4 x 8": Kind(functools.partial(send_slowly, addresses=4)),
    # Whoever shares the attacker's address still sends small configs.
    "slow bodies 1 x 8, same address": Kind(functools.partial(send_slowly, addresses=1), source(0)),
    "240 clients that do not read": Kind(functools.partial(read_little, every=None)),
    "240 clients that read little": Kind(functools.partial(read_little, every=20.0)),
    "packed npz sent": Kind(functools.partial(send_packed, asks_again=False)),
    "packed npz asked for": Kind(functools.partial(send_packed, asks_again=True)),
    "120 pages of one address": Kind(open_class),
    "requests that leave": Kind(leave_early),
}
COMMANDS = "commands and dripping servers"


def run_attack(name: str, url: str, seconds: float, results: multiprocessing.Queue[Counter[str]]) -> None:
    """Attack for some seconds with one kind, and put the answers."""
    os.nice(10)
    attack = Attack(url)

    async def act() -> None:
        tasks = asyncio.ensure_future(KINDS[name].attack(attack))
        await asyncio.wait({tasks}, timeout=seconds)
        if tasks.done() and (error := tasks.exception()):
            attack.answers[f"attacker's error: {error!r}"[:200]] += 1
        # Before the tasks end, which can take long: each closes its connection.
        results.put(Counter(attack.answers))
        tasks.cancel()

    asyncio.run(act())


@dataclass
class Outcome:
    """What was measured while one kind attacked: the visitor, the server's memory in MB and its tracebacks."""

    visitor: Visitor
    answers: Counter[str]
    start: float
    peak: float
    after: float
    log: str

    def list_problems(self) -> list[str]:
        """Return what was not as it must be."""
        waits = {kind: self.visitor.find_longest(kind) for kind in LIMITS}
        problems = [f"{kind} {wait:.1f} s" for kind, wait in waits.items() if wait >= LIMITS[kind]]
        problems += [f"{number} x {problem}" for problem, number in self.visitor.problems.items()]
        if self.peak > LARGEST:
            problems.append(f"peak {self.peak:.0f} MB")
        if self.after > self.start + MORE:
            problems.append(f"{self.after - self.start:.0f} MB more than at the start")
        problems += [f"{self.answers[answer]} x {answer}" for answer in FORBIDDEN if self.answers[answer]]
        problems += [f"{number} x {error}" for error, number in list_errors(self.log).most_common(3)]
        problems += [answer for answer in self.answers if answer.startswith("attacker's error")]
        return problems


def list_errors(log: str) -> Counter[str]:
    """Return the last lines of the tracebacks in a log, without the one that Streamlit writes when a client leaves."""
    last = re.findall(r"^Traceback .*(?:\n(?: .*)?)+(?P<last>\S.*)$", log, re.MULTILINE)
    return Counter(line[:120] for line in last if "WebSocketDisconnected" not in line)


def measure_kind(name: str, options: argparse.Namespace) -> Outcome:
    """Attack a fresh server with one kind while the second visitor uses it."""
    with watched_server(options.root, options.port) as server:
        asyncio.run(Visitor(server, KINDS[name].visitor).use(3.0))
        start = server.read_memory()

        results: multiprocessing.Queue[Counter[str]] = multiprocessing.Queue()
        attacker = multiprocessing.Process(target=run_attack, args=(name, server.url, options.seconds, results))
        attacker.start()
        visitor = Visitor(server, KINDS[name].visitor)
        asyncio.run(visitor.use(options.seconds))
        answers = results.get(timeout=120)
        attacker.join(ATTACKER_ENDS)
        attacker.kill()

        time.sleep(options.after)
        log = server.read_log()
        after, peak = server.read_memory(), server.read_peak()
    return Outcome(visitor, answers, start, peak, after, log)


def print_outcome(name: str, outcome: Outcome) -> bool:
    """Print what was measured for one kind; return whether everything was as it must be."""
    waits = " ".join(f"{outcome.visitor.find_longest(kind):7.2f}" for kind in LIMITS)
    memory = f"{outcome.start:5.0f} {outcome.peak:6.0f} {outcome.after:6.0f}"
    problems = outcome.list_problems()
    verdict = "FAIL" if problems else "PASS"
    numbers = f"{waits}  {memory} {outcome.visitor.threads:7d}  {outcome.visitor.lag:5.2f}"
    print(f"{name:34s} {numbers}  {verdict}  {'; '.join(problems)}")
    print(f"    attacker: {dict(outcome.answers.most_common(8))}", flush=True)
    return not problems


def main() -> int:
    """Measure the kinds; return 1 if one of them failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=180.0, help="of each kind")
    parser.add_argument("--after", type=float, default=60.0, help="seconds to wait before memory is measured again")
    parser.add_argument("--kinds", default="", help="parts of names, separated by semicolons; default: all")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout to serve; commands are those of this one")
    parser.add_argument("--port", type=int, default=0, help="default: a free one")
    parser.add_argument("--log", action="store_true", help="print the end of each server's log")
    parser.add_argument("--list", action="store_true", help="only print the names of the kinds")
    parser.add_argument("--smallest", action="store_true", help="one kind for a few seconds")
    options = parser.parse_args()
    if options.smallest:
        options.seconds, options.after, options.kinds = 3.0, 0.0, "3 x 16"

    wanted = [part.strip() for part in options.kinds.split(";")]
    names = [name for name in (*KINDS, COMMANDS) if any(part in name for part in wanted)]
    if not names:
        parser.error(f"no kind has {options.kinds!r} in its name: --list prints them")
    if options.list:
        print("\n".join(names))
        return 0

    print("longest waits in seconds, memory of the server in MB, most threads, lag of this process in seconds")
    print(f"{'':34s}  health picture  config    page  start   peak  after threads    lag", flush=True)
    passed = []
    for name in names:
        if name == COMMANDS:
            passed.append(asyncio.run(measure_commands()))
            continue
        outcome = measure_kind(name, options)
        passed.append(print_outcome(name, outcome))
        if options.log and outcome.log.strip():
            print("    log:", outcome.log[-3000:], flush=True)
    print(f"{sum(passed)} of {len(passed)} kinds passed")
    return 0 if all(passed) or options.smallest else 1


if __name__ == "__main__":
    sys.exit(main())
