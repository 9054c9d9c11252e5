"""The queue and the cache of rendered pictures: each rendered once at a time, few at once, visitors in turn."""

from __future__ import annotations

import asyncio
import functools
import itertools
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

from rope_viz.serving import render_process
from rope_viz.serving.long_jobs import LongJobs
from rope_viz.serving.render_workers import RenderWorkers
from rope_viz.serving.waiting_line import QueueFullError, WaitingLine
from rope_viz.storage.byte_cache import ByteCache
from rope_viz.storage.decode_json import ContentError
from rope_viz.storage.limits import (
    LONG_JOBS_OF_VISITOR,
    PICTURE_BYTES,
    PICTURES_AT_ONCE,
    PICTURES_OF_WORKER,
    WAITING_PICTURES,
    WORKER_IDLE_SECONDS,
)
from rope_viz.storage.processes import EndedError
from rope_viz.storage.shares import Shares

__all__ = ["Gallery", "QueueFullError", "RenderError"]

MOVING, SHOWN, FILES = 0, 1, 2
"""Ranks: a knob that moves, a picture on a page, a file."""
PATIENCE = {MOVING: 0.0, SHOWN: 0.25, FILES: 1.0}
"""{rank: seconds that a job of this rank lets later, more urgent ones overtake it}."""

Away: TypeAlias = tuple[str, str, dict[str, str]]
"""Page, picture and query: all that a worker process needs when the address holds all inputs."""


class RenderError(RuntimeError):
    """A process failed to render a picture, and has logged the reason."""


class RenderJob:
    """A picture that is waiting or being rendered, shared by all requests for it."""

    def __init__(
        self,
        rank: int,
        order: tuple[float, int],
        make: Callable[[], bytes],
        away: Away | None,
        visitor: str,
        long: render_process.FileJob | None,
    ) -> None:
        self.rank, self.order, self.make, self.away, self.visitor, self.long = rank, order, make, away, visitor, long
        self.wanted, self.begun = 0, False
        self.drawing: asyncio.Future[bytes] | None = None
        self.done: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.came = asyncio.get_running_loop().time()


class Gallery:
    """A render queue and cache of pictures by tag: each rendered once, few at a time, old ones evicted by size.

    Bookkeeping runs on the server's event loop; only rendering runs on threads, in the worker processes `workers`, or
    in the processes for long jobs.
    """

    def __init__(
        self,
        *,
        at_once: int = PICTURES_AT_ONCE,
        waiting: int = WAITING_PICTURES,
        most: int = PICTURE_BYTES,
        workers: RenderWorkers | None = None,
        long_jobs: LongJobs | None = None,
    ) -> None:
        self.at_once, self.most = at_once, most
        self.workers, self.long_jobs = workers or RenderWorkers(), long_jobs or LongJobs()
        self._cache = ByteCache[str, bytes](most)
        self._jobs: dict[str, RenderJob] = {}
        self._queue = WaitingLine[RenderJob](waiting)
        self._here, self._there = Counter[int](), Counter[int]()
        # Counted only: their places are those of the threads and of the workers.
        self._running = Shares(sys.maxsize, sys.maxsize)
        self._long = Shares(self.long_jobs.places, LONG_JOBS_OF_VISITOR)
        self._count = itertools.count()
        self._pool = ThreadPoolExecutor(at_once + 2, thread_name_prefix="pictures")
        self._idle: asyncio.TimerHandle | None = None

    @property
    def size(self) -> int:
        """Bytes of the pictures in the cache."""
        return self._cache.size

    def found(self, tag: str) -> bytes | None:
        return self._cache.get(tag)

    async def drawn(
        self,
        tag: str,
        make: Callable[[], bytes],
        *,
        rank: int = 0,
        keep: bool = True,
        away: Away | None = None,
        visitor: str = "",
        long: render_process.FileJob | None = None,
    ) -> bytes:
        """Render the picture with `make` on a thread, in a worker if `away` is given, or in a process of its own.

        `long` is what that process needs; its result is the stem of the file name, a zero byte, and the picture. Raise
        `QueueFullError` when the queue is full, or the renderer's own error. The queue is ordered by due time: now for
        a moving knob, `PATIENCE` later for the others, so none starves; visitors without a running job come first. A
        job without waiters never starts, and one with a process of its own ends.
        """
        job = self._jobs.get(tag)
        if job is None or job.done.cancelled():
            due = asyncio.get_running_loop().time() + PATIENCE[rank]
            job = RenderJob(rank, (due, next(self._count)), make, away, visitor, long)
            self._queue.add(job)
            self._jobs[tag] = job
            job.done.add_done_callback(functools.partial(self._finished, tag, keep, job))
            self._next()
        job.wanted += 1
        try:
            return await asyncio.shield(job.done)
        finally:
            job.wanted -= 1
            if not job.wanted and not job.done.done():
                self._abandon(job)

    def _abandon(self, job: RenderJob) -> None:
        """Drop a job without waiters, unless a thread or a worker is rendering it."""
        if not job.begun:
            self._queue.remove(job)
            job.done.cancel()
        elif job.long is not None and job.drawing is not None:
            job.drawing.cancel()
            job.done.cancel()

    def _next(self) -> None:
        """Start as many queued jobs as there is room for, in the workers if they are ready, else on threads."""
        places = PICTURES_OF_WORKER * self.workers.count if self.workers.ready else 0
        if not self._has_room(places):
            return
        for job in sorted(self._queue, key=self._rank):
            if self._may(job, places):
                self._queue.take(job)
                job.begun = True
                if job.long is None:
                    self.workers.record_wait(asyncio.get_running_loop().time() - job.came)
                self._begin(job)
            if not self._has_room(places):
                return

    def _rank(self, job: RenderJob) -> tuple[bool, int, tuple[float, int]]:
        """Return what jobs are sorted by: visitors without a running one, then those with fewer turns, come first."""
        return self._running.amount_of(job.visitor) > 0, self._queue.turns_of(job.visitor), job.order

    def _has_room(self, places: int) -> bool:
        return self._here.total() <= self.at_once or self._there.total() < places or self._long.total < self._long.most

    def _may(self, job: RenderJob, places: int) -> bool:
        """True if there is room for the job: one place of the workers is reserved for moving knobs."""
        if job.long is not None:
            return self._long.has_room(job.visitor)
        if places and job.away is not None:
            resting = self._there.total() - self._there[MOVING]
            return self._there.total() < places and (job.rank == MOVING or resting < places - 1)
        return self._here.total() < self.at_once + (self._running.amount_of(job.visitor) == 0)

    def _begin(self, job: RenderJob) -> None:
        loop = asyncio.get_running_loop()
        if job.long is not None:
            self._long.take(job.visitor)
            job.drawing = loop.create_task(self._render_long(job.long))
            job.drawing.add_done_callback(functools.partial(self._drawn, job, None))
            return
        there = None if job.away is None else self.workers.submit(*job.away)
        where = self._here if there is None else self._there
        where[job.rank] += 1
        self._running.take(job.visitor)
        job.drawing = loop.run_in_executor(self._pool, job.make) if there is None else asyncio.wrap_future(there)
        job.drawing.add_done_callback(functools.partial(self._drawn, job, where))

    async def _render_long(self, job: render_process.FileJob) -> bytes:
        result = await self.long_jobs.render(job)
        if result.failed:
            raise RenderError(result.problem)
        if result.problem:
            raise ContentError(result.problem) if result.unreadable else ValueError(result.problem)
        return result.stem.encode() + b"\0" + result.content

    def _drawn(self, job: RenderJob, where: Counter[int] | None, drawing: asyncio.Future[bytes]) -> None:
        running = self._long if where is None else self._running
        running.give_back(job.visitor)
        if where is not None:
            where[job.rank] -= 1
        if where is self._there:
            self._end_workers_when_idle()
        if not drawing.cancelled() and isinstance(drawing.exception(), EndedError):
            # The worker process died, for example when memory ran out: render on a thread.
            self.workers.shut_down()
            job.away = None
            self._begin(job)
            return
        if job.done.done() or drawing.cancelled():
            job.done.cancel()
        elif (error := drawing.exception()) is not None:
            job.done.set_exception(error)
        else:
            job.done.set_result(drawing.result())
        self._next()

    def _end_workers_when_idle(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        if not self._there.total():
            self._idle = asyncio.get_running_loop().call_later(WORKER_IDLE_SECONDS, self._end_idle_workers)

    def _end_idle_workers(self) -> None:
        if not self._there.total():
            self.workers.shut_down(again=0.0)

    def _finished(self, tag: str, keep: bool, job: RenderJob, done: asyncio.Future[bytes]) -> None:
        if self._jobs.get(tag) is job:
            del self._jobs[tag]
        if done.cancelled() or done.exception() is not None or not keep:
            return
        content = done.result()
        if len(content) > self.most // 4:
            return  # it would take the place of many others
        self._cache.add(tag, content, len(content))

    def shut_down(self) -> None:
        self.workers.shut_down()
        self.long_jobs.shut_down()
