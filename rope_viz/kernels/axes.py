"""Positions with several axes: cos and sin of every token from weights (pairs, axes), exact at whole positions.

A phase is a sum of one product per axis, each modulo 2^64, so that whole turns drop out (fixed_point.py). Fractional
positions (centred, stretched) are split: the whole part is exact, the rest is multiplied in float64. The result is a
table with one row per token, which every backend takes.
"""

from __future__ import annotations

import functools
import math
import sys
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rope_viz.embedding.spec import FloatArray
from rope_viz.kernels import fixed_point

RADIANS = 2.0 * math.pi * 2.0**-64


def table_of(
    positions: Any, weights: ArrayLike, factor: float | ArrayLike = 1.0, *, inverse: bool = False
) -> tuple[tuple[Any, Any], Any]:
    """Return ((cos, sin), rows): a table (all tokens, pairs) in float64 and the row of each token, (...,).

    positions: (..., tokens, axes), whole or not, NumPy or a torch tensor; for a tensor the result is on its device.
    weights: (pairs, axes) radians per unit. factor: one for all pairs or one for each; `inverse` divides by it, and the
    caller rotates backwards. Raises `ValueError` if the shapes do not fit.
    """
    freqs = check_weights(weights)
    scale = check_factors(factor, len(freqs))
    scale = 1.0 / scale if inverse else scale
    if "torch" in sys.modules and isinstance(positions, sys.modules["torch"].Tensor):
        return _move_to_device(positions, freqs, scale)
    places = np.asarray(positions)
    check_places(places.shape, freqs.shape[1], places.dtype.kind in "iuf")
    angle = angles(places, freqs)
    rows = np.arange(math.prod(places.shape[:-1])).reshape(places.shape[:-1])
    flat = angle.reshape(-1, len(freqs))
    return (np.cos(flat) * scale, np.sin(flat) * scale), rows


def angles(positions: ArrayLike, weights: ArrayLike) -> FloatArray:
    """Return angles in radians, float64 (..., pairs), of positions (..., axes), reduced by whole turns exactly.

    weights: (pairs, axes).
    """
    freqs, places = check_weights(weights), np.asarray(positions)
    floored = np.floor(places) if places.dtype.kind == "f" else places
    if places.dtype.kind == "f" and not np.all(np.abs(floored) < 2.0**63):
        raise ValueError("positions must be finite and fit 64 bits with a sign")
    count = fixed_point.check_positions(floored.astype(np.int64) if places.dtype.kind == "f" else floored)
    phase = np.zeros((*places.shape[:-1], len(freqs)), dtype=np.int64)
    with np.errstate(over="ignore"):
        for axis in range(freqs.shape[1]):
            phase += count[..., axis, None] * fixed_point.increments(freqs[:, axis])
    angle = phase.astype(np.float64) * RADIANS
    return angle if places.dtype.kind != "f" else np.asarray(angle + (places - floored) @ freqs.T)


def _move_to_device(positions: Any, freqs: FloatArray, scale: FloatArray) -> tuple[tuple[Any, Any], Any]:
    torch = sys.modules["torch"]
    real = positions.is_floating_point()
    check_places(tuple(positions.shape), freqs.shape[1], not positions.is_complex() and positions.dtype != torch.bool)
    with torch.no_grad():
        places = positions.detach()
        floored = places.floor() if real else places
        count, device = floored.long(), places.device
        increments, weights, factor = _constants(freqs.tobytes(), freqs.shape, scale.tobytes(), device)
        phase = torch.zeros((*places.shape[:-1], len(freqs)), dtype=torch.int64, device=device)
        for axis in range(freqs.shape[1]):
            phase += count[..., axis, None] * increments[axis]
        angle = phase.double() * RADIANS
        if real:
            angle = angle + (places - floored).double() @ weights
        flat = angle.reshape(-1, len(freqs))
        rows = torch.arange(len(flat), device=device).view(places.shape[:-1])
        return (flat.cos() * factor, flat.sin() * factor), rows


@functools.lru_cache(maxsize=16)
def _constants(freqs: bytes, shape: tuple[int, int], scale: bytes, device: Any) -> tuple[Any, Any, Any]:
    """Return increments (axes, pairs), weights (axes, pairs) and factors (pairs,) on the device.

    Cached, so that a GPU waits for them once.
    """
    torch = sys.modules["torch"]
    weights = np.frombuffer(freqs).reshape(shape).T.copy()
    increments = np.stack([fixed_point.increments(row) for row in weights])
    with torch.inference_mode(False):
        return tuple(torch.from_numpy(part).to(device) for part in (increments, weights, np.frombuffer(scale).copy()))


def check_weights(weights: ArrayLike) -> FloatArray:
    """Return weights as float64 (pairs, axes), or raise `ValueError`."""
    array = np.array(weights, dtype=np.float64)
    if array.ndim != 2 or not array.size:
        raise ValueError(f"weights must have shape (pairs, axes), got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError("weights must be finite")
    return array


def check_factors(factor: float | ArrayLike, pairs: int) -> FloatArray:
    """Return a factor for every pair, (pairs,), or raise `ValueError`."""
    array = np.asarray(factor, dtype=np.float64)
    if array.shape not in ((), (pairs,)) or not np.all((array > 0.0) & (array < math.inf)):
        raise ValueError(f"attention_factor must be greater than 0 and finite, a number or one per pair, ({pairs},)")
    return np.array(np.broadcast_to(array, (pairs,)))


def check_places(shape: tuple[int, ...], axes: int, numbers: bool) -> None:
    """Raise `ValueError` unless positions have this shape and are numbers."""
    if not numbers:
        raise ValueError("positions must be numbers")
    if len(shape) < 2 or shape[-1] != axes:
        raise ValueError(f"positions must have shape (..., tokens, {axes}), one number per axis, got {shape}")
