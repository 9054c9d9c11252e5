"""Jobs in processes that can be ended: pictures that can take long, and contents from outside that are read."""

from __future__ import annotations

import contextlib
import os

from rope_viz.serving import render_process
from rope_viz.serving.render_process import FileJob, Reading, RenderResult
from rope_viz.storage.limits import JOB_IDLE_SECONDS, JOB_MEMORY, JOB_REST, JOB_SECONDS, LONG_JOBS_AT_ONCE, READING_REST
from rope_viz.storage.processes import EndedError, FailedError, Job, Limits, OutOfMemoryError, OutOfTimeError, Pool
from rope_viz.texts import Texts, use_language

TEXTS = Texts("app")
# Every thread of a process has a heap of its own otherwise, whose free memory is not returned.
VARIABLES = {
    name: os.environ.get(name, value) for name, value in (("OPENBLAS_NUM_THREADS", "1"), ("MALLOC_ARENA_MAX", "2"))
}


class NoProcessError(RuntimeError):
    """No process could be started, or it ended without an answer."""


class LongJobs:
    """The processes of a server for one kind of job: started when needed, ended when idle or when no one waits.

    `reads`: they read contents, and one of them stays, so that the next content need not wait for its start.
    """

    def __init__(
        self,
        places: int = LONG_JOBS_AT_ONCE,
        *,
        idle_seconds: float = JOB_IDLE_SECONDS,
        seconds: int = JOB_SECONDS,
        memory: int = JOB_MEMORY,
        reads: bool = False,
    ) -> None:
        self.places = places
        rest = READING_REST if reads else JOB_REST
        self._pool = Pool(
            places,
            Limits(processor_seconds=seconds, memory=memory, rest=rest),
            name="reading" if reads else "long picture",
            prepare=Job(render_process.prepare_reading if reads else render_process.prepare),
            variables=VARIABLES,
            idle_seconds=idle_seconds,
            one_stays=reads,
        )

    @property
    def pids(self) -> list[int]:
        return self._pool.pids

    def start(self) -> None:
        """Start a process if there is none, and return at once. Without one now, the first job starts it."""
        with contextlib.suppress(OSError):
            self._pool.start()

    async def render(self, job: FileJob) -> RenderResult:
        return await self.do(job)

    async def do(self, job: FileJob | Reading) -> RenderResult:
        """Do a job. If this is cancelled, the process is ended. Raise `NoProcessError` with a sentence."""
        reads = isinstance(job, Reading)
        function = render_process.read_content if reads else render_process.render
        # The sentences for the two ways in which a job is too large.
        texts = "stored" if reads else "server"
        with use_language(job.language):
            try:
                result: RenderResult = await self._pool.do(Job(function, (job,)))
            except OutOfTimeError as error:
                return RenderResult(problem=TEXTS(f"{texts}.seconds", most=error.seconds), unreadable=reads)
            except OutOfMemoryError:
                return RenderResult(problem=TEXTS(f"{texts}.memory"), unreadable=reads)
            except FailedError:
                return RenderResult(problem=TEXTS(f"{texts}.failed"), failed=True)
            except EndedError:
                raise NoProcessError(TEXTS("server.ended")) from None
        return result

    def shut_down(self) -> None:
        self._pool.shut_down()
