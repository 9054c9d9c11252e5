"""What the weights of an AxesSpec were made from, read back from them, and made anew with other sections or bases.

Two allocations can be read: one ladder that all axes share, each pair listening to one of them (language models), and
a ladder of its own for every axis (vision towers, diffusion transformers). Directions are neither.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from rope_viz.embedding.axes_spec import STILL, AxesSpec, checked_counts, interleaved, placed, sections_then
from rope_viz.embedding.spec import FloatArray, require_number, shorten

Way: TypeAlias = Literal["sections", "interleaved", "in turn", "own"]

WAYS: dict[Way, str] = {"sections": "Sections", "interleaved": "Interleaved", "in turn": "Two in turn, then one"}
EVEN = 1e-9  # how far a geometric sequence may be from itself


@dataclass(frozen=True)
class Ladder:
    """Speeds first·base^(−i/pairs), i = 0 … pairs − 1, in radians per unit."""

    first: float
    base: float
    pairs: int

    @property
    def speeds(self) -> FloatArray:
        """(pairs,) float64."""
        return np.asarray(self.first * self.base ** (-np.arange(self.pairs) / self.pairs))


@dataclass(frozen=True)
class Anatomy:
    """How the pairs are shared among the axes.

    shared: one ladder for all axes, in the order of its speeds. counts: {axis: pairs}, in the order of the axes, for
    those that any pair listens to. way: how a shared ladder is dealt out; "own" is none of the three there are.
    ladders: {axis: ladder}, or one under "" where it is shared; none where the speeds are no geometric sequence, as
    scaled ones are not.
    """

    shared: bool
    counts: Mapping[str, int]
    way: Way
    ladders: Mapping[str, Ladder]


@functools.lru_cache(maxsize=256)
def anatomy(spec: AxesSpec) -> Anatomy | None:
    """What the spec was made from; None for directions, one axis, and tables that are no rotation."""
    if not spec.aligned:
        return None
    owner, speeds = spec.owner, spec.weights.sum(axis=1)
    counts = {axis: int(np.sum(owner == k)) for k, axis in enumerate(spec.axes) if np.any(owner == k)}
    turning = owner != STILL
    if len(counts) < 2:
        return None
    shared = bool(np.all(np.diff(speeds[turning]) < 0.0))
    if shared:
        found = ladder(speeds[turning])
        ladders = {} if found is None else {"": found}
        return Anatomy(True, counts, way_of(owner[turning].tolist(), len(spec.axes)), ladders)
    each = {axis: ladder(spec.along(axis)[owner == spec.index(axis)]) for axis in counts}
    return Anatomy(False, counts, "own", {axis: found for axis, found in each.items() if found is not None})


def ladder(speeds: FloatArray) -> Ladder | None:
    """The ladder of these speeds, (pairs,); None where they are none, or fewer than two."""
    if len(speeds) < 2 or speeds[0] <= 0.0 or np.any(np.diff(speeds) >= 0.0):
        return None
    steps = np.diff(np.log(speeds))
    if np.ptp(steps) > EVEN * max(1.0, abs(float(np.log(speeds[-1])))):
        return None
    base = math.exp(-float(steps.mean()) * len(speeds))
    # A base that was given in decimal is shown as it was given.
    return Ladder(float(speeds[0]), float(f"{base:.10g}"), len(speeds))


def way_of(owner: Sequence[int], axes: int) -> Way:
    """How a shared ladder is dealt out to its axes."""
    counts = [sum(k == axis for k in owner) for axis in range(axes)]
    for way in WAYS:
        if dealt(way, counts) == list(owner):
            return way
    return "own"


def dealt(way: Way, counts: Sequence[int]) -> list[int]:
    """The axis of every pair of a shared ladder. The counts are as they come out: they add up to the pairs.

    "in turn": the second and the third axis in turn, then the first, as ERNIE has it.

    >>> dealt("interleaved", [4, 2, 2]), dealt("in turn", [2, 2, 2])
    ([0, 1, 2, 0, 1, 2, 0, 0], [1, 2, 1, 2, 0, 0])
    """
    pairs = sum(counts)
    if way == "interleaved":
        axis = interleaved(list(counts), pairs)
        return axis if [sum(k == each for k in axis) for each in range(len(counts))] == list(counts) else []
    if way == "in turn":
        if len(counts) != 3 or abs(counts[1] - counts[2]) > 1 or counts[1] < counts[2]:
            return []
        return sections_then(pairs, counts[0])
    return [axis for axis, count in enumerate(counts) for _ in range(count)]


def rebuilt(
    spec: AxesSpec,
    *,
    counts: Mapping[str, int] | None = None,
    way: Way | None = None,
    bases: Mapping[str, float] | None = None,
) -> AxesSpec:
    """The spec with other sections, dealt out in another way, or with other bases ({axis: base}, "" where shared).

    What is not given stays as it was. Raises `ValueError` where the spec was made in neither of the two ways, where
    the sections do not add up to the pairs that turn, and where speeds that are no ladder are given a base.
    """
    own = anatomy(spec)
    if own is None:
        raise ValueError("only pairs that listen to one axis each can be dealt out anew")
    sizes = dict(own.counts) if counts is None else settled(own, counts)
    bases = dict(bases or {})
    for axis, base in bases.items():
        require_number(base, "a base", above=1.0)
        if axis not in own.ladders:
            raise ValueError(f"there is no ladder {shorten(axis)} with a base; there are {', '.join(own.ladders)}")
    turning = np.flatnonzero(spec.owner != STILL)
    if own.shared:
        speeds = spec.weights.sum(axis=1)[turning]
        if bases:
            speeds = dataclasses.replace(own.ladders[""], base=bases[""]).speeds
        if way in (None, own.way) and counts is None:
            listens = spec.owner[turning].tolist()
        else:
            wanted = way or own.way
            full = [sizes.get(axis, 0) for axis in spec.axes]
            listens = fitted(wanted if wanted != "own" else "sections", full)
    else:
        parts = {name: remade(own, spec, name, sizes[name], bases.get(name)) for name in sizes}
        order = sequence(spec, own, sizes)
        place = dict.fromkeys(parts, 0)
        listens, listed = [spec.index(name) for name in order], []
        for name in order:
            listed.append(parts[name][place[name]])
            place[name] += 1
        speeds = np.array(listed)
    weights = np.zeros_like(spec.weights)
    weights[turning] = placed(speeds, listens, len(spec.axes))
    return dataclasses.replace(spec, weights=weights)


def settled(own: Anatomy, counts: Mapping[str, int]) -> dict[str, int]:
    """Counts for the same axes, which add up to the same pairs, or `ValueError`."""
    sizes = checked_counts([counts.get(axis, 0) for axis in own.counts])
    pairs = sum(own.counts.values())
    if sum(sizes) != pairs or set(counts) - set(own.counts):
        raise ValueError(f"sections must add up to the {pairs} pairs that turn, got {shorten(dict(counts))}")
    return dict(zip(own.counts, sizes, strict=True))


def fitted(way: Way, counts: Sequence[int]) -> list[int]:
    """As `dealt`, with the counts as near as the way allows: some sections cannot be dealt out in turn."""
    exact = dealt(way, counts)
    if exact:
        return exact
    return interleaved(list(counts), sum(counts)) if way == "interleaved" else sections_then(sum(counts), counts[0])


def sequence(spec: AxesSpec, own: Anatomy, sizes: Mapping[str, int]) -> list[str]:
    """Which axis each turning pair has where every axis has a ladder: as it was, or in blocks of the new sizes."""
    owner = spec.owner[spec.owner != STILL]
    if dict(own.counts) == dict(sizes):
        return [spec.axes[k] for k in owner]
    first = sorted(sizes, key=lambda axis: owner.tolist().index(spec.index(axis)) if own.counts[axis] else 0)
    return [axis for axis in first for _ in range(sizes[axis])]


def remade(own: Anatomy, spec: AxesSpec, axis: str, pairs: int, base: float | None) -> FloatArray:
    """The speeds of one axis with so many pairs, (pairs,)."""
    if base is None and pairs == own.counts[axis]:
        return np.asarray(spec.along(axis)[spec.owner == spec.index(axis)])
    if axis not in own.ladders:
        raise ValueError(f"the speeds of {axis} are no ladder: they cannot be made for {pairs} pairs")
    found = own.ladders[axis]
    return Ladder(found.first, found.base if base is None else base, pairs).speeds
