"""Recall: the share of facts that a model finds, over length, over depth, and with pairs changed.

Needle in a haystack: Kamradt, 2023, https://github.com/gkamradt/LLMTest_NeedleInAHaystack, here with facts and filler.
"""

from __future__ import annotations

import functools
import json
import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rope_viz.embedding.spec import FloatArray, RopeSpec, short_repr
from rope_viz.storage.write_file import write_file
from rope_viz.studies.heads import Turning
from rope_viz.tiny_lm import checkpoints, tasks
from rope_viz.tiny_lm.numpy_model import TinyLm, load, logits

How: TypeAlias = Literal["still", "plain", "divided"]

HOWS: tuple[How, ...] = ("still", "plain", "divided")
LENGTHS = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
SHORTEST, LONGEST = 32, 16384
UNSCALED_LENGTHS = (3072, 4096, 6144, 8192, 12288, 16384)
# 97.5 % quantiles of Student's t by degrees of freedom (standard table); beyond, the normal's.
STUDENT = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}
NORMAL = 1.96


@dataclass(frozen=True)
class PairChange:
    """Pairs whose frequency is changed: to zero, to the unscaled frequency, or divided by the spec's factor."""

    pairs: tuple[int, ...]
    how: How = "still"


@dataclass(frozen=True, eq=False)
class Recall:
    """Results per question: `right` and `depth` are (models, sequences, questions)."""

    length: int
    right: NDArray[np.bool_]
    depth: FloatArray

    @property
    def share(self) -> float:
        return float(self.right.mean())

    @property
    def by_tiny_lm(self) -> FloatArray:
        """Return the share of each model, (models,)."""
        return np.asarray(self.right.mean(axis=(1, 2)))

    @property
    def interval(self) -> tuple[float, float]:
        """Return the 95 % interval: Student's over the models or Wilson's over the questions, whichever is wider."""
        return interval(self.by_tiny_lm, self.right.size)


def recall(
    models: Sequence[TinyLm],
    spec: RopeSpec,
    length: int,
    *,
    sequences: int = 4,
    seed: int = 0,
    switch: PairChange | None = None,
) -> Recall:
    """Measure the models' recall at this length with this embedding, each on the same texts.

    Every sequence asks for one fact in each sixteenth of its text (fewer below 128 tokens), all in one pass. The same
    arguments give the same texts and results. Raises `ValueError` for lengths outside 32 to 16,384, and for an
    embedding with another number of pairs.
    """
    if not SHORTEST <= length <= LONGEST:
        raise ValueError(f"length must be from {SHORTEST} to {LONGEST:,} tokens, got {length}")
    jobs = [(model, one) for model in models for one in range(sequences)]
    results = list(_pool().map(lambda job: answered(job[0], spec, length, seed + job[1], switch), jobs))
    shape = (len(models), sequences, -1)
    right, depth = np.stack([one[0] for one in results]), np.stack([one[1] for one in results])
    return Recall(length, right.reshape(shape), depth.reshape(shape))


def read_ahead(model: TinyLm, specs: Sequence[RopeSpec], lengths: Sequence[int]) -> None:
    """Fill the cache of `recall`: the first text of each length with each embedding, on all cores at once.

    Without it, lengths requested one after another, with one text each, would use a single core.
    """
    jobs = [(model, spec, length, 0, None) for length in sorted(lengths, reverse=True) for spec in specs]
    list(_pool().map(lambda job: answered(*job), jobs))


@functools.cache
def _pool() -> ThreadPoolExecutor:
    """Return threads for the texts of a request; a picture needs about twenty, most of them cached."""
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="recall")


@functools.lru_cache(maxsize=4096)
def answered(
    model: TinyLm, spec: RopeSpec, length: int, seed: int, switch: PairChange | None
) -> tuple[NDArray[np.bool_], FloatArray]:
    """Return (right, depth) of the questions of one sequence, each (questions,)."""
    questions = text(length, seed)
    turn = switched(spec, length, switch)
    right = find_unscaled(model, turn, length, seed)
    if right is None:
        right = find_right(model, turn, questions)
    return right, questions.depth[0]


def find_right(model: TinyLm, turn: Turning, questions: tasks.Questions) -> NDArray[np.bool_]:
    """Return whether the model's best token is the answer, (questions,)."""
    found = logits(model, questions.tokens[0], turn, rows=questions.rows).argmax(axis=1)
    return np.asarray(found == questions.answers[0])


def find_unscaled(model: TinyLm, turn: Turning, length: int, seed: int) -> NDArray[np.bool_] | None:
    """Return the stored results of a seed as it was trained on the first long text, None for all others.

    Each picture compares with them, whatever the method, and they take half of its time.
    """
    if seed or length not in UNSCALED_LENGTHS or model.name not in checkpoints.SEEDS:
        return None
    trained = Turning.from_spec(model.spec, length)
    if model is not checkpoints.load_tiny_lm(model.name) or turn.attention_factor != trained.attention_factor:
        return None
    if not np.array_equal(turn.inv_freq, trained.inv_freq):
        return None
    return np.array([each == "1" for each in checkpoints.unscaled_recall()[model.name][str(length)]])


def write_unscaled(folder: Path) -> None:
    """Compute the results that `find_unscaled` returns with the checkpoints in a folder, and store them there.

    The file is {model: {length: one digit per question, 1 for a right answer}}.
    """
    found: dict[str, dict[str, str]] = {}
    for name in checkpoints.SEEDS:
        model, found[name] = load(folder / name), {}
        for length in UNSCALED_LENGTHS:
            right = find_right(model, Turning.from_spec(model.spec, length), text(length, 0))
            found[name][str(length)] = "".join(str(int(each)) for each in right)
    write_file(folder / checkpoints.UNSCALED, (json.dumps(found, indent=1) + "\n").encode())


def text(length: int, seed: int) -> tasks.Questions:
    """Return the text of a length and seed, the same for every model and method."""
    return tasks.questions(np.random.default_rng([length, seed]), 1, length)


def switched(spec: RopeSpec, length: int, switch: PairChange | None) -> Turning:
    """Return the frequencies at this length, with the pairs of `switch` changed."""
    turn = Turning.from_spec(spec, length)
    if switch is None or not switch.pairs:
        return turn
    if switch.how not in HOWS:
        raise ValueError(f"how must be one of {', '.join(HOWS)}, got {short_repr(switch.how)}")
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
    """Return the divisor of a divided pair: the method's factor, or target over trained length if it has none."""
    factor = spec.scaling.factor_for(spec)
    return factor if factor > 1.0 else max(spec.target / spec.context, 1.0)


def needle_map(found: Sequence[Recall], rows: int = tasks.FACTS) -> FloatArray:
    """Return recall by depth and length, (rows, lengths): row 0 is the oldest part of a text, NaN without questions."""
    out = np.full((rows, len(found)), np.nan)
    for column, one in enumerate(found):
        row = np.minimum((one.depth * rows).astype(np.int64), rows - 1).ravel()
        asked = np.bincount(row, minlength=rows)
        right = np.bincount(row, weights=one.right.ravel(), minlength=rows)
        out[asked > 0, column] = right[asked > 0] / asked[asked > 0]
    return out


def interval(shares: FloatArray, questions: int) -> tuple[float, float]:
    """Return the 95 % interval of a mean share: Student's over `shares` or Wilson's over all `questions`, the wider.

    Models that agree by chance would otherwise have no interval, and questions alone would hide differences between
    models. Wilson: https://doi.org/10.1080/01621459.1927.10502953.
    """
    mean, count = float(shares.mean()), len(shares)
    centre = (mean + NORMAL**2 / (2 * questions)) / (1 + NORMAL**2 / questions)
    spread = NORMAL * math.sqrt(mean * (1 - mean) / questions + NORMAL**2 / (4 * questions**2))
    low, high = centre - spread / (1 + NORMAL**2 / questions), centre + spread / (1 + NORMAL**2 / questions)
    if count > 1:
        half = STUDENT.get(count - 1, NORMAL) * float(shares.std(ddof=1)) / math.sqrt(count)
        low, high = min(low, mean - half), max(high, mean + half)
    return max(low, 0.0), min(high, 1.0)


# Edelman et al., https://arxiv.org/abs/2402.11004: a model of two layers learns to count transitions.
@dataclass(frozen=True, eq=False)
class Loss:
    """Mean loss in nats of the token at each position from 1 on: `loss` (models, length − 1), `best` (length − 1,)."""

    loss: FloatArray
    best: FloatArray


def chain_loss(models: Sequence[TinyLm], spec: RopeSpec, length: int, *, sequences: int = 8, seed: int = 0) -> Loss:
    """Return the models' loss by position on Markov chains, and the Bayes-optimal loss on the same chains.

    Mean over `sequences`, the same ones for every model and method.
    """
    seeds = range(seed, seed + sequences)
    found = [np.mean([one_loss(model, spec, length, one) for one in seeds], axis=0) for model in models]
    best = np.mean([tasks.best_chain_loss(chain(length, one)[None])[0] for one in seeds], axis=0)
    return Loss(np.stack(found), best)


@functools.lru_cache(maxsize=512)
def one_loss(model: TinyLm, spec: RopeSpec, length: int, seed: int) -> FloatArray:
    """Return one model's loss on one chain, (length − 1,)."""
    tokens = chain(length, seed)
    found = logits(model, tokens, Turning.from_spec(spec, length), rows=np.arange(length - 1)).astype(float)
    top = found.max(axis=1)
    total = top + np.log(np.exp(found - top[:, None]).sum(axis=1))
    return np.asarray(total - found[np.arange(length - 1), tokens[1:]])


def chain(length: int, seed: int) -> tasks.Tokens:
    """Return the chain of a length and seed, (length,)."""
    tokens, _ = tasks.chains(np.random.default_rng([length, seed]), 1, length)
    return np.asarray(tokens[0])


def smoothed(values: FloatArray, columns: int = 48) -> tuple[FloatArray, FloatArray]:
    """Return means over intervals of growing width: (middle position, mean), along the last axis."""
    edges = np.unique(np.geomspace(1, values.shape[-1] + 1, columns + 1).round().astype(int)) - 1
    sums = np.add.reduceat(values, edges[:-1], axis=-1)
    return np.sqrt((edges[:-1] + 1.0) * edges[1:]), sums / np.diff(edges)
