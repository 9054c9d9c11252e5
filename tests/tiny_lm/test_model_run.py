"""The process of a model run has limits, and its end is a sentence for the user."""

import os
import signal

import pytest

from rope_viz.evaluation.search_process import SearchRun
from rope_viz.real_models.model_run import ModelRun
from rope_viz.storage.limits import MODEL_RUN_MEMORY, MODEL_RUN_NICENESS
from tests.storage.test_processes import needs_limits, needs_proc
from tests.waiting import wait_until


def run_job(name, number=0, kind=ModelRun):
    """Run a function of `process_jobs` as one of models."""

    class JobRun(kind):
        function = f"tests.storage.process_jobs:{name}"

        def __init__(self):
            super(kind, self).__init__({"number": number})

        def make_report(self, workload):
            return Lines()

        first_step = ""

    return JobRun()


class Lines(list):
    """A report of all lines."""

    add_line = list.append


@needs_proc
@pytest.mark.parametrize(("kind", "sentence"), [(ModelRun, "The model needed"), (SearchRun, "The search needed")])
def test_run_beyond_its_memory(kind, sentence):
    run = run_job("allocate_and_tell", MODEL_RUN_MEMORY, kind)
    assert run.wait(60)
    assert run.problem.startswith(f"{sentence} more than 3 GB of memory")


@needs_limits
def test_run_lets_the_server_answer_first():
    run = run_job("tell_environment")
    assert run.wait(60)
    assert run.report == [{"niceness": os.nice(0) + MODEL_RUN_NICENESS, "threads": ["1", "1", "1"]}]
    assert run.problem == ""


@needs_limits
def test_killed_run_is_a_sentence_and_frees_the_slot():
    run = run_job("tell_and_sleep")
    wait_until(lambda: run.report, 60, "a line of the process")
    os.kill(run._process.pid, signal.SIGKILL)
    assert run.wait(10)
    assert "exit code -9" in run.problem
    again = run_job("tell_environment")
    assert again.wait(60)
    assert again.report
