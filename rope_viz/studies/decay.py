"""What the literature says about scores over distance: bounds, decay on average, and where attention goes.

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

from rope_viz.embedding.exact_angles import checked_distances, checked_inv_freq, exact_angles, finite
from rope_viz.embedding.scaling import METHODS
from rope_viz.embedding.spec import FloatArray, RopeSpec, require_number
from rope_viz.studies.error_budget import Thinning
from rope_viz.studies.scores import (
    MAX_DISTANCES,
    at,
    checked_coefficients,
    checked_range,
    coefficients,
    curve,
    unrotated_score,
    unrotated_share,
)

if TYPE_CHECKING:
    from rope_viz.studies.vectors import Kind

LONGEST = 1 << 24
"""How far `first_negative_distance` looks: 16.8 million distances take a few seconds."""

LEVELS = (5.0, 25.0, 50.0, 75.0, 95.0)
ROUNDING = 1e-12  # a mean cosine is negative below minus this: 0 itself may come out as -1e-16


def s_curve(inv_freq: ArrayLike, *, start: int = 0, stop: int) -> FloatArray:
    """RoFormer's mean |S_j| over j = 1 … pairs at the distances start … stop − 1, with S_j = Σ_{i<j} e^{iΔθᵢ}.

    The curve of RoFormer's Figure 2: (pairs + 1)/2 at distance 0; not monotone. Every partial sum counts, so this one
    is no matrix product: about 0.1 µs a distance at 64 pairs, twenty times a score curve.
    """
    omega = checked_inv_freq(inv_freq)
    wanted = checked_range(start, stop, 1, 1)
    width = min(1024, max(1, len(wanted)))
    offsets = np.ascontiguousarray(turned(exact_angles(omega, np.arange(width))).T)
    anchors = turned(exact_angles(omega, np.arange(wanted.start, wanted.stop, width)))
    out = np.empty(len(wanted))
    partial = np.empty_like(offsets)
    for row, anchor in enumerate(anchors):
        np.multiply(anchor[:, None], offsets, out=partial)
        for pair in range(1, len(omega)):  # np.cumsum along this axis takes six times as long
            partial[pair] += partial[pair - 1]
        part = out[row * width : (row + 1) * width]
        part[:] = np.abs(partial).mean(axis=0)[: len(part)]
    return out


def s_at(inv_freq: ArrayLike, distances: ArrayLike) -> FloatArray:
    """The `s_curve` at single whole distances, (n,)."""
    return np.asarray(np.abs(np.cumsum(turned(exact_angles(inv_freq, distances)), axis=1)).mean(axis=1))


def score_bound(a: ArrayLike, b: ArrayLike, s: ArrayLike) -> FloatArray:
    """RoFormer's bound on |score| for given q and k: max |h_{i+1} − hᵢ| · Σ|S_j| (eq. 37), at the distances of `s`.

    `a` and `b` (pairs,) are the coefficients of q and k, so that hᵢ = aᵢ − i·bᵢ and h_pairs = 0; `s` is `s_curve`.
    """
    pairs = np.shape(a)[-1] if np.ndim(a) else 0
    cos_part, sin_part = checked_coefficients(a, b, pairs)
    if len(cos_part) != 1 or not pairs:
        raise ValueError(f"score_bound takes one set of coefficients, shape (pairs,), got {np.shape(a)}")
    h = np.append(cos_part[0] - 1j * sin_part[0], 0.0)
    return np.asarray(np.abs(np.diff(h)).max() * pairs * finite(s, "s"))


def first_negative(
    inv_freq: ArrayLike, limit: int, *, unrotated: float = 0.0, thinning: Thinning | None = None
) -> int | None:
    """The first distance below `limit` at which the mean cosine is negative, or None.

    Men et al.: there a query expects a lower score from a key like itself than from a random one. `unrotated` is the
    share of the head that does not rotate and counts with cos 0 = 1 (`scores.unrotated_share`). With `thinning`, one
    that lies between two far distances that are computed may be missed.
    """
    omega = checked_inv_freq(inv_freq)
    require_number(limit, "limit", least=0, most=MAX_DISTANCES, integer=True)
    require_number(unrotated, "unrotated", least=0.0, most=1.0)
    if unrotated >= 0.5:
        return None  # the rest adds at least what the pairs can take away
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
    """The first distance below `length` where the mean cosine over the head is negative, None if there is none.

    Dimensions that do not rotate count with cos 0 = 1. The frequencies are those at `length`. At most `LONGEST`
    distances, thinned where they are too many for one request. Kept: the check and every way ask for the same ones.
    """
    limit = min(length, LONGEST)
    thinning = looked_at(spec, limit)
    return first_negative(spec.inv_freq(length), limit, unrotated=unrotated_share(spec), thinning=thinning)


def looked_at(spec: RopeSpec, length: int) -> Thinning:
    """Which distances `first_negative_distance` looks at."""
    return Thinning.of(0, min(length, LONGEST), spec.pairs, shares=len(METHODS))


def feasible_bases(
    head_dim: int, length: int, bases: ArrayLike, *, rotary_dim: int = 0, thinning: Thinning | None = None
) -> NDArray[np.bool_]:
    """For which bases the mean cosine stays at or above 0 at the distances 0 … length − 1, bool (bases,).

    The set is not an interval: a base can fail although a smaller one holds. `rotary_dim` is how many dimensions of the
    head rotate, 0 all of them. `thinning`: as in `first_negative`.
    """
    wanted = finite(bases, "bases")
    if wanted.ndim != 1:
        raise ValueError(f"bases must have shape (n,), got {wanted.shape}")
    require_number(length, "length", least=1, most=MAX_DISTANCES, integer=True)
    specs = [RopeSpec(head_dim=head_dim, rotary_dim=rotary_dim, base=base) for base in wanted.tolist()]
    found = [
        first_negative(spec.inv_freq(), length, unrotated=unrotated_share(spec), thinning=thinning) for spec in specs
    ]
    return np.array([distance is None for distance in found], dtype=np.bool_)


@dataclass(frozen=True, eq=False)
class Distribution:
    """Scores of random q and k by distance. `percentiles` is (levels, n); everything else of n is (n,)."""

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
    """Percentiles of the score of `samples` random q and k at each distance, and the mean that theory expects.

    Independent normal q and k ("iid") expect 0 at every distance: no decay on average (Barbero et al.). For k = q +
    noise ("noisy-copy") the expected score is 2σ²·Σ cos(Δθᵢ) (Men et al.). `unrotated` is how many dimensions q and k
    have beside the pairs; each expects σ² of a noisy copy, at every distance.
    """
    from rope_viz.studies.vectors import random_vectors

    omega = checked_inv_freq(inv_freq)
    wanted = checked_distances(distances)
    ranks = tuple(float(level) for level in levels)
    require_number(samples, "samples", least=2, most=1 << 16, integer=True)
    if samples * len(wanted) > MAX_DISTANCES:
        raise ValueError(f"samples times distances must be at most {MAX_DISTANCES:,}, got {samples * len(wanted):,}")
    require_number(unrotated, "unrotated", least=0, integer=True)
    rotated = 2 * len(omega)
    q, k = random_vectors(rotated + unrotated, seed=seed, count=samples, kind=kind, sigma=sigma, noise=noise)
    a, b = coefficients(q[:, :rotated], k[:, :rotated])
    still = unrotated_score(q, k, rotated)[:, None]
    percentiles = np.empty((len(ranks), len(wanted)))
    mean, spread = np.empty(len(wanted)), np.empty(len(wanted))
    step = max(1, (1 << 21) // int(samples))
    for first in range(0, len(wanted), step):
        part = slice(first, first + step)
        values = at(omega, a, b, wanted[part]) + still
        percentiles[:, part] = np.percentile(values, ranks, axis=0)
        mean[part], spread[part] = values.mean(axis=0), values.std(axis=0, ddof=1)
    copies = 2.0 * sigma**2 if kind == "noisy-copy" else 0.0
    expected = copies * (at(omega, np.ones(len(omega)), None, wanted) + 0.5 * unrotated)
    return Distribution(wanted, ranks, percentiles, mean, spread / math.sqrt(samples), expected)


def attention_logits(
    scores: ArrayLike, *, head_dim: int, attention_factor: float = 1.0, unrotated: float = 0.0
) -> FloatArray:
    """Logits from scores: (score·attention_factor² + unrotated) / √head_dim, same shape.

    The factor multiplies cos and sin, so it enters squared and touches the rotated part only.
    """
    require_number(head_dim, "head_dim", least=1)
    require_number(attention_factor, "attention_factor")
    require_number(unrotated, "unrotated")
    return np.asarray((finite(scores, "scores") * attention_factor**2 + unrotated) / math.sqrt(head_dim))


def attention_entropy(logits: ArrayLike) -> FloatArray:
    """Entropy in nats of the softmax over the first 1, 2, … n logits, (n,), in one pass over them.

    With logits by distance, entry L − 1 is the entropy of attention in a context of L tokens; ln L is the uniform one.
    """
    values = finite(logits, "logits")
    if values.ndim != 1:
        raise ValueError(f"logits must have shape (n,), got {values.shape}")
    out = np.empty(len(values))
    peak = np.maximum.accumulate(values)
    first, weight, moment, shift = 0, 0.0, 0.0, 0.0
    # Running sums of w = e^(l − shift) and w·(l − shift). A new shift only where the peak rose so far that w would
    # overflow: then the sums so far are carried over to it.
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


def turned(angle: FloatArray) -> NDArray[np.complex128]:
    """e^(i·angle)."""
    return np.asarray(np.cos(angle) + 1j * np.sin(angle))
