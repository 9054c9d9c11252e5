"""The public functions take a path, a configuration of transformers, and runtime names in any spelling."""

import json
from pathlib import Path

import numpy as np
import pytest

import rope_viz
from rope_viz.models.model_config import ModelConfig
from rope_viz.runtimes.releases import RELEASES
from tests.configs import llama, yarn
from tests.models.test_gguf_config import QWEN3, write_sparse

CONFIG = llama(max_position_embeddings=131072, rope_theta=1e6, rope_scaling=yarn(32768))
CASES = Path(__file__).parents[1] / "cases" / "extend"


def test_a_config_may_be_a_path_of_a_file_or_folder(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    for place in (tmp_path, tmp_path / "config.json"):
        assert rope_viz.from_config(place) == rope_viz.from_config(CONFIG)
        assert rope_viz.check(place) == rope_viz.check(CONFIG)


def test_a_config_may_be_a_name(tmp_path, monkeypatch):
    """A path as text, an id of the list, its id on the Hub, and a GGUF file."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    Path("config.json").write_text(json.dumps(CONFIG))
    write_sparse(Path("model.gguf"), QWEN3, {"token_embd.weight": (151_936, 4096)}, 4096)
    for place in ("config.json", str(tmp_path), "."):
        assert rope_viz.check(place) == rope_viz.check(CONFIG)
        assert rope_viz.from_config(place) == rope_viz.from_config(CONFIG)
        assert rope_viz.repair(place) == rope_viz.repair(CONFIG)
    published = 1e6 ** (-np.arange(64) / 64)
    for name in ("qwen3-8b", "Qwen/Qwen3-8B", "model.gguf"):
        assert np.allclose(rope_viz.emulate(name, "vllm").inv_freq, published)
        assert rope_viz.plan(name, 131_072).recognised.model.id == "qwen3-8b"
        assert rope_viz.memory(name, length=1024)["kv_cache_bytes"] == 2 * 36 * 8 * 128 * 2 * 1024
    assert "A key from which nothing can be computed" in rope_viz.check.__doc__


@pytest.mark.parametrize("name", ["no-such-model", "a/b", "", "x" * 5000, "a\0b", '{"model_type": "llama"}'])
def test_an_unknown_name_is_refused_with_what_was_tried(name, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    for function in (rope_viz.check, rope_viz.from_config):
        with pytest.raises(ValueError, match="no such file, and no such model in the list or in the local"):
            function(name)


def test_a_text_inside_the_library_never_opens_a_file():
    """Configs of unknown origin must not make a server read a file."""
    with pytest.raises(ValueError, match=r"pathlib\.Path\('config.json'\) reads a file"):
        ModelConfig.read("config.json")


def test_a_configuration_of_transformers_is_a_config():
    transformers = pytest.importorskip("transformers")
    config = transformers.Qwen3Config(rope_parameters={"rope_type": "default", "rope_theta": 1e6})
    spec = rope_viz.from_config(config)[""]
    assert spec.base == 1e6
    assert np.allclose(spec.inv_freq(), 1e6 ** (-np.arange(64) / 64))


def test_emulate_takes_the_runtime_as_second_argument():
    found = rope_viz.emulate(CONFIG, "vllm")
    assert found.runtime == "vllm"


@pytest.mark.parametrize("key", RELEASES)
def test_a_runtime_may_be_named_as_its_makers_write_it(key):
    for name in (RELEASES[key].name if key != "paper" else "Paper", key.upper(), key.replace("-", "_")):
        assert rope_viz.emulate(CONFIG, name).runtime == key


def test_plan_is_public_and_refuses_what_it_does_not_know():
    found = rope_viz.plan(CONFIG, 262_144, "vLLM")
    assert found.target == 262_144
    assert [one.runtime for one in found.instructions] == ["vllm"]
    assert found.file.config["max_position_embeddings"] == 262_144
    gemma = json.loads((CASES / "17-gemma-4-26b-a4b.json").read_text())
    with pytest.raises(ValueError, match="layer must be one of full_attention, sliding_attention, got 'sliding'"):
        rope_viz.plan(gemma, 524_288, layer="sliding")
    with pytest.raises(ValueError, match="way must be one of "):
        rope_viz.plan(CONFIG, 262_144, way="yam")
    with pytest.raises(ValueError, match="runtime must be one of"):
        rope_viz.plan(CONFIG, 262_144, "lmdeploy")
