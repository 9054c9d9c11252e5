"""A table of band changes: what a real model loses, by position and by depth, with intervals over texts.

A key of a row is MEASURE/SET/TEXT/CONDITION. The measure is "loss" or "needle". A set is some texts that are compared
with each other only, "first" where there is one. The condition is "none" for the model as it is, else PAIRS/HOW/HEADS.
A loss row has the mean loss of every block of tokens. A needle row has, for each depth, the share of the answer's
tokens that are the model's first choice given those before, and the loss of the whole answer.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from rope_viz.embedding.spec import FloatArray, require_number, short_repr
from rope_viz.studies.real_model import load_results
from rope_viz.tiny_lm.recall import NORMAL, STUDENT, interval

DEPTHS = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Depths of the text at which a needle is hidden, one text each."""
UNCHANGED = "none"
FIRST, SECOND = "first", "second"
"""Names of the sets of texts."""
LEAST_TEXTS = 4
"""Texts that an interval needs."""
MOST_ROWS, MOST_VALUES = 10_000, 4096
CONDITION = re.compile(r"[^/]{1,200}/[\w. ]{1,40}/[\w:, ]{1,4000}")
KEY = re.compile(rf"(loss|needle)/([\w+]{{1,40}})/([\w+ .-]{{1,80}})/({CONDITION.pattern}|none)")


@dataclass(frozen=True)
class Condition:
    """Which pairs of which heads are changed, and how, by the names in a key."""

    pairs: str
    how: str
    heads: str

    def __str__(self) -> str:
        return f"{self.pairs}/{self.how}/{self.heads}"


def find_first(pairs: str) -> int:
    """Return the first number of a group of pairs, a large one for a group that has a name."""
    found = re.match(r"\d+", pairs)
    return int(found[0]) if found else 1 << 20


@dataclass(frozen=True, eq=False)
class Estimate:
    """Means over texts with the ends of their 95 % intervals, each of one shape."""

    mean: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, eq=False)
class BandTable:
    """Measured rows by (set, condition): losses in nats (texts, blocks), right tokens as shares (texts, depths).

    The condition is None for the model as it is. Losses are means of `block` tokens. `about` is the file's.
    """

    losses: Mapping[tuple[str, Condition | None], FloatArray]
    right: Mapping[tuple[str, Condition | None], FloatArray]
    block: int
    depths: tuple[float, ...]
    about: Mapping[str, Any]

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """Return the conditions that both measures have in the first set, from high to low frequency.

        There are none until the unchanged model is measured.
        """
        if not all((FIRST, None) in rows for rows in (self.losses, self.right)):
            return ()
        found = [each for name, each in self.losses if name == FIRST and each and (name, each) in self.right]
        return tuple(sorted(found, key=lambda each: find_first(each.pairs)))

    @cached_property
    def planned(self) -> tuple[Condition, ...]:
        """Return the conditions of the whole table, measured or not, from high to low frequency."""
        names = [Condition(*name.split("/")) for name in self.about.get("planned", ())]
        return tuple(sorted(dict.fromkeys([*names, *self.conditions]), key=lambda each: find_first(each.pairs)))

    @property
    def texts(self) -> int:
        return len(self.losses[FIRST, None])

    @property
    def tokens(self) -> int:
        """Return the tokens of a text whose losses were measured."""
        return int(self.losses[FIRST, None].shape[1] * self.block)

    @property
    def needle_tokens(self) -> int:
        return int(self.about["tokens"]["needle"])

    def added_by_position(self, condition: Condition, texts: str = FIRST) -> Estimate:
        """Return what a change adds to the loss of each block, (blocks,)."""
        return estimate(self.losses[texts, condition] - self.losses[texts, None])

    def added_loss(self, condition: Condition, texts: str = FIRST) -> Estimate:
        """Return what a change adds to the mean loss of a text, (1,)."""
        return estimate((self.losses[texts, condition] - self.losses[texts, None]).mean(axis=1, keepdims=True))

    def found_by_depth(self, condition: Condition | None) -> Estimate:
        """Return the share of needles found at each depth, (depths,)."""
        return estimate_shares(self.whole_answers(condition))

    def found(self, condition: Condition | None) -> Estimate:
        """Return the share of all needles that are found, (1,)."""
        answers = self.whole_answers(condition)
        return estimate_shares(answers.mean(axis=1, keepdims=True), answers.size)

    def whole_answers(self, condition: Condition | None) -> FloatArray:
        """Return 1 for each needle whose whole answer is right, else 0, (texts, depths)."""
        return np.asarray(self.right[FIRST, condition] >= 1.0, dtype=float)


def estimate(values: FloatArray) -> Estimate:
    """Return means over texts of (texts, n), with Student's 95 % intervals."""
    count, mean = len(values), values.mean(axis=0)
    half = STUDENT.get(count - 1, NORMAL) * values.std(axis=0, ddof=1) / np.sqrt(count)
    return Estimate(mean, mean - half, mean + half)


def estimate_shares(shares: FloatArray, questions: int | None = None) -> Estimate:
    """Return mean shares over texts of (texts, n), with 95 % intervals over texts or questions, the wider one."""
    ends = np.array([interval(column, questions or len(column)) for column in shares.T])
    return Estimate(shares.mean(axis=0), ends[:, 0], ends[:, 1])


def read_band_table(found: Any) -> BandTable:
    """Return the table of a file's {"about": …, "rows": …}. Raises `ValueError` with a sentence for wrong content."""
    if not isinstance(found, dict) or not all(isinstance(found.get(name), dict) for name in ("about", "rows")):
        raise ValueError("the bands of a measurement must be an object with about and rows")
    about, rows = found["about"], found["rows"]
    if len(rows) > MOST_ROWS:
        raise ValueError(f"a table of bands has at most {MOST_ROWS:,} rows, got {len(rows):,}")
    require_number(about.get("block"), "block", least=2, most=1 << 20, integer=True)
    require_number((about.get("tokens") or {}).get("needle"), "tokens of a needle's text", least=2, most=1 << 20)
    depths = about.get("depths")
    if not isinstance(depths, list) or not 1 <= len(depths) <= 100:
        raise ValueError("the depths of a table of bands must be a list")
    for depth in depths:
        require_number(depth, "depth", least=0.0, most=1.0)
    planned = about.get("planned", [])
    if not isinstance(planned, list) or not all(
        isinstance(each, str) and CONDITION.fullmatch(each) for each in planned
    ):
        raise ValueError("the planned changes of a table of bands must be a list such as 0-3/zero/all")
    by_text: dict[str, dict[tuple[str, Condition | None], dict[str, list[float]]]] = {"loss": {}, "needle": {}}
    for key, row in rows.items():
        parts = KEY.fullmatch(key)
        if parts is None or not isinstance(row, dict):
            raise ValueError(f"a row of bands must be named like loss/first/TEXT/0-3/zero/all, got {short_repr(key)}")
        measure, name, text, written = parts.groups()
        condition = None if written == UNCHANGED else Condition(*written.split("/"))
        values = check_values(row, "loss" if measure == "loss" else "right", 1e4 if measure == "loss" else 1.0)
        by_text[measure].setdefault((name, condition), {})[text] = values
    losses, right = (MappingProxyType(stack_texts(each, measure)) for measure, each in by_text.items())
    if any(values.shape[1] != len(depths) for values in right.values()):
        raise ValueError("each needle row must have a value for each depth")
    return BandTable(losses, right, int(about["block"]), tuple(depths), MappingProxyType(about))


def check_values(row: Mapping[str, Any], name: str, most: float) -> list[float]:
    """Return a row's list of numbers. Raises `ValueError` for anything else."""
    values = row.get(name)
    if not isinstance(values, list) or not 1 <= len(values) <= MOST_VALUES:
        raise ValueError(f"a row of bands must have a list of numbers as {name}")
    for value in values:
        require_number(value, name, least=0.0, most=most)
    return values


def stack_texts(
    rows: Mapping[tuple[str, Condition | None], Mapping[str, list[float]]], measure: str
) -> dict[tuple[str, Condition | None], FloatArray]:
    """Return (texts, values) per set and condition, for the conditions that all texts of the set have.

    A set without four texts of the unchanged model is left out. Raises `ValueError` for rows of different lengths.
    """
    found = {}
    for (name, condition), by_text in rows.items():
        texts = list(rows.get((name, None), {}))
        if (
            len({len(each) for each in by_text.values()} | {len(each) for each in rows.get((name, None), {}).values()})
            > 1
        ):
            raise ValueError(f"the {measure} rows of a set must have the same length")
        if len(texts) >= LEAST_TEXTS and set(texts) <= set(by_text):
            found[name, condition] = np.array([by_text[text] for text in texts])
    return found


@functools.cache
def load_band_table() -> BandTable:
    """Load the table of the real model."""
    return read_band_table(dict(load_results("bands")))
