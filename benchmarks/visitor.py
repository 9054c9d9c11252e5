"""A visitor who uses a server as people do, notes how long each answer takes, and what went wrong."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable

import websockets

from benchmarks.abuse_requests import MODEL, PICTURE, pack_config, pack_contents, request
from benchmarks.sessions import FAILURES, connect, run_page
from benchmarks.watched_server import WatchedServer
from rope_viz.pages import registry

HEALTH = "/_stcore/health"
LONGEST = 60.0
"""Seconds after which the visitor gives up."""
AT_ONCE = 20
"""Requests of one kind that may wait at one time: so many keep a stalled server's visitor counting."""
TICK = 0.05
PAGES = registry.ORDER[1:]
"""All pages but the first, which has no name in an address."""


class Visitor:
    """A visitor at an address of this machine, who also watches the server's threads.

    `times` are seconds by kind of request. `lag` is the longest time that this process itself was late: the
    times of a busy machine are longer by it.
    """

    def __init__(self, server: WatchedServer, source: str) -> None:
        self.server, self.source = server, source
        self.kinds: dict[str, tuple[float, Callable[[int], Awaitable[str]]]] = {
            "health": (0.25, self.check_health),
            "picture": (0.25, self.see_picture),
            "own config": (1.0, self.see_own_config),
            "page": (3.0, self.open_page),
        }
        self.times: dict[str, list[float]] = {kind: [] for kind in self.kinds}
        self.problems = Counter[str]()
        self.threads = 0
        self.lag = 0.0
        self._numbers = itertools.count(1)
        self._waiting: set[asyncio.Task[None]] = set()

    async def use(self, seconds: float) -> None:
        """Ask for everything in its own rhythm, whether or not the last answer came, and wait for all answers."""
        end = time.monotonic() + seconds
        due = dict.fromkeys(self.kinds, 0.0)
        while (now := time.monotonic()) < end:
            for kind, (interval, _) in self.kinds.items():
                if now >= due[kind]:
                    due[kind] = now + interval
                    self._start(kind)

            self.threads = max(self.threads, self.server.count_threads())
            await asyncio.sleep(TICK)
            self.lag = max(self.lag, time.monotonic() - now - TICK)
        await asyncio.gather(*self._waiting)

    def find_longest(self, kind: str) -> float:
        """Return the longest time of a kind of request, infinity if none was answered."""
        return max(self.times[kind], default=float("inf"))

    def _start(self, kind: str) -> None:
        if sum(task.get_name() == kind for task in self._waiting) >= AT_ONCE:
            return
        task = asyncio.create_task(self._time(kind), name=kind)
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    async def _time(self, kind: str) -> None:
        start = time.monotonic()
        ask = self.kinds[kind][1]
        try:
            problem = await asyncio.wait_for(ask(next(self._numbers)), LONGEST)
        except TimeoutError:
            problem = f"no answer after {LONGEST:.0f} s"
        except FAILURES as error:
            problem = f"{type(error).__name__} {error}"[:80]
        self.times[kind].append(time.monotonic() - start)
        if problem:
            self.problems[f"{kind}: {problem}"] += 1

    async def check_health(self, number: int) -> str:
        """Ask whether the server is well; return what went wrong."""
        return await self._get(HEALTH)

    async def see_picture(self, number: int) -> str:
        """Ask for a picture that nobody asked for before, so that it is drawn."""
        return await self._get(f"{PICTURE}/scaling/comparison.packed?base={10_000 + number}")

    async def see_own_config(self, number: int) -> str:
        """Ask for a picture of an own config: every other one is sent as a content, the others are in a link."""
        config = {**MODEL, "rope_theta": 10_000.0 + number}
        picture = f"{PICTURE}/frequencies/wavelengths.packed"
        if number % 2:
            return await self._get(f"{picture}?{pack_config(config)}")
        (name,), body = pack_contents(json.dumps(config).encode())
        path = f"{picture}?model=custom&own={name}"
        return describe_status(await request(self.server.url, path, source=self.source, method="POST", body=body))

    async def open_page(self, number: int) -> str:
        """Open a page as a browser does: its address, then its connection until the first run is done."""
        page = PAGES[number % len(PAGES)]
        if problem := await self._get(f"/{page}"):
            return problem
        try:
            async with connect(self.server.url, source=self.source) as socket:
                run = await run_page(socket, page, {"base": str(10_000 + number)})
        except websockets.InvalidStatus as refusal:
            return f"connection refused with {refusal.response.status_code}"
        return f"an error on {page}" if run.exceptions else ""

    async def _get(self, path: str) -> str:
        return describe_status(await request(self.server.url, path, source=self.source))


def describe_status(status: int) -> str:
    """Return what is wrong with a status, "" for 200."""
    return "" if status == 200 else f"status {status}"
