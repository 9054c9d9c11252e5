"""Reconstruct how the weights of an AxesSpec were built, and rebuild them with other sections or bases.

Two allocations can be recognised: one ladder (geometric sequence of frequencies) shared by all axes, one axis per pair
(language models), and one ladder per axis (vision towers, diffusion transformers). Explicit directions cannot.
`block_means` gives the mean cosine over displacements on two axes, which sections are judged by.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from rope_viz.embedding import TEXTS
from rope_viz.embedding.axes_spec import (
    STILL,
    AxesSpec,
    alternate_then,
    check_counts,
    interleave_sections,
    place_frequencies,
)
from rope_viz.embedding.spec import FloatArray, require_number, short_repr
from rope_viz.embedding.spectrum import bin_mean
from rope_viz.texts.texts import join_items

Way: TypeAlias = Literal["sections", "interleaved", "in turn", "own"]

WAYS: tuple[Way, ...] = ("sections", "interleaved", "in turn")
EVEN = 1e-9  # tolerance for the steps of a geometric sequence


@dataclass(frozen=True)
class Ladder:
    """The frequencies first·base^(−i/pairs), i = 0 … pairs − 1, in radians per unit."""

    first: float
    base: float
    pairs: int

    @property
    def frequencies(self) -> FloatArray:
        """Return the frequencies, (pairs,) float64."""
        return np.asarray(self.first * self.base ** (-np.arange(self.pairs) / self.pairs))


@dataclass(frozen=True)
class Anatomy:
    """How the pairs are shared among the axes.

    shared: True if all axes share one ladder of decreasing frequencies. counts: {axis: pairs} in the order of the axes,
    without unused axes. way: how a shared ladder is divided; "own" is none of the three in `WAYS`. ladders: {axis:
    ladder}, or one under "" if shared. Scaled frequencies are no geometric sequence and have none.
    """

    shared: bool
    counts: Mapping[str, int]
    way: Way
    ladders: Mapping[str, Ladder]


@functools.lru_cache(maxsize=256)
def analyse_spec(spec: AxesSpec) -> Anatomy | None:
    """Return how the spec was built; None for directions, a single axis, and tables that are not rotations."""
    if not spec.is_aligned:
        return None
    owner, frequencies = spec.owner, spec.weights.sum(axis=1)
    counts = {axis: int(np.sum(owner == k)) for k, axis in enumerate(spec.axes) if np.any(owner == k)}
    rotating = owner != STILL
    if len(counts) < 2:
        return None
    shared = bool(np.all(np.diff(frequencies[rotating]) < 0.0))
    if shared:
        found = find_ladder(frequencies[rotating])
        ladders = {} if found is None else {"": found}
        return Anatomy(True, counts, find_way(owner[rotating].tolist(), len(spec.axes)), ladders)
    each = {axis: find_ladder(spec.along(axis)[owner == spec.index(axis)]) for axis in counts}
    return Anatomy(False, counts, "own", {axis: found for axis, found in each.items() if found is not None})


def find_ladder(frequencies: FloatArray) -> Ladder | None:
    """Return the ladder with these frequencies, (pairs,); None if there is none, or fewer than two frequencies."""
    if len(frequencies) < 2 or frequencies[0] <= 0.0 or np.any(np.diff(frequencies) >= 0.0):
        return None
    steps = np.diff(np.log(frequencies))
    if np.ptp(steps) > EVEN * max(1.0, abs(float(np.log(frequencies[-1])))):
        return None
    base = math.exp(-float(steps.mean()) * len(frequencies))
    # Undo the rounding errors of a base that was given in decimal.
    return Ladder(float(frequencies[0]), float(f"{base:.10g}"), len(frequencies))


def find_way(owner: Sequence[int], axes: int) -> Way:
    """Return how a shared ladder is divided among its axes."""
    counts = [sum(k == axis for k in owner) for axis in range(axes)]
    for way in WAYS:
        if assign_axes(way, counts) == list(owner):
            return way
    return "own"


def assign_axes(way: Way, counts: Sequence[int]) -> list[int]:
    """Return the axis of every pair of a shared ladder, whose `counts` add up to the pairs; [] if they do not fit.

    "in turn": the second and third axis alternate, then the first, as in ERNIE.

    >>> assign_axes("interleaved", [4, 2, 2]), assign_axes("in turn", [2, 2, 2])
    ([0, 1, 2, 0, 1, 2, 0, 0], [1, 2, 1, 2, 0, 0])
    """
    pairs = sum(counts)
    if way == "interleaved":
        axis = interleave_sections(list(counts), pairs)
        return axis if [sum(k == each for k in axis) for each in range(len(counts))] == list(counts) else []
    if way == "in turn":
        if len(counts) != 3 or abs(counts[1] - counts[2]) > 1 or counts[1] < counts[2]:
            return []
        return alternate_then(pairs, counts[0])
    return [axis for axis, count in enumerate(counts) for _ in range(count)]


def rebuild_spec(
    spec: AxesSpec,
    *,
    counts: Mapping[str, int] | None = None,
    way: Way | None = None,
    bases: Mapping[str, float] | None = None,
) -> AxesSpec:
    """Return the spec with other sections, another division, or other bases ({axis: base}, "" if shared).

    Arguments that are None change nothing. Raises `ValueError` if the spec has neither of the two allocations, if the
    sections do not add up to the rotating pairs, or for the base of frequencies that form no ladder.
    """
    current = analyse_spec(spec)
    if current is None:
        raise ValueError(TEXTS("axes.fixed"))
    sizes = dict(current.counts) if counts is None else require_same_pairs(current, counts)
    bases = dict(bases or {})
    for axis, base in bases.items():
        require_number(base, "a base", above=1.0)
        if axis not in current.ladders:
            raise ValueError(TEXTS("axes.no_ladder", axis=short_repr(axis), ladders=join_items(current.ladders)))
    rotating = np.flatnonzero(spec.owner != STILL)
    if current.shared:
        frequencies = spec.weights.sum(axis=1)[rotating]
        if bases:
            frequencies = dataclasses.replace(current.ladders[""], base=bases[""]).frequencies
        if way in (None, current.way) and counts is None:
            axis_of_pair = spec.owner[rotating].tolist()
        else:
            new_way = way or current.way
            full = [sizes.get(axis, 0) for axis in spec.axes]
            axis_of_pair = fit_axes(new_way if new_way != "own" else "sections", full)
    else:
        parts = {name: resize_ladder(current, spec, name, sizes[name], bases.get(name)) for name in sizes}
        order = order_axes(spec, current, sizes)
        used = dict.fromkeys(parts, 0)
        axis_of_pair, ordered = [spec.index(name) for name in order], []
        for name in order:
            ordered.append(parts[name][used[name]])
            used[name] += 1
        frequencies = np.array(ordered)
    weights = np.zeros_like(spec.weights)
    weights[rotating] = place_frequencies(frequencies, axis_of_pair, len(spec.axes))
    return dataclasses.replace(spec, weights=weights)


def require_same_pairs(current: Anatomy, counts: Mapping[str, int]) -> dict[str, int]:
    """Return counts for the same axes that add up to the same pairs, or raise `ValueError`."""
    sizes = check_counts([counts.get(axis, 0) for axis in current.counts])
    pairs = sum(current.counts.values())
    if sum(sizes) != pairs or set(counts) - set(current.counts):
        raise ValueError(TEXTS("axes.turning_sections", pairs=pairs, counts=short_repr(dict(counts))))
    return dict(zip(current.counts, sizes, strict=True))


def fit_axes(way: Way, counts: Sequence[int]) -> list[int]:
    """Return `assign_axes` for the nearest possible counts: some sections cannot alternate."""
    exact = assign_axes(way, counts)
    if exact:
        return exact
    return (
        interleave_sections(list(counts), sum(counts))
        if way == "interleaved"
        else alternate_then(sum(counts), counts[0])
    )


def order_axes(spec: AxesSpec, current: Anatomy, sizes: Mapping[str, int]) -> list[str]:
    """Return the axis of each rotating pair, for one ladder per axis: unchanged, or in blocks of the new sizes."""
    owner = spec.owner[spec.owner != STILL]
    if dict(current.counts) == dict(sizes):
        return [spec.axes[k] for k in owner]
    first = sorted(sizes, key=lambda axis: owner.tolist().index(spec.index(axis)) if current.counts[axis] else 0)
    return [axis for axis in first for _ in range(sizes[axis])]


def resize_ladder(current: Anatomy, spec: AxesSpec, axis: str, pairs: int, base: float | None) -> FloatArray:
    """Return the frequencies of one axis with this many pairs, (pairs,)."""
    if base is None and pairs == current.counts[axis]:
        return np.asarray(spec.along(axis)[spec.owner == spec.index(axis)])
    if axis not in current.ladders:
        raise ValueError(TEXTS("axes.no_ladder_length", axis=axis, pairs=pairs))
    ladder_found = current.ladders[axis]
    return Ladder(ladder_found.first, ladder_found.base if base is None else base, pairs).frequencies


def block_means(
    spec: AxesSpec, rows: ArrayLike, columns: ArrayLike, *, axes: tuple[str, str] = ("h", "w")
) -> FloatArray:
    """Return the exact mean cosine over blocks of whole displacements, (rows − 1, columns − 1).

    `rows` and `columns` are increasing whole edges: block (i, j) holds rows[i] … rows[i + 1] − 1 and so on. For a table
    that is not a rotation it is the mean over queries and equal keys of every direction, hence over both members of
    every pair; this mean depends on the displacement alone.
    """
    tables = [spec.weights] if spec.second is None else [spec.weights, spec.second]
    first, second = spec.index(axes[0]), spec.index(axes[1])
    weights = np.concatenate(tables)
    down, across = bin_mean(weights[:, first], rows), bin_mean(weights[:, second], columns)
    return np.asarray((down.real.T @ across.real - down.imag.T @ across.imag) / len(weights))
