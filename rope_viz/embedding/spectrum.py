"""Quantities per pair: wavelengths, bands, and exact tables and bin means of cos and sin.

Bands and turns: YaRN, https://arxiv.org/abs/2309.00071, section 3.2.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray: TypeAlias = NDArray[np.float64]
TAU = 2.0 * math.pi

KEPT, BLENDED, DIVIDED, SPED, STILL = range(5)
BAND_NAMES = ("kept", "blended", "divided", "sped up", "still")


class Embedding(Protocol):
    """The part of `RopeSpec` that bands need. A protocol, because `spec` imports this module for notebooks."""

    @property
    def target(self) -> int: ...
    @property
    def scaling(self) -> Any: ...
    @property
    def plain_inv_freq(self) -> FloatArray: ...
    def inv_freq(self, length: int | None = None) -> FloatArray: ...


def wavelength(inv_freq: ArrayLike) -> FloatArray:
    """Return positions per turn, 2π/inv_freq, in tokens; infinite for zero frequency. Shape of `inv_freq`."""
    with np.errstate(divide="ignore"):
        return np.asarray(TAU / np.asarray(inv_freq, dtype=np.float64))


def ratio(spec: Embedding, *, length: int | None = None) -> FloatArray:
    """Return scaled over plain frequency, shape (pairs,): 1 unchanged, 1/s divided by s, 0 zero frequency."""
    return np.asarray(spec.inv_freq(length) / spec.plain_inv_freq)


def trained_inv_freq(spec: Embedding) -> FloatArray:
    """Return the frequencies in training, radians per position, shape (pairs,): plain, or 0 where scaled to 0."""
    return np.where(spec.inv_freq(spec.target) == 0.0, 0.0, spec.plain_inv_freq)


@dataclass(frozen=True, eq=False)
class Bands:
    """The band of each pair: frequency kept, blended, divided, increased, or zero.

    `kind` is KEPT, BLENDED, DIVIDED, SPED or STILL by pair, shape (pairs,).
    """

    kind: NDArray[np.int8]

    def count(self, kind: int) -> int:
        return int(np.count_nonzero(self.kind == kind))

    @property
    def runs(self) -> list[tuple[int, int, int]]:
        """Return runs of neighbouring pairs of one kind, in order, as (kind, first pair, last pair)."""
        edges = [0, *(np.flatnonzero(np.diff(self.kind)) + 1).tolist(), len(self.kind)]
        return [(int(self.kind[a]), a, b - 1) for a, b in itertools.pairwise(edges)]


def bands(spec: Embedding, *, length: int | None = None) -> Bands:
    """Return the band of each pair of this spec at this length; without scaling every pair is kept.

    Divided means by the full factor or more, for LongRoPE by the pair's own divisor. A factor below 1 gives SPED.
    CoPE divides by no factor: a pair that it fades is blended.
    """
    share, floor = ratio(spec, length=length), spec.scaling.divided_share(spec, length)
    kind = np.full(len(share), BLENDED, dtype=np.int8)
    kind[share <= floor * (1 + 1e-9)] = DIVIDED
    kind[share > 1.0] = SPED
    kind[np.abs(share - 1.0) <= 1e-9] = KEPT
    kind[share == 0.0] = STILL
    return Bands(kind)


def are_peaks(values: ArrayLike) -> NDArray[np.bool_]:
    """Return which values are the largest; NaN never is, values within a millionth of the largest count as equal.

    Under YaRN many pairs are divided by the same factor. Which of them is the largest is a matter of rounding, and
    differs between processors.
    """
    values = np.asarray(values, dtype=np.float64)
    return np.asarray(values >= np.nanmax(values) * (1.0 - 1e-6))


def find_peak(values: ArrayLike) -> int:
    """Return the first index of the largest values, as `are_peaks` finds them."""
    return int(np.argmax(are_peaks(values)))


def whole_factor(spec: Embedding, *, length: int | None = None) -> float:
    """Return the factor that the slowest pairs are divided by at this length. Dynamic NTK's grows with the length."""
    return float(spec.scaling.growth(spec, length))


def table(inv_freq: ArrayLike, positions: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return cos and sin of position times inv_freq, each shape (positions, pairs).

    Angles are reduced in turns in float64: the error stays below 1e-8 radians up to 10,000,000 positions.
    """
    turns = np.multiply.outer(np.asarray(positions, dtype=np.float64), np.asarray(inv_freq) / TAU)
    turns -= np.rint(turns)
    angle = turns * TAU
    return np.cos(angle), np.sin(angle)


def bin_mean(inv_freq: ArrayLike, edges: ArrayLike) -> NDArray[np.complex128]:
    """Return the exact mean of e^(i·m·inv_freq) over the whole positions m in each bin, shape (pairs, bins).

    `edges` are n + 1 increasing whole positions; bin j holds edges[j] … edges[j+1] − 1. The closed form is the
    Dirichlet kernel, so the cost does not depend on the bin's width, and there is no moiré. The real part is the mean
    of cos, the imaginary part that of sin; the modulus is 0 if a bin holds whole turns.
    """
    bounds = np.asarray(edges, dtype=np.float64)
    count = np.diff(bounds)
    if bounds.ndim != 1 or bounds.size < 2 or not np.all(np.isfinite(bounds)) or np.any(count < 1):
        raise ValueError("edges must be at least two increasing whole positions")
    if np.any(bounds != np.rint(bounds)):
        raise ValueError("edges must be whole positions")
    turns = np.asarray(inv_freq, dtype=np.float64)[:, None] / TAU
    middle = turns * ((bounds[:-1] + bounds[1:] - 1.0) / 2.0)
    mean = np.exp(1j * TAU * (middle - np.rint(middle)))
    # sin(Nπt)/(N sin(πt)) with t reduced to the nearest whole turn, where the limit is ±1.
    half = turns - np.rint(turns)
    sine = np.sin(math.pi * half)
    full = count * half
    is_whole_turn = np.abs(sine) < 1e-15
    with np.errstate(divide="ignore", invalid="ignore"):
        kernel = np.sin(math.pi * (full - 2.0 * np.rint(full / 2.0))) / (count * sine)
    sign = np.where(np.rint(turns) * (count - 1.0) % 2 == 0, 1.0, -1.0)
    return np.asarray(mean * np.where(is_whole_turn, 1.0, kernel) * sign)


def bin_edges(start: int, stop: int, bins: int) -> NDArray[np.int64]:
    """Return edges of at most `bins` near-equal bins of whole positions over [start, stop), shape (bins + 1,)."""
    if stop <= start:
        raise ValueError(f"a range of positions must not be empty, got {start} to {stop}")
    return np.unique(np.linspace(start, stop, min(bins, stop - start) + 1).astype(np.int64))
