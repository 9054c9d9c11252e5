"""Pictures that can take long: each in a process that can be ended, few at a time, one per visitor."""

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

from rope_viz.pictures import render_process
from rope_viz.pictures.render_process import Job, Result
from rope_viz.texts import Texts

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
    def start(seconds: int, memory: int) -> Process:
        """Start a process with these limits; see `render_process.main`. Raise `OSError` if the system refuses."""
        # Every thread of a process has a heap of its own otherwise, whose free memory is not returned.
        environment = {"OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2", **os.environ}
        # Not with -m: classes of a module that runs as __main__ have another name in a pickle.
        program = f"from {render_process.__name__} import main"
        command = [sys.executable, "-c", f"{program}; main({os.getpid()}, {seconds=}, {memory=})"]
        running = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return Process(running, seconds)

    def ask(self, job: Job) -> Result:
        """Send a job and return its result. Raise `NoProcessError` with a sentence if the process ends early."""
        assert self.running.stdin is not None
        assert self.running.stdout is not None
        try:
            render_process.write_message(self.running.stdin, job)
            found: Result = render_process.read_message(self.running.stdout)
        except (EOFError, OSError):
            if self.running.wait() == -getattr(signal, "SIGXCPU", 0) != 0:
                return Result(problem=TEXTS("server.seconds", most=self.seconds), ends=True)
            raise NoProcessError(TEXTS("server.ended")) from None
        return found

    def kill(self) -> None:
        """End the process now and close its streams."""
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
    """The render processes of a server; started when needed, ended when idle or when their job has no waiters."""

    def __init__(
        self,
        places: int = PLACES,
        *,
        idle_seconds: float = IDLE_SECONDS,
        seconds: int = render_process.SECONDS,
        memory: int = render_process.MEMORY,
    ) -> None:
        self.places, self.idle_seconds, self.seconds, self.memory = places, idle_seconds, seconds, memory
        self._idle: list[Process] = []
        self._busy: set[Process] = set()
        self._threads = ThreadPoolExecutor(places, thread_name_prefix="long jobs")

    @property
    def pids(self) -> list[int]:
        """Return the ids of the running processes."""
        return [each.running.pid for each in (*self._idle, *self._busy)]

    async def render(self, job: Job) -> Result:
        """Render a picture. If this is cancelled, the process is ended. Raise `NoProcessError` with a sentence."""
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
        else:
            self._idle.append(process)
            process.timer = asyncio.get_running_loop().call_later(self.idle_seconds, self._end_idle, process)
        return result

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
            return Process.start(self.seconds, self.memory)
        except OSError as error:
            raise NoProcessError(TEXTS("server.ended")) from error

    def _end_idle(self, process: Process) -> None:
        if process in self._idle:
            self._idle.remove(process)
            process.kill()

    def shut_down(self) -> None:
        """End all processes."""
        for process in (*self._idle, *self._busy):
            process.kill()
        self._idle.clear()
