"""Processes that draw pictures beside the server's own, once its readers wait for each other.

Runs of pages and drawing share one interpreter's lock, so a second core helps neither. One reader never needs them:
they are taken on when pictures have waited often, and not where there is one core.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor

from rope_viz.pictures import export, registry

LATE = 0.2
"""Seconds: a picture that waited longer to be begun was late."""
OFTEN, WITHIN = 20, 10.0
"""So many late ones within so many seconds, and drawers are taken on."""
AGAIN = 60.0
"""Seconds after some were lost before others are looked for."""


class Drawers:
    """None at first. `late` says that a picture had to wait; `ready` whether there is somebody to draw."""

    def __init__(self, count: int | None = None) -> None:
        # One for each core did better than one less (benchmarks/NOTES.md), though the server runs beside them.
        self.count = (min(cores(), 4) if cores() > 1 else 0) if count is None else count
        self._late: deque[float] = deque(maxlen=OFTEN)
        self._not_before = 0.0
        self._pool: ProcessPoolExecutor | None = None
        self._there: Future[None] | None = None

    @property
    def ready(self) -> bool:
        """Whether they have come."""
        return self._there is not None and self._there.done() and self._there.exception() is None

    def late(self, waited: float) -> None:
        """A picture waited so many seconds before it was begun."""
        now = time.monotonic()
        if waited < LATE:
            return
        self._late.append(now)
        if len(self._late) == OFTEN and now - self._late[0] < WITHIN and now >= self._not_before:
            self.take_on()

    def take_on(self) -> None:
        """Have them come; returns at once, long before they are ready."""
        if self._pool is None and self.count > 0:
            # What a fork would take along of the server's threads and locks is not known.
            context = multiprocessing.get_context("spawn")
            try:
                self._pool = ProcessPoolExecutor(self.count, mp_context=context, initializer=_begin)
                self._there = self._pool.submit(_ready)
            except OSError:  # no shared memory, or no more processes here
                self.let_go()

    def draw(self, page: str, name: str, query: dict[str, str]) -> Future[bytes] | None:
        """The message of a picture whose address holds all it depends on, compressed; None where nobody is there."""
        if self._pool is None or not self.ready:
            return None
        try:
            return self._pool.submit(drawn, page, name, query)
        except BrokenExecutor:
            self.let_go()
            return None

    def let_go(self) -> None:
        """They are not needed any more, or lost; others may come later."""
        pool, self._pool, self._there = self._pool, None, None
        self._not_before = time.monotonic() + AGAIN
        if pool is not None:
            pool.shutdown(wait=False)


def drawn(page: str, name: str, query: dict[str, str]) -> bytes:
    """What `Drawers.draw` gives. Raises `ValueError` with a sentence where the picture cannot be drawn."""
    of = registry.page(page)
    return export.compressed(of.pictures[name], registry.read(of, query), "packed")


def cores() -> int:
    """How many this process may use."""
    with contextlib.suppress(AttributeError):  # not on every system
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _begin() -> None:
    """In a new process: all pages at hand, no interrupt of its own, and no longer there than the server is."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_server, daemon=True).start()
    for page in registry.PAGES:
        registry.page(page)


def _ready() -> None:
    """The first thing that is asked of it."""


def _end_with_server() -> None:
    server = multiprocessing.parent_process()
    if server is not None:
        server.join()
        os._exit(0)
