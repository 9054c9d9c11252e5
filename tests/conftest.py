"""Shared by all tests: hypothesis profiles (the same examples in every run, or many new ones), and the order of tests.

There is one worker per core. A worker gets whole files, so that each fixture of a file is made once; browser tests
come last and are distributed one by one. All tests of Firefox, and all of WebKit, go to one worker, so that each of
these browsers starts once. One more worker begins with the tests that wait more than they compute.
"""

import gc
import os
import sys

# Before NumPy loads: with several workers, BLAS threads cost more by waiting for each other than they gain.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

# Otherwise garbage collection scans all imported modules again and again, which takes up to a tenth of the time.
gc.set_threshold(100_000, 50, 50)

settings.register_profile(
    "default", deadline=None, max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("many", deadline=None, max_examples=10_000, suppress_health_check=list(HealthCheck))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


# These wait for servers that restart, for pages to become idle, or for a slow connection.
WAITING = tuple(
    f"tests/{name}.py"
    for name in (
        "test_scripts",
        "browser/test_proxies",
        "browser/test_every_handle",
        "browser/test_far_server",
        "browser/test_server_away",
        "browser/test_slow_line",
        "browser/test_walk",
    )
)
# Few tests, but long ones: if they began last, everything else would wait for them.
LONG = tuple(
    f"tests/{name}.py"
    for name in ("cli/test_install", "kernels/test_kernel_parallel", "tiny_lm/test_served_evaluation")
)


class Scheduling(LoadScopeScheduling):
    """Units of work: a file, a single browser or script test, or all tests of Firefox or of WebKit."""

    def _split_scope(self, nodeid):
        path, _, name = nodeid.partition("::")
        if path.endswith("test_other_engines.py"):
            return f"{path}::{name.partition('[')[2].partition('-')[0].rstrip(']')}"
        return nodeid if "/browser/" in path or path in WAITING else path

    def _assign_work_unit(self, node):
        waits = self.numnodes > 2 and node.gateway.id == f"gw{self.numnodes - 1}"
        fitting = [scope for scope in self.workqueue if scope.startswith(WAITING) == waits] or [*self.workqueue]
        best = next((scope for scope in fitting if scope.startswith(LONG)), fitting[0])
        self.workqueue.move_to_end(best, last=False)
        super()._assign_work_unit(node)


def pytest_xdist_make_scheduler(config, log):
    return Scheduling(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_xdist_auto_num_workers(config):
    return (yield) + ("PYTEST_XDIST_AUTO_NUM_WORKERS" not in os.environ)


def pytest_collection_finish():
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol():
    # Streamlit's AppTest replaces it by a script whose file is removed, which new processes would then run.
    main = sys.modules["__main__"]
    done = yield
    sys.modules["__main__"] = main
    return done
