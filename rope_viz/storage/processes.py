"""Jobs in processes with limits: a process that does one job after another, and a pool of them.

The alternative, Pebble 5.2.3 (LGPL), limits neither memory nor processor time, and its jobs cannot
report progress. A busy process of it goes on after its parent was killed: one still ran 8 s later.

A job is a function and its arguments, and runs in the language of the thread that made it. Its
process ends as soon as its standard input ends, also within a job, and thus with its parent,
however that ends. Both directions carry frames: a length of eight bytes and a pickle.

A process that another Python runs needs only this package's files: its jobs name their function as
a text, and their values are plain ones, which all versions of Python unpickle.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
import os
import pickle
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, NoReturn, TypeAlias

from rope_viz.storage.crash_text import keep_messages_out_of_logs
from rope_viz.storage.limits import PROCESS_END_SECONDS
from rope_viz.texts.languages import current_language, set_process_language

with contextlib.suppress(ImportError):  # not available on Windows
    import resource

LOG = logging.getLogger(__name__)
ROOT = Path(__file__).parents[2]
# Not with -m: classes of a module that runs as __main__ have another name in a pickle. The folder of
# the package takes the place of the working directory, whose files must not be imported.
PROGRAM = f"import sys; sys.path[:1] = sys.argv[1:2]; from {__name__} import serve; serve()"
LENGTH = 8
"""Bytes before a frame that tell its length."""

Tell: TypeAlias = Callable[[Any], None]
"""Sends a message to the parent while the job works; threads may call it at once."""


@dataclass(frozen=True)
class Limits:
    """What a process and each of its jobs may take; None is no limit.

    Windows has only `wall_seconds`.
    """

    processor_seconds: int | None = None
    """Processor time of one job, all threads together."""
    wall_seconds: float | None = None
    """Time of one job."""
    memory: int | None = None
    """Bytes that the process may allocate after it was prepared (Linux)."""
    rest: int | None = None
    """Bytes still allocated after a job above which the process ends (Linux).

    Libraries keep freed memory.
    """
    niceness: int = 0
    """By how much the priority is lower than the parent's."""


@dataclass(frozen=True)
class Job:
    """A function and its arguments.

    A function that the parent cannot import is named "module:function".
    """

    function: Callable[..., Any] | str
    arguments: tuple[Any, ...] = ()
    language: str = field(default_factory=current_language)


class ProcessError(RuntimeError):
    """A job has no result, and its process or the function is the reason."""


class EndedError(ProcessError):
    """The process could not be started, or ended within the job.

    `code` is its exit code, None if it never ran.
    """

    def __init__(self, code: int | None = None) -> None:
        never = "no process could be started"
        super().__init__(never if code is None else f"the process ended with code {code}")
        self.code = code


class OutOfTimeError(ProcessError):
    """The job took more seconds than it may, and its process was ended."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the job took more than {seconds:,g} seconds")
        self.seconds = seconds


class OutOfMemoryError(ProcessError):
    """The job needed more memory than its process may allocate, and the process has ended."""


class FailedError(ProcessError):
    """The function raised neither `ValueError` nor `OSError`.

    The process has logged the error and goes on.
    """


class Setup(NamedTuple):
    """The first frame that a process reads."""

    limits: Limits
    prepare: Job | None


class Reply(NamedTuple):
    """A frame that a process writes; after one that `ends` no other follows."""

    kind: Literal["message", "result", "problem", "memory", "failed"]
    value: Any = None
    ends: bool = False


class Process:
    """A running process, which does one job at a time.

    `prepare` is done at its start and is outside its limits of memory. `variables` replace variables of
    the environment, None removes one. `errors` is a file for what it and its jobs print, and `python`
    another interpreter. `ps` shows the `name`.
    """

    def __init__(
        self,
        limits: Limits = Limits(),
        *,
        name: str = "job",
        prepare: Job | None = None,
        variables: Mapping[str, str | None] | None = None,
        errors: IO[bytes] | None = None,
        python: str = "",
    ) -> None:
        """Start it and return at once. Raise `OSError` if the system refuses."""
        changed = {**os.environ, **(variables or {})}
        self.limits = limits
        self.is_open = True
        """Whether it takes another job."""
        self.rests_since = 0.0
        self._is_late = False
        self._is_killed = False
        self._lock = threading.Lock()
        self.running = subprocess.Popen(
            [python or sys.executable, "-c", PROGRAM, str(ROOT), name],
            env={name: value for name, value in changed.items() if value is not None},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            # A group of its own, so that a compiler that a job started is ended with it.
            start_new_session=True,
        )
        self._send(pickle.dumps(Setup(limits, prepare), protocol=5))

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self.running.pid

    @property
    def is_alive(self) -> bool:
        """Whether it takes another job and has not ended by itself."""
        return self.is_open and self.running.poll() is None

    def do(self, job: Job, listen: Callable[[Any], None] | None = None) -> Any:
        """Return the result of a job, while this thread waits.

        With `listen`, the function gets a `Tell` as its last argument, and `listen` is called with each
        message. Raise the `ValueError` or `OSError` of the function, or a `ProcessError`.
        """
        frame = pickle.dumps((job, listen is not None), protocol=5)
        timer = None
        if self.limits.wall_seconds is not None:
            timer = threading.Timer(self.limits.wall_seconds, self._end_late)
            timer.daemon = True
            timer.start()
        try:
            self._send(frame)
            reply = self._receive(listen)
        except BaseException:
            # What the process would still write is not the reply to another job.
            self.kill()
            raise
        finally:
            if timer is not None:
                timer.cancel()
        if reply.ends or self._is_late:
            self.kill()
        try:
            return read_result(reply)
        finally:
            # As in `Pool.do`: the reply has the error, whose traceback has this frame.
            del reply

    def kill(self) -> None:
        """End it and what it has started, at once; another thread waits for its end."""
        with self._lock:
            self.is_open = False
            if self._is_killed:
                return
            self._is_killed = True
        if self.running.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                if hasattr(os, "killpg"):
                    os.killpg(self.pid, signal.SIGKILL)
                else:
                    self.running.kill()
        cleaning = threading.Thread(target=self._clean_up, daemon=True, name="end of a process")
        # No thread can be started while this interpreter ends.
        with contextlib.suppress(RuntimeError):
            cleaning.start()

    def close(self) -> None:
        """End it and wait for its end."""
        self.kill()
        self.running.wait()

    def _send(self, frame: bytes) -> None:
        assert self.running.stdin is not None
        # A process that has ended tells why by its last reply or by its exit code.
        with contextlib.suppress(OSError, ValueError):
            write_frame(self.running.stdin, frame)

    def _receive(self, listen: Callable[[Any], None] | None) -> Reply:
        assert self.running.stdout is not None
        while True:
            try:
                frame = read_frame(self.running.stdout)
            # A ValueError if it was killed and cleaned up before.
            except (EOFError, OSError, ValueError):
                raise self._find_end() from None
            reply: Reply = pickle.loads(frame)
            if reply.kind != "message":
                return reply
            if listen is not None:
                listen(reply.value)

    def _find_end(self) -> ProcessError:
        """Return why the process has ended."""
        try:
            code = self.running.wait(PROCESS_END_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            code = self.running.wait()
        if self._is_late:
            assert self.limits.wall_seconds is not None
            return OutOfTimeError(self.limits.wall_seconds)
        if code == -getattr(signal, "SIGXCPU", 0) != 0:
            assert self.limits.processor_seconds is not None
            return OutOfTimeError(self.limits.processor_seconds)
        return EndedError(code)

    def _end_late(self) -> None:
        self._is_late = True
        self.kill()

    def _clean_up(self) -> None:
        self.running.wait()
        for stream in (self.running.stdin, self.running.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


class _Place:
    """The place of one job in a pool: its process, and whether somebody still waits for it."""

    def __init__(self, job: Job, generation: int) -> None:
        self.job = job
        self.generation = generation
        self.process: Process | None = None
        self.is_cancelled = False


class Pool:
    """Processes for jobs of one kind, started when needed and ended when idle.

    The process used last is used first, because it is warm. A pool serves an event loop (`do`) and
    threads (`submit`). `places` jobs are done at once; others wait. With `one_stays` the last process
    is not ended when idle, and one that has ended is replaced. `idle_seconds` None keeps all.
    """

    def __init__(
        self,
        places: int,
        limits: Limits = Limits(),
        *,
        name: str = "job",
        prepare: Job | None = None,
        variables: Mapping[str, str | None] | None = None,
        idle_seconds: float | None = 60.0,
        one_stays: bool = False,
    ) -> None:
        self.places = places
        self.limits = limits
        self.idle_seconds = idle_seconds
        self.one_stays = one_stays
        self._start = functools.partial(Process, limits, name=name, prepare=prepare, variables=variables)
        self._idle: list[Process] = []
        self._busy: set[Process] = set()
        # Shutting down begins another one, so that what began before cannot take its processes.
        self._generation = 0
        self._timer: threading.Timer | None = None
        self._threads: ThreadPoolExecutor | None = None
        self._lock = threading.RLock()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *error: object) -> None:
        self.shut_down()

    @property
    def pids(self) -> list[int]:
        """The numbers of its processes."""
        with self._lock:
            return [process.pid for process in (*self._idle, *self._busy)]

    def start(self, count: int = 1) -> None:
        """Start processes ahead until there are so many, and return at once.

        Raise `OSError` if the system refuses.
        """
        with self._lock:
            while len(self._idle) + len(self._busy) < count:
                self._rest(self._start())

    def submit(self, job: Job) -> Future[Any]:
        """Do a job in a process, once there is a place.

        See `Process.do` for what the result raises.
        """
        return self._submit(job)[0]

    async def do(self, job: Job) -> Any:
        """Do a job and return its result. If this is cancelled, the job's process is ended."""
        # Only here: it takes 30 ms of every command that shows a page's picture.
        import asyncio

        future, place = self._submit(job)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            self._cancel(place)
            raise
        finally:
            # An error's traceback has this frame: with the future, which has the error, both and the
            # job's contents would stay until the next collection of cycles.
            del future, place

    def shut_down(self) -> None:
        """End all processes and jobs, those that wait included.

        A later job starts a new process.
        """
        with self._lock:
            self._generation += 1
            ended = [*self._idle, *self._busy]
            self._idle.clear()
            self._busy.clear()
            if self._timer is not None:
                self._timer.cancel()
            self._timer = None
            threads = self._threads
            self._threads = None
        for process in ended:
            process.kill()
        if threads is not None:
            # Jobs that wait are not cancelled: they find the pool shut down and raise `EndedError`.
            threads.shutdown(wait=False)

    def _submit(self, job: Job) -> tuple[Future[Any], _Place]:
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self.places, thread_name_prefix="processes")
            place = _Place(job, self._generation)
            return self._threads.submit(self._do, place), place

    def _do(self, place: _Place) -> Any:
        process = self._take(place)
        try:
            return process.do(place.job)
        finally:
            self._put_back(process, place)

    def _take(self, place: _Place) -> Process:
        """Return a process for a job.

        Raise `EndedError` if there can be none, or if nobody waits for the job.
        """
        process = self._take_idle(place)
        if process is not None:
            return process
        try:
            process = self._start()
        except OSError as error:
            raise EndedError from error
        with self._lock:
            if self._is_wanted(place):
                place.process = process
                self._busy.add(process)
                return process
        process.kill()
        raise EndedError

    def _take_idle(self, place: _Place) -> Process | None:
        with self._lock:
            if not self._is_wanted(place):
                raise EndedError
            while self._idle:
                process = self._idle.pop()
                if process.is_alive:
                    place.process = process
                    self._busy.add(process)
                    return process
                process.kill()
        return None

    def _is_wanted(self, place: _Place) -> bool:
        return place.generation == self._generation and not place.is_cancelled

    def _put_back(self, process: Process, place: _Place) -> None:
        """Let a process wait for the next job if it can do one."""
        with self._lock:
            place.process = None
            self._busy.discard(process)
            is_current = place.generation == self._generation
            if is_current and process.is_alive:
                self._rest(process)
                return
            process.kill()
            if is_current and self.one_stays:
                with contextlib.suppress(OSError):  # the next job tries again
                    self.start()

    def _cancel(self, place: _Place) -> None:
        with self._lock:
            place.is_cancelled = True
            process = place.process
            if process is not None:
                self._busy.discard(process)
        if process is not None:
            process.kill()

    def _rest(self, process: Process) -> None:
        process.rests_since = time.monotonic()
        self._idle.append(process)
        self._set_timer()

    def _set_timer(self) -> None:
        """Set one timer for the process that has been idle longest.

        A timer for each process would cost each job a thread.
        """
        if self.idle_seconds is None or self._timer is not None or not self._ending:
            return
        wait = self._ending[0].rests_since + self.idle_seconds - time.monotonic()
        self._timer = threading.Timer(max(wait, 0.0), self._end_idle)
        self._timer.daemon = True
        self._timer.start()

    @property
    def _ending(self) -> list[Process]:
        """The idle processes that end after a while, the one that has been idle longest first."""
        stays = self.one_stays and not self._busy
        longest_first = sorted(self._idle, key=lambda process: process.rests_since)
        return longest_first[:-1] if stays else longest_first

    def _end_idle(self) -> None:
        assert self.idle_seconds is not None
        with self._lock:
            self._timer = None
            last = time.monotonic() - self.idle_seconds
            ended = [process for process in self._ending if process.rests_since <= last]
            for process in ended:
                self._idle.remove(process)
            self._set_timer()
        for process in ended:
            process.kill()


def read_result(reply: Reply) -> Any:
    """Return the result in the last reply to a job, or raise its error."""
    try:
        if reply.kind == "result":
            return reply.value
        if reply.kind == "problem":
            raise reply.value
        raise OutOfMemoryError(reply.value) if reply.kind == "memory" else FailedError(reply.value)
    finally:
        del reply


def write_frame(stream: IO[bytes], frame: bytes) -> None:
    """Write one frame."""
    stream.write(len(frame).to_bytes(LENGTH, "little"))
    stream.write(frame)
    stream.flush()


def read_frame(stream: IO[bytes]) -> bytes:
    """Read one frame. Raise `EOFError` if the other side has ended.

    Only for streams between our own processes, because frames hold pickles.
    """
    start = stream.read(LENGTH)
    length = int.from_bytes(start, "little")
    frame = stream.read(length) if len(start) == LENGTH else b""
    if len(start) < LENGTH or len(frame) < length:
        raise EOFError
    return frame


def allocated() -> int:
    """Return the bytes that this process has allocated, 0 where that is unknown (Linux)."""
    with contextlib.suppress(OSError):
        status = Path("/proc/self/status").read_text()
        found = re.search(r"^VmData:\s+(\d+) kB", status, re.MULTILINE)
        return int(found[1]) << 10 if found else 0
    return 0


def limit_memory(most: int) -> None:
    """Let this process allocate so many bytes more than now (Linux alone)."""
    if sys.platform == "linux" and (before := allocated()):
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (before + most, hard))


def limit_seconds(most: int) -> None:
    """End this process by SIGXCPU after so many more seconds of processor time (not on Windows)."""
    if sys.platform != "win32":
        usage = resource.getrusage(resource.RUSAGE_SELF)
        used = int(usage.ru_utime + usage.ru_stime) + 1
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (used + most, hard))


def serve() -> NoReturn:
    """Do jobs until the standard input ends: the program of a process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A job's error may quote what a user's file holds.
    keep_messages_out_of_logs()
    source, results = take_streams()
    frames: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    threading.Thread(target=read_jobs, args=(source, frames), daemon=True).start()
    first = frames.get()
    assert first is not None
    setup: Setup = pickle.loads(first)
    before = prepare_process(setup)
    lock = threading.Lock()

    def write(reply: Reply) -> None:
        frame = pickle.dumps(reply, protocol=5)
        with lock:
            write_frame(results, frame)

    while True:
        reply = do_job(frames.get(), setup.limits, write)
        rest = setup.limits.rest
        if rest is not None and allocated() - before > rest:
            reply = reply._replace(ends=True)
        send_reply(reply, write)
        if reply.ends:
            end_group()


def take_streams() -> tuple[IO[bytes], IO[bytes]]:
    """Return the streams of jobs and of replies.

    A job and what it starts have an empty input instead, and print to the standard error.
    """
    source = os.fdopen(os.dup(0), "rb")
    results = os.fdopen(os.dup(1), "wb")
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    return source, results


def read_jobs(source: IO[bytes], frames: queue.SimpleQueue[bytes | None]) -> None:
    """Read the jobs of a process, None for one too large for its memory.

    End the process when the input ends.
    """
    while True:
        try:
            frames.put(read_frame(source))
        except MemoryError:
            frames.put(None)
            return
        except (EOFError, OSError):
            end_group()


def end_group() -> NoReturn:
    """End this process and what it has started, also in the middle of a job."""
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


def prepare_process(setup: Setup) -> int:
    """Apply the limits that hold for all jobs of a process.

    Return the bytes that the process has allocated.
    """
    if setup.limits.niceness and sys.platform != "win32":
        os.nice(setup.limits.niceness)
    if sys.platform != "win32":
        # Processes that are out of time would write all their memory into a file.
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if setup.prepare is not None:
        find_function(setup.prepare)(*setup.prepare.arguments)
    if setup.limits.memory is not None:
        limit_memory(setup.limits.memory)
    return allocated()


def do_job(frame: bytes | None, limits: Limits, write: Callable[[Reply], None]) -> Reply:
    """Do a job of this process, and turn every error into a reply."""
    if frame is None:
        return Reply("memory", "the job is too large", ends=True)
    if limits.processor_seconds is not None:
        limit_seconds(limits.processor_seconds)
    try:
        job, listens = pickle.loads(frame)
        # Not `use_language`: a job may start threads.
        set_process_language(job.language)
        arguments = job.arguments
        if listens:
            arguments = (*arguments, lambda message: write(Reply("message", message)))
        return Reply("result", find_function(job)(*arguments))
    except (ValueError, OSError) as error:
        return Reply("problem", make_portable(error))
    except MemoryError as error:
        return Reply("memory", str(error), ends=True)
    except Exception as error:
        LOG.exception("a job failed")
        return Reply("failed", f"{type(error).__name__}: {error}")


def send_reply(reply: Reply, write: Callable[[Reply], None]) -> None:
    """Write the last reply to a job, or why its result cannot be sent."""
    try:
        write(reply)
    except OSError:  # the parent has ended
        end_group()
    except MemoryError:
        write(Reply("memory", "the result is too large", ends=True))
    except Exception as error:
        LOG.exception("a result cannot be sent")
        write(Reply("failed", f"{type(error).__name__}: {error}", ends=reply.ends))


def find_function(job: Job) -> Callable[..., Any]:
    """Return the function of a job."""
    if not isinstance(job.function, str):
        return job.function
    module, _, name = job.function.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function


def make_portable(error: ValueError | OSError) -> ValueError | OSError:
    """Return an error that the parent can unpickle, with the same message.

    One whose class does not allow that becomes a `ValueError`.
    """
    try:
        found = pickle.loads(pickle.dumps(error, protocol=5))
    except Exception:
        return ValueError(str(error))
    is_equal = type(found) is type(error) and str(found) == str(error)
    return error if is_equal else ValueError(str(error))
