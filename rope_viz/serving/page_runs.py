"""Runs of pages: few at once, on threads that stay, and in turns for each session and visitor.

Streamlit 1.67 starts a thread for every run. Its event loop waits until that thread has begun, behind all others that
want the interpreter's lock, so a storm of short messages stops the server for everybody. Here a run waits in a queue.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import dataclasses
import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import Any

from streamlit.runtime import app_session
from streamlit.runtime.scriptrunner import RerunData, ScriptRunner, ScriptRunnerEvent
from streamlit.runtime.scriptrunner_utils.script_requests import (
    ScriptRequest,
    ScriptRequests,
    ScriptRequestType,
)
from streamlit.runtime.scriptrunner_utils.script_run_context_attr import SCRIPT_RUN_CONTEXT_ATTR_NAME
from streamlit.signal_util import Signal

from rope_viz.serving.page_messages import count_state
from rope_viz.storage.limits import (
    ADDRESS_CHARACTERS,
    EVENT_LOOP_SECONDS,
    PAGE_RUNS_AT_ONCE,
    PAGE_THREADS,
    PAGE_THREADS_OF_VISITOR,
    STUCK_RUN_SECONDS,
    UNDISTURBED_RUN_SECONDS,
)
from rope_viz.storage.shares import Shares
from rope_viz.ui.visitors import CONNECTION, find_visitor

LOG = logging.getLogger(__name__)


class RunThreads:
    """Threads that do tasks of visitors: those of the visitor with the fewest running first.

    Safe for use by several threads.
    """

    def __init__(
        self,
        at_once: int = PAGE_RUNS_AT_ONCE,
        threads: Shares | None = None,
        stuck: float = STUCK_RUN_SECONDS,
    ) -> None:
        self.at_once, self.stuck = at_once, stuck
        self.threads = Shares(PAGE_THREADS, PAGE_THREADS_OF_VISITOR) if threads is None else threads
        self._waiting: dict[str, deque[Callable[[], object]]] = {}
        self._running: dict[int, tuple[str, float]] = {}
        """Whose task runs and since when, by its thread."""
        self._started = 0
        self._idle = 0
        self._changed = threading.Condition()

    @property
    def is_anyone_waiting(self) -> bool:
        """True if a task waits for its turn."""
        return bool(self._waiting)

    def add(self, visitor: str, task: Callable[[], object]) -> None:
        """Do a task on a thread when it is its turn. Return at once."""
        with self._changed:
            self._waiting.setdefault(visitor, deque()).append(task)
            self._wake()

    def _wake(self) -> None:
        """Let a thread look for a task; start one if all are busy. The caller holds the lock."""
        if self._idle:
            self._changed.notify()
        elif self._started < self.threads.most:
            self._started += 1
            threading.Thread(target=self._work, name=f"page run {self._started}", daemon=True).start()

    def _work(self) -> None:
        while True:
            visitor, task = self._take()
            try:
                # Each run has the empty context of a new thread.
                contextvars.Context().run(task)
            except Exception:
                LOG.exception("A run of a page ended with an error.")
            finally:
                # Nothing that the run knew may live on in the thread.
                del task
                threading.current_thread().__dict__.pop(SCRIPT_RUN_CONTEXT_ATTR_NAME, None)
                with self._changed:
                    self._running.pop(threading.get_ident(), None)
                    self.threads.give_back(visitor)

    @contextlib.contextmanager
    def without_place(self) -> Iterator[None]:
        """Let another task run while this one waits for something outside of this process."""
        with self._changed:
            running = self._running.pop(threading.get_ident(), None)
            if self._waiting:
                self._wake()
        try:
            yield
        finally:
            if running is not None:
                with self._changed:
                    self._running[threading.get_ident()] = running

    def _take(self) -> tuple[str, Callable[[], object]]:
        """Wait for a task whose turn it is."""
        with self._changed:
            while (visitor := self._choose()) is None:
                self._idle += 1
                # A run becomes stuck without a sound, so look again while anybody waits.
                self._changed.wait(1.0 if self._waiting else None)
                self._idle -= 1

            tasks = self._waiting.pop(visitor)
            task = tasks.popleft()
            if tasks:
                self._waiting[visitor] = tasks  # behind the other visitors
            self.threads.take(visitor)
            self._running[threading.get_ident()] = visitor, time.monotonic()
            if self._waiting:
                self._wake()
            return visitor, task

    def _choose(self) -> str | None:
        """Return the visitor whose turn it is, None if nobody may begin."""
        now = time.monotonic()
        active = Counter(visitor for visitor, began in self._running.values() if now - began < self.stuck)
        free = self.at_once - active.total()
        if free < 0:
            return None
        begins = [visitor for visitor in self._waiting if free > 0 or not active[visitor]]
        allowed = filter(self.threads.has_room, begins)
        return min(allowed, key=active.__getitem__, default=None)


RUN_THREADS = RunThreads()
"""The threads of this process."""


class OneRunRequests(ScriptRequests):
    """The requests of a page: after one run the next one waits for its turn, with all that arrives until then."""

    def __init__(self) -> None:
        super().__init__()
        self.has_run = False
        self.is_paused = False
        self.is_of_script = False
        """Whether the run itself has requested the next one: by `st.rerun`, or by opening another page."""
        self.script_thread: threading.Thread | None = None

    def _request_rerun_locked(self, new_data: RerunData) -> bool:
        if len(new_data.query_string) > ADDRESS_CHARACTERS:
            new_data = dataclasses.replace(new_data, query_string="")
        if threading.current_thread() is self.script_thread:
            self.is_of_script = True
        return super()._request_rerun_locked(new_data)

    def on_scriptrunner_yield(self) -> ScriptRequest | None:
        """Return the request that interrupts the run, None if there is none."""
        self.is_of_script = False
        return super().on_scriptrunner_yield()

    def on_scriptrunner_ready(self) -> ScriptRequest:
        """Return the next request; end the thread after one run, even if another request has come."""
        with self._lock:
            if self.has_run and self._state is ScriptRequestType.RERUN:
                self.is_paused = True
                return ScriptRequest(ScriptRequestType.STOP)
        self.has_run = True
        return super().on_scriptrunner_ready()


class EventsOfTurns(Signal):
    """The events of a runner. One that pauses has not ended: its session goes on to use it."""

    def __init__(self, requests: OneRunRequests) -> None:
        super().__init__()
        self._requests = requests

    def send(self, sender: Any = None, /, **event: Any) -> None:
        """Pass an event on, but the end of a runner only if nothing else is requested of it."""
        if event.get("event") is ScriptRunnerEvent.SHUTDOWN and self._requests.is_paused:
            return
        super().send(sender, **event)


class QueuedRunner(ScriptRunner):
    """Streamlit's runner of a page, whose runs wait for a turn instead of starting threads."""

    def __init__(self, *, session_id: str, initial_rerun_data: RerunData, **options: Any) -> None:
        super().__init__(session_id=session_id, initial_rerun_data=initial_rerun_data, **options)
        self._requests: OneRunRequests = OneRunRequests()
        self._requests.request_rerun(initial_rerun_data)
        self.on_event = EventsOfTurns(self._requests)
        self._visitor = find_visitor(session_id)
        self._server_loop = asyncio.get_running_loop()
        self._loop_of_scripts = self._event_loop
        self._connection = CONNECTION.get()
        self._began = 0.0

    def start(self) -> None:
        """Wait for a turn, on a thread that exists."""
        RUN_THREADS.add(self._visitor, self._run_once)

    def _run_once(self) -> None:
        CONNECTION.set(self._connection)
        self._script_thread = threading.current_thread()
        self._event_loop = self._loop_of_scripts
        self._requests.has_run = self._requests.is_paused = self._requests.is_of_script = False
        self._requests.script_thread = self._script_thread
        try:
            self._run_script_thread()
        finally:
            self._requests.script_thread = None
            if self._requests.is_paused:
                self.start()

    def _run_script(self, rerun_data: RerunData) -> None:
        self._began = time.monotonic()
        super()._run_script(rerun_data)
        count_state(self._session_state._state)
        self._wait_for_loop()

    def _wait_for_loop(self) -> None:
        """Wait until the event loop has taken what this run sent: otherwise fast runs bury it."""
        taken = threading.Event()
        try:
            self._server_loop.call_soon_threadsafe(taken.set)
        except RuntimeError:  # the server has stopped
            return
        taken.wait(EVENT_LOOP_SECONDS)

    def _maybe_handle_execution_control_request(self) -> None:
        """Interrupt a run for a newer message only if it takes long and nobody waits for the place.

        A run that asks for another one, as a link to another page does, ends there.
        """
        is_message = not self._requests.is_of_script
        if (
            is_message
            and self._requests._state is ScriptRequestType.RERUN
            and self._execing
            and self._is_in_script_thread()
        ):
            is_young = time.monotonic() - self._began < UNDISTURBED_RUN_SECONDS
            if is_young or RUN_THREADS.is_anyone_waiting:
                return
        super()._maybe_handle_execution_control_request()


def install() -> None:
    """Let Streamlit make our runners. It takes the class from this module for each session."""
    app_session.ScriptRunner = QueuedRunner  # type: ignore[attr-defined, misc, assignment]
