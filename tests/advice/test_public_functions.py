"""The public functions take a path, a configuration of transformers, and runtime names in any spelling."""

import json
from pathlib import Path

import numpy as np
import pytest

import rope_viz
from rope_viz.runtimes.releases import RELEASES
from tests.configs import llama, yarn

CONFIG = llama(max_position_embeddings=131072, rope_theta=1e6, rope_scaling=yarn(32768))
CASES = Path(__file__).parents[1] / "cases" / "extend"


def test_a_config_may_be_a_path_of_a_file_or_folder(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    for place in (tmp_path, tmp_path / "config.json"):
        assert rope_viz.from_config(place) == rope_viz.from_config(CONFIG)
        assert rope_viz.check(place) == rope_viz.check(CONFIG)


def test_a_text_is_no_path_and_the_message_says_so():
    with pytest.raises(ValueError, match=r"pathlib\.Path\('config.json'\) reads a file"):
        rope_viz.from_config("config.json")


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
