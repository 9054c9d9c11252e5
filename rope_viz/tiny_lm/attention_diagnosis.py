"""Why a reader finds or does not: its two heads at work, from their q and k under any embedding.

The first layer grows a head that looks one token back, the second one that finds a key by content and so reads what
followed it: an induction circuit (Olsson et al., https://arxiv.org/abs/2209.11895).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rope_viz.embedding.spec import FloatArray, RopeSpec
from rope_viz.studies import heads as studies
from rope_viz.studies.heads import Heads, Rows, Turning
from rope_viz.tiny_lm.capture_file import Layer
from rope_viz.tiny_lm.numpy_model import Reader, queries_and_keys
from rope_viz.tiny_lm.recall import Switch, switched, text


@dataclass(frozen=True, eq=False)
class Work:
    """One head in one text, `heads` its whole layer: which queries matter (`rows`) and where each should look.

    `attention` (rows, tokens) is where they do look. `hit` is the mean attention on the right token, `parts` (pairs,)
    what each pair adds to the logits of right tokens above what it adds to the others, on average.
    """

    layer: int
    head: int
    rows: Rows
    targets: Rows
    attention: FloatArray
    parts: FloatArray

    @property
    def hits(self) -> FloatArray:
        """The attention of each query on the token it should look at, (rows,)."""
        return np.asarray(self.attention[np.arange(len(self.rows)), self.targets])

    @property
    def hit(self) -> float:
        """Their mean."""
        return float(self.hits.mean())

    @property
    def distance(self) -> Rows:
        """How far each query is from what it should look at."""
        return self.rows - self.targets


def previous_token(reader: Reader, spec: RopeSpec, length: int, *, seed: int = 0, switch: Switch | None = None) -> Work:
    """The head of the first layer that looks one token back, at the values of the facts: each must see its key."""
    asked = text(length, seed)
    rows = np.sort(asked.places[0]) + 1
    return best(reader, spec, length, seed, switch, 0, rows, rows - 1)


def finder(reader: Reader, spec: RopeSpec, length: int, *, seed: int = 0, switch: Switch | None = None) -> Work:
    """The head of the last layer that finds the fact asked for, at the questions: each must see the fact's value."""
    asked = text(length, seed)
    return best(reader, spec, length, seed, switch, len(reader.layers) - 1, asked.rows, asked.places[0] + 1)


def best(
    reader: Reader,
    spec: RopeSpec,
    length: int,
    seed: int,
    switch: Switch | None,
    layer: int,
    rows: Rows,
    targets: Rows,
) -> Work:
    """The head of a layer that does this work in training, and how it does under this embedding."""
    head = worker(reader, layer)
    turn = switched(spec, length, switch)
    taken = heads_of(reader, spec, length, seed, switch)[layer]
    attention = studies.weights(taken, head, rows, turn)
    return Work(layer, head, rows, targets, attention, margins(taken, head, rows, targets, turn))


@functools.lru_cache(maxsize=64)
def worker(reader: Reader, layer: int) -> int:
    """Which head of a layer does its work, by the attention on the right tokens within the trained length."""
    spec, length = reader.spec, reader.spec.context
    asked, turn = text(length, 0), Turning.of(reader.spec, length)
    taken = heads_of(reader, spec, length, 0, None)[layer]
    if layer == 0:
        rows, targets = np.sort(asked.places[0]) + 1, np.sort(asked.places[0])
    else:
        rows, targets = asked.rows, asked.places[0] + 1
    given = [studies.weights(taken, head, rows, turn) for head in range(reader.heads)]
    hits = [one[np.arange(len(rows)), targets].mean() for one in given]
    return int(np.argmax(hits))


def margins(taken: Heads, head: int, rows: Rows, targets: Rows, turn: Turning) -> FloatArray:
    """What each pair adds to the right token's logit above its mean over all tokens seen; mean over the queries."""
    q, k = studies.placed(taken, head, rows, turn)
    sums = np.cumsum(k, axis=0)
    mean = sums[rows] / (rows + 1.0)[:, None]
    return np.asarray(taken.scale * (q * (k[targets] - mean).conj()).real.mean(axis=0))


@functools.lru_cache(maxsize=32)
def heads_of(reader: Reader, spec: RopeSpec, length: int, seed: int, switch: Switch | None) -> tuple[Heads, ...]:
    """q and k of every layer in one text; from the second layer on they depend on the embedding."""
    found = queries_and_keys(reader, text(length, seed).tokens[0], switched(spec, length, switch))
    return tuple(Heads(q, k, "half", reader.head_dim**-0.5) for q, k in found)


@dataclass(frozen=True, eq=False)
class OwnCapture:
    """The reader's q and k in the form of a capture, so that the Heads page has something without a file."""

    reader: Reader
    length: int

    @property
    def name(self) -> str:
        """What was taken from what."""
        return f"RoPE Viz reader ({self.reader.name})"

    @property
    def specs(self) -> Mapping[str, RopeSpec]:
        """One embedding for all layers."""
        return {"": self.reader.spec}

    @property
    def layers(self) -> tuple[int, ...]:
        """All of them."""
        return tuple(range(len(self.reader.layers)))

    def spec(self, layer: int) -> RopeSpec:
        """The embedding that it was trained with."""
        return self.reader.spec

    def layer(self, number: int) -> Layer:
        """One layer, on a text with facts."""
        if number not in self.layers:
            raise ValueError(f"layer {number} was not captured; there are {', '.join(map(str, self.layers))}")
        taken = heads_of(self.reader, self.reader.spec, self.length, 0, None)[number]
        return Layer(taken.q, taken.k, "", taken.scale, heads=tuple(range(len(taken.q))))
