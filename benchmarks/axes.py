"""Time of a map of scores over displacements, compared with the direct computation in the same run.

    python benchmarks/axes.py [--side 1024] [--pairs 64] [--repeats 7]

Direct: the cosine of every pair's angle at every displacement, in chunks of rows that fit the cache. Both use float64
and the same displacements; the largest difference is printed with the medians.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from rope_viz.embedding.axes_spec import THW, AxesSpec, assign_sections, interleave_sections, mix_axes, shared_ladder
from rope_viz.embedding.spec import FloatArray, RopeSpec
from rope_viz.studies.distance_2d import even_coefficients, plane


def compute_directly(spec: AxesSpec, a: FloatArray, rows: FloatArray, columns: FloatArray) -> FloatArray:
    """Compute the same map from H·W·pairs cosines."""
    down, across = spec.along("h"), spec.along("w")
    out = np.empty((len(rows), len(columns)))
    for index, row in enumerate(rows):
        out[index] = np.cos(row * down + np.multiply.outer(columns, across)) @ a
    return out


def time_median(run: Callable[[], object], repeats: int) -> float:
    """Return the median time in seconds after one uncounted run."""
    run()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def make_specs(pairs: int) -> dict[str, AxesSpec]:
    """Return one spec of each kind."""
    ladder = RopeSpec(head_dim=2 * pairs, base=5e6)
    quarter = pairs // 4
    turn = np.random.default_rng(0).uniform(0.0, 2.0 * math.pi, pairs)
    frequencies = 10.0 ** (-np.arange(pairs) / pairs)
    directions = np.stack([frequencies * np.sin(turn), frequencies * np.cos(turn)], axis=1)
    counts = [pairs - 6 * quarter // 2, 3 * quarter // 2, 3 * quarter // 2]
    return {
        "sections": shared_ladder(ladder, assign_sections(counts, pairs), THW),
        "interleaved": shared_ladder(ladder, interleave_sections(counts, pairs), THW),
        "directions": mix_axes(directions, ("h", "w")),
    }


def main() -> None:
    """Print one line per kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=1024)
    parser.add_argument("--pairs", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    rows = np.arange(options.side) - options.side // 2.0
    print(
        f"{options.side} × {options.side} displacements, {options.pairs} pairs, float64, medians of {options.repeats}"
    )
    for name, spec in make_specs(options.pairs).items():
        a, b = even_coefficients(spec)
        fast = time_median(lambda spec=spec, a=a, b=b: plane(spec, a, b, rows, rows), options.repeats)  # type: ignore[misc]
        slow = time_median(lambda spec=spec, a=a: compute_directly(spec, a, rows, rows), max(1, options.repeats // 3))  # type: ignore[misc]
        difference = float(np.abs(plane(spec, a, b, rows, rows) - compute_directly(spec, a, rows, rows)).max())
        times = f"{fast * 1e3:8.1f} ms   direct {slow * 1e3:8.1f} ms   {slow / fast:6.0f} ×"
        print(f"{name:12s} {times}   difference {difference:.1e}")


if __name__ == "__main__":
    main()
