"""Results of an evaluation, from its JSON file: recall by depth and length, per method."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from rope_viz.embedding.spec import FloatArray, require_number, short_repr
from rope_viz.evaluation import TEXTS
from rope_viz.storage.decode_json import decode_json
from rope_viz.storage.read_file import read_limited
from rope_viz.tiny_lm.recall import interval

VERSION = 1
LARGEST = 16 << 20  # bytes
MOST = 100_000  # answers
LIMITS: dict[str, dict[str, Any]] = {
    "length": {"least": 1, "most": 1e9, "integer": True},
    "depth": {"least": 0.0, "most": 1.0},
    "repeat": {"least": 0, "most": 1e6, "integer": True},
}
"""The numbers of an answer and their bounds."""
MOST_DISTINCT = {"methods": 50, "lengths": 1000, "depths": 10_001}
"""{property of an evaluation: the most values}; a figure has a line per method and a cell per length and depth."""
Cell: TypeAlias = tuple[str, int, float, int]
"""(method, length, depth, repeat)."""
WHOLE = 0, 1
"""The shard of an evaluation in one piece, as (number, count)."""


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One answer; `right` is None if the engine gave none, and `answer` is then the reason. `key` is its question's."""

    method: str
    length: int
    depth: float
    repeat: int
    right: bool | None
    answer: str
    tokens: int | None = None
    key: str = ""

    @property
    def cell(self) -> Cell:
        return self.method, self.length, self.depth, self.repeat


@dataclass(frozen=True)
class Evaluation:
    """A whole file. `about` describes how each method was run, `shard` is (number, count) if it is a part."""

    model: str
    wording: str
    about: Mapping[str, Mapping[str, Any]]
    rows: tuple[AnswerRow, ...]
    shard: tuple[int, int] = WHOLE

    @functools.cached_property
    def methods(self) -> tuple[str, ...]:
        """Return the methods in the order of the file."""
        return tuple(dict.fromkeys(row.method for row in self.rows))

    @functools.cached_property
    def lengths(self) -> tuple[int, ...]:
        """Return the lengths in tokens, increasing."""
        return tuple(sorted({row.length for row in self.rows}))

    @functools.cached_property
    def depths(self) -> tuple[float, ...]:
        """Return the depths, from the beginning of the text to its end."""
        return tuple(sorted({row.depth for row in self.rows}))

    @functools.cached_property
    def _counts(self) -> Mapping[str, Mapping[tuple[int, float], tuple[int, int]]]:
        """Return {method: {(length, depth): (answers, right answers)}}, from one pass over the rows."""
        out: dict[str, dict[tuple[int, float], tuple[int, int]]] = {}
        for row in self.rows:
            if row.right is not None:
                cells = out.setdefault(row.method, {})
                answered, right = cells.get((row.length, row.depth), (0, 0))
                cells[row.length, row.depth] = answered + 1, right + row.right
        return out

    def map(self, method: str) -> FloatArray:
        """Return recall by depth and length, (depths, lengths); NaN without answers."""
        out = np.full((len(self.depths), len(self.lengths)), np.nan)
        rows = {depth: index for index, depth in enumerate(self.depths)}
        columns = {length: index for index, length in enumerate(self.lengths)}
        for (length, depth), (answered, right) in self._counts.get(method, {}).items():
            out[rows[depth], columns[length]] = right / answered
        return out

    def over_lengths(self, method: str) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return (mean, low, high) by length, (lengths,) each: Wilson's 95 % interval; NaN without answers."""
        by_length: dict[int, tuple[int, int]] = {}
        for (length, _), (answered, right) in self._counts.get(method, {}).items():
            before = by_length.get(length, (0, 0))
            by_length[length] = before[0] + answered, before[1] + right
        out = np.full((3, len(self.lengths)), np.nan)
        for column, length in enumerate(self.lengths):
            if length in by_length:
                answered, right = by_length[length]
                out[:, column] = right / answered, *interval(np.array([right / answered]), answered)
        return out[0], out[1], out[2]


def read_evaluation(source: str | Path | bytes) -> Evaluation:
    """Read the evaluation in a JSON file, from a path or from its bytes. Raises `ValueError`."""
    data = source if isinstance(source, bytes) else read_limited(source, LARGEST)
    if len(data) > LARGEST:
        raise ValueError(TEXTS("file.large", most=LARGEST >> 20, size=len(data) / (1 << 20)))
    content = decode_json(data, TEXTS("file.no_json"))
    if not isinstance(content, dict) or not isinstance(content.get("answers"), list):
        raise ValueError(TEXTS("file.empty"))
    if content.get("version") != VERSION:
        raise ValueError(TEXTS("file.version", version=VERSION, got=short_repr(content.get("version"))))
    if not 1 <= len(content["answers"]) <= MOST:
        raise ValueError(TEXTS("file.answers", most=MOST, got=len(content["answers"])))
    rows = tuple(checked(entry, number) for number, entry in enumerate(content["answers"]))
    about = content.get("about")
    about = (
        {str(name): each for name, each in about.items() if isinstance(each, dict)} if isinstance(about, dict) else {}
    )
    model, wording = str(content.get("model", ""))[:200], str(content.get("wording", ""))[:40]
    found = Evaluation(model, wording, about, rows, read_shard(content.get("shard")))
    for name, most in MOST_DISTINCT.items():
        if (count := len(getattr(found, name))) > most:
            raise ValueError(TEXTS("file.parts", most=most, name=name, got=count))
    return found


def read_shard(part: Any) -> tuple[int, int]:
    """Read which part of an evaluation a file holds, as (number, count). Raises `ValueError`."""
    if part is None:
        return WHOLE
    if not isinstance(part, dict):
        raise ValueError(TEXTS("file.shard", got=short_repr(part)))
    require_number(part.get("of"), TEXTS("file.shard_count"), least=2, most=MOST, integer=True)
    require_number(part.get("number"), TEXTS("file.shard_number"), least=0, most=part["of"] - 1, integer=True)
    return part["number"], part["of"]


def format_shard(shard: tuple[int, int]) -> str:
    """Format a shard as on the command line."""
    return f"{shard[0]}/{shard[1]}"


def describe_shard(shard: tuple[int, int]) -> str:
    """Return a shard, or the whole evaluation, as words."""
    return "a whole evaluation" if shard == WHOLE else f"shard {format_shard(shard)}"


def checked(entry: Any, number: int) -> AnswerRow:
    """Read one answer, or raise `ValueError` with its number."""
    if not isinstance(entry, dict) or not isinstance(entry.get("method"), str) or not entry["method"]:
        raise ValueError(TEXTS("file.method", label=TEXTS("file.answer", number=number)))
    for key, limits in LIMITS.items():
        try:
            require_number(entry.get(key), key, **limits)
        except ValueError:
            # Only a wrong number needs a name: there may be many answers.
            require_number(entry.get(key), TEXTS(f"file.{key}", label=TEXTS("file.answer", number=number)), **limits)
    if entry.get("right") not in (True, False, None):
        label = TEXTS("file.answer", number=number)
        raise ValueError(TEXTS("file.right", label=label, got=short_repr(entry.get("right"))))
    tokens = entry.get("tokens")
    return AnswerRow(
        sys.intern(entry["method"][:100]),  # few methods and many answers
        int(entry["length"]),
        float(entry["depth"]),
        int(entry["repeat"]),
        entry.get("right"),
        str(entry.get("answer", ""))[:200],
        tokens if isinstance(tokens, int) else None,
        str(entry.get("key", ""))[:64],
    )
