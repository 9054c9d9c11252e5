"""The rotation as torch operators: implementations, schemas for the compiler, and tracing rules.

`rope_viz::rotate` returns rotated tensors, `rope_viz::rotate_into` writes them and `rope_viz::rotate_within` rotates
some heads of one tensor in place. All take q and k together, because they share every angle. Data-dependent checks (is
every position a row of the table?) are inside, so that tracing does not need the values.

Inductor (torch 2.13) loses the start of a view that an operator writes if its offset is a product of sizes, not a
number (https://github.com/pytorch/pytorch/issues/198068): it writes at the start of the base. So the writing operators
are traced unchanged only if all outputs provably begin at 0, otherwise as a rotation and a copy.
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.functional_tensor import FunctionalTensorMode
from torch.fx.experimental.symbolic_shapes import statically_known_true

from rope_viz.kernels import late_checks, tensor_cache, torch_ops
from rope_viz.kernels import positions as place
from rope_viz.kernels.torch_ops import Turn

TURN = (
    "Tensor positions, Tensor? inv_freq, Tensor? cos, Tensor? sin, "
    "bool interleaved, bool conjugate, float scale, bool bounded"
)


def rotate(xs: list[Tensor], *arguments: Any) -> list[Tensor]:
    """Implement `rope_viz::rotate`; arguments: as in TURN."""
    positions, *turn, bounded = arguments
    outs = [torch.empty_like(x) for x in xs]
    _write(outs, xs, positions, Turn(*turn), bounded)
    return outs


def rotate_into(
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
    """Implement `rope_viz::rotate_into`."""
    if not all(_is_same(x, out) for x, out in zip(xs, outs, strict=True)):
        xs = [x.clone() if any(_may_overlap(x, out) for out in outs) else x for x in xs]
    _write(outs, xs, positions, Turn(inv_freq, cos, sin, interleaved, conjugate, scale), bounded)


def _write(outs: list[Tensor], xs: list[Tensor], positions: Tensor, turn: Turn, bounded: bool) -> None:
    """Rotate into outs that do not overlap with another x."""
    bounded = bounded or turn.cos is None or not positions.numel()
    if not bounded and not len(turn.cos):  # type: ignore[arg-type]
        raise ValueError("the table has no rows")
    if _has_kernel(xs[0]):
        from rope_viz.kernels import triton_ops

        late_checks.raise_found()
        triton_ops.rotate_into(outs, xs, positions, turn, bounded=bounded)
        return
    if not bounded:
        assert turn.cos is not None
        _check_rows_now(positions, len(turn.cos))
    torch_ops.rotate_into(outs, xs, positions, turn)


def rotate_within(whole: Tensor, bounds: Sequence[int], *arguments: Any) -> None:
    """Implement `rope_viz::rotate_within`."""
    parts = split_parts(whole, bounds)
    rotate_into(parts, parts, *arguments)


def split_parts(whole: Tensor, bounds: Sequence[int]) -> list[Tensor]:
    """Return the parts of dimension 2 from bounds[0] to bounds[1], from bounds[2] to bounds[3] …, as views.

    whole: (batch, tokens, heads, head_dim), or (batch, tokens, parts, heads, head_dim) with one part per range. The
    views are (batch, tokens, heads, head_dim).
    """
    parts = [whole[:, :, first:last] for first, last in zip(bounds[::2], bounds[1::2], strict=True)]
    return [part.squeeze(2) for part in parts] if whole.dim() == 5 else parts


def packed_positions(
    cu_seqlens: Tensor, tokens: int, starts: Tensor | None, size: int, rank: int, longest: int | None
) -> Tensor:
    """Implement `rope_viz::packed_positions`."""
    checked, question = _checked_bounds(cu_seqlens), (tokens * size, size, longest)
    if cu_seqlens.is_cuda:
        late_checks.raise_found()
    if question not in checked and not _is_capturing(cu_seqlens):
        check = functools.partial(check_bounds, *question)
        late_checks.check_later(cu_seqlens, check) if cu_seqlens.is_cuda else check(cu_seqlens.tolist())
        checked.add(question)
    return place.packed_positions(cu_seqlens, tokens, starts, size=size, rank=rank)  # type: ignore[no-any-return]


def check_bounds(tokens: int, size: int, longest: int | None, bounds: list[int]) -> None:
    """Raise `ValueError` unless the bounds of packed sequences fit the number of all `tokens`."""
    lengths = [after - before for before, after in itertools.pairwise(bounds)]
    if not bounds or bounds[0] != 0 or min(lengths, default=0) < 0:
        raise ValueError(f"cu_seqlens must begin with 0 and never fall, got {bounds[:8]}")
    if bounds[-1] != tokens:
        raise ValueError(f"cu_seqlens must end at the {tokens} tokens there are, got {bounds[-1]}")
    if longest is not None and max(lengths, default=0) > longest:
        raise ValueError(f"max_seqlen is {longest}, but a sequence has {max(lengths)} tokens")
    if size > 1 and any(length % (2 * size) for length in lengths):
        raise ValueError(f"context parallelism over {size} ranks needs sequences of a multiple of {2 * size} tokens")


def check_rows(positions: Tensor, rows: int) -> Tensor:
    """Return the positions if all are rows of a table of `rows`, else raise `ValueError`.

    On a GPU return the nearest rows at once; a later call raises the error.
    """
    if not positions.numel():
        return positions
    if not rows:
        raise ValueError("the table has no rows")
    if not positions.is_cuda:
        _check_rows_now(positions, rows)
        return positions
    late_checks.raise_found()
    if not _is_capturing(positions):
        bounds = torch.stack(torch.aminmax(positions))
        late_checks.check_later(bounds, functools.partial(late_checks.check_rows, rows))
    return positions.clamp(0, rows - 1)


def checked_rows(positions: Tensor, rows: int) -> Tensor:
    """Implement `rope_viz::checked_rows`."""
    return check_rows(positions, rows).clone()


def _check_rows_now(positions: Tensor, rows: int) -> None:
    # Waits for a GPU, where the plain operations run because Triton is missing.
    if not _is_capturing(positions):
        low, high = torch.aminmax(positions)
        late_checks.check_rows(rows, [int(low), int(high)])


def one_per_pair(table: Tensor, interleaved: bool) -> Tensor:
    """Implement `rope_viz::one_per_pair`."""
    first, second = (table[..., ::2], table[..., 1::2]) if interleaved else table.chunk(2, dim=-1)
    problem = "cos, sin or freqs hold two angles for one pair: rotate by them without torch.compile"
    if table.is_cuda:
        torch._assert_async((first == second).all(), problem)
    elif not torch.equal(first, second):
        raise ValueError(problem)
    return first.clone(memory_format=torch.contiguous_format)


@tensor_cache.cache_last
def _checked_bounds(cu_seqlens: Tensor) -> set[tuple[int, int, int | None]]:
    """Return what these bounds have been checked for."""
    return set()


def is_plain(xs: Sequence[Tensor]) -> bool:
    """True if nothing traces or intercepts: then the operator's own overhead can be avoided."""
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


def _has_kernel(x: Tensor) -> bool:
    return x.is_cuda and _has_triton()


@functools.cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None


def _trace_writer(mode: Any, operator: Any, _: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Trace a writing operator: as itself, or as a rotation and a copy."""
    within = operator is torch.ops.rope_viz.rotate_within.default
    if all(statically_known_true(out.storage_offset() == 0) for out in ([args[0]] if within else args[0])):
        mode.__torch_dispatch__(operator, (), args, kwargs)
        return
    with mode:
        outs = split_parts(*args[:2]) if within else args[0]
        turned = torch.ops.rope_viz.rotate(outs if within else list(args[1]), *args[2:], **kwargs)
        for out, new in zip(outs, turned, strict=True):
            out.copy_(new)


def _define(name: str, code: Any, schema: str, *, fake: Any = None, writes: tuple[str, ...] = ()) -> None:
    operator = torch.library.custom_op(f"rope_viz::{name}", code, mutates_args=writes, schema=schema)
    if fake is not None:
        operator.register_fake(fake)
    if writes:
        operator.register_torch_dispatch(FunctionalTensorMode, _trace_writer)


_define("rotate", rotate, f"(Tensor[] xs, {TURN}) -> Tensor[]", fake=lambda xs, *_: [torch.empty_like(x) for x in xs])
_define("rotate_into", rotate_into, f"(Tensor(a!)[] outs, Tensor[] xs, {TURN}) -> ()", writes=("outs",))
_define("rotate_within", rotate_within, f"(Tensor(a!) whole, SymInt[] bounds, {TURN}) -> ()", writes=("whole",))
_define(
    "packed_positions",
    packed_positions,
    "(Tensor cu_seqlens, SymInt tokens, Tensor? starts, int size, int rank, SymInt? longest) -> Tensor",
    fake=lambda cu_seqlens, tokens, *_: torch.empty(tokens, dtype=torch.int64, device=cu_seqlens.device),
)
_define(
    "one_per_pair",
    one_per_pair,
    "(Tensor table, bool interleaved) -> Tensor",
    fake=lambda table, _: table.new_empty((*table.shape[:-1], table.shape[-1] // 2)),
)
_define(
    "checked_rows",
    checked_rows,
    "(Tensor positions, SymInt rows) -> Tensor",
    fake=lambda positions, _: torch.empty_like(positions),
)
