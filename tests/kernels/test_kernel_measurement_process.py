"""A measurement in its own process: one at a time, can be stopped, and fails with one sentence."""

import json

import pytest

torch = pytest.importorskip("torch")

from rope_viz.kernels import report  # noqa: E402
from rope_viz.kernels.measurement_process import TEXTS, BusyError, Run  # noqa: E402
from rope_viz.storage import processes  # noqa: E402
from rope_viz.texts import join, use_language  # noqa: E402

pytestmark = pytest.mark.slow

SMALL = {"tokens": 16, "heads": 2, "head_dim": 16, "device": "cpu"}


@pytest.fixture
def start():
    """start(workload, **options) -> Run; ended with the test, whatever happens in it."""
    runs = []

    def begin(workload, **options):
        runs.append(Run(workload, **options))
        return runs[-1]

    yield begin
    for run in runs:
        run.stop()
        assert run.wait(30)


def test_process_reports_every_kernel_and_frees_the_slot(start):
    run = start(SMALL, rounds=2, compiled=False)
    with pytest.raises(BusyError):
        Run(SMALL)
    assert run.wait(120)
    assert (run.problem, run.fraction) == ("", 1)
    assert {"copy", "ours, out=", "eager rotate_half", "dense matrix"} <= {way["name"] for way in run.report.ran}
    assert all(way["rounds"] == 2 for way in run.report.ran)
    assert "flash-attention" in run.report.left_out
    assert len(run.report.agreement) >= 8
    assert run.report.machine["torch"] == torch.__version__
    plain = vars(run.report)
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain, "as it is read from its download"
    start(SMALL)


def test_stopped_measurement_is_reported_and_frees_the_slot(start):
    run = start({**SMALL, "tokens": 4096}, rounds=100_000)
    run.stop()
    assert run.wait(30)
    assert run.problem == "The measurement was stopped."
    assert not run.report.ran
    start(SMALL)


def test_measurement_is_stopped_at_its_time_limit(start):
    run = start(SMALL, rounds=100_000, limit=0.2)
    assert run.wait(30)
    assert "0 seconds" in run.problem


def test_crash_of_the_process_becomes_a_sentence(start):
    run = start({**SMALL, "dtype": "float9"})
    assert run.wait(120)
    assert "exit code 1" in run.problem


def test_sentences_of_a_process_are_in_the_language_of_its_page(start):
    """A crash is reported by a thread of the server, which has no language of its own."""
    with use_language("zh"):
        run = start({**SMALL, "dtype": "int8"})
    assert run.wait(60)
    with use_language("zh"):
        assert run.problem == join(TEXTS("problems.failed", code=1), TEXTS("problems.see_log"))
    assert run.problem != join(TEXTS("problems.failed", code=1), TEXTS("problems.see_log"))


def test_process_that_cannot_start_frees_the_slot(start, monkeypatch):
    monkeypatch.setattr(processes.sys, "executable", "/none/such")
    run = start(SMALL)
    assert "could not be started" in run.problem
    assert not run.is_alive
    monkeypatch.undo()
    start(SMALL)


def test_device_is_selected_in_the_process_with_torch():
    first = next(report.report_lines({**SMALL, "device": "auto"}))
    assert first["machine"]["gpu"] == torch.cuda.is_available()
