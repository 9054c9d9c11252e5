"""The reference rotation: a pair is a complex number, rotated by one multiplication in float64.

Su et al., RoFormer, https://arxiv.org/abs/2104.09864, equation 34
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rope_viz.embedding.spec import PAIRINGS, FloatArray, Pairing
from rope_viz.kernels import fixed_point


def rotate(
    x: NDArray[Any],
    positions: ArrayLike | None,
    inv_freq: ArrayLike | None = None,
    *,
    pairing: Pairing,
    attention_factor: float = 1.0,
    inverse: bool = False,
    out: NDArray[Any] | None = None,
    table: tuple[ArrayLike, ArrayLike] | None = None,
) -> NDArray[Any]:
    """Implement `rope_viz.kernels.rotate` for NumPy arrays, any float dtype, computed in float64."""
    x = np.asarray(x)
    if not np.issubdtype(x.dtype, np.floating):
        raise ValueError(f"x must be of a float dtype, got {x.dtype}")
    cos, sin = cos_sin(positions, inv_freq, table, x.shape[-3] if x.ndim > 2 else 0)
    pairs = cos.shape[-1]
    require_shapes(x, pairs, pairing, attention_factor)
    if cos.shape[:-1] not in (x.shape[-3:-2], x.shape[:-2]):
        raise ValueError(f"positions must have shape {x.shape[-3:-2]} or {x.shape[:-2]}, got {cos.shape[:-1]}")
    turn = (cos + 1j * sin)[..., None, :] * attention_factor
    if inverse:
        turn = np.conj(turn) / attention_factor**2
    wide = x.astype(np.float64)
    result = wide.copy()
    first, second = pair_slices(pairs, pairing)
    rotated = (wide[..., first] + 1j * wide[..., second]) * turn
    result[..., first], result[..., second] = rotated.real, rotated.imag
    if out is None:
        return result.astype(x.dtype)
    if out.shape != x.shape or out.dtype != x.dtype:
        raise ValueError(f"out must be {x.dtype} of shape {x.shape}, got {out.dtype} of shape {out.shape}")
    out[...] = result
    return out


def matrix(position: int, inv_freq: ArrayLike, head_dim: int, *, pairing: Pairing) -> FloatArray:
    """Return the rotation matrix of one position, float64 (head_dim, head_dim): mostly zeros, hence slow."""
    cos, sin = cos_sin(np.array([position]), inv_freq, None, 1)
    first, second = pair_slices(cos.shape[-1], pairing)
    rows, columns = np.arange(head_dim)[first], np.arange(head_dim)[second]
    result = np.eye(head_dim)
    result[rows, rows] = result[columns, columns] = cos[0]
    result[rows, columns], result[columns, rows] = -sin[0], sin[0]
    return result


def cos_sin(
    positions: ArrayLike | None, inv_freq: ArrayLike | None, table: tuple[ArrayLike, ArrayLike] | None, tokens: int
) -> tuple[FloatArray, FloatArray]:
    """Return cos and sin in float64, (..., pairs), of every position: exact angles, or the rows of the table."""
    if (inv_freq is None) == (table is None):
        raise ValueError("pass either inv_freq or table=(cos, sin)")
    if table is None:
        if positions is None:
            raise ValueError("positions may be left out with a table only")
        angle = fixed_point.wrapped_angles(positions, inv_freq)  # type: ignore[arg-type]
        return np.cos(angle), np.sin(angle)
    cos, sin = (np.asarray(part, dtype=np.float64) for part in table)
    if cos.ndim != 2 or cos.shape != sin.shape:
        raise ValueError(f"cos and sin must both have shape (rows, pairs), got {cos.shape} and {sin.shape}")
    rows = np.arange(tokens) if positions is None else fixed_point.check_positions(positions)
    if rows.size and not (rows.min() >= 0 and rows.max() < len(cos)):
        raise ValueError(f"positions must be rows of the table, from 0 to {len(cos) - 1}")
    return cos[rows], sin[rows]


def pair_slices(pairs: int, pairing: Pairing) -> tuple[slice, slice]:
    """Return the slices of the first and the second member of every pair along the head dimension."""
    if pairing == "interleaved":
        return slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)
    return slice(0, pairs), slice(pairs, 2 * pairs)


def require_shapes(x: Any, pairs: int, pairing: Any, attention_factor: Any) -> None:
    """Raise `ValueError` unless x has a token, a head and a head dimension that holds the pairs."""
    if pairing not in PAIRINGS:
        raise ValueError(f"pairing must be 'half' or 'interleaved', got {pairing!r}")
    if x.ndim < 3:
        raise ValueError(f"x must have shape (..., tokens, heads, head_dim), got {tuple(x.shape)}")
    if 2 * pairs > x.shape[-1]:
        raise ValueError(f"{pairs} pairs need a head_dim of at least {2 * pairs}, got {x.shape[-1]}")
    if not 0 < attention_factor < math.inf:
        raise ValueError(f"attention_factor must be a finite number greater than 0, got {attention_factor}")
