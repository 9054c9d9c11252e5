"""An evaluation on a Ray cluster of this machine. With Ray installed: pytest -n 0 -m ray tests/tiny_lm/test_ray.py."""

import json
import os
import signal

import pytest

from rope_viz.cli.main import main
from rope_viz.evaluation.completion_clients import UnavailableError
from rope_viz.evaluation.evaluation_plan import read_evaluation
from rope_viz.evaluation.ray_workers import RayEngine, join_cluster, start_workers
from rope_viz.evaluation.run_evaluation import EvaluationPlan, evaluate
from rope_viz.tiny_lm import checkpoints

pytestmark = pytest.mark.ray
FOLDER = checkpoints.FOLDER / "seed-0"
WORDS = ["evaluate", str(FOLDER), "--words", "reader", "--lengths", "256,512", "--depths", "4"]


@pytest.fixture(autouse=True)
def ray(monkeypatch):
    """Ray itself: every test starts a cluster of this machine, which ends with the test."""
    import ray

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    yield ray
    ray.shutdown()


def test_one_and_two_workers_answer_as_without_ray(ray, tmp_path):
    assert main([*WORDS, "-o", str(tmp_path / "without.json")]) == 0
    for number in ("1", "2"):
        words = [*WORDS, "--ray", "auto", "--ray-workers", number, "-o", str(tmp_path / f"{number}.json")]
        assert main(words) == 0
        ray.shutdown()
        assert (tmp_path / f"{number}.json").read_bytes() == (tmp_path / "without.json").read_bytes()


def test_a_killed_worker_is_replaced_and_nothing_is_lost(ray, tmp_path):
    plan = EvaluationPlan(("none",), (512,), (0.0, 0.3, 0.6, 1.0), repeats=3, wording="reader", model="seed-0")
    config = json.loads((FOLDER / "config.json").read_text(encoding="utf-8"))
    assert not join_cluster("auto")
    workers = start_workers(FOLDER, {"none": config}, 2)
    actor = workers[0].engines["none"].actor
    before, killed = ray.get(actor.process.remote()), []

    def kill_once(line):
        if "asked" in line and not killed:
            killed.append(line)
            os.kill(before, signal.SIGKILL)

    evaluate(plan, workers, tmp_path / "out.json", say=kill_once)
    assert killed
    assert ray.get(actor.process.remote()) != before
    rows = read_evaluation(tmp_path / "out.json").rows
    assert sorted(row.cell for row in rows) == sorted(plan.cells())
    assert all(row.right is not None for row in rows)


def test_a_cluster_that_is_not_there_is_an_error(tmp_path, capsys):
    assert main([*WORDS, "--ray", "127.0.0.1:9", "-o", str(tmp_path / "o.json")]) == 2
    assert "the Ray cluster 127.0.0.1:9 cannot be reached" in capsys.readouterr().err


class DyingModel:
    """A model whose process ends at every question."""

    def ask(self, method, text, most):
        os._exit(1)


def test_a_question_that_kills_every_actor_is_given_up(ray):
    assert not join_cluster("auto")
    actor = ray.remote(max_restarts=-1, max_task_retries=1)(DyingModel).remote()
    with pytest.raises(UnavailableError, match="Ray: "):
        RayEngine(actor, "none").ask("text", 1)
