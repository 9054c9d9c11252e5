"""Recall: the share of asked facts a reader finds, over length, over depth, and with pairs switched off.

Needle in a haystack: Kamradt, 2023, https://github.com/gkamradt/LLMTest_NeedleInAHaystack, made of facts and filler.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rope_viz.embedding.spec import FloatArray, RopeSpec, shorten
from rope_viz.studies.heads import Turning
from rope_viz.tiny_lm import tasks
from rope_viz.tiny_lm.numpy_model import Reader, logits

How: TypeAlias = Literal["still", "plain", "divided"]

HOWS: tuple[How, ...] = ("still", "plain", "divided")
LENGTHS = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
SHORTEST, LONGEST = 32, 16384
# 97.5 % of Student's t, by degrees of freedom (any table of it); beyond, the normal's.
STUDENT = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}
NORMAL = 1.96


@dataclass(frozen=True)
class Switch:
    """Pairs that turn otherwise than the spec says: not at all, at their plain speed, or divided by its factor."""

    pairs: tuple[int, ...]
    how: How = "still"


@dataclass(frozen=True, eq=False)
class Recall:
    """Which questions were answered: `right` and `depth` are (readers, sequences, questions)."""

    length: int
    right: NDArray[np.bool_]
    depth: FloatArray

    @property
    def share(self) -> float:
        """The share of right answers, over all readers."""
        return float(self.right.mean())

    @property
    def by_reader(self) -> FloatArray:
        """The share of each reader, (readers,)."""
        return np.asarray(self.right.mean(axis=(1, 2)))

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval: Student's over the readers or Wilson's over the questions, whichever is wider."""
        return interval(self.by_reader, self.right.size)


def recall(
    readers: Sequence[Reader],
    spec: RopeSpec,
    length: int,
    *,
    sequences: int = 4,
    seed: int = 0,
    switch: Switch | None = None,
) -> Recall:
    """What the readers find at this length with this embedding, each on the same texts.

    Every sequence asks for one fact in each sixteenth of its text (fewer below 128 tokens), all in one pass. The same
    arguments give the same texts and the same answers. Raises `ValueError` for lengths outside 32 to 16,384, and for
    an embedding that has not the readers' pairs.
    """
    if not SHORTEST <= length <= LONGEST:
        raise ValueError(f"length must be from {SHORTEST} to {LONGEST:,} tokens, got {length}")
    jobs = [(reader, one) for reader in readers for one in range(sequences)]
    found = list(_pool().map(lambda job: answered(job[0], spec, length, seed + job[1], switch), jobs))
    shape = (len(readers), sequences, -1)
    right, depth = np.stack([one[0] for one in found]), np.stack([one[1] for one in found])
    return Recall(length, right.reshape(shape), depth.reshape(shape))


def read_ahead(reader: Reader, specs: Sequence[RopeSpec], lengths: Sequence[int]) -> None:
    """Let a reader answer its first text of each length with each embedding on all cores at once.

    `recall` of the same remembers it. Asked one length after another, one text at a time, a single core would work.
    """
    jobs = [(reader, spec, length, 0, None) for length in sorted(lengths, reverse=True) for spec in specs]
    list(_pool().map(lambda job: answered(*job), jobs))


@functools.cache
def _pool() -> ThreadPoolExecutor:
    """Threads for the texts of a question; a picture asks some twenty, most of them known already."""
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="recall")


@functools.lru_cache(maxsize=4096)
def answered(
    reader: Reader, spec: RopeSpec, length: int, seed: int, switch: Switch | None
) -> tuple[NDArray[np.bool_], FloatArray]:
    """(right, depth) of the questions of one sequence, each (questions,)."""
    asked = text(length, seed)
    turn = switched(spec, length, switch)
    found = logits(reader, asked.tokens[0], turn, rows=asked.rows).argmax(axis=1)
    return found == asked.answers[0], asked.depth[0]


def text(length: int, seed: int) -> tasks.Questions:
    """The text of a length and seed, the same for every reader and method."""
    return tasks.questions(np.random.default_rng([length, seed]), 1, length)


def switched(spec: RopeSpec, length: int, switch: Switch | None) -> Turning:
    """How the pairs turn at this length, those of `switch` otherwise."""
    turn = Turning.of(spec, length)
    if switch is None or not switch.pairs:
        return turn
    if switch.how not in HOWS:
        raise ValueError(f"how must be one of {', '.join(HOWS)}, got {shorten(switch.how)}")
    pairs = np.array(switch.pairs)
    if pairs.min() < 0 or pairs.max() >= spec.pairs:
        raise ValueError(f"pairs must be from 0 to {spec.pairs - 1}, got {pairs.min()} to {pairs.max()}")
    other = {
        "still": np.zeros(spec.pairs),
        "plain": spec.plain_inv_freq,
        "divided": spec.plain_inv_freq / divisor(spec),
    }[switch.how]
    inv_freq = turn.inv_freq.copy()
    inv_freq[pairs] = other[pairs]
    return Turning(inv_freq, turn.attention_factor)


def divisor(spec: RopeSpec) -> float:
    """What a divided pair is divided by: the method's factor, or target over trained length where it has none."""
    factor = spec.scaling.factor_for(spec)
    return factor if factor > 1.0 else max(spec.target / spec.context, 1.0)


def needle_map(found: Sequence[Recall], rows: int = tasks.FACTS) -> FloatArray:
    """Recall by depth and length, (rows, lengths): row 0 is the oldest part of a text, NaN where nothing was asked."""
    out = np.full((rows, len(found)), np.nan)
    for column, one in enumerate(found):
        row = np.minimum((one.depth * rows).astype(np.int64), rows - 1).ravel()
        asked = np.bincount(row, minlength=rows)
        right = np.bincount(row, weights=one.right.ravel(), minlength=rows)
        out[asked > 0, column] = right[asked > 0] / asked[asked > 0]
    return out


def interval(shares: FloatArray, questions: int) -> tuple[float, float]:
    """The 95 % interval of a mean share: Student's over `shares` or Wilson's over all `questions`, the wider.

    Readers that agree by chance would else have no interval, and questions alone would hide that readers differ.
    Wilson: https://doi.org/10.1080/01621459.1927.10502953.
    """
    mean, count = float(shares.mean()), len(shares)
    centre = (mean + NORMAL**2 / (2 * questions)) / (1 + NORMAL**2 / questions)
    spread = NORMAL * math.sqrt(mean * (1 - mean) / questions + NORMAL**2 / (4 * questions**2))
    low, high = centre - spread / (1 + NORMAL**2 / questions), centre + spread / (1 + NORMAL**2 / questions)
    if count > 1:
        half = STUDENT.get(count - 1, NORMAL) * float(shares.std(ddof=1)) / math.sqrt(count)
        low, high = min(low, mean - half), max(high, mean + half)
    return max(low, 0.0), min(high, 1.0)
