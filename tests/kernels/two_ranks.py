"""The work of each process in test_kernel_parallel: rotate a shard, gather, compare with the whole."""

import os
import sys

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

from rope_viz.kernels import context_parallel_positions, exact_table, parallel, rotate
from rope_viz.kernels.transformer_engine import RotaryPositionEmbedding, apply_rotary_pos_emb

INV_FREQ = 10_000.0 ** (-np.arange(6) / 6)


def refused(call):
    """Whether the call raises the ValueError it should."""
    try:
        call()
    except ValueError:
        return True
    return False


def main():
    mesh = init_device_mesh("cpu", (2,))
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    x, g = torch.randn(2, 8, 4, 16), torch.randn(2, 8, 4, 16)
    for pairing in ("half", "interleaved"):
        leaf = x.clone().requires_grad_()
        whole = rotate(leaf, torch.arange(8), INV_FREQ, pairing=pairing, attention_factor=1.5)
        (gradient,) = torch.autograd.grad(whole, leaf, g)

        shard = parallel.shard_tokens(x, mesh, dim=1).detach().requires_grad_()
        turned = parallel.rotate_sharded(shard, None, INV_FREQ, pairing=pairing, attention_factor=1.5)
        assert turned.placements == shard.placements
        assert turned.to_local().shape == (2, 4, 4, 16)
        assert torch.equal(parallel.gather_tokens(turned, dim=1), whole)
        turned.backward(parallel.shard_tokens(g, mesh, dim=1))
        assert torch.equal(parallel.gather_tokens(shard.grad, dim=1), gradient)

        # The same without DTensor: positions of this rank's tokens, and nothing else.
        local = shard.detach().to_local()
        places = context_parallel_positions(4, size, rank)
        mine = rotate(local, places, INV_FREQ, pairing=pairing, attention_factor=1.5)
        assert torch.equal(mine, turned.to_local())

        # Spread over heads or the batch, every rank needs all positions; a table does as well as frequencies.
        table = exact_table(INV_FREQ, np.arange(8))
        for placement in (Shard(0), Shard(2), Replicate()):
            other = distribute_tensor(x, mesh, [placement])
            y = parallel.rotate_sharded(other, torch.arange(8), table=table, pairing=pairing, attention_factor=1.5)
            torch.testing.assert_close(y.full_tensor(), whole.detach())

    # Transformer Engine's own arguments name the same tokens.
    freqs = RotaryPositionEmbedding(16)(8)
    local = parallel.shard_tokens(x, mesh, dim=1).to_local()
    mine = apply_rotary_pos_emb(local, freqs, "bshd", fused=True, cp_size=size, cp_rank=rank)
    assert torch.equal(
        mine, parallel.shard_tokens(apply_rotary_pos_emb(x, freqs, "bshd", fused=True), mesh, dim=1).to_local()
    )

    spread = distribute_tensor(x, mesh, [Shard(3)])
    assert refused(lambda: parallel.rotate_sharded(spread, None, INV_FREQ, pairing="half"))
    assert refused(lambda: parallel.shard_tokens(x[:, :6], mesh, dim=1))
    print(f"rank {rank} agrees")


if __name__ == "__main__":
    address = f"file://{sys.argv[1]}"
    dist.init_process_group("gloo", init_method=address, rank=int(sys.argv[2]), world_size=2)
    try:
        main()
        dist.barrier()
    finally:
        dist.destroy_process_group()
    # All checks have passed. On a busy machine torch 2.13 now and then aborts while Python shuts down, because a thread
    # of gloo is still running ("terminate called without an active exception"): leave before that.
    sys.stdout.flush()
    os._exit(0)
