"""Results from the literature on scores over distance: bounds, average decay, and attention.

Su et al., RoFormer, https://arxiv.org/abs/2104.09864 (section 3.4.3, eq. 35 to 37)
Men et al., Base of RoPE Bounds Context Length, https://arxiv.org/abs/2405.14591
Barbero et al., Round and Round We Go, https://arxiv.org/abs/2410.06205
Vaswani et al., Attention Is All You Need, https://arxiv.org/abs/1706.03762 (sinusoidal encoding, softmax)
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rope_viz.embedding.exact_angles import check_distances, check_inv_freq, exact_angles, require_finite
from rope_viz.embedding.scaling import METHODS
from rope_viz.embedding.spec import FloatArray, RopeSpec, require_number
from rope_viz.studies.scores import (
    MAX_DISTANCES,
    Thinning,
    check_coefficients,
    check_range,
    coefficients,
    curve,
    scores_at,
    unrotated_score,
    unrotated_share,
)

if TYPE_CHECKING:
    from rope_viz.studies.vectors import Kind

LONGEST = 1 << 24
"""Limit of `first_negative_distance`: 16.8 million distances take a few seconds."""

LEVELS = (5.0, 25.0, 50.0, 75.0, 95.0)
ROUNDING = 1e-12  # a mean cosine counts as negative below minus this: 0 itself may be computed as -1e-16


def s_curve(inv_freq: ArrayLike, *, start: int = 0, stop: int) -> FloatArray:
    """Return RoFormer's mean |S_j| over j = 1 … pairs at the distances start … stop − 1, with S_j = Σ_{i<j} e^{iΔθᵢ}.

    The curve of RoFormer's Figure 2: (pairs + 1)/2 at distance 0; not monotone. It needs every partial sum, so it is
    not a matrix product: about 0.1 µs per distance at 64 pairs, twenty times a score curve.
    """
    omega = check_inv_freq(inv_freq)
    span = check_range(start, stop, 1, 1)
    width = min(1024, max(1, len(span)))
    offsets = np.ascontiguousarray(unit_rotation(exact_angles(omega, np.arange(width))).T)
    anchors = unit_rotation(exact_angles(omega, np.arange(span.start, span.stop, width)))
    out = np.empty(len(span))
    partial = np.empty_like(offsets)
    for row, anchor in enumerate(anchors):
        np.multiply(anchor[:, None], offsets, out=partial)
        for pair in range(1, len(omega)):  # np.cumsum along this axis takes six times as long
            partial[pair] += partial[pair - 1]
        part = out[row * width : (row + 1) * width]
        part[:] = np.abs(partial).mean(axis=0)[: len(part)]
    return out


def s_at(inv_freq: ArrayLike, distances: ArrayLike) -> FloatArray:
    """Return the `s_curve` at single whole distances, (n,)."""
    return np.asarray(np.abs(np.cumsum(unit_rotation(exact_angles(inv_freq, distances)), axis=1)).mean(axis=1))


def score_bound(a: ArrayLike, b: ArrayLike, s: ArrayLike) -> FloatArray:
    """Return RoFormer's bound on |score| of q and k: max |h_{i+1} − hᵢ| · Σ|S_j| (eq. 37), at the distances of `s`.

    `a` and `b` (pairs,) are the coefficients of q and k, with hᵢ = aᵢ − i·bᵢ and h_pairs = 0; `s` is `s_curve`.
    """
    pairs = np.shape(a)[-1] if np.ndim(a) else 0
    cos_part, sin_part = check_coefficients(a, b, pairs)
    if len(cos_part) != 1 or not pairs:
        raise ValueError(f"score_bound takes one set of coefficients, shape (pairs,), got {np.shape(a)}")
    h = np.append(cos_part[0] - 1j * sin_part[0], 0.0)
    return np.asarray(np.abs(np.diff(h)).max() * pairs * require_finite(s, "s"))


def first_negative(
    inv_freq: ArrayLike, limit: int, *, unrotated: float = 0.0, thinning: Thinning | None = None
) -> int | None:
    """Return the first distance below `limit` at which the mean cosine is negative, or None.

    Men et al.: there a query expects a lower score from a similar key than from a random one. `unrotated` is the share
    of the head that does not rotate and counts with cos 0 = 1 (`scores.unrotated_share`). With `thinning`, a negative
    distance between two computed far distances may be missed.
    """
    omega = check_inv_freq(inv_freq)
    require_number(limit, "limit", least=0, most=MAX_DISTANCES, integer=True)
    require_number(unrotated, "unrotated", least=0.0, most=1.0)
    if unrotated >= 0.5:
        return None  # the constant part outweighs the pairs
    share = np.full(len(omega), (1.0 - unrotated) / len(omega))
    size = 4096
    for part in [range(int(limit))] if thinning is None else thinning.parts:
        start, step = part.start, part.step
        while start < part.stop:
            stop = min(part.stop, start + size * step)
            below = np.flatnonzero(curve(omega, share, start=start, stop=stop, stride=step) < -unrotated - ROUNDING)
            if len(below):
                at = start + int(below[0]) * step
                near = Thinning(max(0, at - step + 1), at + 1, at + 1, 1)
                return at if step == 1 else first_negative(omega, limit, unrotated=unrotated, thinning=near)
            start, size = start + size * step, min(2 * size, 1 << 20)
    return None


@functools.lru_cache(maxsize=1024)
def first_negative_distance(spec: RopeSpec, length: int) -> int | None:
    """Return the first distance below `length` where the mean cosine over the head is negative, or None.

    Dimensions that do not rotate count with cos 0 = 1. The frequencies are those at `length`. At most `LONGEST`
    distances, thinned if they are too many for one request. Cached, because callers repeat the same requests.
    """
    limit = min(length, LONGEST)
    thinning = computed_distances(spec, limit)
    return first_negative(spec.inv_freq(length), limit, unrotated=unrotated_share(spec), thinning=thinning)


def computed_distances(spec: RopeSpec, length: int) -> Thinning:
    """Return the distances that `first_negative_distance` computes."""
    return Thinning.for_curve(0, min(length, LONGEST), spec.pairs, shares=len(METHODS))


def feasible_bases(
    head_dim: int, length: int, bases: ArrayLike, *, rotary_dim: int = 0, thinning: Thinning | None = None
) -> NDArray[np.bool_]:
    """Return for which bases the mean cosine is at least 0 at the distances 0 … length − 1, bool (bases,).

    The set is not an interval: a base can fail although a smaller one holds. `rotary_dim` is the number of rotated
    dimensions, 0 for all. `thinning`: as in `first_negative`.
    """
    candidates = require_finite(bases, "bases")
    if candidates.ndim != 1:
        raise ValueError(f"bases must have shape (n,), got {candidates.shape}")
    require_number(length, "length", least=1, most=MAX_DISTANCES, integer=True)
    specs = [RopeSpec(head_dim=head_dim, rotary_dim=rotary_dim, base=base) for base in candidates.tolist()]
    found = [
        first_negative(spec.inv_freq(), length, unrotated=unrotated_share(spec), thinning=thinning) for spec in specs
    ]
    return np.array([distance is None for distance in found], dtype=np.bool_)


@dataclass(frozen=True, eq=False)
class Distribution:
    """Scores of random q and k by distance. `percentiles` is (levels, n); all other arrays are (n,)."""

    distances: NDArray[np.int64]
    levels: tuple[float, ...]
    percentiles: FloatArray
    mean: FloatArray
    standard_error: FloatArray
    expected: FloatArray


def distribution(
    inv_freq: ArrayLike,
    distances: ArrayLike,
    *,
    kind: Kind = "iid",
    sigma: float = 1.0,
    noise: float = 1.0,
    samples: int = 4096,
    levels: Iterable[float] = LEVELS,
    seed: int = 0,
    unrotated: int = 0,
) -> Distribution:
    """Return percentiles of the score of `samples` random q and k at each distance, and the expected mean.

    Independent normal q and k ("iid") expect 0 at every distance: no decay on average (Barbero et al.). For k = q +
    noise ("noisy-copy") the expected score is 2σ²·Σ cos(Δθᵢ) (Men et al.). `unrotated` is the number of dimensions that
    do not rotate; each adds σ² to a noisy copy's expected score.
    """
    from rope_viz.studies.vectors import random_vectors

    omega = check_inv_freq(inv_freq)
    whole_distances = check_distances(distances)
    ranks = tuple(float(level) for level in levels)
    require_number(samples, "samples", least=2, most=1 << 16, integer=True)
    if samples * len(whole_distances) > MAX_DISTANCES:
        raise ValueError(
            f"samples times distances must be at most {MAX_DISTANCES:,}, got {samples * len(whole_distances):,}"
        )
    require_number(unrotated, "unrotated", least=0, integer=True)
    rotated = 2 * len(omega)
    q, k = random_vectors(rotated + unrotated, seed=seed, count=samples, kind=kind, sigma=sigma, noise=noise)
    a, b = coefficients(q[:, :rotated], k[:, :rotated])
    unrotated_part = unrotated_score(q, k, rotated)[:, None]
    percentiles = np.empty((len(ranks), len(whole_distances)))
    mean, spread = np.empty(len(whole_distances)), np.empty(len(whole_distances))
    step = max(1, (1 << 21) // int(samples))
    for first in range(0, len(whole_distances), step):
        part = slice(first, first + step)
        values = scores_at(omega, a, b, whole_distances[part]) + unrotated_part
        percentiles[:, part] = np.percentile(values, ranks, axis=0)
        mean[part], spread[part] = values.mean(axis=0), values.std(axis=0, ddof=1)
    copies = 2.0 * sigma**2 if kind == "noisy-copy" else 0.0
    expected = copies * (scores_at(omega, np.ones(len(omega)), None, whole_distances) + 0.5 * unrotated)
    return Distribution(whole_distances, ranks, percentiles, mean, spread / math.sqrt(samples), expected)


def attention_logits(
    scores: ArrayLike, *, head_dim: int, attention_factor: float = 1.0, unrotated: float = 0.0
) -> FloatArray:
    """Return logits from scores: (score·attention_factor² + unrotated) / √head_dim, same shape.

    The factor multiplies cos and sin, so it is squared and affects only the rotated part.
    """
    require_number(head_dim, "head_dim", least=1)
    require_number(attention_factor, "attention_factor")
    require_number(unrotated, "unrotated")
    return np.asarray((require_finite(scores, "scores") * attention_factor**2 + unrotated) / math.sqrt(head_dim))


def attention_entropy(logits: ArrayLike) -> FloatArray:
    """Return the entropy in nats of the softmax over the first 1, 2, … n logits, (n,), in one pass.

    With logits by distance, entry L − 1 is the attention entropy in a context of L tokens; if uniform, ln L.
    """
    values = require_finite(logits, "logits")
    if values.ndim != 1:
        raise ValueError(f"logits must have shape (n,), got {values.shape}")
    out = np.empty(len(values))
    peak = np.maximum.accumulate(values)
    first, weight, moment, shift = 0, 0.0, 0.0, 0.0
    # Running sums of w = e^(l − shift) and w·(l − shift). When a higher peak would make w overflow, the shift moves to
    # it and the sums are rescaled.
    while first < len(values):
        last = int(np.searchsorted(peak, peak[first] + 500.0, side="right"))
        change, shift = shift - peak[first], peak[first]
        if first:
            carried = math.exp(max(change, -745.0))
            moment, weight = carried * (moment + weight * change), carried * weight
        relative = values[first:last] - shift
        raised = np.exp(relative)
        weights = weight + np.cumsum(raised)
        moments = moment + np.cumsum(raised * relative)
        out[first:last] = np.log(weights) - moments / weights
        first, weight, moment = last, float(weights[-1]), float(moments[-1])
    return np.maximum(out, 0.0)


def unit_rotation(angle: FloatArray) -> NDArray[np.complex128]:
    """Return e^(i·angle)."""
    return np.asarray(np.cos(angle) + 1j * np.sin(angle))
