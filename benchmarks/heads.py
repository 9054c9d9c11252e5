"""Time of the mean logit by distance: the Fourier transform compared with direct computations, in one run.

python benchmarks/heads.py [--tokens 32768] [--head-dim 128] [--repeats 3]

One head with random q and k. The direct ways rotate once and then either compute every distance separately (a dot
product of two shifted arrays), or compute all scores in blocks by a matrix product and sum their diagonals. Prints a
Markdown table: median time, slow-down and largest difference relative to the largest value, both against ours.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", str(os.cpu_count() or 1))

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rope_viz.embedding.spec import RopeSpec
from rope_viz.studies.correlation import mean_logits

BLOCK = 256  # queries per block: no size from 64 to 1,024 was faster


def rotate(x: np.ndarray, inv_freq: np.ndarray) -> np.ndarray:
    """Rotate (tokens, head_dim) in float64, with half-split pairs."""
    half = x.shape[1] // 2
    angle = np.outer(np.arange(len(x)), inv_freq)
    cos, sin = np.cos(angle), np.sin(angle)
    first, second = x[:, :half], x[:, half:]
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=1)


def average_by_distance(q: np.ndarray, k: np.ndarray, inv_freq: np.ndarray) -> np.ndarray:
    """Compute every distance separately."""
    q, k = rotate(q, inv_freq), rotate(k, inv_freq)
    tokens = len(q)
    sums = [np.vdot(q[distance:], k[: tokens - distance]) for distance in range(tokens)]
    return np.array(sums) / np.arange(tokens, 0, -1)


def average_by_blocks(q: np.ndarray, k: np.ndarray, inv_freq: np.ndarray) -> np.ndarray:
    """Compute all scores by matrix products in blocks of queries, and sum their diagonals."""
    q, k = rotate(q, inv_freq), rotate(k, inv_freq)
    tokens, total = len(q), np.zeros(len(q))
    for first in range(0, tokens, BLOCK):
        last = min(first + BLOCK, tokens)
        # Keys are ordered from newest to oldest, so column j of row m has distance m − last + 1 + j.
        scores = q[first:last] @ k[:last][::-1].T
        for row in range(last - first):
            seen = first + row + 1
            total[:seen] += scores[row, last - seen :]
    return total / np.arange(tokens, 0, -1)


def time_call(run: Callable[[], np.ndarray], repeats: int) -> tuple[float, np.ndarray]:
    """Return the median time in seconds, and the result."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        found = run()
        times.append(time.perf_counter() - begin)
    return statistics.median(times), found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=32_768)
    parser.add_argument("--head-dim", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    random = np.random.default_rng(0)
    q, k = random.normal(size=(2, options.tokens, options.head_dim))
    inv_freq = RopeSpec(head_dim=options.head_dim).inv_freq()
    mean_logits(q[None, :64], k[None, :64], inv_freq)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds, result = time_call(lambda: mean_logits(q[None], k[None], inv_freq)[0], options.repeats)
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"{options.tokens:,} tokens, a head of {options.head_dim}, {os.cpu_count()} cores, NumPy {np.__version__}\n")
    print("| | time | times ours | largest difference |\n| --- | ---: | ---: | ---: |")
    print(f"| ours, by FFT over pairs | {seconds:.2f} s, {memory:.0f} MB | 1 | |", flush=True)
    for name, way in (
        ("matrix products and diagonals", average_by_blocks),
        ("distance by distance", average_by_distance),
    ):
        direct, found = time_call(lambda way=way: way(q, k, inv_freq), 1)
        error = np.abs(found - result).max() / np.abs(result).max()
        print(f"| {name} | {direct:.1f} s | {direct / seconds:.0f} | {error:.0e} |", flush=True)


if __name__ == "__main__":
    main()
