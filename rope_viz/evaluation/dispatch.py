"""Distribute the questions of an evaluation over workers, such as several servers of one method.

A worker gets a bounded number of questions at once. After a temporary failure its question goes to another worker, and
this one gets a single question after a pause, which doubles until it answers.
"""

from __future__ import annotations

import concurrent.futures
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from rope_viz.evaluation.completion_clients import Engine, UnavailableError
from rope_viz.evaluation.evaluation_plan import AnswerRow, Cell

LONGEST_PAUSE = 60.0  # seconds
LONGEST_WISH = 300.0  # seconds; a server may ask for a longer pause


@dataclass(eq=False)
class Worker:
    """A server of one method, or a machine that runs several. `engines` are by method, `slots` its questions at once.

    The other fields count: answers, their tokens (length of the texts) and seconds, and temporary failures.
    """

    name: str
    engines: Mapping[str, Engine]
    slots: int = 1
    answers: int = 0
    tokens: int = 0
    seconds: float = 0.0
    failures: int = 0
    problem: str = ""
    running: int = field(default=0, repr=False)
    in_a_row: int = field(default=0, repr=False)
    unreached: int = field(default=0, repr=False)
    failed_at: float = field(default=0.0, repr=False)
    paused_until: float = field(default=0.0, repr=False)

    @property
    def works(self) -> bool:
        """True unless the last thing that it did was a temporary failure."""
        return self.in_a_row == 0

    def wait_time(self, request: float) -> float | None:
        """Return the seconds until it may have one more question, or None if another one must end first."""
        if self.running >= (self.slots if self.works else 1):
            return None
        return max(self.paused_until - request, 0.0)

    def summary(self) -> str:
        mean = f", {self.seconds / self.answers:.1f} s each" if self.answers else ""
        failed = f", {self.failures:,} failed requests, the last: {self.problem}" if self.failures else ""
        return f"{self.name}: {self.answers:,} answers{mean}, {self.tokens:,} tokens{failed}"


@dataclass(eq=False)
class Task:
    """One question, the workers that failed on it, and how often this counts against the question."""

    order: int
    cell: Cell
    failed_with: set[Worker] = field(default_factory=set)
    failures: int = 0


class QuestionQueue:
    """All questions that have no answer yet, shared by the threads of the workers."""

    def __init__(self, cells: Iterable[Cell], workers: Sequence[Worker], *, retries: int, wait: float) -> None:
        self.retries, self.wait = retries, wait
        self.workers: dict[str, list[Worker]] = {}
        for worker in workers:
            for method in worker.engines:
                self.workers.setdefault(method, []).append(worker)
        self.fresh: dict[str, deque[Task]] = {method: deque() for method in self.workers}
        self.returned: dict[str, list[Task]] = {method: [] for method in self.workers}
        for order, cell in enumerate(cells):
            self.fresh[cell[0]].append(Task(order, cell))
        self.open = {method: len(tasks) for method, tasks in self.fresh.items()}
        self.changed = threading.Condition()
        self.is_stopped = False

    def take(self, worker: Worker) -> Task | None:
        """Wait for a question that this worker can answer; return None once there will be no more."""
        with self.changed:
            while not self.is_stopped and any(self.open[method] for method in worker.engines):
                pause = worker.wait_time(time.monotonic())
                if pause == 0.0 and (task := self.find(worker)):
                    worker.running += 1
                    return task
                self.changed.wait(pause or None)
            return None

    def find(self, worker: Worker) -> Task | None:
        """Remove and return the first question that this worker may try, or return None.

        It tries again what it failed on only after all else, and only if no other working worker can still try it.
        """
        heads = [self.fresh[method][0] for method in worker.engines if self.fresh[method]]
        returned = [task for method in worker.engines for task in self.returned[method]]
        tried = [task for task in returned if worker in task.failed_with]
        others = [task for task in returned if worker not in task.failed_with]
        left = heads + others or [task for task in tried if not self.is_for_another(task, worker)]
        if not left:
            return None
        task = min(left, key=lambda each: each.order)
        if task in returned:
            self.returned[task.cell[0]].remove(task)
        else:
            self.fresh[task.cell[0]].popleft()
        return task

    def is_for_another(self, task: Task, worker: Worker) -> bool:
        """Return whether a working worker of the question's method has not tried the question yet."""
        others = [other for other in self.workers[task.cell[0]] if other is not worker]
        return any(other.works and other not in task.failed_with for other in others)

    def settle(self, worker: Worker, task: Task, started: float) -> None:
        """Count an answer, or a refusal, which is one."""
        with self.changed:
            worker.running -= 1
            worker.in_a_row = worker.unreached = 0
            worker.answers, worker.tokens = worker.answers + 1, worker.tokens + task.cell[1]
            worker.seconds += time.monotonic() - started
            self.open[task.cell[0]] -= 1
            self.changed.notify_all()

    def fail(self, worker: Worker, task: Task, started: float, error: UnavailableError) -> list[Task]:
        """Put a question back after a temporary failure, and return the questions that are given up instead.

        A question is given up after more than `retries` failures. What a server that is down could not answer counts
        only once against it. If no server of a method is reached after `retries` retries, all its questions are.
        """
        with self.changed:
            request, method = time.monotonic(), task.cell[0]
            worker.running -= 1
            worker.failures, worker.problem = worker.failures + 1, str(error)
            task.failures += error.is_reached or worker.works
            if started >= worker.failed_at:  # else it ended together with one that was counted
                worker.in_a_row, worker.failed_at = worker.in_a_row + 1, request
                worker.unreached = 0 if error.is_reached else worker.unreached + 1
                pause = min(self.wait * 2 ** (worker.in_a_row - 1), LONGEST_PAUSE)
                worker.paused_until = request + (pause if error.pause is None else min(error.pause, LONGEST_WISH))
            task.failed_with.add(worker)
            given_up = [task]
            if all(other.unreached > self.retries for other in self.workers[method]):
                given_up += [*self.returned[method], *self.fresh[method]]
                self.returned[method].clear()
                self.fresh[method].clear()
            elif task.failures <= max(self.retries, len(self.workers[method]) - 1 if self.retries else 0):
                self.returned[method].append(task)
                given_up = []
            self.open[method] -= len(given_up)
            self.changed.notify_all()
            return given_up

    def stop(self) -> None:
        with self.changed:
            self.is_stopped = True
            self.changed.notify_all()


def dispatch(
    cells: Iterable[Cell],
    workers: Sequence[Worker],
    answer: Callable[[Engine, Cell], AnswerRow],
    refuse: Callable[[Cell, str], AnswerRow],
    write: Callable[[AnswerRow], None],
    *,
    retries: int = 5,
    wait: float = 1.0,
    say: Callable[[str], None] = lambda line: None,
) -> None:
    """Ask every question of some worker that has its method, and pass each answer to `write`.

    `answer` returns the row of one question and may raise `UnavailableError`; `refuse` makes the row of one that is
    given up, from the reason. Both are called in threads. `write` is called once at a time, and a worker gets its next
    question only after it: a kill loses no more than what was asked at that moment. Any other error ends the run. After
    Ctrl-C the pending answers are still awaited and written; a second one raises at once, and the threads that still
    wait for an answer are then left. `wait` is the first pause in seconds.
    """
    board = QuestionQueue(cells, workers, retries=retries, wait=wait)
    writing = threading.Lock()

    def work(worker: Worker) -> None:
        while task := board.take(worker):
            started = time.monotonic()
            try:
                rows = [answer(worker.engines[task.cell[0]], task.cell)]
            except UnavailableError as error:
                rows = [refuse(each.cell, str(error)) for each in board.fail(worker, task, started, error)]
            else:
                board.settle(worker, task, started)
            for row in rows:
                with writing:
                    write(row)

    pool = ThreadPoolExecutor(sum(worker.slots for worker in workers) or 1, thread_name_prefix="evaluation")
    try:
        futures = [pool.submit(work, worker) for worker in workers for _ in range(worker.slots)]
        ended = concurrent.futures.wait(futures, return_when=concurrent.futures.FIRST_EXCEPTION).done
        board.stop()
        pool.shutdown()
        for future in ended:
            future.result()
    except KeyboardInterrupt:
        # No `finally` waits for the threads, because a second Ctrl-C must get through from here on.
        board.stop()
        say("stopping after the questions that are being answered; press Ctrl-C again to stop at once")
        pool.shutdown()
        raise


def count_tokens(
    text: str,
    engines: Sequence[Engine],
    *,
    retries: int = 5,
    wait: float = 1.0,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Return the tokens of a text, counted by the first engine that answers. Raises `ValueError` if none does."""
    for attempt in range(retries + 1):
        for engine in engines:
            try:
                return engine.count(text)
            except UnavailableError as error:
                problem, pause = error, error.pause
        if attempt < retries:
            sleep(min(wait * 2**attempt, LONGEST_PAUSE) if pause is None else min(pause, LONGEST_WISH))
    raise problem
