"""The rotation of torch tensors for all callers in this package: plain, differentiated, in place or traced."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from rope_viz.kernels import operators
from rope_viz.kernels.derivatives import (
    arguments_of,
    check_tensors,
    has_tangent,
    is_transformed,
    make_savable,
    rotate_copies,
)
from rope_viz.kernels.operators import cache_last, split_parts
from rope_viz.kernels.torch_ops import Turn

__all__ = [
    "cache_last",
    "checked_rows",
    "has_tangent",
    "is_transformed",
    "make_savable",
    "one_per_pair",
    "packed_positions",
    "rotate_copies",
    "rotate_into",
    "rotate_within",
    "split_parts",
]


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

    Raises `ValueError` if they do not, if a sequence is longer than `longest`, and if a context-parallel share is odd.
    """
    return torch.ops.rope_viz.packed_positions(cu_seqlens, tokens, starts, size, rank, longest)  # type: ignore[no-any-return]


def checked_rows(positions: Tensor, rows: int) -> Tensor:
    """Return the positions. Raises `ValueError` unless all are rows of a table of `rows`."""
    if torch.compiler.is_compiling():
        return torch.ops.rope_viz.checked_rows(positions, rows)  # type: ignore[no-any-return]
    operators.check_rows(positions, rows)
    return positions


def one_per_pair(table: Tensor, *, interleaved: bool) -> Tensor:
    """Return (..., pairs) of a table (..., 2 * pairs) with every pair's value twice, while compiling.

    A compiler cannot look at values, so the operator does. Raises `ValueError` if the two of a pair differ; on a GPU
    the check is asynchronous, and the error is the device's.
    """
    return torch.ops.rope_viz.one_per_pair(table, interleaved)  # type: ignore[no-any-return]


def _refuse_transformed(*tensors: Tensor) -> None:
    if is_transformed(*tensors):
        raise ValueError("what is written in place has no derivative and no vmap: leave out= and inplace=True out")
