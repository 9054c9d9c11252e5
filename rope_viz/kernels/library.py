"""The rotation as torch operators: `torch.compile` sees one node with a gradient, and the device picks the code.

`rope_viz::rotate` returns rotated tensors and `rope_viz::rotate_into` writes them. Both take q and k together, since
they share every angle. What depends on the data (is every position a row of the table?) is checked inside, so that
tracing never has to look.
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from rope_viz.kernels import positions as place
from rope_viz.kernels import torch_ops
from rope_viz.kernels.torch_ops import Turn

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
TURN = (
    "Tensor positions, Tensor? inv_freq, Tensor? cos, Tensor? sin, "
    "bool interleaved, bool conjugate, float scale, bool bounded"
)

T = TypeVar("T")


def rotated(xs: list[Tensor], positions: Tensor, turn: Turn, *, bounded: bool = False) -> list[Tensor]:
    """Every x rotated, as new tensors; differentiable.

    xs: (batch, tokens, heads, head_dim) each, one dtype; positions: int64 (batch, tokens) or (1, tokens);
    bounded: the caller knows that the positions are rows of the table, so nobody waits for the device to look.
    """
    check_tensors(xs)
    arguments = (positions, turn.inv_freq, turn.cos, turn.sin, turn.interleaved, turn.conjugate, turn.scale, bounded)
    if _is_plain(xs) and not (torch.is_grad_enabled() and any(x.requires_grad for x in xs)):
        return _rotate(xs, *arguments)
    return list(torch.ops.rope_viz.rotate(xs, *arguments))


def rotate_into(outs: list[Tensor], xs: list[Tensor], positions: Tensor, turn: Turn, *, bounded: bool = False) -> None:
    """Write every x, rotated, to its out, which may be that x. Not differentiable."""
    check_tensors(xs)
    arguments = (positions, turn.inv_freq, turn.cos, turn.sin, turn.interleaved, turn.conjugate, turn.scale, bounded)
    if _is_plain(xs):
        _rotate_into(outs, xs, *arguments)
    else:
        torch.ops.rope_viz.rotate_into(outs, xs, *arguments)


def packed_positions(
    cu_seqlens: Tensor, tokens: int, starts: Tensor | None, *, size: int = 1, rank: int = 0, longest: int | None = None
) -> Tensor:
    """`positions.packed_positions`, after a look that the bounds cover all tokens.

    Raises `ValueError` where they do not, where a sequence is longer than `longest`, and where a context-parallel share
    is odd.
    """
    return torch.ops.rope_viz.packed_positions(cu_seqlens, tokens, starts, size, rank, longest)  # type: ignore[no-any-return]


def remembered(make: Callable[[Tensor], T]) -> Callable[[Tensor], T]:
    """`make(tensor)`, kept while that tensor lives unchanged: every layer of a model asks with the same one."""
    known: Any = WeakTensorKeyDictionary()

    def ask(tensor: Tensor) -> T:
        if tensor.is_inference():
            return make(tensor)
        version, value = known.get(tensor, (None, None))
        if version != tensor._version:
            value = make(tensor)
            known[tensor] = tensor._version, value
        return value  # type: ignore[no-any-return]

    return ask


def check_tensors(xs: list[Tensor]) -> None:
    """Raise `ValueError` unless all are of one float dtype on one device."""
    for x in xs:
        if x.dtype not in FLOATS:
            raise ValueError(f"x must be float16, bfloat16, float32 or float64, got {x.dtype}")
        if x.dtype != xs[0].dtype or x.device != xs[0].device:
            raise ValueError(
                f"q and k must share dtype and device, got {xs[0].dtype} on {xs[0].device} and {x.dtype} on {x.device}"
            )


@remembered
def bounds_of(tensor: Tensor) -> tuple[int, int]:
    """Smallest and largest entry of an integer tensor. Waits for the device."""
    low, high = torch.aminmax(tensor)
    return int(low), int(high)


@remembered
def _host(tensor: Tensor) -> list[int]:
    return list(tensor.tolist())


def _rotate(xs: list[Tensor], *arguments: Any) -> list[Tensor]:
    outs = [torch.empty_like(x) for x in xs]
    _rotate_into(outs, xs, *arguments)
    return outs


def _rotate_into(
    outs: list[Tensor],
    xs: list[Tensor],
    positions: Tensor,
    inv_freq: Tensor | None,
    cos: Tensor | None,
    sin: Tensor | None,
    interleaved: bool,
    conjugate: bool,
    scale: float,
    bounded: bool,
) -> None:
    turn = Turn(inv_freq, cos, sin, interleaved, conjugate, scale)
    if cos is not None and not bounded and positions.numel() and not _is_capturing(positions):
        low, high = bounds_of(positions)
        if low < 0 or high >= len(cos):
            raise ValueError(f"positions must be rows of the table, from 0 to {len(cos) - 1}, got {low} to {high}")
    if not all(_is_same(x, out) for x, out in zip(xs, outs, strict=True)):
        xs = [x.clone() if any(_may_overlap(x, out) for out in outs) else x for x in xs]
    if xs[0].is_cuda and _has_triton():
        from rope_viz.kernels import triton_ops

        triton_ops.rotate_into(outs, xs, positions, turn)
    else:
        torch_ops.rotate_into(outs, xs, positions, turn)


def _packed_positions(
    cu_seqlens: Tensor, tokens: int, starts: Tensor | None, size: int, rank: int, longest: int | None
) -> Tensor:
    if not _is_capturing(cu_seqlens):
        bounds = _host(cu_seqlens)
        lengths = [after - before for before, after in itertools.pairwise(bounds)]
        if not bounds or bounds[0] != 0 or min(lengths, default=0) < 0:
            raise ValueError(f"cu_seqlens must begin with 0 and never fall, got {bounds[:8]}")
        if bounds[-1] != tokens * size:
            raise ValueError(f"cu_seqlens must end at the {tokens * size} tokens there are, got {bounds[-1]}")
        if longest is not None and max(lengths, default=0) > longest:
            raise ValueError(f"max_seqlen is {longest}, but a sequence has {max(lengths)} tokens")
        if size > 1 and any(length % (2 * size) for length in lengths):
            raise ValueError(
                f"context parallelism over {size} ranks needs sequences of a multiple of {2 * size} tokens"
            )
    return place.packed_positions(cu_seqlens, tokens, starts, size=size, rank=rank)  # type: ignore[no-any-return]


def _fake_rotate(xs: list[Tensor], *_: Any) -> list[Tensor]:
    return [torch.empty_like(x) for x in xs]


def _fake_packed(cu_seqlens: Tensor, tokens: int, *_: Any) -> Tensor:
    return torch.empty(tokens, dtype=torch.int64, device=cu_seqlens.device)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    _, positions, inv_freq, cos, sin, *ctx.flags = inputs
    ctx.save_for_backward(positions, inv_freq, cos, sin)


def _backward(ctx: Any, grads: list[Tensor]) -> tuple[Any, ...]:
    interleaved, conjugate, scale, bounded = ctx.flags
    # The transpose: the same scale, turned the other way. The inverse would divide by the scale's square.
    turned = torch.ops.rope_viz.rotate(grads, *ctx.saved_tensors, interleaved, not conjugate, scale, bounded)
    return turned, *[None] * 8


def _is_plain(xs: list[Tensor]) -> bool:
    """Whether nobody traces or intercepts: then the operator's own overhead can be saved."""
    return (
        not torch.compiler.is_compiling()
        and all(type(x) in (Tensor, torch.nn.Parameter) for x in xs)
        and not torch._C._len_torch_dispatch_stack()
        and torch._C._functorch.peek_interpreter_stack() is None
    )


def _is_capturing(tensor: Tensor) -> bool:
    return tensor.is_cuda and torch.cuda.is_current_stream_capturing()


def _is_same(x: Tensor, out: Tensor) -> bool:
    return x.data_ptr() == out.data_ptr() and x.stride() == out.stride() and x.shape == out.shape


def _may_overlap(x: Tensor, out: Tensor) -> bool:
    if x.untyped_storage().data_ptr() != out.untyped_storage().data_ptr() or not x.numel() or not out.numel():
        return False
    ends = [
        start + sum((length - 1) * stride for length, stride in zip(tensor.shape, tensor.stride(), strict=True))
        for tensor in (x, out)
        for start in [tensor.storage_offset()]
    ]
    return x.storage_offset() <= ends[1] and out.storage_offset() <= ends[0]


@functools.cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None


torch.library.custom_op(
    "rope_viz::rotate", _rotate, mutates_args=(), schema=f"(Tensor[] xs, {TURN}) -> Tensor[]"
).register_fake(_fake_rotate)
torch.library.register_autograd("rope_viz::rotate", _backward, setup_context=_setup)
torch.library.custom_op(
    "rope_viz::rotate_into",
    _rotate_into,
    mutates_args=("outs",),
    schema=f"(Tensor(a!)[] outs, Tensor[] xs, {TURN}) -> ()",
)
torch.library.custom_op(
    "rope_viz::packed_positions",
    _packed_positions,
    mutates_args=(),
    schema="(Tensor cu_seqlens, SymInt tokens, Tensor? starts, int size, int rank, SymInt? longest) -> Tensor",
).register_fake(_fake_packed)
