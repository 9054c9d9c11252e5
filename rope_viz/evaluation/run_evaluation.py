"""Asks models the recall questions over depth × length × method, resumable, and writes one JSON file.

Every answer is immediately written to a journal next to the file; a restart asks only the missing questions.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rope_viz.embedding.spec import require_number, short_repr
from rope_viz.evaluation.completion_clients import Engine, UnavailableError
from rope_viz.evaluation.dispatch import Worker, count_tokens, dispatch
from rope_viz.evaluation.evaluation_plan import (
    LARGEST,
    MOST,
    VERSION,
    WHOLE,
    AnswerRow,
    Cell,
    Evaluation,
    describe_shard,
    format_shard,
    read_evaluation,
)
from rope_viz.storage.decode_json import decode_json
from rope_viz.storage.read_file import read_limited, read_limited_text
from rope_viz.storage.write_file import write_file
from rope_viz.tiny_lm.passkey import WORDINGS, pieces_for


@dataclass(frozen=True)
class EvaluationPlan:
    """The questions to ask. `methods` are names; `about` describes how each was run (flags, addresses, config).

    `shard` is (number from 0, count): only every so-many-th question is asked, and `merge` joins the files.
    """

    methods: tuple[str, ...]
    lengths: tuple[int, ...]
    depths: tuple[float, ...]
    repeats: int = 1
    wording: str = "english"
    model: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)
    shard: tuple[int, int] = WHOLE

    def __post_init__(self) -> None:
        for name, values in (("method", self.methods), ("length", self.lengths), ("depth", self.depths)):
            if not values or len(set(values)) < len(values):
                raise ValueError(f"there must be at least one {name}, and each once")
        if min(self.lengths) < 1 or self.repeats < 1 or not all(0.0 <= depth <= 1.0 for depth in self.depths):
            raise ValueError("lengths and repeats must be at least 1, and depths from 0 to 1")
        if self.whole_size > MOST:
            raise ValueError(
                f"an evaluation has at most {MOST:,} questions, and these are {short_repr(self.whole_size)}"
            )
        if not 0 <= self.shard[0] < self.shard[1] <= self.whole_size:
            raise ValueError(
                f"a shard must be I/N with I from 0 to N − 1, and N at most the {self.whole_size:,} questions, "
                f"got {format_shard(self.shard)}"
            )
        if self.wording not in WORDINGS:
            raise ValueError(f"the wording must be one of {', '.join(WORDINGS)}, got {self.wording!r}")

    def cells(self) -> Iterator[Cell]:
        """Yield the questions of the shard: all cells once before any repeat, long texts before short ones.

        The last requests are then short, so that no server waits long for another one at the end.
        """
        return itertools.islice(self.whole_cells(), self.shard[0], None, self.shard[1])

    def whole_cells(self) -> Iterator[Cell]:
        for repeat, length in itertools.product(range(self.repeats), sorted(self.lengths, reverse=True)):
            for method, depth in itertools.product(self.methods, self.depths):
                yield method, length, depth, repeat

    @property
    def whole_size(self) -> int:
        return len(self.methods) * len(self.lengths) * len(self.depths) * self.repeats

    @property
    def size(self) -> int:
        return len(range(self.shard[0], self.whole_size, self.shard[1]))

    @property
    def tokens(self) -> int:
        """Return the largest possible cost: tokens of texts and answers together."""
        return sum(cell[1] for cell in self.cells())

    def key(self, method: str) -> str:
        """Return a hash that changes with anything that invalidates old answers, but not with an address."""
        about = dict(self.about.get(method) or {})
        description = {name: value for name, value in about.items() if name not in ("url", "served")}
        text = json.dumps([VERSION, self.wording, self.model, method, description], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class Journal:
    """The answers so far, one JSON text per line; a line truncated by a kill is dropped."""

    def __init__(self, path: Path, plan: EvaluationPlan, before: Sequence[AnswerRow] = ()) -> None:
        self.path, self.plan = path, plan
        self.rows: dict[Cell, AnswerRow] = {}
        for row in [*before, *(read_journal(path) if path.exists() else ())]:
            if row.method in plan.methods and row.key != plan.key(row.method):
                raise ValueError(f"there are answers of another {row.method} already: name another output")
            if row.right is not None or row.cell not in self.rows:
                self.rows[row.cell] = row

    def add(self, row: AnswerRow) -> None:
        """Write the row to disk at once, on a new line because a kill may have truncated the last one."""
        self.rows[row.cell] = row
        with open(self.path, "a", encoding="utf-8") as file:
            file.write("\n" + json.dumps(asdict(row)))
            file.flush()
            os.fsync(file.fileno())

    def answered(self, cell: Cell) -> bool:
        return cell in self.rows and self.rows[cell].right is not None


LARGEST_JOURNAL = 4 * LARGEST
"""Bytes. Each row has the name of its fields, and may be there once for each run that was interrupted."""


def read_journal(path: Path) -> Iterator[AnswerRow]:
    """Yield the rows of a journal."""
    for line in read_limited_text(path, LARGEST_JOURNAL).splitlines():
        try:
            row = AnswerRow(**decode_json(line, "this line is not JSON"))
        except (ValueError, TypeError):
            continue
        yield row


def evaluate(
    plan: EvaluationPlan,
    workers: Sequence[Worker],
    out: Path,
    *,
    retries: int = 5,
    wait: float = 1.0,
    by_method: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Ask every question that is not yet answered, write `out` and return its content.

    Each method needs a worker. Answers of an earlier run, finished or not, are kept. A question that an engine
    refuses is written with the reason, and asked again by the next run. `by_method` asks one method after the other,
    for workers that load one at a time. Raises `ValueError` if a length is impossible,
    or if `out` holds another shard or answers of methods that were run otherwise.
    """
    before: Sequence[AnswerRow] = ()
    if out.exists():
        found = read_evaluation(out)
        if found.shard != plan.shard:
            raise ValueError(f"{out} holds {describe_shard(found.shard)}: name another output")
        before = found.rows
    journal = Journal(out.with_name(out.name + ".journal"), plan, before)
    missing = [cell for cell in plan.cells() if not journal.answered(cell)]
    if by_method:
        missing.sort(key=lambda cell: plan.methods.index(cell[0]))
    wording, pieces = WORDINGS[plan.wording], dict[tuple[str, int], int]()
    progress = Progress(plan, missing, say)
    for method in dict.fromkeys(cell[0] for cell in missing):
        engines = [worker.engines[method] for worker in workers if method in worker.engines]
        count = functools.cache(functools.partial(count_tokens, engines=engines, retries=retries, wait=wait))
        for length in plan.lengths:
            pieces[method, length] = pieces_for(wording, length, count)

    def answer(engine: Engine, cell: Cell) -> AnswerRow:
        method, length, depth, repeat = cell
        question = wording.make(pieces[method, length], depth, repeat)
        try:
            reply = engine.ask(question.text, wording.answer_tokens)
        except UnavailableError:
            raise
        except ValueError as error:
            return refuse(cell, str(error))
        right, answer_text = wording.right(question, reply.text), reply.text.strip()[:200]
        return AnswerRow(*cell, right=right, answer=answer_text, tokens=reply.tokens, key=plan.key(method))

    def refuse(cell: Cell, reason: str) -> AnswerRow:
        return AnswerRow(*cell, right=None, answer=reason[:200], key=plan.key(cell[0]))

    def write(row: AnswerRow) -> None:
        journal.add(row)
        progress.step(row)

    dispatch(missing, workers, answer, refuse, write, retries=retries, wait=wait, say=say)
    if len(workers) > 1 or any(worker.failures for worker in workers):
        for worker in workers:
            say(worker.summary())
    return finished(plan, journal.rows, out, journal.path)


def finished(plan: EvaluationPlan, rows: Mapping[Cell, AnswerRow], out: Path, journal: Path) -> dict[str, Any]:
    """Write the file whole, and remove the journal if every question is answered."""
    found: dict[str, Any] = {
        "version": VERSION,
        "model": plan.model,
        "wording": plan.wording,
        "about": {method: dict(plan.about.get(method) or {}) for method in plan.methods},
        "answers": [asdict(rows[cell]) for cell in plan.cells()],
    }
    if plan.shard != WHOLE:
        grid = {name: list(getattr(plan, name)) for name in ("methods", "lengths", "depths")}
        found["shard"] = {"number": plan.shard[0], "of": plan.shard[1], "repeats": plan.repeats, **grid}
    write_file(out, (json.dumps(found, indent=1) + "\n").encode())
    if all(rows[cell].right is not None for cell in plan.cells()):
        journal.unlink(missing_ok=True)
    return found


class Progress:
    """Progress and remaining time, estimated by tokens because long texts take longer."""

    def __init__(self, plan: EvaluationPlan, missing: Sequence[Cell], say: Callable[[str], None]) -> None:
        self.say, self.begin = say, time.monotonic()
        self.total, self.left = len(missing), sum(cell[1] for cell in missing)
        self.done, self.tokens = 0, 0
        if len(missing) < plan.size:
            say(f"{plan.size - len(missing):,} of {plan.size:,} questions are answered already")

    def step(self, row: AnswerRow) -> None:
        self.done, self.tokens, self.left = self.done + 1, self.tokens + row.length, self.left - row.length
        seconds = (time.monotonic() - self.begin) * self.left / self.tokens
        self.say(f"{self.done:,} of {self.total:,} asked, {span(seconds)} left")


def span(seconds: float) -> str:
    """Format a duration for people."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


GRID = {"methods": str, "lengths": int, "depths": float}
"""{property of a shard's record: type of its items}; together with `repeats` they are the questions of all shards."""


@dataclasses.dataclass(frozen=True)
class ShardFile:
    """One file: its name, the plan of its shard and what it holds."""

    name: str
    plan: EvaluationPlan
    found: Evaluation


def merge_shards(paths: Sequence[str | Path], out: Path) -> dict[str, Any]:
    """Write one file with the answers of all shards, and return its content.

    Raises `ValueError` that names the file if a shard is missing, double, of another evaluation or of another model.
    """
    files = [read_shard_file(path) for path in paths]
    if not files:
        raise ValueError("name the files of the shards to merge")
    first, count = files[0], files[0].plan.shard[1]
    by_number: dict[int, ShardFile] = {}
    for file in files:
        compare(first, file)
        number = file.plan.shard[0]
        if number in by_number:
            label = format_shard(file.plan.shard)
            raise ValueError(f"{by_number[number].name} and {file.name} are both shard {label}: name one of them")
        by_number[number] = file
    missing = [format_shard((number, count)) for number in range(count) if number not in by_number]
    if missing:
        raise ValueError(f"not all shards are named, missing: {', '.join(missing)}")
    about = {method: merge_about([file.plan.about[method] for file in files]) for method in first.plan.methods}
    plan = dataclasses.replace(first.plan, shard=WHOLE, about=about)
    rows = {row.cell: row for file in files for row in file.found.rows}
    return finished(plan, rows, out, out.with_name(out.name + ".journal"))


def read_shard_file(path: str | Path) -> ShardFile:
    """Read one shard. Raises `ValueError` if it is none, or if its answers are not those of its plan."""
    name, data = str(path), read_limited(path, LARGEST)
    try:
        found = read_evaluation(data)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    if found.shard == WHOLE:
        raise ValueError(f"{name} is a whole evaluation: make shards with `rope-viz evaluate --shard I/N`")
    plan = read_plan(name, decode_json(data, name)["shard"], found)
    wanted = set(plan.cells())
    cells = [row.cell for row in found.rows]
    if len(set(cells)) < len(cells):
        raise ValueError(f"{name} has two answers to one question: run this shard again")
    if set(cells) != wanted:
        lost, foreign = len(wanted - set(cells)), len(set(cells) - wanted)
        raise ValueError(f"{name}: {lost:,} answers are missing and {foreign:,} belong to another shard: run it again")
    for row in found.rows:
        if row.key != plan.key(row.method):
            raise ValueError(f"{name} has answers of another {row.method}: run this shard again")
    return ShardFile(name, plan, found)


def read_plan(name: str, record: Mapping[str, Any], found: Evaluation) -> EvaluationPlan:
    """Return the plan in the record of a shard. Raises `ValueError` that names the file."""
    try:
        require_number(record.get("repeats"), "repeats", least=1, most=1e6, integer=True)
        grid = {key: tuple(kind(item) for item in record[key]) for key, kind in GRID.items()}
        about = {method: dict(found.about.get(method) or {}) for method in grid["methods"]}
        return EvaluationPlan(
            **grid,
            repeats=record["repeats"],
            wording=found.wording,
            model=found.model,
            about=about,
            shard=found.shard,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{name}: its record of the shard cannot be read ({error}): run it again") from None


def compare(first: ShardFile, other: ShardFile) -> None:
    """Raise `ValueError` that names the other file if it does not belong to the same evaluation."""
    end = f"{other.name} belongs to another evaluation than {first.name}"
    for name in ("model", "wording", "methods", "lengths", "depths", "repeats"):
        ours, theirs = getattr(first.plan, name), getattr(other.plan, name)
        if ours != theirs:
            raise ValueError(f"{end}: its {name} is {show(theirs)}, not {show(ours)}")
    if first.plan.shard[1] != other.plan.shard[1]:
        raise ValueError(f"{end}: it is one of {other.plan.shard[1]} shards, not of {first.plan.shard[1]}")
    for method in first.plan.methods:
        ours, theirs = first.plan.about[method], other.plan.about[method]
        for key in dict.fromkeys([*ours, *theirs]):
            if key != "url" and ours.get(key) != theirs.get(key):
                raise ValueError(f"{end}: {key} of {method} differs")


def show(value: Any) -> str:
    """Format a property of a plan."""
    return (
        ", ".join(f"{item:,}" if isinstance(item, int) else str(item) for item in value)
        if isinstance(value, tuple)
        else repr(value)
    )


def merge_about(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the description of a method with the addresses of all shards."""
    urls = list(dict.fromkeys(url for part in parts for url in as_list(part.get("url"))))
    return {**parts[0], **({"url": urls[0] if len(urls) == 1 else urls} if urls else {})}


def as_list(url: Any) -> list[str]:
    """Return the addresses of a description as a list."""
    return [] if url is None else [url] if isinstance(url, str) else list(url)
