"""Tables of cos and sin: exact ones, those that models are trained with, and the error of each method.

float32 angles: transformers 5.23.0, Transformer Engine at d0067d0, flash-attention 2.8.3, vLLM
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rope_viz.embedding.spec import FloatArray
from rope_viz.kernels import fixed_point
from rope_viz.kernels.fixed_point import Float32Array

Method: TypeAlias = Literal["fixed-point phase", "float32 angle", "bf16 table", "bf16 positions"]

METHODS: tuple[Method, ...] = get_args(Method)


def exact_table(inv_freq: ArrayLike, positions: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return (cos, sin), float64 (..., pairs), correct to the last few bits at any integer position."""
    angle = fixed_point.wrapped_angles(positions, inv_freq)
    return np.cos(angle), np.sin(angle)


def float32_table(inv_freq: ArrayLike, positions: ArrayLike) -> tuple[Float32Array, Float32Array]:
    """Return (cos, sin), float32 (..., pairs), of the float32 angle with which nearly every model was trained.

    inv_freq, position and their product are rounded to float32. The rounding grows with the position, and a model
    trained with it expects it. Use it as `table=` where the bits of a released model matter more than the angle.
    """
    angle = float32_angle(inv_freq, positions)
    return np.cos(angle), np.sin(angle)


def error_by_position(
    inv_freq: ArrayLike, positions: ArrayLike, method: Method, *, exact: tuple[FloatArray, FloatArray] | None = None
) -> FloatArray:
    """Return the largest error of cos or sin over the pairs, (...), at integer positions (...).

    method: "fixed-point phase" (the kernel here: 64-bit phase, float32 polynomial), "float32 angle" (with its exact
    sine), "bf16 table" (the same, rounded to bf16, as in a bf16 model of transformers) or "bf16 positions" (the
    position itself rounded to bf16: above 256 neighbours share one). Measured against float64 of the exact phase.
    `exact` is the result of `exact_table` for the same arguments, if available.
    """
    cos, sin = exact_table(inv_freq, positions) if exact is None else exact
    other_cos, other_sin = _compute_table(inv_freq, positions, method)
    return np.asarray(np.maximum(np.abs(other_cos - cos), np.abs(other_sin - sin)).max(axis=-1))


def float32_angle(inv_freq: ArrayLike, positions: ArrayLike) -> Float32Array:
    """Return radians in float32, (..., pairs): the product of two float32 numbers, rounded."""
    frequency = fixed_point.check_inv_freq(inv_freq).astype(np.float32)
    return np.asarray(positions).astype(np.float32)[..., None] * frequency


def round_to_bf16(values: ArrayLike) -> Float32Array:
    """Return the nearest bfloat16 numbers (ties to even), as float32."""
    bits = np.asarray(values, dtype=np.float32).view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)).view(np.float32)


def _compute_table(inv_freq: ArrayLike, positions: ArrayLike, method: Method) -> tuple[NDArray[np.floating], ...]:
    if method == "fixed-point phase":
        sin, cos = fixed_point.sincos(fixed_point.phases(positions, inv_freq))
        return cos, sin
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    if method == "bf16 positions":
        positions = round_to_bf16(positions)
    # float64 sine of the float32 angle, to show only the angle's error.
    angle = float32_angle(inv_freq, positions).astype(np.float64)
    cos, sin = np.cos(angle), np.sin(angle)
    if method == "bf16 table":
        return round_to_bf16(cos), round_to_bf16(sin)
    return cos, sin
