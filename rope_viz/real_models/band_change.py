"""A switch for some pairs of some heads of a real model: zero frequency, a divided one, or no part in the logits.

The pairs of the other heads, and the other pairs of these heads, rotate as before. The model runs again with the
change, so the layers above read what the changed heads write.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import torch
from torch import Tensor

from rope_viz.embedding.spec import FloatArray, Pairing, RopeSpec, short_repr
from rope_viz.embedding.spectrum import TAU
from rope_viz.studies.real_model import JOBS, find_head

How: TypeAlias = Literal["zero", "divide", "remove"]
HOWS: tuple[How, ...] = get_args(How)
Place: TypeAlias = tuple[int, int]
"""A layer and a head."""
TURNS = {"kept": (32.0, np.inf), "blended": (1.0, 32.0), "divided": (0.0, 1.0)}
"""Turns within the trained length of the pairs that YaRN keeps, blends and divides."""
ENDS = {"fast": slice(0, 4), "slow": slice(-4, None), "all": slice(None)}
"""Names of the four highest frequencies, the four lowest ones, and all."""


@dataclass(frozen=True)
class BandChange:
    """What happens to some pairs: `heads` are (layer, head), or every head for None.

    "zero" sets the frequencies to zero, "divide" divides them by `divisor`, and "remove" leaves the pairs out of the
    logits, as if their numbers in q and k were zero. Raises `ValueError` for no pairs, no heads and a wrong divisor.
    """

    pairs: tuple[int, ...]
    how: How
    heads: frozenset[Place] | None = None
    divisor: float = 1.0

    def __post_init__(self) -> None:
        if not self.pairs or min(self.pairs) < 0:
            raise ValueError("a change needs at least one pair, counted from 0")
        if self.heads is not None and not self.heads:
            raise ValueError("a change needs at least one head")
        if self.how == "divide" and not 1.0 < self.divisor <= 1e6:
            raise ValueError(f"the divisor must be above 1, got {self.divisor:g}")

    @property
    def first_layer(self) -> int:
        """Return the lowest layer with a changed head: the layers below it compute what they did."""
        return 0 if self.heads is None else min(layer for layer, _ in self.heads)

    @cached_property
    def by_layer(self) -> Mapping[int, list[int]]:
        """Return {layer: its changed heads}, empty for every head."""
        found: dict[int, list[int]] = {}
        for layer, head in sorted(self.heads or ()):
            found.setdefault(layer, []).append(head)
        return found

    def apply(
        self, layer: int, q: Tensor, k: Tensor, inv_freq: FloatArray, *, first: int = 0, pairing: Pairing = "half"
    ) -> tuple[Tensor, Tensor]:
        """Return q and k of a layer with the change, each (…, heads, tokens, d), from those that `inv_freq` rotated.

        The first token has position `first`. Where only some heads are changed, k gets one key head per query head.
        Raises `ValueError` for a pair or a head that the layer does not have.
        """
        pairs, count = len(inv_freq), q.shape[-3]
        heads = None if self.heads is None else self.by_layer.get(layer, [])
        if heads == []:
            return q, k
        if max(self.pairs) >= pairs or max(heads or [0]) >= count:
            raise ValueError(f"layer {layer} has pairs 0 to {pairs - 1} and heads 0 to {count - 1}: choose among them")
        chosen = np.array(self.pairs)
        ends = (chosen, chosen + pairs) if pairing == "half" else (2 * chosen, 2 * chosen + 1)
        columns = tuple(torch.from_numpy(end).to(q.device) for end in ends)
        if self.how == "remove":
            # A pair's part of the logit is a product of q and k: zeros in q are enough.
            return clear_columns(q, columns, heads), k
        if heads is not None:
            k = k.repeat_interleave(count // k.shape[-3], dim=-3)
        factor = -1.0 if self.how == "zero" else 1.0 / self.divisor - 1.0
        angle = np.outer(np.arange(first, first + q.shape[-2]), factor * inv_freq[chosen])
        cos, sin = (torch.from_numpy(part).to(q.device, torch.float32) for part in (np.cos(angle), np.sin(angle)))
        return turn_columns(q, columns, heads, cos, sin), turn_columns(k, columns, heads, cos, sin)


def choose_heads(x: Tensor, heads: list[int] | None) -> list[Tensor]:
    """Return views of (…, heads, tokens, d): one per head, or all heads together for None."""
    return [x] if heads is None else [x[..., head, :, :] for head in heads]


def clear_columns(x: Tensor, columns: tuple[Tensor, ...], heads: list[int] | None) -> Tensor:
    """Return (…, heads, tokens, d) with zeros in both columns of some pairs of these heads."""
    x = x.clone()
    for view in choose_heads(x, heads):
        view[..., torch.cat(columns)] = 0.0
    return x


def turn_columns(x: Tensor, columns: tuple[Tensor, ...], heads: list[int] | None, cos: Tensor, sin: Tensor) -> Tensor:
    """Return (…, heads, tokens, d) with some pairs of these heads rotated by (tokens, pairs), in float32."""
    x = x.clone()
    for view in choose_heads(x, heads):
        first, second = (view[..., column].float() for column in columns)
        view[..., columns[0]] = (first * cos - second * sin).to(x.dtype)
        view[..., columns[1]] = (first * sin + second * cos).to(x.dtype)
    return x


def find_pairs(written: str, spec: RopeSpec) -> tuple[int, ...]:
    """Return the pairs of numbers such as 0,4,20-31, of a band's name, or of turns within the trained length, as
    turns:0-1 (from 0 up to, but without 1). Raises `ValueError` for anything else, and where no pair is meant.
    """
    every = range(spec.pairs)
    if written in ENDS:
        return tuple(every[ENDS[written]])
    limits = TURNS.get(written)
    if written.startswith("turns:"):
        ends = re.fullmatch(r"turns:(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)?", written)
        if ends is None:
            raise ValueError(f"turns must be like turns:0-1 or turns:32-, got {short_repr(written)}")
        limits = float(ends[1]), float(ends[2] or np.inf)
    if limits is not None:
        turns = spec.context * spec.plain_inv_freq / TAU
        found = tuple(int(pair) for pair in np.flatnonzero((turns >= limits[0]) & (turns < limits[1])))
    else:
        found = tuple(pair for part in written.split(",") for pair in find_range(part, written))
    if not found or max(found) >= spec.pairs:
        raise ValueError(f"{short_repr(written)} means no pairs of this model, which has 0 to {spec.pairs - 1}")
    return tuple(sorted(set(found)))


def find_range(part: str, written: str) -> range:
    """Return the numbers of a part such as 4 or 20-31. Raises `ValueError` for another text."""
    ends = re.fullmatch(r"(\d{1,4})(?:-(\d{1,4}))?", part.strip())
    if ends is None:
        names = ", ".join((*ENDS, *TURNS))
        raise ValueError(f"pairs must be numbers such as 20-31, turns:0-1, or {names}; got {short_repr(written)}")
    return range(int(ends[1]), int(ends[2] or ends[1]) + 1)


def find_heads(written: str, rows: Mapping[str, Any], seed: int = 0) -> frozenset[Place] | None:
    """Return the heads of a choice, None for all.

    A choice is "all", the name of a job, "random:JOB" for as many heads of the same layers that neither look one token
    back, copy nor find the same token, drawn with the seed, "random:N" for that many of all heads, or names such as
    L16H0,L18H6. `rows` are the measured heads of the model.
    Raises `ValueError` for anything else, and for a job that no head has.
    """
    if written == "all":
        return None
    every = {find_head(name): row for name, row in rows.items()}
    kind, _, wanted = written.rpartition(":")
    if kind not in ("", "random"):
        raise ValueError(f"heads must be all, a job, random:JOB, random:NUMBER or names, got {short_repr(written)}")
    if wanted in JOBS:
        having = frozenset(place for place, row in every.items() if "margin" in row["jobs"][wanted])
        if not having:
            raise ValueError(f"no head of this model has the job {wanted}: choose other heads")
        without = [place for place, row in every.items() if not any("margin" in row["jobs"][job] for job in JOBS[:3])]
        return match_layers(having, sorted(set(without) - having), seed) if kind else having
    if kind:
        if not wanted.isdecimal() or not 1 <= int(wanted) <= len(every):
            raise ValueError(f"random needs a job or a number up to {len(every)}, got {short_repr(wanted)}")
        return draw_heads(sorted(every), int(wanted), seed)
    names = [name.strip() for name in written.split(",")]
    unknown = [name for name in names if name not in rows]
    if unknown:
        raise ValueError(f"the model has no head {short_repr(unknown[0])}: heads are all, {', '.join(JOBS)} or L0H0")
    return frozenset(find_head(name) for name in names)


def match_layers(heads: frozenset[Place], others: list[Place], seed: int) -> frozenset[Place]:
    """Draw as many of the other heads in each layer. Raises `ValueError` if there are too few."""
    found: frozenset[Place] = frozenset()
    for layer in sorted({layer for layer, _ in heads}):
        places, count = [place for place in others if place[0] == layer], sum(place[0] == layer for place in heads)
        if count > len(places):
            raise ValueError(f"layer {layer} has only {len(places)} heads to draw {count} from")
        found |= draw_heads(places, count, seed + layer)
    return found


def draw_heads(places: list[Place], count: int, seed: int) -> frozenset[Place]:
    """Draw so many heads without repetition."""
    chosen = np.random.default_rng(seed).choice(len(places), count, replace=False)
    return frozenset(places[index] for index in chosen)


def name_heads(heads: frozenset[Place] | None) -> list[str]:
    """Return the names of heads, such as L16H0, in order; none for all heads."""
    return [f"L{layer}H{head}" for layer, head in sorted(heads or ())]
