"""Ask other models the reader's questions: depth × length × method, resumed where it stopped, into one JSON file.

Every answer is written down as it comes, in a journal beside the file; whoever starts again asks only what is missing.
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

from rope_viz.tiny_lm.completion_clients import Engine
from rope_viz.tiny_lm.evaluation_plan import VERSION, Cell, Row, read_evaluation
from rope_viz.tiny_lm.passkey import WORDINGS, pieces_for


@dataclass(frozen=True)
class Plan:
    """What is asked. `methods` are names; `about` says of each how it was run (flags, address, config)."""

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
        if self.wording not in WORDINGS:
            raise ValueError(f"the wording must be one of {', '.join(WORDINGS)}, got {self.wording!r}")

    def cells(self) -> Iterator[Cell]:
        """Every question, coarse first: all cells once before any again, short texts before long ones."""
        for repeat, length in itertools.product(range(self.repeats), sorted(self.lengths)):
            for method, depth in itertools.product(self.methods, self.depths):
                yield method, length, depth, repeat

    @property
    def size(self) -> int:
        """How many questions."""
        return len(self.methods) * len(self.lengths) * len(self.depths) * self.repeats

    @property
    def tokens(self) -> int:
        """What they cost at most: tokens of text and answer together."""
        return sum(self.lengths) * len(self.depths) * self.repeats * len(self.methods)

    def key(self, method: str) -> str:
        """Changes with anything that makes an old answer one to another question; not with an address."""
        said = {name: value for name, value in dict(self.about.get(method) or {}).items() if name != "url"}
        text = json.dumps([VERSION, self.wording, self.model, method, said], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class Journal:
    """The answers so far, one JSON text a line; a line cut off by a kill is dropped."""

    def __init__(self, path: Path, plan: Plan, before: Sequence[Row] = ()) -> None:
        self.path, self.plan = path, plan
        self.rows: dict[Cell, Row] = {}
        for row in [*before, *(noted(path) if path.exists() else ())]:
            if row.method in plan.methods and row.key != plan.key(row.method):
                raise ValueError(f"there are answers of another {row.method} already: name another output")
            if row.right is not None or row.cell not in self.rows:
                self.rows[row.cell] = row

    def add(self, row: Row) -> None:
        """Write it down before anything else happens; on a line of its own, whatever a kill left of the last."""
        self.rows[row.cell] = row
        with open(self.path, "a", encoding="utf-8") as file:
            file.write("\n" + json.dumps(asdict(row)))
            file.flush()
            os.fsync(file.fileno())

    def answered(self, cell: Cell) -> bool:
        """Whether this was asked and answered."""
        return cell in self.rows and self.rows[cell].right is not None


def noted(path: Path) -> Iterator[Row]:
    """The rows of a journal."""
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
    """Ask everything that is not yet answered, write `out` and return what it holds.

    `engines` has one for every method. Answered questions of an earlier run, finished or not, are kept. A question an
    engine refuses is written with its reason, and asked again by the next run. Raises `ValueError` where a length
    cannot be made, or `out` holds answers of methods that were run otherwise.
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
            given = engines[method].ask(question.text, wording.answer_tokens)
        except ValueError as error:
            return Row(*cell, right=None, answer=str(error)[:200], key=plan.key(method))
        right, said = wording.right(question, given.text), given.text.strip()[:200]
        return Row(*cell, right=right, answer=said, tokens=given.tokens, key=plan.key(method))

    def keep(done: set[Future[Row]]) -> None:
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
                    keep(done)
                running.add(pool.submit(answer, cell))
        finally:
            # Also after Ctrl-C: what is on its way comes back and is written down, so that nobody pays for it twice.
            keep(wait(running).done)
    return finished(plan, journal, out)


def finished(plan: Plan, journal: Journal, out: Path) -> dict[str, Any]:
    """Write the file, whole or not at all, and remove the journal where nothing is left to ask."""
    found = {
        "version": VERSION,
        "model": plan.model,
        "wording": plan.wording,
        "about": {method: dict(plan.about.get(method) or {}) for method in plan.methods},
        "answers": [asdict(journal.rows[cell]) for cell in plan.cells()],
    }
    temporary = out.with_name(out.name + ".new")
    temporary.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    os.replace(temporary, out)
    if all(journal.answered(cell) for cell in plan.cells()):
        journal.path.unlink(missing_ok=True)
    return found


class Progress:
    """How far it is and how long it will take, by tokens: a long text takes longer."""

    def __init__(self, plan: Plan, missing: Sequence[Cell], say: Callable[[str], None]) -> None:
        self.say, self.begin = say, time.monotonic()
        self.total, self.left = len(missing), sum(cell[1] for cell in missing)
        self.done, self.tokens = 0, 0
        if len(missing) < plan.size:
            say(f"{plan.size - len(missing):,} of {plan.size:,} questions are answered already")

    def step(self, row: Row) -> None:
        """One more."""
        self.done, self.tokens, self.left = self.done + 1, self.tokens + row.length, self.left - row.length
        seconds = (time.monotonic() - self.begin) * self.left / self.tokens
        self.say(f"{self.done:,} of {self.total:,} asked, {span(seconds)} left")


def span(seconds: float) -> str:
    """A time as a person says it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
