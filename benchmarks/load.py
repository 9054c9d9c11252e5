"""Load test: page runs and pictures of many simultaneous users on one server.

Run by hand: python benchmarks/load.py --users 25 --seconds 60. Starts its own server (or takes --url) and speaks
Streamlit's protocol: every user has a WebSocket, changes model and base, opens another page one time in five, waits
1 to 5 seconds, requests the first pictures of the page as a browser does, and with probability --drag drags the base
for half a second at --rate pictures per second. Client and server share the machine. Prints medians, 95th percentiles
and the server's memory.

--drags 5 adds one user who drags by messages: for two seconds --rate messages per second, each of which reruns the
page. It measures the time from the last message to the end of the run that shows it. --tabs 120 then opens so many
pages at once from one address, and measures the time until each has its first run. Both come once in every round,
after the other users have left.

With --beside CHECKOUT, several rounds load this checkout and the other in turn, and the ratios of the medians and of
the 95th percentiles are printed round by round. Users then visit only the pages that both have.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import statistics
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

import checkouts
import websockets

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks import sessions
from tests.browser.processes import running_server

MODELS = [
    *("llama-3.1-8b", "qwen3-8b-yarn", "qwen3-8b", "kimi-k2-instruct", "gpt-oss-20b"),
    *("llama-2-7b", "phi-3.5-mini", "deepseek-v3", "gemma-3-27b-global", "mistral-7b-v0.3"),
]
IN_VIEW = 2
FRAME_RATE = 30.0
DRAG_SECONDS = 0.5
MESSAGES_SECONDS = 2.0
ROUNDS = 3
KINDS = {
    "first": "first runs",
    "runs": "runs",
    "pictures": "pictures at rest",
    "dragged": "pictures dragged",
    "messages": "drags by messages",
    "tabs": "pages opened at once",
}


class Target(NamedTuple):
    """A server to load: its address, its process if it is ours, its checkout, and the pages that users visit."""

    url: str
    pid: int | None
    checkout: checkouts.Checkout
    pages: tuple[str, ...]


@dataclass
class Measurements:
    """Measurements of the users: seconds by kind, errors, and how pages were refused that were opened at once."""

    first: list[float] = field(default_factory=list)
    runs: list[float] = field(default_factory=list)
    pictures: list[float] = field(default_factory=list)
    dragged: list[float] = field(default_factory=list)
    messages: list[float] = field(default_factory=list)
    tabs: list[float] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)


class Client:
    """A persistent connection for pictures."""

    def __init__(self, url: str) -> None:
        self.parts = urlsplit(url)
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def get(self, path: str) -> tuple[int, bytes]:
        """Return status and body; busy answers (503) are retried, as by a browser."""
        for _ in range(8):
            try:
                status, headers, body = await self.ask(path)
            except (asyncio.IncompleteReadError, ConnectionError):
                # The server closes idle connections; open another, as browsers do.
                self.close()
                status, headers, body = await self.ask(path)
            if status != 503:
                return status, body
            await asyncio.sleep(float(headers.get("retry-after", "1")))
        return status, body

    async def ask(self, path: str) -> tuple[int, dict[str, str], bytes]:
        """Send one request and return status, headers and body."""
        if self.streams is None:
            self.streams = await asyncio.open_connection(self.parts.hostname, self.parts.port)
        read, write = self.streams
        lines = (f"GET {self.parts.path}{path} HTTP/1.1", f"Host: {self.parts.netloc}", "Accept-Encoding: gzip", "", "")
        write.write("\r\n".join(lines).encode())
        head = (await read.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
        if "content-length" in headers:
            body = await read.readexactly(int(headers["content-length"]))
        else:
            body = b""
            while size := int(await read.readline(), 16):
                body += await read.readexactly(size)
                await read.readline()
            await read.readline()
        return int(head[0].split()[1]), headers, body

    def close(self) -> None:
        """Close the connection."""
        if self.streams is not None:
            self.streams[1].close()
            self.streams = None


async def simulate_user(
    target: Target, options: argparse.Namespace, measured: Measurements, end: float, chance: random.Random
) -> None:
    """Simulate one user until the end."""
    await asyncio.sleep(chance.random() * min(10.0, options.seconds / 4))
    url, _, checkout, pages = target
    page, first = chance.choice(pages), True
    client = Client(url)
    try:
        async with sessions.connect(url) as socket:
            while time.monotonic() < end:
                if not first and chance.random() < 0.2:
                    page = chance.choice(pages)
                query = {"model": chance.choice(MODELS), "base": str(chance.randint(10_000, 2_000_000))}
                (measured.first if first else measured.runs).append(await time_run(socket, page, query, measured))
                first = False
                names = [name for name in checkout.pages[page] if name != "measured"][:IN_VIEW]
                for name in names:
                    measured.pictures.append(await time_picture(client, page, name, query, measured))
                await asyncio.sleep(chance.uniform(1, 5))
                if names and chance.random() < options.drag:
                    for frame in range(round(DRAG_SECONDS * options.rate)):
                        start = time.monotonic()
                        moved = query | {"knob": "base", "value": str(10_000 + 1000 * frame), "coarse": "1"}
                        measured.dragged.append(await time_picture(client, page, names[0], moved, measured))
                        await asyncio.sleep(max(0.0, 1 / options.rate - (time.monotonic() - start)))
    except (OSError, asyncio.IncompleteReadError, websockets.WebSocketException, TimeoutError) as error:
        measured.errors[f"{type(error).__name__}: {error}"[:120]] += 1
    finally:
        client.close()


async def time_run(
    socket: websockets.ClientConnection, page: str, query: dict[str, str], measured: Measurements
) -> float:
    """Return the seconds of one run of a page, to the message that ends it."""
    start = time.monotonic()
    run = await sessions.run_page(socket, page, query)
    measured.errors.update(message[:120] for message in run.exceptions)
    return time.monotonic() - start


async def drag_by_messages(target: Target, options: argparse.Namespace, measured: Measurements) -> None:
    """Rerun one page at a fixed rate, again and again, and measure when the last message of a drag is shown."""
    page = target.pages[0]
    async with sessions.connect(target.url) as socket:
        await sessions.run_page(socket, page, {"model": MODELS[0]})
        for drag in range(options.drags):
            bases = [100_003 + 10_007 * drag + 7 * frame for frame in range(round(MESSAGES_SECONDS * options.rate))]
            # A browser reads while it sends.
            last_run = asyncio.ensure_future(sessions.finish_run(socket, shows=f"base={bases[-1]}".encode()))
            due = time.monotonic()
            for base in bases:
                await socket.send(sessions.make_rerun(page, {"model": MODELS[0], "base": str(base)}))
                start = time.monotonic()
                due += 1 / options.rate
                if base != bases[-1]:
                    await asyncio.sleep(max(0.0, due - start))
            run = await last_run
            measured.messages.append(time.monotonic() - start)
            measured.errors.update(message[:120] for message in run.exceptions)


async def open_tabs(target: Target, options: argparse.Namespace, measured: Measurements) -> None:
    """Open many pages at once from one address, and measure when each has its first run. All stay open to the end."""
    page = target.pages[0]

    async def open_tab(stack: contextlib.AsyncExitStack) -> None:
        start = time.monotonic()
        client = Client(target.url)
        stack.callback(client.close)
        status, _, body = await client.ask(f"/{page}")
        if status != 200:
            has_sentence = "a sentence" if b"<p" in body else "no sentence"
            measured.refused[f"page with {status} and {has_sentence}"] += 1
            return
        try:
            socket = await stack.enter_async_context(sessions.connect(target.url, open_timeout=60))
        except websockets.InvalidStatus as refusal:
            measured.refused[f"connection with {refusal.response.status_code}"] += 1
            return
        await time_run(socket, page, {}, measured)
        measured.tabs.append(time.monotonic() - start)

    async with contextlib.AsyncExitStack() as stack:
        opened = await asyncio.gather(*(open_tab(stack) for _ in range(options.tabs)), return_exceptions=True)
    failures = [outcome for outcome in opened if outcome is not None]
    measured.errors.update(f"a tab: {type(failure).__name__}: {failure}"[:120] for failure in failures)


async def time_picture(client: Client, page: str, name: str, query: dict[str, str], measured: Measurements) -> float:
    """Return the seconds of one picture."""
    start = time.monotonic()
    status, body = await client.get(f"/rope-viz/picture/{page}/{name}.packed?{urlencode(query)}")
    if status not in (200, 400):  # 400: the picture does not apply to the model
        measured.errors[f"{page}/{name}: {status} {body[:60]!r}"] += 1
    return time.monotonic() - start


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds of a process with all its threads, ended ones included (Linux)."""
    return time.clock_gettime((~pid << 3) | 2)


async def print_costs(servers: list[Target]) -> None:
    """Print the CPU time of one run by page: the median over the models, after one uncounted run.

    Several servers are measured in turn for each model, because machines have slow minutes. The last is this checkout.
    """
    print(f"{'page':14s} {'  '.join(target.checkout.name for target in servers)}")
    async with contextlib.AsyncExitStack() as stack:
        sockets = []
        for url, pid, *_ in servers:
            assert pid is not None
            sockets.append((await stack.enter_async_context(sessions.connect(url)), pid))
        for names in zip(*(target.pages for target in servers), strict=True):
            times: list[list[float]] = [[] for _ in servers]
            for model in (MODELS[0], *MODELS):
                for (socket, pid), page, each in zip(sockets, names, times, strict=True):
                    before = cpu_seconds(pid)
                    await time_run(socket, page, {"model": model}, Measurements())
                    await asyncio.sleep(0.05)
                    each.append(cpu_seconds(pid) - before)
            medians = [statistics.median(each[1:]) for each in times]
            ratios = "".join(f"  ÷ {medians[-1] / other:.2f}" for other in medians[:-1])
            shown = " ".join(f"{1e3 * median:6.1f}" for median in medians)
            print(f"{names[-1]:14s} {shown} ms of processor a run{ratios}", flush=True)


def read_memory(pid: int) -> float:
    """Return the resident memory of a process in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def print_times(name: str, seconds: list[float]) -> None:
    """Print one line of statistics."""
    if seconds:
        ordered = sorted(1e3 * second for second in seconds)
        p50, p95 = (ordered[int(share * (len(ordered) - 1))] for share in (0.5, 0.95))
        print(f"{name:22s} n {len(ordered):6d}   p50 {p50:6.0f} ms   p95 {p95:6.0f} ms   max {ordered[-1]:6.0f} ms")


async def load(target: Target, options: argparse.Namespace) -> Measurements:
    """Run all users at once and return their measurements."""
    measured, end = Measurements(), time.monotonic() + options.seconds
    all_users = asyncio.gather(
        *(simulate_user(target, options, measured, end, random.Random(i)) for i in range(options.users))
    )
    while not all_users.done():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(all_users), max(2.0, options.seconds / 6))
        where = f"memory {read_memory(target.pid):.0f} MB   " if target.pid else ""
        print(f"  {max(0.0, end - time.monotonic()):5.0f} s left   {where}runs {len(measured.runs)}", flush=True)
    if options.drags:
        await drag_by_messages(target, options, measured)
    if options.tabs:
        await open_tabs(target, options, measured)
    return measured


def print_measurements(rounds: list[Measurements]) -> None:
    """Print the statistics of one server over all rounds."""
    for kind, name in KINDS.items():
        print_times(name, [second for measured in rounds for second in getattr(measured, kind)])
    for number, measured in enumerate(rounds, 1):
        if measured.tabs or measured.refused:
            longest = max(measured.tabs, default=0.0)
            refused = dict(measured.refused)
            print(f"round {number}: {len(measured.tabs)} pages open, the last after {longest:.2f} s; refused {refused}")
    errors = sum((measured.errors for measured in rounds), Counter[str]())
    print(f"errors {sum(errors.values())} {errors.most_common(5)}")


def print_comparison(ours: list[Measurements], theirs: list[Measurements], name: str) -> None:
    """Print the ratios of this checkout's medians and 95th percentiles to those of another one."""
    for kind, label in KINDS.items():
        times = [(getattr(mine, kind), getattr(other, kind)) for mine, other in zip(ours, theirs, strict=True)]
        rounds = [(mine, other) for mine, other in times if mine and other]
        if not rounds:
            continue
        for share, what in ((0.5, "median"), (0.95, "p95")):
            values = [find_quantile(mine, share) for mine, _ in rounds]
            bases = [find_quantile(other, share) for _, other in rounds]
            ratios = checkouts.format_ratios(values, bases)
            print(f"{label:22s} this checkout ÷ {name}: {what} (by round) {ratios}")


def find_quantile(seconds: list[float], share: float) -> float:
    """Return the value below which a share of the times are."""
    if share == 0.5:
        return statistics.median(seconds)
    return sorted(seconds)[int(share * (len(seconds) - 1))]


def read_options() -> tuple[argparse.Namespace, list[checkouts.Checkout], list[tuple[str, ...]]]:
    """Return the options, this checkout and the others, and the pages that users visit in each of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="a running server; without it one is started")
    parser.add_argument("--users", type=int, default=25)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--drag", type=float, default=0.5, help="share of the times that a user drags a knob")
    parser.add_argument("--rate", type=float, default=FRAME_RATE, help="pictures or messages of a drag per second")
    parser.add_argument("--drags", type=int, default=0, help="drags by messages, in each round")
    parser.add_argument("--tabs", type=int, default=0, help="pages opened at once from one address, in each round")
    parser.add_argument("--costs", action="store_true", help="only the processor time of one run of each page")
    parser.add_argument("--beside", dest="compare", type=Path, nargs="+", default=[], help="other checkouts")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="rounds with --beside")
    parser.add_argument("--pages", default="", help="a,b,…; default: all")
    options = parser.parse_args()
    if options.url is not None and (options.costs or options.compare):
        parser.error("--costs and --beside need servers of their own: leave --url out")
    ours, *others = checkouts.read_checkouts(parser, options.compare)
    # Users of the load test begin after Home, the first page.
    pages = options.pages.split(",") if options.pages else list(ours.pages)[0 if options.costs else 1 :]
    unknown = [page for page in pages if page not in ours.pages]
    if unknown:
        parser.error(f"there is no page {unknown[0]}; the pages are {', '.join(ours.pages)}")
    matched = [checkouts.match_pages(pages, ours, other) for other in others]
    common = [page for page in pages if all(page in names for names in matched)]
    return options, [ours, *others], [tuple(common), *(tuple(names[page] for page in common) for names in matched)]


def main() -> None:
    """Measure a server started here, those of other checkouts in turn with it, or the one at --url."""
    options, found, pages = read_options()
    with contextlib.ExitStack() as stack:
        targets = []
        for checkout, names in zip(found, pages, strict=True):
            if options.url is not None:
                targets.append(Target(options.url, None, checkout, names))
                continue
            url, process = stack.enter_context(running_server(root=checkout.root))
            targets.append(Target(url, process.pid, checkout, names))
        if options.costs:
            return asyncio.run(print_costs([*targets[1:], targets[0]]))
        measured: list[list[Measurements]] = [[] for _ in targets]
        for turn in range(options.rounds if len(targets) > 1 else 1):
            for index in checkouts.in_turns(range(len(targets)), turn):
                measured[index].append(asyncio.run(load(targets[index], options)))
    for target, rounds in zip(targets, measured, strict=True):
        print(f"{target.checkout.name}:")
        print_measurements(rounds)
    for target, rounds in zip(targets[1:], measured[1:], strict=True):
        print_comparison(measured[0], rounds, target.checkout.name)


if __name__ == "__main__":
    main()
