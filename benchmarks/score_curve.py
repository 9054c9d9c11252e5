"""Time of a whole score curve: the matrix product compared with the direct sum in chunks, in one run.

python benchmarks/score_curve.py [--pairs 64] [--longest 16777216] [--repeats 5] [--device cuda]

Prints a Markdown table: median time, peak memory of a process that does only this (beyond its memory after imports),
largest error against mpmath at random distances, and slow-down relative to the NumPy engine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import mpmath
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rope_viz.embedding.spec import RopeSpec
from rope_viz.studies import scores

LENGTHS = (4096, 65_536, 1_048_576, 16_777_216)
CHUNK = 4096  # distances per chunk of the peers: no size from 512 to 65,536 was faster
CHECKED = 20


def direct_sum_numpy(inv_freq: np.ndarray, a: np.ndarray, b: np.ndarray, length: int, device: str) -> np.ndarray:
    """Compute cos(outer) and sin(outer) chunk by chunk, the obvious way."""
    out = np.empty(length)
    for first in range(0, length, CHUNK):
        angle = np.outer(np.arange(first, min(first + CHUNK, length)), inv_freq)
        out[first : first + CHUNK] = np.cos(angle) @ a + np.sin(angle) @ b
    return out


def direct_cosine_numpy(inv_freq: np.ndarray, a: np.ndarray, b: np.ndarray, length: int, device: str) -> np.ndarray:
    """Compute a mean cosine the same way, without sines."""
    out = np.empty(length)
    for first in range(0, length, CHUNK):
        out[first : first + CHUNK] = np.cos(np.outer(np.arange(first, min(first + CHUNK, length)), inv_freq)) @ a
    return out


def direct_sum_torch(inv_freq: np.ndarray, a: np.ndarray, b: np.ndarray, length: int, device: str) -> np.ndarray:
    """Compute the direct sum in torch float64 on the device, and copy it back like ours."""
    import torch

    w, x, y = (torch.from_numpy(part).to(device) for part in (inv_freq, a, b))
    out = torch.empty(length, dtype=torch.float64, device=device)
    for first in range(0, length, CHUNK):
        angle = torch.outer(torch.arange(first, min(first + CHUNK, length), dtype=torch.float64, device=device), w)
        out[first : first + CHUNK] = angle.cos() @ x + angle.sin() @ y
    return out.cpu().numpy()


def curve_numpy(inv_freq: np.ndarray, a: np.ndarray, b: np.ndarray, length: int, device: str) -> np.ndarray:
    return scores.curve(inv_freq, a, b, stop=length)


def cosine_numpy(inv_freq: np.ndarray, a: np.ndarray, b: np.ndarray, length: int, device: str) -> np.ndarray:
    return scores.curve(inv_freq, a, stop=length)


def curve_torch(inv_freq: np.ndarray, a: np.ndarray, b: np.ndarray, length: int, device: str) -> np.ndarray:
    return scores.curve(inv_freq, a, b, stop=length, backend="torch", device=device)


def envelope_numpy(inv_freq: np.ndarray, a: np.ndarray, b: np.ndarray, length: int, device: str) -> np.ndarray:
    return scores.curve_envelope(inv_freq, a, b, stop=length, columns=2000)[1]


Method = Callable[[np.ndarray, np.ndarray, np.ndarray, int, str], np.ndarray]
METHODS: dict[str, tuple[str, Method]] = {
    "numpy": ("rope_viz, NumPy", curve_numpy),
    "torch": ("rope_viz, torch", curve_torch),
    "envelope": ("rope_viz, envelope of 2000 columns", envelope_numpy),
    "peer_numpy": ("cos(outer) and sin(outer), NumPy", direct_sum_numpy),
    "peer_torch": ("cos(outer) and sin(outer), torch", direct_sum_torch),
    "cosine": ("rope_viz, NumPy, cosines only", cosine_numpy),
    "peer_cosine": ("cos(outer), NumPy, cosines only", direct_cosine_numpy),
}


def measure(name: str, length: int, pairs: int, repeats: int, device: str) -> dict[str, float]:
    """Measure one method at one length in this process, so that its memory is measured alone."""
    random = np.random.default_rng(0)
    inv_freq = RopeSpec(head_dim=2 * pairs).inv_freq().copy()
    a, b = random.normal(size=(2, pairs))
    if "cosine" in name:
        b = np.zeros(pairs)
    method = METHODS[name][1]
    method(inv_freq, a, b, 4096, device)  # warm up imports, threads and code paths
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        values = method(inv_freq, a, b, length, device)
        times.append(time.perf_counter() - begin)
        if len(times) < repeats:
            del values
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * (1 if sys.platform == "darwin" else 1024)
    error = 0.0
    if name != "envelope":
        with mpmath.workprec(200):
            for distance in [length - 1, *random.integers(0, length, CHECKED).tolist()]:
                exact = mpmath.fsum(
                    mpmath.mpf(x) * mpmath.cos(mpmath.mpf(w) * distance)
                    + mpmath.mpf(y) * mpmath.sin(mpmath.mpf(w) * distance)
                    for w, x, y in zip(inv_freq.tolist(), a.tolist(), b.tolist(), strict=True)
                )
                error = max(error, float(abs(exact - mpmath.mpf(float(values[distance])))))
    return {"time": statistics.median(times), "best": min(times), "peak": float(peak), "error": error}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=64)
    parser.add_argument("--longest", type=int, default=LENGTHS[-1])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--device", default="cpu", help="of the two torch rows")
    parser.add_argument("--one", nargs=2, metavar=("METHOD", "LENGTH"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        name, length = options.one
        print(json.dumps(measure(name, int(length), options.pairs, options.repeats, options.device)))
        return
    print(f"{os.cpu_count()} cores, {platform.machine()}, NumPy {np.__version__}, {options.pairs} pairs, ", end="")
    print(f"median of {options.repeats}, torch on {options.device}, load {os.getloadavg()[0]:.1f} at the start\n")
    print("| distances | method | time, ms | best, ms | peak memory, MB | error | times ours |")
    print("| ---: | --- | ---: | ---: | ---: | ---: | ---: |")
    for length in (length for length in LENGTHS if length <= options.longest):
        rows = {}
        for name in METHODS:
            # The direct sums take seconds at the longest length, so two repeats are enough.
            repeats = 2 if name.startswith("peer") and length > 4_000_000 else options.repeats
            command = [sys.executable, __file__, "--pairs", str(options.pairs), "--repeats", str(repeats)]
            command += ["--device", options.device, "--one", name, str(length)]
            rows[name] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        for name, row in rows.items():
            own_time = rows["cosine" if "cosine" in name else "numpy"]["time"]
            error = "" if name == "envelope" else f"{row['error']:.0e}"
            print(
                f"| {length:,} | {METHODS[name][0]} | {1e3 * row['time']:.2f} | {1e3 * row['best']:.2f} "
                f"| {row['peak'] / 1e6:.1f} | {error} | {row['time'] / own_time:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
