"""The rotation of torch tensors for all callers in this package: plain, differentiated, in place or traced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from rope_viz.kernels import operators
from rope_viz.kernels.torch_ops import Turn

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


# A rotation is linear in x. So the tangent of a rotated x is the rotated tangent, the gradient is the gradient
# rotated back, either can be differentiated again, and a batch of rotations is one rotation of a larger batch.
def rotate_copies(xs: list[Tensor], positions: Tensor, turn: Turn, *, bounded: bool = False) -> list[Tensor]:
    """Return every x rotated, as new tensors; differentiable.

    xs: (batch, tokens, heads, head_dim) each, one dtype; positions: int64 (batch, tokens) or (1, tokens); bounded: the
    caller guarantees that the positions are rows of the table.
    """
    check_tensors(xs)
    arguments = arguments_of(positions, turn, bounded)
    with_grad = torch.is_grad_enabled() and any(x.requires_grad for x in xs)
    if with_grad:
        arguments = tuple(make_savable(part) if isinstance(part, Tensor) else part for part in arguments)
    if is_transformed(*xs):
        return list(Rotated.apply(*arguments[:4], arguments[4:], *xs))  # type: ignore[no-untyped-call]
    if operators.is_plain(xs) and not with_grad:
        return operators.rotate(xs, *arguments)
    return list(torch.ops.rope_viz.rotate(xs, *arguments))


def arguments_of(positions: Tensor, turn: Turn, bounded: bool) -> tuple[Any, ...]:
    """Return the operators' arguments after the tensors to rotate."""
    return positions, turn.inv_freq, turn.cos, turn.sin, turn.interleaved, turn.conjugate, turn.scale, bounded


def check_tensors(xs: list[Tensor]) -> None:
    """Raise `ValueError` unless all have the same float dtype and device."""
    for x in xs:
        if x.dtype not in FLOATS:
            raise ValueError(f"x must be float16, bfloat16, float32 or float64, got {x.dtype}")
        if x.dtype != xs[0].dtype or x.device != xs[0].device:
            raise ValueError(
                f"q and k must share dtype and device, got {xs[0].dtype} on {xs[0].device} and {x.dtype} on {x.device}"
            )


def has_tangent(*tensors: Tensor) -> bool:
    """True if one of them is being differentiated forward."""
    return any(forward_ad.unpack_dual(tensor).tangent is not None for tensor in tensors)  # type: ignore[no-untyped-call]


def is_transformed(*tensors: Tensor) -> bool:
    """True if one of them carries a tangent or belongs to a transform of torch.func."""
    if has_tangent(*tensors):
        return True
    # While compiling, the operator's own rules handle torch.func.grad and vmap.
    return not torch.compiler.is_compiling() and any(map(torch._C._functorch.is_functorch_wrapped_tensor, tensors))


def make_savable(tensor: Tensor) -> Tensor:
    """Return the tensor, or a copy if it was made in inference mode: autograd refuses to save those."""
    if torch.compiler.is_compiling() or torch.is_inference_mode_enabled() or not tensor.is_inference():
        return tensor
    return tensor.clone()


class Rotated(torch.autograd.Function):
    """`rotate_copies` of xs: `apply(positions, inv_freq, cos, sin, (interleaved, conjugate, scale, bounded), *xs)`."""

    @staticmethod
    def forward(
        positions: Tensor, inv_freq: Tensor | None, cos: Tensor | None, sin: Tensor | None, flags: Any, *xs: Tensor
    ) -> tuple[Tensor, ...]:
        return tuple(torch.ops.rope_viz.rotate(list(xs), positions, inv_freq, cos, sin, *flags))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(*inputs[:4])
        ctx.save_for_forward(*inputs[:4])
        ctx.flags = inputs[4]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return *[None] * 5, *_rotate_again(ctx, list(grads), back=True)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> tuple[Tensor, ...]:
        return tuple(_rotate_again(ctx, list(tangents[5:]), back=False))

    @staticmethod
    def vmap(info: Any, in_dims: Any, *inputs: Any) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        turned = _rotate_batch(info.batch_size, in_dims[:4], in_dims[5:], inputs[:4], inputs[4], inputs[5:])
        return tuple(turned), (0,) * len(turned)


def _rotate_again(ctx: Any, xs: list[Tensor], *, back: bool) -> list[Tensor]:
    """Rotate xs by the angles of a forward call; `back` transposes: same scale, opposite angle."""
    positions, inv_freq, cos, sin = ctx.saved_tensors
    interleaved, conjugate, scale, bounded = ctx.flags
    # Not the inverse, which would divide by the scale's square.
    turn = Turn(inv_freq, cos, sin, interleaved, conjugate != back, scale)
    return rotate_copies(xs, positions, turn, bounded=bounded)


def _rotate_batch(
    size: int, angle_dims: Any, x_dims: Any, angles: Sequence[Any], flags: Sequence[Any], xs: Sequence[Tensor]
) -> list[Tensor]:
    """Rotate every x of a batch of `size`, with the batch dimension first.

    angles: positions, inv_freq, cos, sin; the dims are the batch dimension of each, or None.
    """
    interleaved, conjugate, scale, bounded = flags
    if any(dim is not None for dim in angle_dims[1:]):
        # Each element has its own angles, but one launch takes a single table.
        each = []
        for i in range(size):
            places, inv_freq, cos, sin = (_pick(part, dim, i) for part, dim in zip(angles, angle_dims, strict=True))
            own_xs = [_pick(x, dim, i) for x, dim in zip(xs, x_dims, strict=True)]
            turn = Turn(inv_freq, cos, sin, interleaved, conjugate, scale)
            each.append(rotate_copies(own_xs, places, turn, bounded=bounded))
        return [torch.stack(turned) for turned in zip(*each, strict=True)]
    batched = [_move_to_front(x, dim, size) for x, dim in zip(xs, x_dims, strict=True)]
    places, inv_freq, cos, sin = angles
    if angle_dims[0] is not None or places.shape[0] > 1:
        places = _move_to_front(places, angle_dims[0], size).expand(size, batched[0].shape[1], -1).flatten(0, 1)
    turn = Turn(inv_freq, cos, sin, interleaved, conjugate, scale)
    turned = rotate_copies([x.flatten(0, 1) for x in batched], places, turn, bounded=bounded)
    return [y.view(x.shape) for x, y in zip(batched, turned, strict=True)]


def _move_to_front(x: Tensor, dim: int | None, size: int) -> Tensor:
    return x.expand(size, *x.shape) if dim is None else x.movedim(dim, 0)


def _pick(x: Any, dim: int | None, index: int) -> Any:
    return x if dim is None else x.select(dim, index)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.save_for_backward(*inputs[1:5])
    ctx.flags = inputs[5:]


def _backward(ctx: Any, grads: list[Tensor]) -> tuple[Any, ...]:
    return _rotate_again(ctx, grads, back=True), *[None] * 8


def _vmap(info: Any, in_dims: Any, xs: Any, *rest: Any) -> tuple[list[Tensor], list[int]]:
    turned = _rotate_batch(info.batch_size, in_dims[1:5], in_dims[0], rest[:4], rest[4:], xs)
    return turned, [0] * len(turned)


torch.library.register_autograd("rope_viz::rotate", _backward, setup_context=_setup)

torch.library.register_vmap("rope_viz::rotate", _vmap)


def rotate_into(outs: list[Tensor], xs: list[Tensor], positions: Tensor, turn: Turn, *, bounded: bool = False) -> None:
    """Write every x, rotated (see `rotate_copies`), to its out, which may be that x. Not differentiable."""
    check_tensors(xs)
    _refuse_transformed(*xs, *outs)
    arguments = arguments_of(positions, turn, bounded)
    if operators.is_plain([*xs, *outs]):
        operators.rotate_into(outs, xs, *arguments)
    else:
        # `bounded` by keyword: old disk-cache entries of a compiler, which write views wrongly, have it by position.
        torch.ops.rope_viz.rotate_into(outs, xs, *arguments[:-1], bounded=bounded)


def rotate_within(
    whole: Tensor, bounds: Sequence[int], positions: Tensor, turn: Turn, *, bounded: bool = False
) -> None:
    """Rotate the parts of dimension 2 of `whole` between `bounds` in place (see `split_parts`). Not differentiable."""
    check_tensors([whole])
    _refuse_transformed(whole)
    arguments = arguments_of(positions, turn, bounded)
    if operators.is_plain([whole]):
        operators.rotate_within(whole, bounds, *arguments)
    else:
        torch.ops.rope_viz.rotate_within(whole, bounds, *arguments)


def packed_positions(
    cu_seqlens: Tensor, tokens: int, starts: Tensor | None, *, size: int = 1, rank: int = 0, longest: int | None = None
) -> Tensor:
    """Return `positions.packed_positions`, after checking that the bounds cover all tokens.

    Raises `ValueError` if they do not, if a sequence is longer than `longest`, and if a context-parallel share is odd:
    on a GPU at a later call, without waiting for the bounds.
    """
    return torch.ops.rope_viz.packed_positions(cu_seqlens, tokens, starts, size, rank, longest)  # type: ignore[no-any-return]


def checked_rows(positions: Tensor, rows: int) -> Tensor:
    """Return the positions. Raises `ValueError` unless all are rows of a table of `rows`; on a GPU at a later call."""
    if torch.compiler.is_compiling():
        return torch.ops.rope_viz.checked_rows(positions, rows)  # type: ignore[no-any-return]
    return operators.check_rows(positions, rows)


def one_per_pair(table: Tensor, *, interleaved: bool) -> Tensor:
    """Return (..., pairs) of a table (..., 2 * pairs) with every pair's value twice, while compiling.

    A compiler cannot look at values, so the operator does. Raises `ValueError` if the two of a pair differ; on a GPU
    the check is asynchronous, and the error is the device's.
    """
    return torch.ops.rope_viz.one_per_pair(table, interleaved)  # type: ignore[no-any-return]


def _refuse_transformed(*tensors: Tensor) -> None:
    if is_transformed(*tensors):
        raise ValueError("what is written in place has no derivative and no vmap: leave out= and inplace=True out")
