"""Throughput of rotate, compared with a copy of the same bytes and with other implementations, in one run.

    python benchmarks/rotate.py                              # the CPU workload of the targets
    python benchmarks/rotate.py --device cuda --dtype bfloat16 --batch 4 --tokens 8192 --k-heads 8

Every way runs once per round, in turn, so that a busy moment affects all of them. Prints medians and ratios of medians;
a best far below its median means that the machine was busy. bytes = 2 * size of the tensors for every way, whatever it
really moves. Peers that are not installed are reported.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rope_viz.kernels.measure import Measurement, Workload, measure

# Targets of the CPU forms: fraction of a copy, and speed-up over the eager form (float32 or bfloat16, 2 cores).
AIMS = {
    ("interleaved", "float32"): (0.80, 10.0),
    ("half", "float32"): (0.40, 7.0),
    ("half", "bfloat16"): (None, 5.0),
}


def main() -> None:
    """Measure every pairing and dtype asked for and print a table of each."""
    arguments = make_parser().parse_args()
    if arguments.device.startswith("cuda") and not torch.cuda.is_available():
        make_parser().error("--device cuda needs a GPU, and torch finds none here")
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    device = torch.cuda.get_device_name() if arguments.device.startswith("cuda") else platform.processor() or "CPU"
    print(f"torch {torch.__version__}, {device}, {torch.get_num_threads()} threads, load {os.getloadavg()[0]:.1f}")
    for dtype in arguments.dtype:
        for pairing in arguments.pairing:
            measure_workload(arguments, dtype, pairing)


def make_parser() -> argparse.ArgumentParser:
    """Return the parser; its defaults are the CPU workload of the targets."""
    result = argparse.ArgumentParser(description="Compare rotate with a copy and other implementations.")
    for flag, value in (("batch", 1), ("tokens", 4096), ("heads", 32), ("k-heads", 0), ("head-dim", 128)):
        result.add_argument(f"--{flag}", type=int, default=value)
    result.add_argument("--dtype", nargs="+", default=["float32", "bfloat16"])
    result.add_argument("--pairing", nargs="+", default=["half", "interleaved"])
    result.add_argument("--device", default="cpu")
    result.add_argument("--rounds", type=int, default=15)
    result.add_argument("--threads", type=int, default=0)
    result.add_argument("--compiled", action="store_true", help="also torch.compile (needs a C++ compiler on a CPU)")
    return result


def measure_workload(arguments: argparse.Namespace, dtype: str, pairing: str) -> None:
    """Measure and print one workload with all ways."""
    workload = Workload(
        batch=arguments.batch,
        tokens=arguments.tokens,
        heads=arguments.heads,
        head_dim=arguments.head_dim,
        k_heads=arguments.k_heads,
        dtype=dtype,
        device=arguments.device,
        pairing=pairing,
    )
    results: dict[str, Measurement] = {}
    for name, _, result in measure(workload, rounds=arguments.rounds, compiled=arguments.compiled):
        results[name] = result
    print(f"\n{pairing}, {dtype}, {workload.bytes_moved / 1e6:.0f} MB in and out")
    print(f"{'way':28s} {'ms':>8s} {'best ms':>8s} {'GB/s':>7s} {'% of copy':>9s} {'error':>9s}")
    for name, result in results.items():
        if result.note:
            print(f"{name:28s} {result.note}")
            continue
        error = "" if result.error is None else f"{result.error:.1e}"
        gigabytes_per_second = result.bytes_per_second / 1e9
        times = f"{result.median * 1e3:8.2f} {min(result.seconds) * 1e3:8.2f}"
        print(f"{name:28s} {times} {gigabytes_per_second:7.1f} {result.fraction_of_copy:9.0%} {error:>9s}")
    print_targets(results, pairing, dtype, arguments.device)


def print_targets(results: dict[str, Measurement], pairing: str, dtype: str, device: str) -> None:
    """Print how well the targets were met."""
    ours = results["ours, out="]
    eager = results["eager rotate_half" if pairing == "half" else "eager interleaved"]
    ratio = eager.median / ours.median
    line = f"ours: {ours.fraction_of_copy:.0%} of a copy, {ratio:.1f} times the eager form"
    fraction_aim, ratio_aim = AIMS.get((pairing, dtype), (None, None))
    if device == "cpu" and ratio_aim is not None:
        fraction = "" if fraction_aim is None else f"{fraction_aim:.0%} and "
        met = ratio >= ratio_aim and (fraction_aim is None or ours.fraction_of_copy >= fraction_aim)
        line += f" (aim: {fraction}{ratio_aim:g} times: {'met' if met else 'missed'})"
    print(line)


if __name__ == "__main__":
    main()
