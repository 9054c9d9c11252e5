#!/usr/bin/env python3
"""Run the tests of float32 products as other processors would compute them.

Run: `python tools/other_processors.py [--slow] [PYTEST ARGUMENT …]`, with the packages of requirements-dev.txt.

The order in which a product's terms are added depends on the processor: NumPy's OpenBLAS has a kernel for each kind,
torch has loops for each width of vectors. Tests that compare such products between processes or with a golden have the
marker `float32_products`. They run once for each kernel that OpenBLAS has and this processor supports
(OPENBLAS_CORETYPE), once with torch's plainest loops (ATEN_CPU_CAPABILITY=default), and once with the plainest of all.
The exit code is 1 if a test failed in any run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MARKER = "float32_products"
CORES = (
    # x86-64, from old to new; OpenBLAS itself maps a name that was not built into it to one that was.
    *("Prescott", "Core2", "Penryn", "Nehalem", "Atom", "Barcelona", "Bulldozer", "Sandybridge", "Haswell", "Zen"),
    *("SkylakeX", "Cooperlake", "Sapphirerapids"),
    # 64-bit Arm
    *("ARMV8", "CORTEXA53", "CORTEXA57", "NEOVERSEN1", "NEOVERSEN2", "NEOVERSEV1", "THUNDERX2T99", "VORTEX", "A64FX"),
)
ASK = """
import ctypes, sys
from pathlib import Path
import numpy
folder = Path(numpy.__file__).parent
found = [*folder.with_name("numpy.libs").glob("*openblas*"), *(folder / ".dylibs").glob("*openblas*")]
library = ctypes.CDLL(str(found[0]))
for name in ("scipy_openblas_get_corename64_", "scipy_openblas_get_corename", "openblas_get_corename"):
    if hasattr(library, name):
        function = getattr(library, name)
        function.restype = ctypes.c_char_p
        print(function().decode())
        break
# A kernel for another processor would end this process here, by an illegal instruction.
square = numpy.ones((64, 64), numpy.float32)
sys.exit(not (square @ square == 64).all())
"""
FEATURES = """
import numpy._core._multiarray_umath as core
print(" ".join(name for name in core.__cpu_dispatch__ if core.__cpu_features__.get(name)))
"""
PLAIN_TORCH = {"ATEN_CPU_CAPABILITY": "default"}
# Intel's library, which multiplies matrices for torch on x86-64, and oneDNN have their own.
PLAINEST_TORCH = PLAIN_TORCH | {"MKL_CBWR": "COMPATIBLE", "ONEDNN_MAX_CPU_ISA": "SSE41"}
OURS = ("OPENBLAS_CORETYPE", "NPY_DISABLE_CPU_FEATURES", *PLAINEST_TORCH)


def main() -> int:
    """Run every variant and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slow", action="store_true", help="run the slow ones of these tests, too")
    parser.add_argument("--list", action="store_true", help="only print the variants")
    parsed, more = parser.parse_known_args()
    variants = find_variants()
    for name, variables in variants.items():
        print(f"{name}: {' '.join(f'{key}={value}' for key, value in variables.items()) or 'as it is'}", flush=True)
    if parsed.list:
        return 0
    failed = []
    marked = MARKER if parsed.slow else f"{MARKER} and not slow"
    for name, variables in variants.items():
        print(f"\n{name}", flush=True)
        command = [sys.executable, "-m", "pytest", "-m", marked, *more]
        if subprocess.run(command, cwd=ROOT, env=change_environment(variables), check=False).returncode:
            failed.append(name)
    print(f"\n{len(variants)} variants, failed: {', '.join(failed) or 'none'}")
    return int(bool(failed))


def change_environment(variables: dict[str, str]) -> dict[str, str]:
    """Return this process's environment with these variables, and without the others that choose kernels."""
    return {key: value for key, value in os.environ.items() if key not in OURS} | variables


def find_variants() -> dict[str, dict[str, str]]:
    """Return {name: environment variables} of the variants that differ on this machine."""
    variants: dict[str, dict[str, str]] = {}
    own = ask(ASK, {})
    variants[f"OpenBLAS {own or 'unknown'}, this processor's own"] = {}
    seen = {own}
    oldest = ""
    for core in CORES:
        kernel = ask(ASK, {"OPENBLAS_CORETYPE": core})
        # Names without a kernel of their own run another one, which was there already.
        if kernel and kernel not in seen:
            seen.add(kernel)
            oldest = oldest or core
            variants[f"OpenBLAS {kernel}"] = {"OPENBLAS_CORETYPE": core}
    variants["torch with its plainest loops"] = PLAIN_TORCH
    plainest = PLAINEST_TORCH | ({"OPENBLAS_CORETYPE": oldest} if oldest else {})
    features = ask(FEATURES, {})
    if features:
        plainest["NPY_DISABLE_CPU_FEATURES"] = features
    variants["the plainest of OpenBLAS, NumPy and torch"] = plainest
    return variants


def ask(code: str, variables: dict[str, str]) -> str:
    """Return what a child process prints that runs with these variables, "" if it fails."""
    environment = change_environment(variables)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


if __name__ == "__main__":
    sys.exit(main())
