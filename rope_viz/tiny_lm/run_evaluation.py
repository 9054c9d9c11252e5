"""Asks models the recall questions over depth × length × method, resumable, and writes one JSON file.

Every answer is immediately written to a journal next to the file; a restart asks only the missing questions.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rope_viz.embedding.spec import short_repr
from rope_viz.storage.write_file import write_file
from rope_viz.tiny_lm.completion_clients import Engine
from rope_viz.tiny_lm.evaluation_plan import MOST, VERSION, Cell, Row, read_evaluation
from rope_viz.tiny_lm.passkey import WORDINGS, pieces_for


@dataclass(frozen=True)
class Plan:
    """The questions to ask. `methods` are names; `about` describes how each was run (flags, address, config)."""

    methods: tuple[str, ...]
    lengths: tuple[int, ...]
    depths: tuple[float, ...]
    repeats: int = 1
    wording: str = "english"
    model: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, values in (("method", self.methods), ("length", self.lengths), ("depth", self.depths)):
            if not values or len(set(values)) < len(values):
                raise ValueError(f"there must be at least one {name}, and each once")
        if min(self.lengths) < 1 or self.repeats < 1 or not all(0.0 <= depth <= 1.0 for depth in self.depths):
            raise ValueError("lengths and repeats must be at least 1, and depths from 0 to 1")
        if self.size > MOST:
            raise ValueError(f"an evaluation has at most {MOST:,} questions, and these are {short_repr(self.size)}")
        if self.wording not in WORDINGS:
            raise ValueError(f"the wording must be one of {', '.join(WORDINGS)}, got {self.wording!r}")

    def cells(self) -> Iterator[Cell]:
        """Yield every question, coarse first: all cells once before any repeat, short texts before long ones."""
        for repeat, length in itertools.product(range(self.repeats), sorted(self.lengths)):
            for method, depth in itertools.product(self.methods, self.depths):
                yield method, length, depth, repeat

    @property
    def size(self) -> int:
        """Return the number of questions."""
        return len(self.methods) * len(self.lengths) * len(self.depths) * self.repeats

    @property
    def tokens(self) -> int:
        """Return the largest possible cost: tokens of texts and answers together."""
        return sum(self.lengths) * len(self.depths) * self.repeats * len(self.methods)

    def key(self, method: str) -> str:
        """Return a hash that changes with anything that invalidates old answers, but not with an address."""
        description = {name: value for name, value in dict(self.about.get(method) or {}).items() if name != "url"}
        text = json.dumps([VERSION, self.wording, self.model, method, description], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class Journal:
    """The answers so far, one JSON text per line; a line truncated by a kill is dropped."""

    def __init__(self, path: Path, plan: Plan, before: Sequence[Row] = ()) -> None:
        self.path, self.plan = path, plan
        self.rows: dict[Cell, Row] = {}
        for row in [*before, *(read_journal(path) if path.exists() else ())]:
            if row.method in plan.methods and row.key != plan.key(row.method):
                raise ValueError(f"there are answers of another {row.method} already: name another output")
            if row.right is not None or row.cell not in self.rows:
                self.rows[row.cell] = row

    def add(self, row: Row) -> None:
        """Write the row to disk at once, on a new line because a kill may have truncated the last one."""
        self.rows[row.cell] = row
        with open(self.path, "a", encoding="utf-8") as file:
            file.write("\n" + json.dumps(asdict(row)))
            file.flush()
            os.fsync(file.fileno())

    def answered(self, cell: Cell) -> bool:
        """True if the question was asked and answered."""
        return cell in self.rows and self.rows[cell].right is not None


def read_journal(path: Path) -> Iterator[Row]:
    """Yield the rows of a journal."""
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            row = Row(**json.loads(line))
        except (ValueError, TypeError):
            continue
        yield row


def evaluate(
    plan: Plan,
    engines: Mapping[str, Engine],
    out: Path,
    *,
    concurrency: int = 4,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Ask every question that is not yet answered, write `out` and return its content.

    `engines` has one entry per method. Answers of an earlier run, finished or not, are kept. A question that an engine
    refuses is written with the reason, and asked again by the next run. Raises `ValueError` if a length is impossible,
    or if `out` holds answers of methods that were run otherwise.
    """
    before = read_evaluation(out).rows if out.exists() else ()
    journal = Journal(out.with_name(out.name + ".journal"), plan, before)
    missing = [cell for cell in plan.cells() if not journal.answered(cell)]
    wording, pieces = WORDINGS[plan.wording], dict[tuple[str, int], int]()
    counts = {method: functools.cache(engine.count) for method, engine in engines.items()}
    progress = Progress(plan, missing, say)

    def answer(cell: Cell) -> Row:
        method, length, depth, repeat = cell
        question = wording.make(pieces[method, length], depth, repeat)
        try:
            reply = engines[method].ask(question.text, wording.answer_tokens)
        except ValueError as error:
            return Row(*cell, right=None, answer=str(error)[:200], key=plan.key(method))
        right, answer_text = wording.right(question, reply.text), reply.text.strip()[:200]
        return Row(*cell, right=right, answer=answer_text, tokens=reply.tokens, key=plan.key(method))

    def write_down(done: set[Future[Row]]) -> None:
        for future in done:
            journal.add(future.result())
            progress.step(future.result())

    running: set[Future[Row]] = set()
    with ThreadPoolExecutor(concurrency) as pool:
        try:
            for cell in missing:
                method, length = cell[:2]
                if (method, length) not in pieces:
                    pieces[method, length] = pieces_for(wording, length, counts[method])
                if len(running) >= concurrency:
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    write_down(done)
                running.add(pool.submit(answer, cell))
        finally:
            # Also after Ctrl-C: wait for pending answers and write them, so that none is paid for twice.
            write_down(wait(running).done)
    return finished(plan, journal, out)


def finished(plan: Plan, journal: Journal, out: Path) -> dict[str, Any]:
    """Write the file whole, and remove the journal if every question is answered."""
    found = {
        "version": VERSION,
        "model": plan.model,
        "wording": plan.wording,
        "about": {method: dict(plan.about.get(method) or {}) for method in plan.methods},
        "answers": [asdict(journal.rows[cell]) for cell in plan.cells()],
    }
    write_file(out, (json.dumps(found, indent=1) + "\n").encode())
    if all(journal.answered(cell) for cell in plan.cells()):
        journal.path.unlink(missing_ok=True)
    return found


class Progress:
    """Progress and remaining time, estimated by tokens because long texts take longer."""

    def __init__(self, plan: Plan, missing: Sequence[Cell], say: Callable[[str], None]) -> None:
        self.say, self.begin = say, time.monotonic()
        self.total, self.left = len(missing), sum(cell[1] for cell in missing)
        self.done, self.tokens = 0, 0
        if len(missing) < plan.size:
            say(f"{plan.size - len(missing):,} of {plan.size:,} questions are answered already")

    def step(self, row: Row) -> None:
        """Count one more answer and report progress."""
        self.done, self.tokens, self.left = self.done + 1, self.tokens + row.length, self.left - row.length
        seconds = (time.monotonic() - self.begin) * self.left / self.tokens
        self.say(f"{self.done:,} of {self.total:,} asked, {span(seconds)} left")


def span(seconds: float) -> str:
    """Format a duration for people."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
