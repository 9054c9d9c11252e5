"""Tests give the same results in any order, in one process: samples of the suite are shuffled."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("tests/**/test_*.py"))

pytestmark = pytest.mark.slow


def run(*arguments):
    command = [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_shuffled_sample_passes_in_one_process(seed):
    run("--shuffle", str(seed), "-m", "not slow and not browser", *random.Random(seed).sample(FILES, 5))


def test_browser_tests_leave_no_event_loop_behind():
    smoke = "tests/browser/test_smoke.py"
    first, last = "test_dragged_word_on_home_changes_the_angle", "test_link_on_home_opens_learn_in_the_same_tab"
    run(f"{smoke}::{first}", "tests/serving/test_request_bodies.py", f"{smoke}::{last}")
