"""Shared by all tests: hypothesis profiles, which tests a run selects and in which order, and no skipped test in CI."""

import gc
import importlib.util
import os
import random
import sys
from collections import Counter
from pathlib import Path

# Before NumPy loads: with several workers, BLAS threads cost more by waiting for each other than they gain.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

from rope_viz.models.identity.local_models import MODELS

# Otherwise garbage collection scans all imported modules again and again, which takes up to a tenth of the time.
gc.set_threshold(100_000, 50, 50)

settings.register_profile(
    "default", deadline=None, max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("many", deadline=None, max_examples=10_000, suppress_health_check=list(HealthCheck))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

QUICK = "not slow"
"""The `-m` of pyproject.toml."""

MISSING = {
    "gpu": ("a CUDA GPU, and torch and triton for it", not Path("/dev/nvidiactl").exists()),
    "llama_cpp": ("pip install gguf llama-cpp-python", importlib.util.find_spec("llama_cpp") is None),
    "notebook": (
        "pip install jupyterlab marimo",
        not all(map(importlib.util.find_spec, ("jupyterlab", "marimo"))),
    ),
    "ray": ("pip install 'rope-viz[ray]'", importlib.util.find_spec("ray") is None),
    "real_model": ("rope-viz get-model smollm2", not MODELS["smollm2"].weights.is_file()),
}
"""{marker: (what its tests need, or what installs it; whether it is missing)}."""

DESELECTED = pytest.StashKey[Counter]()


def pytest_addoption(parser):
    parser.addoption("--shuffle", metavar="SEED", help="run the tests in a random order, the same for one seed")


def pytest_configure(config):
    config.stash[DESELECTED] = Counter()
    if config.option.markexpr == QUICK and names_a_file(config, all):  # a file that is named runs with its slow tests
        config.option.markexpr = ""


def names_a_file(config, quantifier=any):
    """Return True if any, or all, of the command line's arguments are files."""
    return quantifier(Path(argument.partition("::")[0]).suffix == ".py" for argument in config.args)


def pytest_ignore_collect(collection_path, config):
    """With `-m slow`, do not import files without slow tests; those of tests/browser are marked by its conftest."""
    skips = config.option.markexpr == "slow" and not names_a_file(config)
    if skips and collection_path.name.startswith("test_") and collection_path.parent.name != "browser":
        return "pytest.mark.slow" not in collection_path.read_text(encoding="utf-8") or None
    return None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    deselected = []
    for item in list(items):
        for mark in item.iter_markers():
            if MISSING.get(mark.name, ("", False))[1]:
                config.stash[DESELECTED][mark.name, item.nodeid.partition("::")[0]] += 1
                deselected.append(item)
                items.remove(item)
                break
    config.hook.pytest_deselected(items=deselected)
    if config.option.shuffle:
        random.Random(config.option.shuffle).shuffle(items)
    if hasattr(config, "workeroutput"):
        config.workeroutput["deselected"] = [[*key, count] for key, count in config.stash[DESELECTED].items()]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    for name, path, count in getattr(node, "workeroutput", {}).get("deselected", ()):
        node.config.stash[DESELECTED][name, path] = count


def pytest_terminal_summary(terminalreporter, config):
    for (name, path), count in sorted(config.stash[DESELECTED].items()):
        terminalreporter.line(f"deselected {count} marked {name} in {path}: {MISSING[name][0]}")


def reject_skip(report):
    """Turn a skipped test or file into a failed one where ROPE_VIZ_NO_SKIP is set, as in CI."""
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("ROPE_VIZ_NO_SKIP"):
        report.outcome = "failed"
        report.longrepr = f"{report.longrepr}\nROPE_VIZ_NO_SKIP is set: no test may be skipped"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    return reject_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    return reject_skip((yield))


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """Add two workers to those of the cores where slow tests run, because many of them wait."""
    waits = config.option.markexpr != QUICK and "PYTEST_XDIST_AUTO_NUM_WORKERS" not in os.environ
    return (yield) + 2 * waits


def pytest_collection_finish():
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol():
    # Streamlit's AppTest replaces it by a script whose file is removed, which new processes would then run.
    main = sys.modules["__main__"]
    done = yield
    sys.modules["__main__"] = main
    return done
