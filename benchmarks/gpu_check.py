"""One run on a machine with a GPU: is the kernel right, and how fast is it and was it? Prepared for some three minutes.

    python benchmarks/gpu_check.py --base FOLDER

1. The cases of the interpreter's tests, and the tests of waiting, on the GPU.
2. The cases of benchmarks/gpu_cases.py: a copy and our ways of both commits, torch.compile, and peers if installed.

FOLDER holds the package of 7d2dfc20 (`git archive 7d2dfc20 rope_viz | tar -x -C FOLDER`). Without --base it is taken
out of git. Needs torch and triton; pytest for the tests of waiting. Ends with exit code 1 if a result is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OURS = ("ours, out=", "ours, float32 table, out=", "ours")
PEERS = ("torch.compile", "flash-attention, float32 table", "flash-attention", "FLA", "Liger, in place")
ROUNDS = 15


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--base", type=Path, help="a folder with the package of 7d2dfc20")
    parser.add_argument("--out", type=Path, help="write all numbers to this JSON file")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--only", nargs="*", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work(arguments.worker, arguments.only)
        return
    import torch

    if not torch.cuda.is_available():
        parser.error("the check needs a GPU, and torch finds none here")
    sys.path.insert(0, str(ROOT))
    from benchmarks.host_time import extract_commit

    start = time.monotonic()
    wrong = check_results()
    print(f"[{time.monotonic() - start:.0f} s] {wrong} wrong", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        base = arguments.base or extract_commit("7d2dfc20", Path(folder))
        found = {"7d2dfc20": run_worker(base, OURS), "here": run_worker(ROOT, OURS + PEERS)}
    print(f"[{time.monotonic() - start:.0f} s] share of a copy in the same run, and the host's time per call")
    for case in found["here"]:
        print(case)
        for commit, cases in found.items():
            for way, (share, us, host) in cases[case].items():
                print(f"  {commit:9s} {way:28s} {share:7.1%} {us:9.1f} us, host {host:6.0f} us")
    if arguments.out:
        arguments.out.write_text(json.dumps(found, indent=1), encoding="utf-8")
    sys.exit(wrong != 0)


def check_results() -> int:
    """Return how many cases are wrong on the GPU."""
    script = ROOT / "tests" / "kernels" / "interpreted.py"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, script, "cuda"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr[-2000:])
        return 1
    errors = json.loads(done.stdout)
    too_large = {case: error for case, error in errors.items() if not error <= 1.0}
    print(f"{len(errors)} cases on the GPU, wrong: {too_large or 'none'}")
    tests = [sys.executable, "-m", "pytest", "-n", "0", "-q", "-m", "gpu", "tests/kernels/test_kernel_waits.py"]
    waits = subprocess.run(tests, cwd=ROOT, check=False).returncode
    return len(too_large) + (waits != 0)


def run_worker(root: Path, only: tuple[str, ...]) -> dict[str, dict[str, list[float]]]:
    """Return {case: {way: [share of a copy, microseconds, the host's microseconds]}} of the package in a folder."""
    command = [sys.executable, __file__, "--worker", str(root), "--only", *only]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, dict[str, list[float]]] = json.loads(done.stdout.splitlines()[-1])
    return found


def work(root: Path, only: list[str]) -> None:
    """Print the times of the package in a folder, measured by this checkout's `measure`."""
    sys.path[:0] = [str(root), str(ROOT)]
    import rope_viz.kernels

    # What the other commit lacks, or measures otherwise, is this checkout's.
    rope_viz.kernels.__path__.append(str(ROOT / "rope_viz" / "kernels"))
    load_here("rope_viz.kernels.measure")
    from benchmarks.gpu_cases import measure_cases

    found = {
        name: {
            way: [result.fraction_of_copy, 1e6 * result.median, 1e6 * sorted(result.host_seconds)[ROUNDS // 2]]
            for way, result in results.items()
            if result.seconds
        }
        for name, results in measure_cases(rounds=ROUNDS, only=only)
    }
    print(json.dumps(found))


def load_here(name: str) -> None:
    """Import a module of this checkout under its name, whatever is first in sys.path."""
    import importlib.util

    path = (ROOT / name.replace(".", "/")).with_suffix(".py")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


if __name__ == "__main__":
    main()
