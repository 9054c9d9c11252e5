"""Rotation of q and k, exact at any position, for NumPy arrays and torch tensors on the CPU and on a GPU.

>>> q = rotate(q, positions, spec.inv_freq(), pairing="half")

With an attention factor a the gradient differs from the inverse. With R the rotation,

    rotate(x)                x -> a R x
    gradient of rotate       g -> a R^T g        (the transpose)
    rotate(x, inverse=True)  x -> R^T x / a      (undoes rotate)
    its gradient             g -> R g / a

torch and triton are imported only for tensors.
"""

from __future__ import annotations

import sys
from typing import Any, TypeVar

from numpy.typing import ArrayLike

from rope_viz.embedding.spec import Pairing
from rope_viz.kernels import axes, reference
from rope_viz.kernels.positions import (
    balanced_order,
    context_parallel_positions,
    offset_positions,
    packed_positions,
)
from rope_viz.kernels.tables import error_by_position, exact_table, float32_table

__all__ = [
    "balanced_order",
    "context_parallel_positions",
    "error_by_position",
    "exact_table",
    "float32_table",
    "offset_positions",
    "packed_positions",
    "rotate",
    "rotate_qk",
]

Array = TypeVar("Array")


def rotate(
    x: Array,
    positions: Any,
    inv_freq: Any = None,
    *,
    pairing: Pairing,
    attention_factor: Any = 1.0,
    inverse: bool = False,
    out: Array | None = None,
    table: tuple[Any, Any] | None = None,
    weights: Any = None,
) -> Array:
    """Return x with the first 2 * pairs dimensions of every head rotated and the others copied, in x's dtype.

    x: (..., tokens, heads, head_dim), NumPy array (computed in float64: the reference) or torch tensor (float64 for
    float64, float32 arithmetic for the others; differentiable in x).
    positions: integers (tokens,), or (..., tokens) with one row per sequence; any int64, also negative.
    inv_freq: radians per position, (pairs,), taken as float64; angles are exact.
    table: (cos, sin) of shape (rows, pairs) instead of inv_freq, indexed by `positions`; None counts from 0.
    attention_factor: multiplies cos and sin. inverse: undo rotation and factor (divide by it). A factor already
    contained in a table is unknown here; leave it out of the table for the inverse.
    out: tensor to write to, which may be x itself; not differentiable.
    weights: radians per unit on every axis, (pairs, axes), instead of inv_freq, for positions with several axes (...,
    tokens, axes), as in images and videos (`embedding.axes_spec`): exact at whole positions, float64 in between. The
    attention_factor may then be one per pair.

    Raises `ValueError` for shapes or dtypes that do not fit, and for a position outside the table. On a GPU such a
    position takes the nearest row, and a later call raises the error, because no check waits for the GPU.
    """
    if weights is not None:
        table, positions = _several(positions, inv_freq, table, weights, attention_factor, inverse)
        attention_factor = 1.0
    options = {"pairing": pairing, "attention_factor": attention_factor, "inverse": inverse, "table": table}
    if _is_tensor(x):
        from rope_viz.kernels import dispatch

        outs = None if out is None else [out]
        return dispatch.rotate([x], positions, inv_freq, outs=outs, **options)[0]  # type: ignore[arg-type, return-value, list-item]
    return reference.rotate(x, positions, inv_freq, out=out, **options)  # type: ignore[arg-type, return-value]


def rotate_qk(
    q: Array,
    k: Array,
    positions: Any,
    inv_freq: Any = None,
    *,
    pairing: Pairing,
    attention_factor: Any = 1.0,
    inverse: bool = False,
    out: tuple[Array, Array] | None = None,
    table: tuple[Any, Any] | None = None,
    weights: Any = None,
) -> tuple[Array, Array]:
    """Rotate q and k, which may differ only in their number of heads, as `rotate` does; one launch on a GPU.

    They are one node of the graph: differentiate both in one backward pass.
    """
    if weights is not None:
        table, positions = _several(positions, inv_freq, table, weights, attention_factor, inverse)
        attention_factor = 1.0
    options = {"pairing": pairing, "attention_factor": attention_factor, "inverse": inverse, "table": table}
    if _is_tensor(q):
        from rope_viz.kernels import dispatch

        outs = None if out is None else list(out)
        q, k = dispatch.rotate([q, k], positions, inv_freq, outs=outs, **options)  # type: ignore[arg-type, assignment, list-item]
        return q, k
    both = (q, k) if out is None else out
    rotated = [
        reference.rotate(x, positions, inv_freq, out=None if out is None else target, **options)  # type: ignore[arg-type]
        for x, target in zip((q, k), both, strict=True)
    ]
    return tuple(rotated)  # type: ignore[return-value]


def _several(
    positions: Any, inv_freq: Any, table: Any, weights: Any, attention_factor: Any, inverse: bool
) -> tuple[tuple[Any, Any], Any]:
    """Return the table and the row of each token, for positions with several axes."""
    if inv_freq is not None or table is not None:
        raise ValueError("pass either inv_freq, weights or table=(cos, sin)")
    if positions is None:
        raise ValueError("positions may be left out with a table only")
    return axes.table_of(positions, weights, attention_factor, inverse=inverse)


def _is_tensor(value: ArrayLike | Any) -> bool:
    # A tensor implies that torch was imported; otherwise avoid the import.
    return "torch" in sys.modules and isinstance(value, sys.modules["torch"].Tensor)
