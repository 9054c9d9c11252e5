"""Worker processes that render pictures under load.

Page runs and rendering share one interpreter's lock, so threads cannot use a second core. One user never needs the
workers: they start once pictures have often waited, and not on a machine with one core.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from concurrent.futures import Future

from rope_viz.pages import registry
from rope_viz.picture import export, read_address
from rope_viz.serving import render_process
from rope_viz.storage.limits import (
    JOB_MEMORY,
    LATE_PICTURE_SECONDS,
    LATE_PICTURES,
    LATE_PICTURES_SECONDS,
    RENDER_WORKERS,
    WORKER_RETRY_SECONDS,
)
from rope_viz.storage.processes import Job, Limits, Pool
from rope_viz.texts.languages import ENGLISH


class RenderWorkers:
    """A pool of render processes, empty at first; `record_wait` counts waiting pictures and starts it."""

    def __init__(self, count: int | None = None) -> None:
        # One worker per core measured better than one fewer, despite the server itself (benchmarks/NOTES.md).
        self.count = (min(cores(), RENDER_WORKERS) if cores() > 1 else 0) if count is None else count
        self._late_times: deque[float] = deque(maxlen=LATE_PICTURES)
        self._restart_at = 0.0
        self._pool: Pool | None = None
        self._started: Future[None] | None = None

    @property
    def pids(self) -> list[int]:
        return [] if self._pool is None else self._pool.pids

    @property
    def ready(self) -> bool:
        return self._started is not None and self._started.done() and self._started.exception() is None

    def record_wait(self, waited: float) -> None:
        """Record that a picture waited this many seconds; start the workers if that happened often."""
        request = time.monotonic()
        if waited < LATE_PICTURE_SECONDS:
            return
        self._late_times.append(request)
        if (
            len(self._late_times) == LATE_PICTURES
            and request - self._late_times[0] < LATE_PICTURES_SECONDS
            and request >= self._restart_at
        ):
            self.start()

    def start(self) -> None:
        if self._started is not None and self._started.done() and self._started.exception() is not None:
            self.shut_down()  # the first worker ended before it was ready
        elif self._pool is None and self.count > 0:
            limits = Limits(memory=JOB_MEMORY)
            # The gallery ends all workers together, when none of them has a picture.
            self._pool = Pool(
                self.count, limits, name="picture", prepare=Job(render_process.prepare), idle_seconds=None
            )
            try:
                self._pool.start(self.count)
            except OSError:  # no more processes here
                self.shut_down()
                return
            self._started = self._pool.submit(Job(_confirm_started))

    def submit(self, page: str, name: str, query: dict[str, str]) -> Future[bytes] | None:
        """Render a picture whose address holds all its inputs, as a compressed message; None without workers."""
        if self._pool is None or not self.ready:
            return None
        # Another request than the picture's own may come to this: the query names the language.
        return self._pool.submit(Job(render_packed, (page, name, query), language=ENGLISH))

    def shut_down(self, again: float = WORKER_RETRY_SECONDS) -> None:
        """Shut the pool down; it may be restarted after `again` seconds."""
        pool, self._pool, self._started = self._pool, None, None
        self._restart_at = time.monotonic() + again
        if pool is not None:
            pool.shut_down()


def render_packed(page: str, name: str, query: dict[str, str]) -> bytes:
    """Render a picture in a worker. Raise `ValueError` with a sentence if the picture cannot be rendered."""
    its_page = registry.page(page)
    return export.compressed(its_page.pictures[name], read_address.read_request(its_page, query), "packed")


def cores() -> int:
    """Return the number of cores this process may use."""
    with contextlib.suppress(AttributeError):  # not available on every system
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _confirm_started() -> None:
    """Do nothing: the result proves that a worker has started."""
