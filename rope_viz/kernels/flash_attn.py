"""Drop-in for flash-attention's rotary functions, with the same names and arguments; also for CPU tensors.

Interface: https://github.com/Dao-AILab/flash-attention at 0251105, `layers/rotary.py` and `ops/triton/rotary.py`

Intended differences: a position past the end of cos and sin raises `ValueError` instead of staying unrotated; so does a
packed batch whose bounds do not cover all tokens, which the original returns uninitialised. On a GPU a later call
raises both, because no check waits. A gradient is never overwritten, and can be differentiated again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor

from rope_viz.kernels import operators, torch_library
from rope_viz.kernels.buffers import Float32Buffers
from rope_viz.kernels.torch_ops import Turn

MAX_HEADDIM = 256

# Ranges of heads along dimension 2 that share a table, as `torch_library.rotate_within` takes them, and the table.
Stretch: TypeAlias = tuple[list[int], Tensor, Tensor]


class RefusedError(AssertionError, ValueError):
    """An assertion of the original, also with python -O; a ValueError like every other refusal here."""


@dataclass(frozen=True, eq=False)
class SharedArguments:
    """Arguments shared by all functions, with their original names."""

    interleaved: bool
    seqlen_offsets: int | Tensor = 0
    cu_seqlens: Tensor | None = None
    max_seqlen: int | None = None
    conjugate: bool = False


def rotate_whole_in_place(x: Tensor, cos: Tensor, sin: Tensor, way: SharedArguments) -> None:
    """Rotate x (batch, seqlen, nheads, headdim), or packed (total, nheads, headdim), in place; not differentiable."""
    batched = [x if way.cu_seqlens is None else x[None]]
    rows, turn, bounded = _angles(x, cos, sin, way)
    torch_library.rotate_into(batched, batched, rows, turn, bounded=bounded)


def rotate_whole(x: Tensor, cos: Tensor, sin: Tensor, way: SharedArguments) -> Tensor:
    """Return x rotated as a new tensor; differentiable."""
    rows, turn, bounded = _angles(x, cos, sin, way)
    if way.cu_seqlens is None:
        return torch_library.rotate_copies([x], rows, turn, bounded=bounded)[0]
    return torch_library.rotate_copies([x[None]], rows, turn, bounded=bounded)[0][0]


def rotate_stretches_in_place(whole: Tensor, stretches: list[Stretch], way: SharedArguments) -> None:
    """Rotate the stretches of `whole` in place; not differentiable."""
    for bounds, cos, sin in stretches:
        rows, turn, bounded = _angles(operators.split_parts(whole, bounds)[0], cos, sin, way)
        torch_library.rotate_within(whole, bounds, rows, turn, bounded=bounded)


def rotate_stretches(whole: Tensor, stretches: list[Stretch], way: SharedArguments) -> Tensor:
    """Return a new tensor like `whole` with its stretches, contiguous from 0, rotated; differentiable."""
    turned: list[Tensor] = []
    for bounds, cos, sin in stretches:
        parts = operators.split_parts(whole, bounds)
        rows, turn, bounded = _angles(parts[0], cos, sin, way)
        turned += torch_library.rotate_copies(parts, rows, turn, bounded=bounded)
    if whole.dim() == 5:
        turned = [part.unsqueeze(2) for part in turned]
    return torch.cat((*turned, whole[:, :, stretches[-1][0][-1] :]), dim=2)


def rotate_gradient(gradient: Tensor, stretches: list[Stretch], way: SharedArguments) -> Tensor:
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


def _angles(x: Tensor, cos: Tensor, sin: Tensor, way: SharedArguments) -> tuple[Tensor, Turn, bool]:
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
    return rows, turn, way.cu_seqlens is None and not isinstance(offsets, Tensor)


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
    """Return x with the first 2 * rotary_pairs dimensions rotated; differentiable in x.

    x: (batch, seqlen, nheads, headdim), or (total, nheads, headdim) with cu_seqlens (batch + 1,) and max_seqlen.
    cos, sin: (seqlen_ro, rotary_dim / 2), any float dtype. seqlen_offsets: an integer or (batch,).
    """
    if inplace and not torch_library.is_transformed(x):
        return ApplyRotaryEmb.apply(  # type: ignore[no-any-return, no-untyped-call]
            x, cos, sin, interleaved, inplace, seqlen_offsets, cu_seqlens, max_seqlen
        )
    y = rotate_whole(x, cos, sin, SharedArguments(interleaved, seqlen_offsets, cu_seqlens, max_seqlen))
    return x.copy_(y) if inplace else y


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
    if torch_library.is_transformed(qkv):
        stretches = qk_stretches(qkv, cos, sin, cos_k, sin_k, num_heads_q)
        return qkv.copy_(rotate_stretches(qkv, stretches, SharedArguments(interleaved, seqlen_offsets)))
    return ApplyRotaryEmbQKV_.apply(  # type: ignore[no-any-return, no-untyped-call]
        qkv, cos, sin, cos_k, sin_k, interleaved, seqlen_offsets, num_heads_q
    )


def apply_rotary_emb_kv_(
    kv: Tensor, cos: Tensor, sin: Tensor, interleaved: bool = False, seqlen_offsets: int | Tensor = 0
) -> Tensor:
    """Rotate k inside kv (batch, seqlen, 2, nheads, headdim), in place; differentiable in kv."""
    if torch_library.is_transformed(kv):
        return kv.copy_(rotate_stretches(kv, k_stretch(kv, cos, sin), SharedArguments(interleaved, seqlen_offsets)))
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
    """Run `apply_rotary_emb` without a gradient; `conjugate` rotates backwards."""
    way = SharedArguments(interleaved, seqlen_offsets, cu_seqlens, max_seqlen, conjugate)
    with torch.no_grad():
        if not inplace:
            return rotate_whole(x, cos, sin, way)
        rotate_whole_in_place(x, cos, sin, way)
    return x


def apply_rotary_emb_torch(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool = False) -> Tensor:
    """Compute the same in plain torch operations and in the inputs' own precision, for comparison.

    x: (batch, seqlen, nheads, headdim); cos, sin: (seqlen, rotary_dim / 2) or (batch, seqlen, rotary_dim / 2).
    """
    width = 2 * cos.shape[-1]
    require(width <= x.shape[-1], "rotary_dim must be <= headdim")
    cos, sin = cos.unsqueeze(-2), sin.unsqueeze(-2)
    body = x[..., :width]
    first, second = (body[..., 0::2], body[..., 1::2]) if interleaved else body.chunk(2, dim=-1)
    both = first * cos - second * sin, first * sin + second * cos
    turned = torch.stack(both, dim=-1).flatten(-2) if interleaved else torch.cat(both, dim=-1)
    return torch.cat((turned, x[..., width:]), dim=-1)


class RotaryEmbedding(Float32Buffers):
    """A module that caches cos and sin, in float32 whatever the input's dtype, and rotates qkv, or q and kv.

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
        for name, buffer in {"scale": None, **self.make_buffers(device)}.items():
            self.register_buffer(name, buffer, persistent=False)
        # cos and sin for q, cos and sin for k, by whether gradients were enabled when they were computed.
        self._tables: dict[bool, tuple[Tensor, ...]] = {}

    def forward(
        self,
        qkv: Tensor,
        kv: Tensor | None = None,
        seqlen_offset: int | Tensor = 0,
        max_seqlen: int | None = None,
        num_heads_q: int | None = None,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Return qkv rotated in place, or (q, kv) if kv is given and the first argument is q.

        max_seqlen: rows the tables must have; required if seqlen_offset is a tensor.
        """
        if max_seqlen is None and isinstance(seqlen_offset, int):
            max_seqlen = qkv.shape[1] + seqlen_offset
        if max_seqlen is None:
            if not self._tables:
                raise ValueError("max_seqlen must be given where seqlen_offset is a tensor")
            max_seqlen = max(len(tables[0]) for tables in self._tables.values())
        cos, sin, cos_k, sin_k = self._tables_of(max_seqlen, qkv.device)
        if kv is None:
            k_table = (None, None) if cos_k is cos else (cos_k, sin_k)
            return apply_rotary_emb_qkv_(
                qkv, cos, sin, k_table[0], k_table[1], self.interleaved, seqlen_offset, num_heads_q
            )
        q = apply_rotary_emb(qkv, cos, sin, self.interleaved, True, seqlen_offset)
        return q, apply_rotary_emb_kv_(kv, cos_k, sin_k, self.interleaved, seqlen_offset)

    def _tables_of(self, seqlen: int, device: torch.device) -> tuple[Tensor, ...]:
        # Tables made in inference mode serve only there, because autograd refuses to save them. A compiler only sees
        # whether gradients are enabled, which is never the case in inference mode.
        with_grad = torch.is_grad_enabled()
        for key in (True,) if with_grad else (True, False):
            tables = self._tables.get(key, ())
            if tables and len(tables[0]) >= seqlen and tables[0].device == device:
                return tables
        positions = torch.arange(seqlen, device=device, dtype=torch.float32)
        angle = torch.outer(positions, self.read_float32("inv_freq").to(device))
        cos, sin = angle.cos(), angle.sin()
        self._tables[with_grad] = cos, sin, cos, sin
        if self.scale_base is not None:
            power = (positions - seqlen // 2) / self.scale_base
            scale = self.read_float32("scale").to(device) ** power[:, None]
            self._tables[with_grad] = cos * scale, sin * scale, cos / scale, sin / scale
        return self._tables[with_grad]

    def make_buffers(self, device: torch.device | str | None) -> dict[str, Tensor]:
        """Return the initial buffers: inv_freq and, for xPos, its scale, (dim / 2,) each."""
        pair = torch.arange(0, self.dim, 2, device=device, dtype=torch.float32)
        buffers = {"inv_freq": 1.0 / self.base ** (pair / self.dim)}
        return buffers if self.scale_base is None else buffers | {"scale": (pair + 0.4 * self.dim) / (1.4 * self.dim)}


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
        cos, sin, cu_seqlens, seqlen_offsets = _load_saved(ctx)
        max_seqlen, interleaved = ctx.flags
        way = SharedArguments(interleaved, seqlen_offsets, cu_seqlens, max_seqlen, conjugate=True)
        return rotate_whole(grads[0], cos, sin, way), *[None] * 7


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
        stretches = qk_stretches(qkv, cos, sin, cos_k, sin_k, num_heads_q)
        rotate_stretches_in_place(qkv, stretches, SharedArguments(interleaved, seqlen_offsets))
        _save(ctx, cos, sin, cos_k, sin_k, seqlen_offsets)
        ctx.flags = interleaved, num_heads_q
        return qkv

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        cos, sin, cos_k, sin_k, seqlen_offsets = _load_saved(ctx)
        interleaved, num_heads_q = ctx.flags
        stretches = qk_stretches(grads[0], cos, sin, cos_k, sin_k, num_heads_q)
        way = SharedArguments(interleaved, seqlen_offsets, conjugate=True)
        return rotate_gradient(grads[0], stretches, way), *[None] * 7


class ApplyRotaryEmbKV_(torch.autograd.Function):  # noqa: N801 (its published name)
    """The rotation of k inside kv with its gradient."""

    @staticmethod
    def forward(
        ctx: Any, kv: Tensor, cos: Tensor, sin: Tensor, interleaved: bool = False, seqlen_offsets: int | Tensor = 0
    ) -> Tensor:
        rotate_stretches_in_place(kv, k_stretch(kv, cos, sin), SharedArguments(interleaved, seqlen_offsets))
        _save(ctx, cos, sin, seqlen_offsets)
        ctx.interleaved = interleaved
        return kv

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        cos, sin, seqlen_offsets = _load_saved(ctx)
        way = SharedArguments(ctx.interleaved, seqlen_offsets, conjugate=True)
        return rotate_gradient(grads[0], k_stretch(grads[0], cos, sin), way), *[None] * 4


def __getattr__(name: str) -> Any:
    # The kernel itself, by its published name; imported lazily because it needs triton.
    if name == "rotary_kernel":
        from rope_viz.kernels.triton_ops import rotate_kernel

        return rotate_kernel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _save(ctx: Any, *values: Tensor | int | None) -> None:
    """Save tensors and integers alike; autograd itself saves only tensors."""
    ctx.save_for_backward(
        *[torch_library.make_savable(value) if isinstance(value, Tensor) else None for value in values]
    )
    ctx.numbers = [None if isinstance(value, Tensor) else value for value in values]


def _load_saved(ctx: Any) -> list[Any]:
    return [number if tensor is None else tensor for tensor, number in zip(ctx.saved_tensors, ctx.numbers, strict=True)]
