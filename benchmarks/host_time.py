"""The host's time per call of the kernels, of two commits in one run, without a GPU.

A worker for each commit makes the calls with tensors of the CPU. The Triton kernel's path takes them, and its launch is
replaced by a no-op. The workers take turns, so that a busy moment affects both.
"""

from __future__ import annotations

import io
import json
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CALLS = 200


def compare_commits(commit: str, base: Path | None, rounds: int) -> dict[str, tuple[float, float, float]]:
    """Return {call: (microseconds of the other commit, of this checkout, median ratio of the same round)}.

    base: a folder with the other commit; None: it is taken out of git.
    """
    with tempfile.TemporaryDirectory() as folder:
        roots = (base or extract_commit(commit, Path(folder)), ROOT)
        workers = [start_worker(root) for root in roots]
        times: dict[str, list[list[float]]] = {}
        for turn in range(rounds):
            order = (0, 1) if turn % 2 else (1, 0)
            found = {place: ask(workers[place]) for place in order}
            for name in found[0]:
                times.setdefault(name, []).append([found[0][name], found[1][name]])
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.close()
            worker.wait()
    return {
        name: (
            statistics.median(other for other, _ in pairs),
            statistics.median(ours for _, ours in pairs),
            statistics.median(ours / other for other, ours in pairs),
        )
        for name, pairs in times.items()
    }


def extract_commit(commit: str, folder: Path) -> Path:
    """Write the package of a commit to the folder and return it."""
    command = ["git", "-C", str(ROOT), "archive", commit, "rope_viz"]
    archive = subprocess.run(command, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
    return folder


def start_worker(root: Path) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, str(root)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def ask(worker: subprocess.Popen[str]) -> dict[str, float]:
    """Return one round of a worker, {call: microseconds}."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write("\n")
    worker.stdin.flush()
    answer: dict[str, float] = json.loads(worker.stdout.readline())
    return answer


def make_calls() -> dict[str, Callable[[], Any]]:
    """Return the calls to time, by the package that is first in sys.path."""
    import numpy as np
    import torch

    from rope_viz.kernels import flash_attn, operators, rotate_qk, triton_ops

    class NoLaunch:
        def __getitem__(self, grid: Any) -> Callable[..., None]:
            return lambda *arguments, **constants: None

    torch.set_num_threads(1)
    triton_ops.rotate_kernel = NoLaunch()
    torch.Tensor.pin_memory = lambda tensor: tensor
    if hasattr(operators, "_has_kernel"):
        operators._has_kernel = lambda x: True
    else:  # 7d2dfc20
        operators.torch_ops = SimpleNamespace(rotate_into=triton_ops.rotate_into)
    q, k = torch.zeros(8, 1, 32, 128, dtype=torch.bfloat16), torch.zeros(8, 1, 8, 128, dtype=torch.bfloat16)
    outs = torch.empty_like(q), torch.empty_like(k)
    positions, inv_freq = torch.full((8, 1), 77), torch.as_tensor(10_000.0 ** (-np.arange(64) / 64))
    table = torch.zeros(100, 64), torch.zeros(100, 64)
    return {
        "q and k": lambda: rotate_qk(q, k, positions, inv_freq, pairing="half"),
        "q and k, out=": lambda: rotate_qk(q, k, positions, inv_freq, pairing="half", out=outs),
        "q and k, table": lambda: rotate_qk(q, k, positions, table=table, pairing="half"),
        "q and k, table, out=": lambda: rotate_qk(q, k, positions, table=table, pairing="half", out=outs),
        "flash_attn.apply_rotary, in place": lambda: flash_attn.apply_rotary(q, *table, inplace=True),
    }


def work() -> None:
    """Print a round of all calls for every line of the standard input."""
    calls = make_calls()
    for _ in sys.stdin:
        times = {}
        for name, call in calls.items():
            call()
            start = time.perf_counter()
            for _ in range(CALLS):
                call()
            times[name] = (time.perf_counter() - start) / CALLS * 1e6
        print(json.dumps(times), flush=True)


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    work()
