"""Rotation of sequences sharded over several devices, on `torch.distributed`'s own DTensor and DeviceMesh.

A rotation is local to each token, so no communication is needed: every rank rotates its tokens by their positions,
which `positions.balanced_order` gives.

>>> mesh = init_device_mesh("cpu", (2,))
>>> q = shard_tokens(q, mesh, dim=1)
>>> q = rotate_sharded(q, None, inv_freq, pairing="half")
>>> q = gather_tokens(q, dim=1)
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Placement, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.experimental import local_map

from rope_viz.embedding.spec import Pairing
from rope_viz.kernels import rotate
from rope_viz.kernels.positions import balanced_order


def shard_tokens(x: Tensor, mesh: DeviceMesh, *, dim: int) -> DTensor:
    """Shard x, identical on every rank, along its tokens `dim` in balanced order: rank r gets chunks r and 2n - 1 - r.

    mesh: one-dimensional, n ranks. Raises `ValueError` if the tokens do not divide into 2n chunks.
    """
    order = torch.as_tensor(balanced_order(x.shape[dim], _size(mesh)), device=x.device)
    return distribute_tensor(x.index_select(dim, order), mesh, [Shard(dim)])


def gather_tokens(x: DTensor, *, dim: int) -> Tensor:
    """Undo `shard_tokens`: return the full tensor on every rank, in the order of the sequence; differentiable."""
    full = x.full_tensor()
    order = torch.as_tensor(balanced_order(full.shape[dim], _size(x.device_mesh)), device=full.device)
    return full.index_select(dim, torch.argsort(order))


def rotate_sharded(
    x: DTensor,
    positions: Tensor | None,
    inv_freq: Any = None,
    *,
    pairing: Pairing,
    attention_factor: float = 1.0,
    inverse: bool = False,
    table: tuple[Any, Any] | None = None,
) -> DTensor:
    """Rotate a distributed x (batch, tokens, heads, head_dim), placed as x is; differentiable.

    x may be sharded over any mesh along batch, tokens and heads. positions: (tokens,) of the stored order, the same on
    every rank; None is the balanced order over the mesh dimension that shards the tokens. Raises `ValueError` if the
    head dimension is sharded, because a pair would cross devices, or if x is a pending sum.
    """
    if x.ndim != 4:
        raise ValueError(f"x must have shape (batch, tokens, heads, head_dim), got {tuple(x.shape)}")
    spread = [_spread_dim(placement, x.ndim) for placement in x.placements]
    if positions is None:
        size = 1
        for mesh_dim, dim in enumerate(spread):
            size *= x.device_mesh.size(mesh_dim) if dim == 1 else 1
        positions = torch.as_tensor(balanced_order(x.shape[1], size), device=x.device)
    # Positions are sharded like the tokens; along batch and heads every rank needs all of them.
    placements: list[Placement] = [Shard(0) if dim == 1 else Replicate() for dim in spread]
    # Every rank made the same positions, so each takes its own part without communication.
    replicated = DTensor.from_local(positions, x.device_mesh, [Replicate()] * len(spread), run_check=False)

    def turn(local: Tensor, places: Tensor) -> Tensor:
        return rotate(
            local,
            places,
            inv_freq,
            pairing=pairing,
            attention_factor=attention_factor,
            inverse=inverse,
            table=table,
        )

    apply = local_map(turn, out_placements=list(x.placements), in_placements=(list(x.placements), placements))
    result: DTensor = apply(x, replicated.redistribute(placements=placements))
    return result


def _spread_dim(placement: Placement, dimensions: int) -> int | None:
    """Return the dimension of x that this mesh dimension shards, or None."""
    if placement.is_replicate():
        return None
    if not isinstance(placement, Shard):
        raise ValueError(f"x must be spread or replicated, got {placement}")
    dim = placement.dim % dimensions
    if dim == dimensions - 1:
        raise ValueError("the head dimension must not be spread: a pair would cross devices")
    return dim


def _size(mesh: DeviceMesh) -> int:
    if mesh.ndim != 1:
        raise ValueError(f"the mesh must have one dimension, got {mesh.ndim}; take the one over the tokens")
    return mesh.size()
