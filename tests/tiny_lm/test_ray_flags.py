"""What `evaluate --ray` gives its actors, without Ray."""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

from rope_viz.advice.plan.export import export
from rope_viz.cli.evaluate import find_overrides, scale_by_methods
from rope_viz.cli.spec import read_config
from rope_viz.evaluation import ray_workers
from rope_viz.evaluation.completion_clients import Answer
from rope_viz.models.model_config import ModelConfig

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "rope_viz" / "tiny_lm" / "checkpoints" / "seed-0"


def test_vllm_on_a_cluster_gets_what_export_prints():
    """The keys that an actor overrides are the --hf-overrides of `rope-viz export --to vllm`."""
    config = read_config(str(FOLDER / "config.json"))
    read = ModelConfig.read(config)
    for spec in scale_by_methods(read, "linear,ntk,yarn", 4.0, 1024).values():
        exported = export(spec, to="vllm", config=config, layer_type=read.main_layer)
        flags = shlex.split(exported.text)
        assert find_overrides(FOLDER, exported) == json.loads(flags[flags.index("--hf-overrides") + 1])


def test_ray_is_not_imported_without_its_flag():
    code = "import sys, rope_viz.cli.evaluate; print('ray' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


class RecordedModel:
    """An engine that notes with which config it was loaded."""

    loaded: ClassVar[list[object]] = []

    def __init__(self, folder, config):
        self.loaded.append(config)

    def ask(self, text, most):
        return Answer("", len(text))

    def count(self, text):
        return len(text)

    def close(self):
        pass


def test_actor_loads_each_method_once(monkeypatch):
    """An evaluation counts tokens for all methods, and then asks one method after the other."""
    monkeypatch.setattr(ray_workers, "Local", RecordedModel)
    monkeypatch.setattr(RecordedModel, "loaded", [])
    actor = ray_workers.ModelActor("folder", {"none": {"a": 1}, "yarn": {"b": 2}}, on_gpu=False)
    assert [actor.count(method, "text") for method in ("none", "yarn")] == [4, 4]
    for method in ("none", "none", "yarn"):
        assert actor.ask(method, "text", 1) == (Answer("", 4), "")
    assert RecordedModel.loaded == [{"a": 1}, {"b": 2}]
