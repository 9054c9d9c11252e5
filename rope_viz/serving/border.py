"""The border: every config, link, content and file from outside is read in a process with limits, in a queue.

All of them pass `outside.read_outside`, and a server makes `read_at_border` its reader. Nothing is then parsed on the
event loop, or on a thread that others need. Each visitor has one place at a time, and few are read at once. A request
asks `Border.read_query`; the thread of a session waits for its place. What is small and cheap comes back as a value.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import pickle
from collections.abc import AsyncIterator, Callable, Coroutine, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from rope_viz.own_files import config_link, outside
from rope_viz.pages import registry
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


class UnreadError(Exception):
    """A query needs a content that was not read yet."""

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        super().__init__(function.__name__)
        self.function, self.arguments = function, arguments


class LargeValueError(Exception):
    """The value of a content is too large for the server process: its picture is rendered where it was read."""

    def __init__(self, content: object) -> None:
        super().__init__()
        self.content = content


Found = dict[Hashable, "tuple[Any, int] | Exception"]
FOUND: contextvars.ContextVar[Found | None] = contextvars.ContextVar("FOUND", default=None)
"""What was read for the query of the running thread, by function and arguments."""


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
    """The queue and the processes of a server's readings. All but `read_in_session` belongs to its event loop."""

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
        outside.READER = self.read_at_border
        self.processes.start()

    def close(self) -> None:
        """End the processes; contents are then read here again."""
        outside.READER = outside.read_here
        self.processes.shut_down()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._threads = self._make_threads()  # for a server that starts in this process later

    def _make_threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.turns.places, thread_name_prefix="border")

    async def read_query(self, visitor: str, read: Callable[[], T], *, size: int = 0) -> T:
        """Return what `read` makes of a query, called on a thread of the border once all contents of it were read.

        `size` is the bytes of the stored contents. Raise its `ValueError`, `QueueFullError` or `NoProcessError`, or
        `LargeValueError` for a content whose value is too large. If this is cancelled, the reading ends.
        """
        return await self._until_cancelled(
            visitor, functools.partial(self._read_query, read), large=size > SMALL_READING_BYTES
        )

    async def read_content(self, function: Callable[..., T], arguments: tuple[Any, ...], visitor: str) -> tuple[T, int]:
        """Read one content; see `outside.read_outside`. Raise `ValueError`, `QueueFullError` or `NoProcessError`."""
        large = sum(len(each) for each in arguments if isinstance(each, (bytes, str))) > SMALL_READING_BYTES
        return await self._until_cancelled(visitor, functools.partial(self._do, function, arguments), large=large)

    def read_at_border(self, function: Callable[..., T], arguments: tuple[Any, ...]) -> tuple[T, int]:
        """Read a content for a thread: that of a query, or that of a session, which waits."""
        found = FOUND.get()
        if found is None:
            return self.read_in_session(function, arguments)
        key = function, arguments
        if key not in found:
            raise UnreadError(function, arguments)
        value = found[key]
        if isinstance(value, Exception):
            raise value
        return value

    def read_in_session(self, function: Callable[..., T], arguments: tuple[Any, ...]) -> tuple[T, int]:
        """Read a content while this thread waits. Raise `ValueError` with a sentence, also for a busy server."""
        assert self._loop is not None
        with contextlib.suppress(RuntimeError):  # this thread has no event loop
            if asyncio.get_running_loop() is self._loop:
                raise AssertionError("contents from outside are not read on the event loop")
        # A callback has its language from the session, which the event loop does not know.
        with use_language(current_language()):
            waiting = asyncio.run_coroutine_threadsafe(
                self.read_content(function, arguments, session_visitor()), self._loop
            )
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

    async def _read_query(self, read: Callable[[], T]) -> T:
        found: Found = {}
        for _ in range(QUERY_CONTENTS):
            context = contextvars.copy_context()
            context.run(FOUND.set, found)
            try:
                return await asyncio.get_running_loop().run_in_executor(self._threads, context.run, read)
            except UnreadError as unread:
                key = unread.function, unread.arguments
                try:
                    found[key] = await self._do(*key, largest=LARGE_VALUE_BYTES)
                except ValueError as error:
                    found[key] = error
        raise ValueError(TEXTS("stored.many_contents", most=QUERY_CONTENTS))

    async def _do(
        self, function: Callable[..., T], arguments: tuple[Any, ...], *, largest: int | None = None
    ) -> tuple[T, int]:
        """Read a content in a process; a link only once, for all who wait for it.

        Raise `LargeValueError` for a value above `largest` bytes.
        """
        link: Any = arguments[0] if function is config_link.read_link else None
        known: Any = None if link is None else config_link.LINKS.get(link)
        if known is not None:
            return known, 0
        result = await self.processes.do(Reading(portable(function), arguments, largest))
        if result.failed:
            raise NoProcessError(result.problem)
        if result.problem:
            raise ContentError(result.problem) if result.unreadable else ValueError(result.problem)
        if result.is_large:
            raise LargeValueError(arguments[0])
        # A large value takes a while; the event loop does not wait for it.
        load = functools.partial(pickle.loads, result.content)
        value: Any = await asyncio.get_running_loop().run_in_executor(self._threads, load)
        if link is not None:
            config_link.LINKS.keep(link, value, result.size)
        return value, result.size


def portable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that another process finds: the decoder of a choice by the key of the choice."""
    key = decoders().get(function)
    return function if key is None else functools.partial(registry.decode_content_of, key)


@functools.cache
def decoders() -> dict[Callable[..., Any], str]:
    """Return the decoders of all choices with a stored content, and the key of a choice with each."""
    return {choice.decode: key for key, choice in registry.kept_choices().items()}


def is_session_open() -> bool:
    """True if the browser of the running session is still connected."""
    context = get_script_run_ctx()
    return context is None or not runtime.exists() or runtime.get_instance().is_active_session(context.session_id)


def stop_run() -> NoReturn:
    """End the run of a page whose browser has left."""
    st.stop()


BORDER = Border()
"""The border of this process."""
