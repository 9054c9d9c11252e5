"""Evaluation on a local Ray cluster answers as without it, also when a worker is killed.

Outside the usual run, because a cluster takes seconds to start: `pip install 'ray>=2.60,<3'`, then
`pytest -n 0 -m ray tests/tiny_lm/test_ray.py`.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rope_viz.cli.main import main
from rope_viz.tiny_lm import checkpoints
from rope_viz.tiny_lm.evaluation_plan import read_evaluation
from rope_viz.tiny_lm.ray_workers import check_address

FOLDER = Path(checkpoints.__file__).with_name("checkpoints") / "seed-0"
WORDS = ["evaluate", str(FOLDER), "--words", "reader", "--lengths", "256,512", "--depths", "3", "--methods", "none,ntk"]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The file of a run without Ray."""
    out = tmp_path_factory.mktemp("alone") / "out.json"
    assert main([*WORDS, "-o", str(out)]) == 0
    assert {row.right for row in read_evaluation(out).rows} == {True, False}
    return out.read_bytes()


@pytest.mark.ray
@pytest.mark.parametrize("workers", [1, 2])
def test_workers_answer_as_one_model_without_ray(workers, alone, tmp_path, capsys):
    out = tmp_path / "out.json"
    assert main([*WORDS, "--ray", "auto", "--workers", str(workers), "-o", str(out)]) == 0
    assert out.read_bytes() == alone
    said = capsys.readouterr().err
    assert ("actor 1:" in said) == (workers == 2)
    assert not list(tmp_path.glob("*.journal"))


@pytest.mark.ray
def test_killed_worker_is_replaced_and_nothing_is_lost(alone, tmp_path, monkeypatch, capsys):
    from rope_viz.tiny_lm import ray_workers

    asked, pids = [], []
    ask = ray_workers.ActorEngine.ask

    def ask_and_kill(self, text, most):
        asked.append(text)
        pid = self.ray.get(self.actor.__ray_call__.remote(lambda host: os.getpid()))
        if pid not in pids:
            pids.append(pid)
        if len(asked) in (3, 8):
            os.kill(pid, signal.SIGKILL)
        return ask(self, text, most)

    monkeypatch.setattr(ray_workers.ActorEngine, "ask", ask_and_kill)
    out = tmp_path / "out.json"
    assert main([*WORDS, "--ray", "auto", "--workers", "2", "-o", str(out)]) == 0
    assert out.read_bytes() == alone
    assert len(asked) == 12
    assert len(pids) >= 3
    assert "failed requests" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("address", "sentence"),
    [("127.0.0.1:1", "no Ray cluster at 127.0.0.1:1"), ("head", "must be auto or an address")],
)
def test_wrong_address_is_one_sentence(address, sentence):
    with pytest.raises(ValueError, match=sentence):
        check_address(address)


def test_ray_is_not_imported_without_the_flag():
    code = "import sys, rope_viz.cli.evaluate, rope_viz.tiny_lm.ray_workers; print('ray' in sys.modules)"
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_ray_with_servers_is_refused(tmp_path, capsys):
    words = ["evaluate", "--server", "none=http://localhost:1/v1", "--ray", "auto", "-o", str(tmp_path / "out.json")]
    assert main(words) == 2
    assert "leave out --server" in capsys.readouterr().err


def test_vllm_gets_the_overrides_that_export_prints():
    """On a GPU an actor passes the keys that `rope-viz export --to vllm` prints as --hf-overrides."""
    import shlex

    from rope_viz.advice.export import export
    from rope_viz.cli.evaluate import find_overrides, scale_by_methods
    from rope_viz.cli.spec import read_config
    from rope_viz.models.model_config import ModelConfig

    config = read_config(str(FOLDER / "config.json"))
    read = ModelConfig.read(config)
    for spec in scale_by_methods(read, "linear,ntk,yarn", 4.0, 1024).values():
        exported = export(spec, to="vllm", config=config, layer_type=read.main_layer)
        flags = shlex.split(exported.text)
        assert find_overrides(FOLDER, exported) == json.loads(flags[flags.index("--hf-overrides") + 1])
