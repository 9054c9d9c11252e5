"""Angles with an error below 1e-15 radians at any distance, by fixed-point turns that drop whole turns exactly.

The product distance·θ in float64 is off by up to 2e-7 radians near 2³².
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rope_viz.embedding.spec import FloatArray, short_repr

FixedTurns: TypeAlias = tuple[NDArray[np.uint64], NDArray[np.uint64]]
Distances: TypeAlias = NDArray[np.int64]

MAX_DISTANCE = (1 << 32) - 1  # either sign
MAX_INV_FREQ = 2.0**128

# 1/2π to 256 binary digits; tests/studies/test_scores.py compares it with mpmath.
INV_TWO_PI = 0x28BE60DB9391054A7F09D5F47D4D377036D8A5664F10E4107F9458EAF7AEF158


def exact_angles(inv_freq: ArrayLike, distances: ArrayLike) -> FloatArray:
    """Return angles distance·θᵢ in [−π, π], shape (n, pairs), float64, for whole distances up to ±(2³² − 1).

    Raises `ValueError` for frequencies that are not finite and distances that are not whole or too large.
    """
    return fixed_angles(fixed_turns(inv_freq), check_distances(distances))


def fixed_turns(inv_freq: ArrayLike) -> FixedTurns:
    """Return turns per position modulo 1 as 96-bit fixed point: the high 64 bits, then the low 32 bits."""
    high, low = [], []
    for value in check_inv_freq(inv_freq).tolist():
        numerator, denominator = value.as_integer_ratio()
        scaled = (numerator * INV_TWO_PI // (denominator << 160)) & ((1 << 96) - 1)
        high.append(scaled >> 32)
        low.append(scaled & 0xFFFFFFFF)
    return np.array(high, dtype=np.uint64), np.array(low, dtype=np.uint64)


def fixed_angles(turn: FixedTurns, distances: Distances) -> FloatArray:
    """Return angles in [−π, π], (n, pairs). Unsigned overflow at 2⁶⁴ removes whole turns."""
    size = np.abs(distances).astype(np.uint64)[:, None]
    phase = (size * turn[0] + ((size * turn[1]) >> np.uint64(32))).view(np.int64)
    sign: FloatArray = np.where(distances < 0, -1.0, 1.0)
    return np.asarray(sign[:, None] * phase * (2.0 * math.pi / 2.0**64))


def check_inv_freq(inv_freq: ArrayLike) -> FloatArray:
    """Return the frequencies as float64 (pairs,), or raise `ValueError`."""
    values = require_finite(inv_freq, "inv_freq")
    if values.ndim != 1 or not len(values):
        raise ValueError(f"inv_freq must have shape (pairs,), got {values.shape}")
    if np.abs(values).max() > MAX_INV_FREQ:
        raise ValueError("inv_freq must be at most 2^128 radians per position")
    return values


def check_distances(distances: ArrayLike) -> Distances:
    """Return whole distances as int64 (n,), or raise `ValueError`."""
    values = np.asarray(distances)
    if values.size == 0 and values.ndim == 1:
        return np.empty(0, dtype=np.int64)
    if values.ndim != 1 or values.dtype.kind not in "iuf":
        raise ValueError(f"distances must be whole numbers of shape (n,), got shape {values.shape}")
    if not np.all(np.abs(values.astype(np.float64)) <= MAX_DISTANCE) or np.any(values != np.rint(values)):
        raise ValueError(f"distances must be whole numbers of size up to {MAX_DISTANCE:,}")
    return values.astype(np.int64)


def require_finite(values: ArrayLike, name: str) -> FloatArray:
    """Return the values as float64, or raise `ValueError` with their name."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers, got {short_repr(values)}") from None
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite numbers")
    return array
