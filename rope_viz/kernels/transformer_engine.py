"""Drop-in for Transformer Engine's rotary functions, with the same names and arguments; also for CPU tensors.

Interface: https://github.com/NVIDIA/TransformerEngine at d0067d0, `transformer_engine/pytorch/attention/rope.py`

`freqs` is a table of angles in radians, (positions, 1, 1, rotary_dim), with each pair's angle twice. Intended
differences: a position past the end of freqs, tokens past the end of cu_seqlens and odd context-parallel shares raise
`ValueError`, on a GPU at a later call; the original reads out of bounds or leaves memory unwritten. New `freqs` make a
GPU wait once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from rope_viz.kernels import tensor_cache, torch_library
from rope_viz.kernels.buffers import Float32Buffers
from rope_viz.kernels.positions import balanced_position
from rope_viz.kernels.torch_ops import Turn

__all__ = [
    "FusedQKVRoPEFunc",
    "FusedRoPEFunc",
    "RotaryPositionEmbedding",
    "apply_fused_qkv_rotary_pos_emb",
    "apply_rotary_pos_emb",
]

FORMATS = ("sbhd", "bshd", "thd")


class RotaryPositionEmbedding(Float32Buffers):
    """The table of angles in float32, as in the original; on the current GPU if there is one."""

    inv_freq: Tensor

    def __init__(
        self,
        dim: int,
        rotary_percent: float = 1.0,
        seq_len_interpolation_factor: int | None = None,
        pretrained_max_position_embeddings: int | None = None,
        rotary_base: float = 10000.0,
        interleaved: bool = False,
    ) -> None:
        super().__init__()
        self.dim = int(dim * rotary_percent) if rotary_percent < 1.0 else dim
        self.seq_len_interpolation_factor = seq_len_interpolation_factor
        self.pretrained_max_position_embeddings = pretrained_max_position_embeddings
        self.rotary_base = rotary_base
        self.interleaved = interleaved
        device = torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else None
        self.register_buffer("inv_freq", self.make_buffers(device)["inv_freq"])

    def forward(self, max_seq_len: int, offset: int = 0) -> Tensor:
        """Return angles (max_seq_len, 1, 1, dim) of the positions from `offset` on, interpolated if so configured."""
        trained, factor = self.pretrained_max_position_embeddings, self.seq_len_interpolation_factor
        positions = torch.arange(max_seq_len, device=self.inv_freq.device, dtype=torch.float32) + offset
        if trained is not None and factor is not None:
            beyond = max_seq_len > trained * factor
            positions = positions * (1 / (max_seq_len / trained) if beyond else 1 / factor)
        angle = torch.outer(positions, self.read_float32("inv_freq"))
        doubled = angle.repeat_interleave(2, dim=-1) if self.interleaved else torch.cat((angle, angle), dim=-1)
        return doubled[:, None, None]

    def make_buffers(self, device: torch.device | str | None) -> dict[str, Tensor]:
        """Return the initial buffers: inv_freq, (dim / 2,)."""
        exponent = torch.arange(0, self.dim, 2, dtype=torch.float32, device=device) / self.dim
        return {"inv_freq": 1.0 / self.rotary_base**exponent}


def apply_rotary_pos_emb(
    t: Tensor,
    freqs: Tensor,
    tensor_format: str = "sbhd",
    start_positions: Tensor | None = None,
    interleaved: bool = False,
    fused: bool = False,
    cu_seqlens: Tensor | None = None,
    cp_size: int = 1,
    cp_rank: int = 0,
) -> Tensor:
    """Return t with its first rotary_dim dimensions rotated, contiguous; differentiable in t.

    t: (s, b, h, d), (b, s, h, d) or (tokens, h, d), by tensor_format; "thd" needs cu_seqlens (sequences + 1,), padded
    under context parallelism. start_positions: (sequences,), added to every position. Rank cp_rank of cp_size holds the
    chunks cp_rank and 2 * cp_size - 1 - cp_rank of every sequence; freqs is the table of full sequences.
    fused=True computes in float32; fused=False in t's dtype, in plain operations, and also takes freqs (s, b, 1, d).
    """
    if fused:
        _check(t, freqs, tensor_format, cu_seqlens, cp_size, fused=True)
        positions = _positions(t, tensor_format, start_positions, cu_seqlens, cp_size, cp_rank)
        bounded = _is_bounded(tensor_format, start_positions)
        return _rotate([t], [freqs], positions, tensor_format, interleaved, bounded)[0]
    _check(t, freqs, tensor_format, cu_seqlens, cp_size, fused=False)
    batch_first = _put_batch_first(t, tensor_format)
    positions = _positions(t, tensor_format, start_positions, cu_seqlens, cp_size, cp_rank)
    if not _is_bounded(tensor_format, start_positions):
        positions = torch_library.checked_rows(positions, len(freqs))
    if freqs.shape[1] == 1:
        angle = freqs[positions][..., 0, :, :]
    else:
        batch = torch.arange(freqs.shape[1], device=freqs.device)[:, None]
        angle = freqs[positions.expand(freqs.shape[1], -1), batch]
    turned = _rotate_plainly(batch_first, angle.cos().to(t.dtype), angle.sin().to(t.dtype), interleaved)
    if tensor_format == "thd":
        return turned[0]
    return turned.transpose(0, 1).contiguous() if tensor_format == "sbhd" else turned


def apply_fused_qkv_rotary_pos_emb(
    qkv: Tensor,
    q_freqs: Tensor,
    k_freqs: Tensor,
    qkv_split_arg_list: Sequence[int],
    tensor_format: str = "sbhd",
    start_positions: Tensor | None = None,
    interleaved: bool = False,
    cu_seqlens: Tensor | None = None,
    cp_size: int = 1,
    cp_rank: int = 0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return (q, k, v) of qkv (s, b, groups, sum of the split) or (b, s, ...), q and k rotated; differentiable in qkv.

    qkv_split_arg_list: how the last dimension divides into q, k and v. With [4d, d, d] every group has four heads of q,
    so q is (s, b, 4 * groups, d), k and v (s, b, groups, d).
    """
    _require(
        not (cp_size > 1 and start_positions is not None), "start_positions != None with CP SIZE > 1 is not supported!"
    )
    _require(
        tensor_format != "thd" or cu_seqlens is not None, "cu_seqlens must not be None when tensor_format is 'thd'."
    )
    positions = _qkv_positions(
        qkv, (q_freqs, k_freqs), qkv_split_arg_list, tensor_format, start_positions, cp_size, cp_rank
    )
    flags = tensor_format, interleaved, _is_bounded(tensor_format, start_positions)
    return _rotate_split(qkv, [q_freqs, k_freqs], qkv_split_arg_list, positions, *flags)


class FusedRoPEFunc(torch.autograd.Function):
    """The rotation of one tensor; its gradient is the exact transpose."""

    @staticmethod
    def forward(
        ctx: Any,
        t: Tensor,
        freqs: Tensor,
        start_positions: Tensor | None = None,
        tensor_format: str = "sbhd",
        interleaved: bool = False,
        cu_seqlens: Tensor | None = None,
        cp_size: int = 1,
        cp_rank: int = 0,
    ) -> Tensor:
        _check(t, freqs, tensor_format, cu_seqlens, cp_size, fused=True)
        positions = _positions(t, tensor_format, start_positions, cu_seqlens, cp_size, cp_rank)
        ctx.save_for_backward(torch_library.make_savable(freqs), torch_library.make_savable(positions))
        ctx.flags = tensor_format, interleaved, _is_bounded(tensor_format, start_positions)
        return _rotate([t], [freqs], positions, *ctx.flags)[0]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        freqs, positions = ctx.saved_tensors
        return *_rotate([grads[0]], [freqs], positions, *ctx.flags, conjugate=True), *[None] * 7


class FusedQKVRoPEFunc(torch.autograd.Function):
    """Splits qkv and rotates q and k, with gradient."""

    @staticmethod
    def forward(
        ctx: Any,
        qkv: Tensor,
        q_freqs: Tensor,
        k_freqs: Tensor,
        qkv_split_arg_list: list[int],
        start_positions: Tensor | None = None,
        tensor_format: str = "sbhd",
        interleaved: bool = False,
        cu_seqlens: Tensor | None = None,
        cp_size: int = 1,
        cp_rank: int = 0,
    ) -> tuple[Tensor, Tensor, Tensor]:
        positions = _qkv_positions(
            qkv, (q_freqs, k_freqs), qkv_split_arg_list, tensor_format, start_positions, cp_size, cp_rank
        )
        ctx.save_for_backward(*map(torch_library.make_savable, (q_freqs, k_freqs, positions)))
        ctx.flags = tensor_format, interleaved, _is_bounded(tensor_format, start_positions)
        return _rotate_split(qkv, [q_freqs, k_freqs], qkv_split_arg_list, positions, *ctx.flags)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q_freqs, k_freqs, positions = ctx.saved_tensors
        dq, dk = _rotate(list(grads[:2]), [q_freqs, k_freqs], positions, *ctx.flags, conjugate=True)
        return torch.cat((dq.reshape(*dk.shape[:3], -1), dk, grads[2]), dim=-1), *[None] * 9


def _rotate_split(
    qkv: Tensor, freqs: list[Tensor], widths: Sequence[int], positions: Tensor, *flags: Any
) -> tuple[Tensor, Tensor, Tensor]:
    q, k, v = torch.split(qkv, list(widths), dim=-1)
    q = q.reshape(*qkv.shape[:2], qkv.shape[2] * widths[0] // widths[1], widths[1])
    q, k = _rotate([q, k], freqs, positions, *flags)
    return q, k, v.clone(memory_format=torch.contiguous_format)


def _rotate(
    xs: list[Tensor],
    freqs: list[Tensor],
    positions: Tensor,
    tensor_format: str,
    interleaved: bool,
    bounded: bool,
    *,
    conjugate: bool = False,
) -> list[Tensor]:
    """Rotate every x by its own angles, contiguous; differentiable; one launch if the angles are the same object."""
    if len(xs) > 1 and all(other is freqs[0] for other in freqs):
        groups = [(freqs[0], xs)]
    else:
        groups = [(angles, [x]) for angles, x in zip(freqs, xs, strict=True)]
    turned: list[Tensor] = []
    for angles, members in groups:
        tables = _tables(angles, interleaved)
        batch_first = [_put_batch_first(x, tensor_format) for x in members]
        if len(tables) == 2:
            turn = Turn(None, *tables, interleaved, conjugate, 1.0)
            turned += torch_library.rotate_copies(batch_first, positions, turn, bounded=bounded)
        else:
            rows = positions if bounded else torch_library.checked_rows(positions, len(angles))
            angle = angles.detach().float()[rows][..., 0, :, :]
            cos, sin = angle.cos(), angle.sin()
            for x in batch_first:
                work = x.to(torch.promote_types(x.dtype, torch.float32))
                turned.append(_rotate_plainly(work, cos, sin, interleaved, transposed=conjugate).to(x.dtype))
    return [_restore_format(y, tensor_format).contiguous() for y in turned]


def _rotate_plainly(t: Tensor, cos: Tensor, sin: Tensor, interleaved: bool, *, transposed: bool = False) -> Tensor:
    """Return t cos + swapped(t) sin with one angle per dimension, so that the two of a pair may differ."""
    width = cos.shape[-1]
    body = t[..., :width]
    if transposed:
        return torch.cat((body * cos - _swap_members(body * sin, interleaved), t[..., width:]), dim=-1)
    return torch.cat((body * cos + _swap_members(body, interleaved) * sin, t[..., width:]), dim=-1)


def _swap_members(x: Tensor, interleaved: bool) -> Tensor:
    if interleaved:
        return torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


def _tables(freqs: Tensor, interleaved: bool) -> tuple[Tensor, ...]:
    """Return (cos, sin) of one angle per pair, or () if the two angles of some pair differ."""
    if torch.compiler.is_compiling():
        angle = torch_library.one_per_pair(freqs[:, 0, 0].detach().float(), interleaved=interleaved)
        return angle.cos(), angle.sin()
    return (_tables_interleaved if interleaved else _tables_half)(freqs)


@tensor_cache.cache_last
def _tables_interleaved(freqs: Tensor) -> tuple[Tensor, ...]:
    angle = freqs[:, 0, 0].detach().float()
    return _cos_sin(angle[:, ::2], angle[:, 1::2])


@tensor_cache.cache_last
def _tables_half(freqs: Tensor) -> tuple[Tensor, ...]:
    angle = freqs[:, 0, 0].detach().float()
    return _cos_sin(*angle.chunk(2, dim=-1))


def _cos_sin(angle: Tensor, second_angle: Tensor) -> tuple[Tensor, ...]:
    return (angle.cos(), angle.sin()) if torch.equal(angle, second_angle) else ()


def _qkv_positions(
    qkv: Tensor,
    freqs: Sequence[Tensor],
    widths: Sequence[int],
    tensor_format: str,
    start_positions: Tensor | None,
    cp_size: int,
    cp_rank: int,
) -> Tensor:
    """Return `_positions` of qkv, after checking that it can be split and rotated."""
    _require(tensor_format in ("sbhd", "bshd"), f"Unsupported tensor_format: {tensor_format}.")
    _require(qkv.is_contiguous(), "QKV Tensor should be contiguous.")
    _require(qkv.dim() == 4 and qkv.shape[-1] == sum(widths), "the split must add up to the last dimension")
    if widths[1] == 0 or widths[0] % widths[1]:
        raise ValueError(f"q's part must be a multiple of k's, got {widths[0]} and {widths[1]}")
    for angles in freqs:
        _check(qkv[..., : widths[1]], angles, tensor_format, None, cp_size, fused=True)
    return _positions(qkv, tensor_format, start_positions, None, cp_size, cp_rank)


def _positions(
    t: Tensor,
    tensor_format: str,
    start_positions: Tensor | None,
    cu_seqlens: Tensor | None,
    cp_size: int,
    cp_rank: int,
) -> Tensor:
    """Return the row of freqs of every token: (1 or b, s), or (1, tokens)."""
    if cp_size < 1 or not 0 <= cp_rank < cp_size:
        raise ValueError(f"cp_rank must be from 0 to {cp_size - 1}, got {cp_rank} of {cp_size}")
    if tensor_format == "thd":
        assert cu_seqlens is not None
        sequences = cu_seqlens.shape[0] - 1
        _check_starts(start_positions, sequences)
        return torch_library.packed_positions(cu_seqlens, t.shape[0], start_positions, size=cp_size, rank=cp_rank)[None]
    batch, length = (t.shape[1], t.shape[0]) if tensor_format == "sbhd" else t.shape[:2]
    _check_starts(start_positions, batch)
    if cp_size > 1 and length % 2:
        raise ValueError(f"each rank holds two chunks of equal length, so its tokens must be even, got {length}")
    token = torch.arange(length, device=t.device)
    positions = (balanced_position(token, length, cp_size, cp_rank) if cp_size > 1 else token)[None]
    return positions if start_positions is None else positions + start_positions.long()[:, None]


def _is_bounded(tensor_format: str, start_positions: Tensor | None) -> bool:
    """True if the length alone guarantees that every position is a row: then no device sync is needed."""
    return tensor_format != "thd" and start_positions is None


def _check(
    t: Tensor, freqs: Tensor, tensor_format: str, cu_seqlens: Tensor | None, cp_size: int, *, fused: bool
) -> None:
    if tensor_format not in FORMATS:
        raise (AssertionError if fused else ValueError)(f"Unsupported tensor_format: {tensor_format}.")
    _require(
        tensor_format != "thd" or cu_seqlens is not None, "cu_seqlens must not be None when tensor_format is 'thd'."
    )
    if t.dim() != len(tensor_format):
        raise ValueError(f"t must have {len(tensor_format)} dimensions for {tensor_format}, got {t.dim()}")
    if freqs.dim() != 4 or freqs.shape[2] != 1 or (freqs.shape[1] != 1 and (fused or tensor_format == "thd")):
        raise ValueError(f"freqs must have shape (s, 1, 1, d), got {tuple(freqs.shape)}")
    if freqs.shape[1] not in (1, t.shape[0 if tensor_format == "bshd" else 1]):
        raise ValueError(f"freqs must have one column or one per sequence, got {freqs.shape[1]}")
    length = t.shape[0 if tensor_format == "sbhd" else 1] * cp_size
    if tensor_format != "thd" and length > len(freqs):
        # The compiled original raises RuntimeError, the plain one AssertionError.
        kind = RuntimeError if fused else AssertionError
        raise kind(f"Rotary Embeddings only supported up to {len(freqs)} sequence length! Got {length}")
    if freqs.shape[-1] > t.shape[-1] or freqs.shape[-1] % 2:
        raise ValueError(f"freqs must have an even last dimension of at most {t.shape[-1]}, got {freqs.shape[-1]}")


def _check_starts(start_positions: Tensor | None, sequences: int) -> None:
    if start_positions is not None and start_positions.shape != (sequences,):
        raise ValueError(f"start_positions must have shape ({sequences},), got {tuple(start_positions.shape)}")


def _put_batch_first(t: Tensor, tensor_format: str) -> Tensor:
    return t[None] if tensor_format == "thd" else t.transpose(0, 1) if tensor_format == "sbhd" else t


def _restore_format(t: Tensor, tensor_format: str) -> Tensor:
    """Undo `_put_batch_first`."""
    return t[0] if tensor_format == "thd" else t.transpose(0, 1) if tensor_format == "sbhd" else t


def _require(condition: bool, message: str) -> None:
    # An assertion of the original remains an AssertionError, also with python -O.
    if not condition:
        raise AssertionError(message)
