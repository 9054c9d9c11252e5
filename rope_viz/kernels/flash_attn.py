"""flash-attention's rotary functions, by the same names and arguments, on the kernels here, CPU included.

Interface: https://github.com/Dao-AILab/flash-attention at 0251105, `layers/rotary.py` and `ops/triton/rotary.py`

What differs, on purpose: a position past the end of cos and sin is a `ValueError` and not left unrotated; so is a
packed batch whose bounds do not cover all tokens, which would come back uninitialised. A gradient is never overwritten.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rope_viz.kernels import library
from rope_viz.kernels.torch_ops import Turn

__all__ = [
    "ApplyRotaryEmb",
    "ApplyRotaryEmbKV_",
    "ApplyRotaryEmbQKV_",
    "RotaryEmbedding",
    "apply_rotary",
    "apply_rotary_emb",
    "apply_rotary_emb_func",
    "apply_rotary_emb_kv_",
    "apply_rotary_emb_qkv_",
    "apply_rotary_emb_torch",
]

MAX_HEADDIM = 256


def apply_rotary_emb(
    x: Tensor,
    cos: Tensor,
    sin: Tensor,
    interleaved: bool = False,
    inplace: bool = False,
    seqlen_offsets: int | Tensor = 0,
    cu_seqlens: Tensor | None = None,
    max_seqlen: int | None = None,
) -> Tensor:
    """x with the first 2 * rotary_pairs dimensions rotated; differentiable in x.

    x: (batch, seqlen, nheads, headdim), or (total, nheads, headdim) with cu_seqlens (batch + 1,) and max_seqlen.
    cos, sin: (seqlen_ro, rotary_dim / 2), any float dtype. seqlen_offsets: an integer or (batch,).
    """
    return ApplyRotaryEmb.apply(  # type: ignore[no-any-return, no-untyped-call]
        x, cos, sin, interleaved, inplace, seqlen_offsets, cu_seqlens, max_seqlen
    )


apply_rotary_emb_func = apply_rotary_emb


def apply_rotary_emb_qkv_(
    qkv: Tensor,
    cos: Tensor,
    sin: Tensor,
    cos_k: Tensor | None = None,
    sin_k: Tensor | None = None,
    interleaved: bool = False,
    seqlen_offsets: int | Tensor = 0,
    num_heads_q: int | None = None,
) -> Tensor:
    """Rotate q and k inside qkv, in place; differentiable in qkv.

    qkv: (batch, seqlen, 3, nheads, headdim), or (batch, seqlen, num_heads_q + 2 * num_heads_k, headdim) with
    num_heads_q given. cos_k, sin_k: other tables for k.
    """
    return ApplyRotaryEmbQKV_.apply(  # type: ignore[no-any-return, no-untyped-call]
        qkv, cos, sin, cos_k, sin_k, interleaved, seqlen_offsets, num_heads_q
    )


def apply_rotary_emb_kv_(
    kv: Tensor, cos: Tensor, sin: Tensor, interleaved: bool = False, seqlen_offsets: int | Tensor = 0
) -> Tensor:
    """Rotate k inside kv (batch, seqlen, 2, nheads, headdim), in place; differentiable in kv."""
    return ApplyRotaryEmbKV_.apply(kv, cos, sin, interleaved, seqlen_offsets)  # type: ignore[no-any-return, no-untyped-call]


def apply_rotary(
    x: Tensor,
    cos: Tensor,
    sin: Tensor,
    seqlen_offsets: int | Tensor = 0,
    cu_seqlens: Tensor | None = None,
    max_seqlen: int | None = None,
    interleaved: bool = False,
    inplace: bool = False,
    conjugate: bool = False,
) -> Tensor:
    """`apply_rotary_emb` without a gradient; `conjugate` turns the other way."""
    rows, positions, bounded = _positions(x, cos, sin, seqlen_offsets, cu_seqlens, max_seqlen)
    out = x if inplace else torch.empty_like(x)
    with torch.no_grad():
        turn = Turn(None, cos.detach(), sin.detach(), interleaved, conjugate, 1.0)
        library.rotate_into([rows(out)], [rows(x)], positions, turn, bounded=bounded)
    return out


def apply_rotary_emb_torch(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool = False) -> Tensor:
    """The same in plain torch operations and in the inputs' own precision, to compare against.

    x: (batch, seqlen, nheads, headdim); cos, sin: (seqlen, rotary_dim / 2) or (batch, seqlen, rotary_dim / 2).
    """
    width = 2 * cos.shape[-1]
    _insist(width <= x.shape[-1], "rotary_dim must be <= headdim")
    cos, sin = cos.unsqueeze(-2), sin.unsqueeze(-2)
    body = x[..., :width]
    first, second = (body[..., 0::2], body[..., 1::2]) if interleaved else body.chunk(2, dim=-1)
    parts = first * cos - second * sin, first * sin + second * cos
    turned = torch.stack(parts, dim=-1).flatten(-2) if interleaved else torch.cat(parts, dim=-1)
    return torch.cat((turned, x[..., width:]), dim=-1)


class RotaryEmbedding(torch.nn.Module):
    """The module that keeps cos and sin, in float32 whatever the input's dtype, and rotates qkv, or q and kv.

    scale_base: decay of xPos (Sun et al., https://arxiv.org/abs/2212.10554), which multiplies q and divides k.
    """

    inv_freq: Tensor
    scale: Tensor | None

    def __init__(
        self,
        dim: int,
        base: float = 10000.0,
        interleaved: bool = False,
        scale_base: float | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        self.dim, self.base, self.interleaved, self.scale_base = dim, float(base), interleaved, scale_base
        pair = torch.arange(0, dim, 2, device=device, dtype=torch.float32)
        self.register_buffer("inv_freq", 1.0 / self.base ** (pair / dim), persistent=False)
        scale = None if scale_base is None else (pair + 0.4 * dim) / (1.4 * dim)
        self.register_buffer("scale", scale, persistent=False)
        self._tables: tuple[Tensor, ...] = ()

    def forward(
        self,
        qkv: Tensor,
        kv: Tensor | None = None,
        seqlen_offset: int | Tensor = 0,
        max_seqlen: int | None = None,
        num_heads_q: int | None = None,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """qkv rotated in place, or (q, kv) where kv is given and the first argument is q.

        max_seqlen: rows the tables must have; needed where seqlen_offset is a tensor.
        """
        if max_seqlen is None and isinstance(seqlen_offset, int):
            max_seqlen = qkv.shape[1] + seqlen_offset
        if max_seqlen is not None:
            self._make_tables(max_seqlen, qkv.device)
        if not self._tables:
            raise ValueError("max_seqlen must be given where seqlen_offset is a tensor")
        cos, sin, cos_k, sin_k = self._tables
        if kv is None:
            k_table = (None, None) if cos_k is cos else (cos_k, sin_k)
            return apply_rotary_emb_qkv_(
                qkv, cos, sin, k_table[0], k_table[1], self.interleaved, seqlen_offset, num_heads_q
            )
        q = apply_rotary_emb(qkv, cos, sin, self.interleaved, True, seqlen_offset)
        return q, apply_rotary_emb_kv_(kv, cos_k, sin_k, self.interleaved, seqlen_offset)

    def _make_tables(self, seqlen: int, device: torch.device) -> None:
        if self._tables and len(self._tables[0]) >= seqlen and self._tables[0].device == device:
            return
        positions = torch.arange(seqlen, device=device, dtype=torch.float32)
        angle = torch.outer(positions, self.inv_freq.to(device, torch.float32))
        cos, sin = angle.cos(), angle.sin()
        if self.scale is None or self.scale_base is None:
            self._tables = cos, sin, cos, sin
            return
        power = (positions - seqlen // 2) / self.scale_base
        scale = self.scale.to(device, torch.float32) ** power[:, None]
        self._tables = cos * scale, sin * scale, cos / scale, sin / scale


class ApplyRotaryEmb(torch.autograd.Function):
    """The rotation of one tensor with its gradient: the conjugate, never in place."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        cos: Tensor,
        sin: Tensor,
        interleaved: bool = False,
        inplace: bool = False,
        seqlen_offsets: int | Tensor = 0,
        cu_seqlens: Tensor | None = None,
        max_seqlen: int | None = None,
    ) -> Tensor:
        out = apply_rotary(x, cos, sin, seqlen_offsets, cu_seqlens, max_seqlen, interleaved, inplace)
        _save(ctx, cos, sin, cu_seqlens, seqlen_offsets)
        ctx.flags = max_seqlen, interleaved
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        cos, sin, cu_seqlens, seqlen_offsets = _saved(ctx)
        max_seqlen, interleaved = ctx.flags
        dx = apply_rotary(grads[0], cos, sin, seqlen_offsets, cu_seqlens, max_seqlen, interleaved, conjugate=True)
        return dx, *[None] * 7


class ApplyRotaryEmbQKV_(torch.autograd.Function):  # noqa: N801 (its published name)
    """The rotation of q and k inside qkv with its gradient."""

    @staticmethod
    def forward(
        ctx: Any,
        qkv: Tensor,
        cos: Tensor,
        sin: Tensor,
        cos_k: Tensor | None = None,
        sin_k: Tensor | None = None,
        interleaved: bool = False,
        seqlen_offsets: int | Tensor = 0,
        num_heads_q: int | None = None,
    ) -> Tensor:
        _rotate_qkv(qkv, cos, sin, cos_k, sin_k, seqlen_offsets, interleaved, num_heads_q, conjugate=False)
        _save(ctx, cos, sin, cos_k, sin_k, seqlen_offsets)
        ctx.flags = interleaved, num_heads_q
        return qkv

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        cos, sin, cos_k, sin_k, seqlen_offsets = _saved(ctx)
        interleaved, num_heads_q = ctx.flags
        dqkv = grads[0].clone()
        _rotate_qkv(dqkv, cos, sin, cos_k, sin_k, seqlen_offsets, interleaved, num_heads_q, conjugate=True)
        return dqkv, *[None] * 7


class ApplyRotaryEmbKV_(torch.autograd.Function):  # noqa: N801 (its published name)
    """The rotation of k inside kv with its gradient."""

    @staticmethod
    def forward(
        ctx: Any, kv: Tensor, cos: Tensor, sin: Tensor, interleaved: bool = False, seqlen_offsets: int | Tensor = 0
    ) -> Tensor:
        _insist(kv.dim() == 5 and kv.shape[2] == 2, "kv must have shape (batch, seqlen, 2, nheads, headdim)")
        apply_rotary(kv[:, :, 0], cos, sin, seqlen_offsets, interleaved=interleaved, inplace=True)
        _save(ctx, cos, sin, seqlen_offsets)
        ctx.interleaved = interleaved
        return kv

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        cos, sin, seqlen_offsets = _saved(ctx)
        dkv = grads[0].clone()
        apply_rotary(dkv[:, :, 0], cos, sin, seqlen_offsets, interleaved=ctx.interleaved, inplace=True, conjugate=True)
        return dkv, *[None] * 4


def __getattr__(name: str) -> Any:
    # The kernel itself, by its published name, without importing triton for everybody.
    if name == "rotary_kernel":
        from rope_viz.kernels.triton_ops import rotate_kernel

        return rotate_kernel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _rotate_qkv(
    qkv: Tensor,
    cos: Tensor,
    sin: Tensor,
    cos_k: Tensor | None,
    sin_k: Tensor | None,
    seqlen_offsets: int | Tensor,
    interleaved: bool,
    num_heads_q: int | None,
    *,
    conjugate: bool,
) -> None:
    if qkv.dim() == 5:
        _insist(qkv.shape[2] == 3, "qkv must have shape (batch, seqlen, 3, nheads, headdim)")
        q, k = qkv[:, :, 0], qkv[:, :, 1]
    else:
        _insist(qkv.dim() == 4, "qkv must have 5 dimensions, or 4 with num_heads_q")
        if num_heads_q is None:
            raise AssertionError("num_heads_q must be given where qkv has 4 dimensions")
        num_heads_k = (qkv.shape[2] - num_heads_q) // 2
        _insist(qkv.shape[2] == num_heads_q + 2 * num_heads_k, "qkv must hold num_heads_q + 2 * num_heads_k heads")
        q, k = qkv[:, :, :num_heads_q], qkv[:, :, num_heads_q : num_heads_q + num_heads_k]
    if cos_k is None and sin_k is None:
        _, positions, bounded = _positions(q, cos, sin, seqlen_offsets, None, None)
        turn = Turn(None, cos.detach(), sin.detach(), interleaved, conjugate, 1.0)
        with torch.no_grad():
            library.rotate_into([q, k], [q, k], positions, turn, bounded=bounded)
        return
    options = {"seqlen_offsets": seqlen_offsets, "interleaved": interleaved, "conjugate": conjugate}
    apply_rotary(q, cos, sin, inplace=True, **options)  # type: ignore[arg-type]
    k_table = cos if cos_k is None else cos_k, sin if sin_k is None else sin_k
    apply_rotary(k, *k_table, inplace=True, **options)  # type: ignore[arg-type]


def _positions(
    x: Tensor, cos: Tensor, sin: Tensor, seqlen_offsets: int | Tensor, cu_seqlens: Tensor | None, max_seqlen: int | None
) -> tuple[Any, Tensor, bool]:
    """(how to see x as (batch, tokens, heads, headdim), the row of every token, whether the rows surely exist)."""
    seqlen_ro, pairs = cos.shape
    _insist(sin.shape == cos.shape, "cos and sin must have the same shape")
    _insist(2 * pairs <= x.shape[-1], "rotary_dim must be <= headdim")
    _insist(x.shape[-1] <= MAX_HEADDIM, f"Only support headdim <= {MAX_HEADDIM}")
    dimensions = 4 if cu_seqlens is None else 3
    _insist(x.dim() == dimensions, f"x must have {dimensions} dimensions")
    batch, seqlen = x.shape[:2]
    if cu_seqlens is not None:
        if max_seqlen is None:
            raise AssertionError("If cu_seqlens is passed in, then max_seqlen must be passed")
        batch, seqlen = cu_seqlens.shape[0] - 1, max_seqlen
    _insist(seqlen_ro >= seqlen, "seqlen_ro must be >= seqlen")
    if isinstance(seqlen_offsets, Tensor):
        _insist(seqlen_offsets.shape == (batch,), "seqlen_offsets must have shape (batch,)")
        _insist(seqlen_offsets.dtype in (torch.int32, torch.int64), "seqlen_offsets must be int32 or int64")
    else:
        _insist(seqlen_offsets + seqlen <= seqlen_ro, "seqlen_offsets + seqlen must be <= seqlen_ro")
        if seqlen_offsets < 0:
            raise ValueError(f"seqlen_offsets must not be negative, got {seqlen_offsets}")
    bounded = not isinstance(seqlen_offsets, Tensor)
    if cu_seqlens is not None:
        starts = seqlen_offsets if isinstance(seqlen_offsets, Tensor) else None
        rows = library.packed_positions(cu_seqlens, x.shape[0], starts, longest=max_seqlen)
        if not isinstance(seqlen_offsets, Tensor):
            rows = rows + seqlen_offsets
        return _as_batch, rows[None], bounded
    rows = torch.arange(seqlen, device=x.device)[None]
    rows = rows + (seqlen_offsets.long()[:, None] if isinstance(seqlen_offsets, Tensor) else seqlen_offsets)
    return _as_is, rows, bounded


def _as_batch(x: Tensor) -> Tensor:
    return x[None]


def _as_is(x: Tensor) -> Tensor:
    return x


def _save(ctx: Any, *values: Tensor | int | None) -> None:
    """Keep tensors and integers alike; autograd itself keeps tensors only."""
    ctx.save_for_backward(*[value if isinstance(value, Tensor) else None for value in values])
    ctx.numbers = [None if isinstance(value, Tensor) else value for value in values]


def _saved(ctx: Any) -> list[Any]:
    return [number if tensor is None else tensor for tensor, number in zip(ctx.saved_tensors, ctx.numbers, strict=True)]


def _insist(condition: bool, message: str) -> None:
    # What the original asserts stays an AssertionError, with python -O too.
    if not condition:
        raise AssertionError(message)
