"""What all tests share: a hypothesis profile that draws the same in every run, one with many new examples, the order.

Where two workers share the work each takes file after file, so that what a file prepares is prepared once, and of the
browser's tests, which come last, test after test. All tests of one of the other engines go to one worker: each of
these browsers is started once, not by both.
"""

import os

# Before NumPy loads: with workers beside it, threads of BLAS wait for each other longer than they help.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

settings.register_profile(
    "default", deadline=None, max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("many", deadline=None, max_examples=10_000, suppress_health_check=list(HealthCheck))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


class Scheduling(LoadScopeScheduling):
    """Units of work: files, single tests of the browser, and all tests of one of the other engines."""

    def _split_scope(self, nodeid):
        path, _, name = nodeid.partition("::")
        if path.endswith("test_other_engines.py"):
            return f"{path}::{name.partition('[')[2].partition('-')[0].rstrip(']')}"
        return nodeid if "/browser/" in path else path


def pytest_xdist_make_scheduler(config, log):
    return Scheduling(config, log)
