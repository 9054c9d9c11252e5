"""Diagnosis of recall: the two heads of tiny_lm that find a fact, from their q and k under any embedding.

The first layer learns a head that attends one token back, the second a head that finds a key by content and so copies
the token after it: an induction circuit (Olsson et al., https://arxiv.org/abs/2209.11895).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rope_viz.embedding.spec import FloatArray, RopeSpec
from rope_viz.studies import heads as studies
from rope_viz.studies.capture_file import CapturedLayer
from rope_viz.studies.heads import Heads, Rows, Turning
from rope_viz.tiny_lm.numpy_model import TinyLm, queries_and_keys
from rope_viz.tiny_lm.recall import PairChange, switched, text


@dataclass(frozen=True, eq=False)
class Work:
    """One head on one text (`heads` of its whole layer): the relevant queries (`rows`) and their correct targets.

    `attention` (rows, tokens) is the actual attention. `hit` is the mean attention on the target, `parts` (pairs,) what
    each pair adds to the target's logit relative to the other tokens, on average.
    """

    layer: int
    head: int
    rows: Rows
    targets: Rows
    attention: FloatArray
    parts: FloatArray

    @property
    def hits(self) -> FloatArray:
        """Return the attention of each query on its target, (rows,)."""
        return np.asarray(self.attention[np.arange(len(self.rows)), self.targets])

    @property
    def hit(self) -> float:
        """Return the mean of `hits`."""
        return float(self.hits.mean())

    @property
    def distance(self) -> Rows:
        """Return the distance of each query from its target."""
        return self.rows - self.targets


def previous_token(
    model: TinyLm, spec: RopeSpec, length: int, *, seed: int = 0, switch: PairChange | None = None
) -> Work:
    """Return the first layer's head that attends one token back, at the facts' values: each must see its key."""
    questions = text(length, seed)
    rows = np.sort(questions.places[0]) + 1
    return best(model, spec, length, seed, switch, 0, rows, rows - 1)


def finder(model: TinyLm, spec: RopeSpec, length: int, *, seed: int = 0, switch: PairChange | None = None) -> Work:
    """Return the last layer's head that finds the fact asked for, at the questions: each must see the fact's value."""
    questions = text(length, seed)
    return best(model, spec, length, seed, switch, len(model.layers) - 1, questions.rows, questions.places[0] + 1)


def best(
    model: TinyLm,
    spec: RopeSpec,
    length: int,
    seed: int,
    switch: PairChange | None,
    layer: int,
    rows: Rows,
    targets: Rows,
) -> Work:
    """Return the head of a layer that does this in training, evaluated under this embedding."""
    head = find_head(model, layer)
    turn = switched(spec, length, switch)
    heads = heads_of(model, spec, length, seed, switch)[layer]
    attention = studies.weights(heads, head, rows, turn)
    return Work(layer, head, rows, targets, attention, margins(heads, head, rows, targets, turn))


@functools.lru_cache(maxsize=64)
def find_head(model: TinyLm, layer: int) -> int:
    """Return the head of a layer with the most attention on the right tokens within the trained length."""
    spec, length = model.spec, model.spec.context
    questions, turn = text(length, 0), Turning.from_spec(model.spec, length)
    heads = heads_of(model, spec, length, 0, None)[layer]
    if layer == 0:
        rows, targets = np.sort(questions.places[0]) + 1, np.sort(questions.places[0])
    else:
        rows, targets = questions.rows, questions.places[0] + 1
    attention = [studies.weights(heads, head, rows, turn) for head in range(model.heads)]
    hits = [one[np.arange(len(rows)), targets].mean() for one in attention]
    return int(np.argmax(hits))


def margins(heads: Heads, head: int, rows: Rows, targets: Rows, turn: Turning) -> FloatArray:
    """Return what each pair adds to the right token's logit relative to all visible tokens; mean over the queries."""
    q, k = studies.rotate_head(heads, head, rows, turn)
    sums = np.cumsum(k, axis=0)
    mean = sums[rows] / (rows + 1.0)[:, None]
    return np.asarray(heads.scale * (q * (k[targets] - mean).conj()).real.mean(axis=0))


@functools.lru_cache(maxsize=32)
def heads_of(model: TinyLm, spec: RopeSpec, length: int, seed: int, switch: PairChange | None) -> tuple[Heads, ...]:
    """Return q and k of every layer on one text; from the second layer on they depend on the embedding."""
    found = queries_and_keys(model, text(length, seed).tokens[0], switched(spec, length, switch))
    return tuple(Heads(q, k, "half", model.head_dim**-0.5) for q, k in found)


@dataclass(frozen=True, eq=False)
class OwnCapture:
    """q and k of tiny_lm in the form of a capture, so that the Heads page works without a file."""

    tiny_lm: TinyLm
    length: int

    @property
    def name(self) -> str:
        return f"RoPE Viz tiny_lm ({self.tiny_lm.name})"

    @property
    def specs(self) -> Mapping[str, RopeSpec]:
        return {"": self.tiny_lm.spec}

    @property
    def layers(self) -> tuple[int, ...]:
        return tuple(range(len(self.tiny_lm.layers)))

    def spec(self, layer: int) -> RopeSpec:
        return self.tiny_lm.spec

    def layer(self, number: int) -> CapturedLayer:
        if number not in self.layers:
            raise ValueError(f"layer {number} was not captured; there are {', '.join(map(str, self.layers))}")
        heads = heads_of(self.tiny_lm, self.tiny_lm.spec, self.length, 0, None)[number]
        return CapturedLayer(heads.q, heads.k, "", heads.scale, heads=tuple(range(len(heads.q))))
