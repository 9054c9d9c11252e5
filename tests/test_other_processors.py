"""The script that runs tests of float32 products as other processors would compute them."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "tools" / "other_processors.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("other_processors", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_variant_replaces_what_the_environment_says_of_kernels(script, monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "avx2")
    monkeypatch.setenv("KEPT", "yes")
    changed = script.change_environment({"ATEN_CPU_CAPABILITY": "default"})
    assert changed["ATEN_CPU_CAPABILITY"] == "default"
    assert "OPENBLAS_CORETYPE" not in changed
    assert changed["KEPT"] == "yes"


def test_a_kernel_that_the_processor_cannot_run_is_left_out(script):
    assert script.ask("import os, signal; print('x', flush=True); os.kill(os.getpid(), signal.SIGILL)", {}) == ""
    assert script.ask("print('Haswell')", {}) == "Haswell"


@pytest.mark.slow
def test_each_kernel_runs_once_and_the_plainest_loops_too(script):
    variants = script.find_variants()
    kernels = {script.ask(script.ASK, variables) for variables in variants.values()}
    own = [name for name in variants if name.startswith("OpenBLAS")]
    assert len(own) == len(kernels)
    assert {"ATEN_CPU_CAPABILITY": "default"} in variants.values()
    listed = subprocess.run([sys.executable, SCRIPT, "--list"], capture_output=True, text=True, check=True).stdout
    assert [line.partition(": ")[0] for line in listed.splitlines()] == [*variants]
