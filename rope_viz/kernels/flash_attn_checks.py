"""Argument checks and slices for the flash-attention drop-in: which heads rotate by which rows of which table.

Interface: https://github.com/Dao-AILab/flash-attention at 0251105, `layers/rotary.py` and `ops/triton/rotary.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from rope_viz.kernels import torch_library
from rope_viz.kernels.torch_ops import Turn

MAX_HEADDIM = 256

# Ranges of heads along dimension 2 that share a table, as `torch_library.rotate_within` takes them, and the table.
Stretch: TypeAlias = tuple[list[int], Tensor, Tensor]


class RefusedError(AssertionError, ValueError):
    """An assertion of the original, also with python -O; a ValueError like every other refusal here."""


@dataclass(frozen=True, eq=False)
class Way:
    """Arguments shared by all functions, with their original names."""

    interleaved: bool
    seqlen_offsets: int | Tensor = 0
    cu_seqlens: Tensor | None = None
    max_seqlen: int | None = None
    conjugate: bool = False


def rotate_whole_in_place(x: Tensor, cos: Tensor, sin: Tensor, way: Way) -> None:
    """Rotate x (batch, seqlen, nheads, headdim), or packed (total, nheads, headdim), in place; not differentiable."""
    batched = [x if way.cu_seqlens is None else x[None]]
    rows, turn, bounded = _angles(x, cos, sin, way)
    torch_library.rotate_into(batched, batched, rows, turn, bounded=bounded)


def rotate_whole(x: Tensor, cos: Tensor, sin: Tensor, way: Way) -> Tensor:
    """Return x rotated as a new tensor; differentiable."""
    rows, turn, bounded = _angles(x, cos, sin, way)
    if way.cu_seqlens is None:
        return torch_library.rotate_copies([x], rows, turn, bounded=bounded)[0]
    return torch_library.rotate_copies([x[None]], rows, turn, bounded=bounded)[0][0]


def rotate_stretches_in_place(whole: Tensor, stretches: list[Stretch], way: Way) -> None:
    """Rotate the stretches of `whole` in place; not differentiable."""
    for bounds, cos, sin in stretches:
        rows, turn, bounded = _angles(torch_library.split_parts(whole, bounds)[0], cos, sin, way)
        torch_library.rotate_within(whole, bounds, rows, turn, bounded=bounded)


def rotate_stretches(whole: Tensor, stretches: list[Stretch], way: Way) -> Tensor:
    """Return a new tensor like `whole` with its stretches, contiguous from 0, rotated; differentiable."""
    turned: list[Tensor] = []
    for bounds, cos, sin in stretches:
        parts = torch_library.split_parts(whole, bounds)
        rows, turn, bounded = _angles(parts[0], cos, sin, way)
        turned += torch_library.rotate_copies(parts, rows, turn, bounded=bounded)
    if whole.dim() == 5:
        turned = [part.unsqueeze(2) for part in turned]
    return torch.cat((*turned, whole[:, :, stretches[-1][0][-1] :]), dim=2)


def rotate_gradient(gradient: Tensor, stretches: list[Stretch], way: Way) -> Tensor:
    """Return `rotate_stretches`, in place on a copy if no gradient follows: a third less memory traffic."""
    if torch.is_grad_enabled() or torch_library.is_transformed(gradient):
        return rotate_stretches(gradient, stretches, way)
    result = gradient.clone()
    rotate_stretches_in_place(result, stretches, way)
    return result


def qk_stretches(
    qkv: Tensor, cos: Tensor, sin: Tensor, cos_k: Tensor | None, sin_k: Tensor | None, num_heads_q: int | None
) -> list[Stretch]:
    """Return the stretches of q and k in qkv (batch, seqlen, 3, nheads, headdim) or (batch, seqlen, heads, headdim)."""
    if qkv.dim() == 5:
        require(qkv.shape[2] == 3, "qkv must have shape (batch, seqlen, 3, nheads, headdim)")
        if num_heads_q is not None and num_heads_q != qkv.shape[3]:
            raise RefusedError(f"num_heads_q is {num_heads_q}, but qkv has {qkv.shape[3]} heads of q: leave it out")
        q, k = [0, 1], [1, 2]
    else:
        require(qkv.dim() == 4, "qkv must have 5 dimensions, or 4 with num_heads_q")
        if num_heads_q is None:
            raise RefusedError("num_heads_q must be given where qkv has 4 dimensions")
        num_heads_k = (qkv.shape[2] - num_heads_q) // 2
        if num_heads_q < 1 or num_heads_k < 1 or qkv.shape[2] != num_heads_q + 2 * num_heads_k:
            raise RefusedError(
                "qkv must hold num_heads_q heads of q and equally many of k and v, "
                f"but has {qkv.shape[2]} heads where num_heads_q is {num_heads_q}"
            )
        q, k = [0, num_heads_q], [num_heads_q, num_heads_q + num_heads_k]
    if cos_k is None and sin_k is None:
        return [([*q, *k], cos, sin)]
    return [(q, cos, sin), (k, cos if cos_k is None else cos_k, sin if sin_k is None else sin_k)]


def k_stretch(kv: Tensor, cos: Tensor, sin: Tensor) -> list[Stretch]:
    """Return the one stretch of k in kv (batch, seqlen, 2, nheads, headdim)."""
    require(kv.dim() == 5 and kv.shape[2] == 2, "kv must have shape (batch, seqlen, 2, nheads, headdim)")
    return [([0, 1], cos, sin)]


def require(condition: bool, message: str) -> None:
    """Raise `RefusedError` with the message unless the condition holds."""
    if not condition:
        raise RefusedError(message)


def _angles(x: Tensor, cos: Tensor, sin: Tensor, way: Way) -> tuple[Tensor, Turn, bool]:
    """Return (the row of cos and sin for every token, the turn by them, whether the rows are known to exist)."""
    seqlen_ro, pairs = cos.shape
    require(sin.shape == cos.shape, "cos and sin must have the same shape")
    require(2 * pairs <= x.shape[-1], "rotary_dim must be <= headdim")
    require(x.shape[-1] <= MAX_HEADDIM, f"Only support headdim <= {MAX_HEADDIM}")
    dimensions = 4 if way.cu_seqlens is None else 3
    require(x.dim() == dimensions, f"x must have {dimensions} dimensions")
    batch, seqlen = x.shape[:2]
    offsets = way.seqlen_offsets
    if way.cu_seqlens is not None:
        if way.max_seqlen is None:
            raise RefusedError("If cu_seqlens is passed in, then max_seqlen must be passed")
        batch, seqlen = way.cu_seqlens.shape[0] - 1, way.max_seqlen
    require(seqlen_ro >= seqlen, "seqlen_ro must be >= seqlen")
    if isinstance(offsets, Tensor):
        require(offsets.shape == (batch,), "seqlen_offsets must have shape (batch,)")
        require(offsets.dtype in (torch.int32, torch.int64), "seqlen_offsets must be int32 or int64")
    else:
        require(offsets + seqlen <= seqlen_ro, "seqlen_offsets + seqlen must be <= seqlen_ro")
        if offsets < 0:
            raise ValueError(f"seqlen_offsets must not be negative, got {offsets}")
    if way.cu_seqlens is not None:
        starts = offsets if isinstance(offsets, Tensor) else None
        rows = torch_library.packed_positions(way.cu_seqlens, x.shape[0], starts, longest=way.max_seqlen)
        rows = (rows if isinstance(offsets, Tensor) else rows + offsets)[None]
    else:
        rows = torch.arange(seqlen, device=x.device)[None]
        rows = rows + (offsets.long()[:, None] if isinstance(offsets, Tensor) else offsets)
    turn = Turn(None, cos.detach(), sin.detach(), way.interleaved, way.conjugate, 1.0)
    return rows, turn, not isinstance(offsets, Tensor)
