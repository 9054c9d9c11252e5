"""Jobs in processes that can be ended: pictures that can take long, and contents from outside that are read."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from rope_viz.reports import render_process
from rope_viz.reports.render_process import FileJob, Reading, RenderResult
from rope_viz.texts import Texts, use_language

TEXTS = Texts("app")
PLACES = 2
"""Long jobs at a time."""
PER_VISITOR = 1
"""Long jobs of one visitor at a time."""
IDLE_SECONDS = 60.0
"""Seconds without a job after which a process ends."""
ROOT = Path(__file__).parents[2]


class NoProcessError(RuntimeError):
    """No process could be started, or it ended without an answer."""


@dataclass(eq=False)
class Process:
    """A running render process."""

    running: subprocess.Popen[bytes]
    seconds: int
    timer: asyncio.TimerHandle | None = field(default=None)

    @staticmethod
    def start(seconds: int, memory: int, *, reads: bool = False) -> Process:
        """Start a process with these limits; see `render_process.main`. Raise `OSError` if the system refuses."""
        # Every thread of a process has a heap of its own otherwise, whose free memory is not returned.
        environment = {"OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2", **os.environ}
        # Not with -m: classes of a module that runs as __main__ have another name in a pickle.
        program = f"from {render_process.__name__} import main"
        command = [sys.executable, "-c", f"{program}; main({os.getpid()}, {seconds=}, {memory=}, {reads=})"]
        running = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return Process(running, seconds)

    def ask(self, job: FileJob | Reading) -> RenderResult:
        """Send a job and return its result. Raise `NoProcessError` with a sentence if the process ends early."""
        with use_language(job.language):
            return self._ask(job)

    def _ask(self, job: FileJob | Reading) -> RenderResult:
        assert self.running.stdin is not None
        assert self.running.stdout is not None
        try:
            render_process.write_message(self.running.stdin, job)
            found: RenderResult = render_process.read_message(self.running.stdout)
        except (EOFError, OSError):
            if self.running.wait() == -getattr(signal, "SIGXCPU", 0) != 0:
                key = "stored.seconds" if isinstance(job, Reading) else "server.seconds"
                return RenderResult(
                    problem=TEXTS(key, most=self.seconds), unreadable=isinstance(job, Reading), ends=True
                )
            raise NoProcessError(TEXTS("server.ended")) from None
        return found

    def kill(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.running.kill()
        threading.Thread(target=self._clean_up, daemon=True).start()

    def _clean_up(self) -> None:
        self.running.wait()
        for stream in (self.running.stdin, self.running.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


class LongJobs:
    """The processes of a server for one kind of job: started when needed, ended when idle or when no one waits.

    `reads`: they read contents, and one of them stays, so that the next content need not wait for its start.
    """

    def __init__(
        self,
        places: int = PLACES,
        *,
        idle_seconds: float = IDLE_SECONDS,
        seconds: int = render_process.SECONDS,
        memory: int = render_process.MEMORY,
        reads: bool = False,
    ) -> None:
        self.places, self.idle_seconds, self.seconds, self.memory = places, idle_seconds, seconds, memory
        self.reads = reads
        self._idle: list[Process] = []
        self._busy: set[Process] = set()
        self._closed = False
        self._threads = ThreadPoolExecutor(places, thread_name_prefix="long jobs")

    @property
    def pids(self) -> list[int]:
        return [each.running.pid for each in (*self._idle, *self._busy)]

    def start(self) -> None:
        """Start a process if there is none, and return at once. Without one now, the first job starts it."""
        self._closed = False
        if not self.pids:
            with contextlib.suppress(NoProcessError):
                self._rest(self._take())

    async def render(self, job: FileJob) -> RenderResult:
        return await self.do(job)

    async def do(self, job: FileJob | Reading) -> RenderResult:
        """Do a job. If this is cancelled, the process is ended. Raise `NoProcessError` with a sentence."""
        process = self._take()
        self._busy.add(process)
        asking = asyncio.get_running_loop().run_in_executor(self._threads, process.ask, job)
        try:
            result = await asyncio.shield(asking)
        except BaseException:
            process.kill()
            asking.add_done_callback(lambda done: done.cancelled() or done.exception())
            raise
        finally:
            self._busy.discard(process)
        if result.ends:
            process.kill()
            if self.reads and not self._closed:
                self.start()
        else:
            self._rest(process)
        return result

    def _rest(self, process: Process) -> None:
        """Let a process wait for the next job."""
        self._idle.append(process)
        process.timer = asyncio.get_running_loop().call_later(self.idle_seconds, self._end_idle, process)

    def _take(self) -> Process:
        """Return the process that was used last, whose caches are warm, or a new one."""
        while self._idle:
            process = self._idle.pop()
            if process.timer is not None:
                process.timer.cancel()
            if process.running.poll() is None:
                return process
            process.kill()
        try:
            return Process.start(self.seconds, self.memory, reads=self.reads)
        except OSError as error:
            raise NoProcessError(TEXTS("server.ended")) from error

    def _end_idle(self, process: Process) -> None:
        if process in self._idle and not (self.reads and len(self.pids) == 1):
            self._idle.remove(process)
            process.kill()

    def shut_down(self) -> None:
        self._closed = True
        for process in (*self._idle, *self._busy):
            process.kill()
        self._idle.clear()
