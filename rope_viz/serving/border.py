"""The border: every config, link, content and file from outside is read in a process with limits, in a queue.

A server makes one `Border` and gives it to its routes and to the connections of its pages. Nothing is then parsed on
the event loop, or on a thread that others need. Each visitor has one place at a time, and few are read at once. A
request asks `Border.read_query`; the thread of a session asks `Border.read`, and waits. What is small and cheap comes
back as a value.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import pickle
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from rope_viz.own_files.outside import HERE, Content, ReadContents, Reader
from rope_viz.serving.long_jobs import LongJobs, NoProcessError
from rope_viz.serving.page_runs import RUN_THREADS
from rope_viz.serving.render_process import Reading
from rope_viz.serving.waiting_line import QueueFullError, WaitingLine
from rope_viz.storage.decode_json import ContentError
from rope_viz.storage.limits import (
    BROWSER_LOOK_SECONDS,
    LARGE_VALUE_BYTES,
    QUERY_CONTENTS,
    READING_GRACE_SECONDS,
    READING_MEMORY,
    READING_SECONDS,
    READINGS_AT_ONCE,
    SMALL_READING_BYTES,
    WAITING_READINGS,
)
from rope_viz.storage.shares import Shares
from rope_viz.texts import Texts, current_language, use_language
from rope_viz.ui.visitors import session_visitor

TEXTS = Texts("app")
T = TypeVar("T")


class LargeValueError(Exception):
    """The value of a content is too large for the server process: its picture is rendered where it was read."""

    def __init__(self, content: object) -> None:
        super().__init__()
        self.content = content


@dataclass(eq=False)
class WaitingReading:
    """A visitor's wait for a place; `came` is resolved with the place."""

    visitor: str
    large: bool
    came: asyncio.Future[None]


class Turns:
    """Places for readings: one for each visitor, few for all; visitors take turns."""

    def __init__(self, places: int = READINGS_AT_ONCE, waiting: int = WAITING_READINGS) -> None:
        self.places = places
        self._places = Shares(places, 1)
        # A large reading takes one of these as well, so that a place is left for small ones.
        self._large_places = Shares(max(1, places - 1), 1)
        self._queue = WaitingLine[WaitingReading](waiting)

    @property
    def waits(self) -> int:
        return len(self._queue)

    @property
    def running(self) -> int:
        return self._places.total

    @contextlib.asynccontextmanager
    async def turn(self, visitor: str, *, large: bool = False) -> AsyncIterator[None]:
        """Wait for a place and hold it. Raise `QueueFullError` if too many wait."""
        turn = WaitingReading(visitor, large, asyncio.get_running_loop().create_future())
        self._queue.add(turn)
        self._next()
        try:
            await turn.came
        except asyncio.CancelledError:
            if turn in self._queue:
                self._queue.remove(turn)
            else:
                self._leave(turn)
            raise
        try:
            yield
        finally:
            self._leave(turn)

    def _next(self) -> None:
        for turn in self._queue.in_turn():
            if self.running >= self.places:
                return
            # A turn whose client has left stays in the queue until its task runs, which takes it out.
            if not turn.came.done() and self._take(turn):
                self._queue.take(turn)
                turn.came.set_result(None)

    def _take(self, turn: WaitingReading) -> bool:
        """Take the places that a turn needs, and return whether they were free."""
        if turn.large and not self._large_places.has_room(turn.visitor):
            return False
        if not self._places.take(turn.visitor):
            return False
        return not turn.large or self._large_places.take(turn.visitor)

    def _leave(self, turn: WaitingReading) -> None:
        self._places.give_back(turn.visitor)
        if turn.large:
            self._large_places.give_back(turn.visitor)
        self._next()


class Border:
    """The queue and the processes of a server's readings. All but `read` belongs to its event loop."""

    def __init__(
        self, turns: Turns | None = None, processes: LongJobs | None = None, grace: float = READING_GRACE_SECONDS
    ) -> None:
        self.turns, self.grace = turns or Turns(), grace
        self.processes = processes or LongJobs(
            self.turns.places,
            seconds=READING_SECONDS,
            memory=READING_MEMORY,
            reads=True,
        )
        self._threads = self._make_threads()
        self._loop: asyncio.AbstractEventLoop | None = None

    def open(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.processes.start()

    def close(self) -> None:
        """End the processes; contents are then read here again."""
        self._loop = None
        self.processes.shut_down()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._threads = self._make_threads()  # for a server that starts in this process later

    def _make_threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.turns.places, thread_name_prefix="border")

    async def read_query(
        self, visitor: str, contents: Sequence[Content[Any]], make: Callable[[Reader], T], *, size: int = 0
    ) -> T:
        """Read the contents that a query names, then return what `make` makes of them on a thread of the border.

        `size` is the bytes of the stored contents. Raise the `ValueError` of `make`, `QueueFullError` or
        `NoProcessError`, or `LargeValueError` for a content whose value is too large. If this is cancelled, the
        reading ends.
        """
        read = functools.partial(self._read_query, contents, make)
        return await self._until_cancelled(visitor, read, large=size > SMALL_READING_BYTES)

    async def read_content(self, content: Content[T], visitor: str) -> tuple[T, int]:
        """Read one content; see `outside.Reader`. Raise `ValueError`, `QueueFullError` or `NoProcessError`."""
        known = content.find()
        if known is not None:
            return known[0], 0
        _, arguments = content.call()
        large = sum(len(each) for each in arguments if isinstance(each, (bytes, str))) > SMALL_READING_BYTES
        return await self._until_cancelled(visitor, functools.partial(self._read, content), large=large)

    def read_outside(self, content: Content[T]) -> tuple[T, int]:
        """Read a content while this thread waits: that of a session.

        Raise `ValueError` with a sentence, also for a busy server.
        """
        if self._loop is None:
            return HERE.read_outside(content)  # the server has no processes yet, or any more
        with contextlib.suppress(RuntimeError):  # this thread has no event loop
            if asyncio.get_running_loop() is self._loop:
                raise AssertionError("contents from outside are not read on the event loop")
        # A callback has its language from the session, which the event loop does not know.
        with use_language(current_language()):
            waiting = asyncio.run_coroutine_threadsafe(self.read_content(content, session_visitor()), self._loop)
        while True:
            try:
                with RUN_THREADS.without_place():
                    return waiting.result(BROWSER_LOOK_SECONDS)
            except TimeoutError:
                if not is_session_open():
                    waiting.cancel()
                    stop_run()
            except QueueFullError:
                raise ValueError(TEXTS("stored.busy")) from None
            except NoProcessError:
                raise ValueError(TEXTS("stored.ended")) from None

    async def _until_cancelled(
        self, visitor: str, do: Callable[[], Coroutine[Any, Any, T]], *, large: bool = False
    ) -> T:
        """Do something in a turn of a visitor. If this is cancelled, what has begun ends after a while."""
        begun = False

        async def in_turn() -> T:
            nonlocal begun
            async with self.turns.turn(visitor, large=large):
                begun = True
                return await do()

        work = asyncio.create_task(in_turn())
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            work.add_done_callback(lambda done: done.cancelled() or done.exception())
            if begun and self.grace:
                asyncio.get_running_loop().call_later(self.grace, work.cancel)
            else:
                work.cancel()
            raise

    async def _read_query(self, contents: Sequence[Content[Any]], make: Callable[[Reader], T]) -> T:
        if len(contents) > QUERY_CONTENTS:
            raise ValueError(TEXTS("stored.many_contents", most=QUERY_CONTENTS))
        reader = HERE if self._loop is None else await self._read_all(contents)
        # A thread has neither the language of this task nor its other variables.
        made = functools.partial(contextvars.copy_context().run, make, reader)
        return await asyncio.get_running_loop().run_in_executor(self._threads, made)

    async def _read_all(self, contents: Sequence[Content[Any]]) -> ReadContents:
        """Read contents up to the first that cannot be read, whose error meets what asks for it."""
        values: dict[Content[Any], Any] = {}
        for content in contents:
            try:
                values[content], _ = await self._read(content, largest=LARGE_VALUE_BYTES)
            except ValueError as error:
                values[content] = error
                break
        return ReadContents(values)

    async def _read(self, content: Content[T], *, largest: int | None = None) -> tuple[T, int]:
        """Read a content in a process, only once for all who wait for it.

        Raise `LargeValueError` for a value above `largest` bytes.
        """
        known = content.find()
        if known is not None:
            return known[0], 0
        function, arguments = content.call()
        try:
            value, size = await self._do(function, arguments, largest=largest)
        except ValueError as error:
            raise content.explain(error) from error
        content.keep(value, size)
        return value, size

    async def _do(
        self, function: Callable[..., T], arguments: tuple[Any, ...], *, largest: int | None
    ) -> tuple[T, int]:
        """Call a function in a process. Raise `LargeValueError` for a value above `largest` bytes."""
        result = await self.processes.do(Reading(function, arguments, largest))
        if result.failed:
            raise NoProcessError(result.problem)
        if result.problem:
            raise ContentError(result.problem) if result.unreadable else ValueError(result.problem)
        if result.is_large:
            raise LargeValueError(arguments[0])
        # A large value takes a while; the event loop does not wait for it.
        load = functools.partial(pickle.loads, result.content)
        value: Any = await asyncio.get_running_loop().run_in_executor(self._threads, load)
        return value, result.size


def is_session_open() -> bool:
    """True if the browser of the running session is still connected."""
    context = get_script_run_ctx()
    return context is None or not runtime.exists() or runtime.get_instance().is_active_session(context.session_id)


def stop_run() -> NoReturn:
    """End the run of a page whose browser has left."""
    st.stop()


BORDER = Border()
"""The border of this process, which its server opens and hands to whatever reads."""
