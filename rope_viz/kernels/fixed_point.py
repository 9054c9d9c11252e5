"""Angles as 64-bit fixed-point phases, exact at every integer position.

A phase is an angle in units of 2^-64 turns, in an int64. Overflow removes whole turns, so `position * increment` keeps
its last bit at position 3 and at position 2^31 alike. A float32 angle of a million has a spacing of 0.06 radians; this
one has 2^-64 turns.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rope_viz.embedding.spec import FloatArray, short_repr

IntArray: TypeAlias = NDArray[np.int64]
Float32Array: TypeAlias = NDArray[np.float32]

FRACTION_BITS = 192
INVERSE_TWO_PI = 0x28BE60DB9391054A7F09D5F47D4D377036D8A5664F10E410  # 2^192 / (2 pi), rounded

# Fits of sin(2 pi t) / t and cos(2 pi t) in powers of t^2 for |t| <= 1/8 turn, highest power first.
SIN_TURNS = (-75.40184020996094, 81.59254455566406, -41.3416633605957, 6.2831854820251465)
COS_TURNS = (59.22028732299805, -85.4428482055664, 64.93931579589844, -19.739208221435547, 1.0)


def increments(inv_freq: ArrayLike) -> IntArray:
    """Return the phase per position, int64 (pairs,): round(inv_freq / 2 pi * 2^64), modulo 2^64.

    inv_freq: (pairs,) radians per position. Each float is multiplied in integers at its exact value, so the last
    rounding is the only one. Raises `ValueError` unless the frequencies are a vector of finite numbers.
    """
    return _increments(check_inv_freq(inv_freq).tobytes())


def phases(positions: ArrayLike, inv_freq: ArrayLike) -> IntArray:
    """Return phases, int64 (..., pairs), of integer positions (...)."""
    with np.errstate(over="ignore"):
        return check_positions(positions)[..., None] * increments(inv_freq)


def wrapped_angles(positions: ArrayLike, inv_freq: ArrayLike) -> FloatArray:
    """Return angles in radians within [-pi, pi), float64 (..., pairs), of integer positions (...)."""
    return np.asarray(phases(positions, inv_freq).astype(np.float64) * (2.0 * math.pi * 2.0**-64))


def sincos(phase: IntArray) -> tuple[Float32Array, Float32Array]:
    """Return (sin, cos) in float32 as the GPU kernel computes them: nearest quarter turn, then a short polynomial."""
    high = (phase >> 32).astype(np.int32)
    quadrant = ((high.astype(np.int64) + (1 << 29)) >> 30).astype(np.int32)
    rest = (high.astype(np.int64) - (quadrant.astype(np.int64) << 30)).astype(np.float32) * np.float32(2.0**-32)
    square = rest * rest
    sin, cos = rest * _polynomial(SIN_TURNS, square), _polynomial(COS_TURNS, square)
    odd = (quadrant & 1) != 0
    sin, cos = np.where(odd, cos, sin), np.where(odd, sin, cos)
    return np.where(quadrant & 2, -sin, sin), np.where((quadrant + 1) & 2, -cos, cos)


def check_inv_freq(inv_freq: Any) -> FloatArray:
    """Return inv_freq as a contiguous float64 vector of at least one pair, or raise `ValueError`."""
    array = np.ascontiguousarray(inv_freq, dtype=np.float64)
    if array.ndim != 1 or not array.size:
        raise ValueError(f"inv_freq must have shape (pairs,) with at least one pair, got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError("inv_freq must be finite")
    return array


def check_positions(positions: Any) -> IntArray:
    """Return positions as int64; raise `ValueError` for fractional ones, which have no exact phase."""
    array = np.asarray(positions)
    if array.size == 0:
        return array.astype(np.int64)
    if array.dtype == np.bool_ or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"positions must be integers, got {array.dtype}; for others pass a table of cos and sin")
    if array.dtype == np.uint64 and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"positions must fit 64 bits with a sign, got {short_repr(int(array.max()))}")
    return array.astype(np.int64)


@functools.lru_cache(maxsize=64)
def _increments(data: bytes) -> IntArray:
    values = np.array([_wrap(_increment(f)) for f in np.frombuffer(data).tolist()], dtype=np.int64)
    values.flags.writeable = False
    return values


def _increment(inv_freq: float) -> int:
    numerator, denominator = inv_freq.as_integer_ratio()
    scaled, shift = numerator * INVERSE_TWO_PI, FRACTION_BITS - 64 + denominator.bit_length() - 1
    return (scaled + (1 << (shift - 1))) >> shift


def _wrap(value: int) -> int:
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def _polynomial(coefficients: Sequence[float], x: Float32Array) -> Float32Array:
    result = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        result = result * x + np.float32(coefficient)
    return result
