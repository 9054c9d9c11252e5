"""Context-parallel rotation on all ranks: agreement with one device, and the time of the slowest rank.

    python benchmarks/rotate_parallel.py                                         # one rank, to compare with
    torchrun --nproc-per-node 2 benchmarks/rotate_parallel.py                    # gloo on the CPU
    torchrun --nproc-per-node 8 benchmarks/rotate_parallel.py --tokens 131072    # NCCL, where there are GPUs

A rotation communicates nothing, so n ranks should need 1/n of one rank's time; the gather for the check is not timed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rope_viz.kernels import parallel, rotate


def main() -> None:
    """Rotate a sharded sequence, compare it with the whole one, time it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for flag, value in (("batch", 1), ("tokens", 4096), ("heads", 32), ("head-dim", 128), ("rounds", 9)):
        parser.add_argument(f"--{flag}", type=int, default=value)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--pairing", default="half", choices=["half", "interleaved"])
    arguments = parser.parse_args()

    kind = "cuda" if torch.cuda.is_available() else "cpu"
    if kind == "cuda":
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    alone = {} if "RANK" in os.environ else {"store": dist.HashStore(), "rank": 0, "world_size": 1}
    dist.init_process_group("nccl" if kind == "cuda" else "gloo", **alone)
    mesh = init_device_mesh(kind, (dist.get_world_size(),))
    inv_freq = 10_000.0 ** (-np.arange(arguments.head_dim // 2) / (arguments.head_dim // 2))

    torch.manual_seed(0)
    shape = (arguments.batch, arguments.tokens, arguments.heads, arguments.head_dim)
    x = torch.randn(shape).to(kind, getattr(torch, arguments.dtype))
    shard = parallel.shard_tokens(x, mesh, dim=1)
    turned = parallel.rotate_sharded(shard, None, inv_freq, pairing=arguments.pairing)
    whole = rotate(x, torch.arange(arguments.tokens), inv_freq, pairing=arguments.pairing)
    difference = float((parallel.gather_tokens(turned, dim=1) - whole).abs().max())

    seconds = [
        time_call(lambda: parallel.rotate_sharded(shard, None, inv_freq, pairing=arguments.pairing), kind)
        for _ in range(arguments.rounds)
    ]
    slowest = torch.tensor(statistics.median(seconds), device=kind)
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    if dist.get_rank() == 0:
        moved = 2 * x.numel() * x.element_size()
        print(
            f"{dist.get_world_size()} ranks, {kind}: largest difference from one device {difference:g}, "
            f"slowest rank {float(slowest) * 1e3:.2f} ms, {moved / float(slowest) / 1e9:.1f} GB/s together"
        )
    dist.destroy_process_group()
    # A thread of gloo that outlives its group may crash the interpreter's shutdown.
    sys.stdout.flush()
    os._exit(0)


def time_call(call: object, kind: str) -> float:
    """Return the seconds of one call after a barrier."""
    dist.barrier()
    if kind == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    call()  # type: ignore[operator]
    if kind == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
