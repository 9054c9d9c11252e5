"""Throughput of rotate, compared with a copy of the same bytes and with other implementations, in one run.

    python benchmarks/rotate.py                              # the CPU workload of the targets
    python benchmarks/rotate.py --device cuda --dtype bfloat16 --batch 4 --tokens 8192 --k-heads 8
    python benchmarks/rotate.py --cases                      # all cases on a GPU, into the file of its card
    python benchmarks/rotate.py --host                       # the host's time, of 7d2dfc20 and of this checkout

Every way runs once per round, in turn, so that a busy moment affects all of them. Prints medians and ratios of medians;
a best far below its median means that the machine was busy. bytes = 2 * size of the tensors for every way, whatever it
really moves. Peers that are not installed are reported. On a GPU the median is the GPU's time, and the host's time per
call has a column of its own.

`--cases` writes one JSON file per card to rope_viz/kernels/cards, which the page Kernels shows. The file of one card is
never replaced by another's.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.host_time import compare_commits
from rope_viz.kernels.card_files import FOLDER, write_card
from rope_viz.kernels.measure import Measurement, Workload, measure

# Targets of the CPU forms: fraction of a copy, and speed-up over the eager form (float32 or bfloat16, 2 cores).
AIMS = {
    ("interleaved", "float32"): (0.80, 10.0),
    ("half", "float32"): (0.40, 7.0),
    ("half", "bfloat16"): (None, 5.0),
}

# The host's time per call, as a fraction of that of 7d2dfc20.
HOST_AIM = 0.6


def main() -> None:
    """Measure every pairing and dtype asked for and print a table of each."""
    arguments = make_parser().parse_args()
    if arguments.host:
        print_host_times(arguments)
        return
    if (arguments.cases or arguments.device.startswith("cuda")) and not torch.cuda.is_available():
        make_parser().error("--device cuda and --cases need a GPU, and torch finds none here")
    if arguments.cases:
        measure_card(arguments)
        return
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
    result.add_argument("--cases", action="store_true", help="all cases of GPUs, forward and backward, with peers")
    result.add_argument("--folder", type=Path, default=FOLDER, help="where --cases writes the file of the card")
    result.add_argument("--host", action="store_true", help="the host's time per call, the launch being a no-op")
    result.add_argument("--commit", default="7d2dfc20", help="the commit that --host compares with")
    result.add_argument("--base", type=Path, help="a folder with that commit, instead of taking it out of git")
    return result


def print_host_times(arguments: argparse.Namespace) -> None:
    """Print the host's time per call of another commit and of this checkout."""
    print(f"host time per call, in turns; medians of {arguments.rounds} rounds; aim: at most {HOST_AIM:g} times")
    print(f"{'call':36s} {arguments.commit + ' (us)':>14s} {'here (us)':>10s} {'ratio':>6s}")
    for name, (other, ours, ratio) in compare_commits(arguments.commit, arguments.base, arguments.rounds).items():
        print(f"{name:36s} {other:14.0f} {ours:10.0f} {ratio:6.2f} {'met' if ratio <= HOST_AIM else 'missed'}")


def measure_card(arguments: argparse.Namespace) -> None:
    """Measure all cases, print them, and write the file of the card."""
    from benchmarks.gpu_cases import NAMES, describe_card, describe_case, measure_cases

    cases, ran = [], set()
    for name, results in measure_cases(rounds=arguments.rounds):
        print_results(name, results)
        cases.append(describe_case(name, results))
        ran |= set(cases[-1].ways)
    missing = [name for name in dict.fromkeys(NAMES.values()) if name not in ran]
    print(f"written: {write_card(describe_card(cases, arguments.rounds, missing), arguments.folder)}")


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
    print_results(f"{pairing}, {dtype}", results)
    print_targets(results, pairing, dtype, arguments.device)


def print_results(title: str, results: dict[str, Measurement]) -> None:
    """Print a table of all ways."""
    print(f"\n{title}, {results['copy'].workload.bytes_moved / 1e6:.0f} MB in and out")
    print(f"{'way':32s} {'ms':>8s} {'best ms':>8s} {'GB/s':>7s} {'% of copy':>9s} {'host us':>8s} {'error':>9s}")
    for name, result in results.items():
        if result.note:
            print(f"{name:32s} {result.note}")
            continue
        error = "" if result.error is None else f"{result.error:.1e}"
        host = f"{statistics.median(result.host_seconds) * 1e6:.0f}" if result.host_seconds else ""
        times = f"{result.median * 1e3:8.3f} {min(result.seconds) * 1e3:8.3f} {result.bytes_per_second / 1e9:7.1f}"
        print(f"{name:32s} {times} {result.fraction_of_copy:9.0%} {host:>8s} {error:>9s}")


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
