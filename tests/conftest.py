"""What all tests share: a hypothesis profile that draws the same in every run, one with many new examples, the order.

There is a worker for each core. Each takes file after file, so that what a file prepares is prepared once, and of the
browser's tests, which come last, test after test. All tests of one of the other engines go to one worker: each of
these browsers is started once, not by all. One more worker begins with the tests that wait more than they work.
"""

import gc
import os

# Before NumPy loads: with workers beside it, threads of BLAS wait for each other longer than they help.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

# Python would look through all that was imported again and again: up to a tenth of the time.
gc.set_threshold(100_000, 50, 50)

settings.register_profile(
    "default", deadline=None, max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("many", deadline=None, max_examples=10_000, suppress_health_check=list(HealthCheck))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


# They wait for servers that die and come back, for a page that comes to rest, for a line that is slow.
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
# One test or two, but seconds of them: begun last, they would be what all others wait for.
LONG = tuple(
    f"tests/{name}.py"
    for name in ("cli/test_install", "kernels/test_kernel_parallel", "tiny_lm/test_served_evaluation")
)


class Scheduling(LoadScopeScheduling):
    """Units of work: files, single tests of the browser and of scripts, all tests of one of the other engines."""

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
