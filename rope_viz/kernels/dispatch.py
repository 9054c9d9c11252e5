"""`rotate` for torch tensors: checks shapes, folds leading dimensions into one, and calls the operator."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from rope_viz.embedding.spec import Pairing
from rope_viz.kernels import reference, tensor_cache, torch_library
from rope_viz.kernels.torch_ops import Turn


def rotate(
    xs: list[Tensor],
    positions: Any,
    inv_freq: Any = None,
    *,
    pairing: Pairing,
    attention_factor: float = 1.0,
    inverse: bool = False,
    outs: list[Tensor] | None = None,
    table: tuple[Any, Any] | None = None,
) -> list[Tensor]:
    """Implement `rope_viz.kernels.rotate` for several tensors that may differ only in their number of heads."""
    turn = _make_turn(inv_freq, table, xs[0].device, pairing, attention_factor, inverse)
    for x in xs:
        reference.require_shapes(x, turn.pairs, pairing, attention_factor)
        if x.shape[:-2] != xs[0].shape[:-2]:
            raise ValueError(f"q and k must share batch and tokens, got {tuple(xs[0].shape)} and {tuple(x.shape)}")
    places = _check_positions(positions, xs[0], turn)
    batched = [x.reshape(_fold_batch(x), *x.shape[-3:]) for x in xs]
    if outs is None:
        new = torch_library.rotate_copies(batched, places, turn, bounded=positions is None)
        return [out.view(x.shape) if x.ndim != 4 else out for out, x in zip(new, xs, strict=True)]
    for x, out in zip(xs, outs, strict=True):
        if out.shape != x.shape or out.dtype != x.dtype or out.device != x.device:
            raise ValueError(f"out must be {x.dtype} of shape {tuple(x.shape)}, got {out.dtype} of {tuple(out.shape)}")
    with_grad = torch.is_grad_enabled() and any(t.requires_grad for t in (*xs, *outs))
    if with_grad or torch_library.is_transformed(*xs, *outs):
        raise ValueError("out= has no gradient: leave it out, or rotate under torch.no_grad()")
    # An out that cannot be viewed as (batch, tokens, heads, head_dim) is written by way of a tensor that can.
    targets = [out if out.ndim == 4 or out.is_contiguous() else torch.empty_like(out).contiguous() for out in outs]
    batched_outs = [target.view(_fold_batch(target), *target.shape[-3:]) for target in targets]
    torch_library.rotate_into(batched_outs, batched, places, turn, bounded=positions is None)
    for target, out in zip(targets, outs, strict=True):
        if target is not out:
            out.copy_(target)
    return outs


def _fold_batch(x: Tensor) -> int:
    # Not -1, which is undefined for empty tensors.
    batch = 1
    for length in x.shape[:-3]:
        batch *= length
    return batch


def _make_turn(
    inv_freq: Any, table: Any, device: torch.device, pairing: Pairing, attention_factor: float, inverse: bool
) -> Turn:
    if (inv_freq is None) == (table is None):
        raise ValueError("pass either inv_freq or table=(cos, sin)")
    scale = 1.0 / attention_factor if inverse and attention_factor else float(attention_factor)
    interleaved = pairing == "interleaved"
    if table is None:
        if isinstance(inv_freq, np.ndarray) and not torch.compiler.is_compiling():
            inv_freq = inv_freq.copy()  # torch warns about read-only arrays, such as a spec's
        frequency = torch.as_tensor(inv_freq)
        if frequency.is_cuda and not torch.compiler.is_compiling():
            frequency = tensor_cache.copy_to_host(frequency)
        if frequency.ndim != 1 or not len(frequency):
            raise ValueError(f"inv_freq must have shape (pairs,) with at least one pair, got {tuple(frequency.shape)}")
        if frequency.requires_grad or torch_library.has_tangent(frequency):
            raise ValueError("there is no gradient with respect to inv_freq: detach it")
        return Turn(frequency, None, None, interleaved, inverse, scale)
    cos, sin = (torch.as_tensor(part).to(device) for part in table)
    if cos.ndim != 2 or cos.shape != sin.shape:
        raise ValueError(
            f"cos and sin must both have shape (rows, pairs), got {tuple(cos.shape)} and {tuple(sin.shape)}"
        )
    if cos.requires_grad or sin.requires_grad or torch_library.has_tangent(cos, sin):
        raise ValueError("there is no gradient with respect to the table: detach it")
    return Turn(None, cos, sin, interleaved, inverse, scale)


def _check_positions(positions: Any, x: Tensor, turn: Turn) -> Tensor:
    """Return positions as int64, (1, tokens) or (batch, tokens)."""
    if positions is None:
        if turn.cos is None:
            raise ValueError("positions may be left out with a table only")
        if x.shape[-3] > len(turn.cos):
            raise ValueError(f"the table has {len(turn.cos)} rows, x has {x.shape[-3]} tokens")
        return torch.arange(x.shape[-3], device=x.device)[None]
    places = torch.as_tensor(positions, device=x.device)
    if places.dtype == torch.bool or places.is_floating_point() or places.is_complex():
        raise ValueError(f"positions must be integers, got {places.dtype}; for others pass a table of cos and sin")
    if places.shape == x.shape[-3:-2]:
        return places.long()[None]
    if places.shape == x.shape[:-2]:
        return places.long().reshape(_fold_batch(x), x.shape[-3])
    raise ValueError(
        f"positions must have shape {tuple(x.shape[-3:-2])} or {tuple(x.shape[:-2])}, got {tuple(places.shape)}"
    )
