"""Learned frequencies (LeRoPE) are read from weights, as the rotary module of Mistral Large 4 uses them."""

import json
from pathlib import Path

import numpy as np
import pytest

from rope_viz.advice.lint import check
from rope_viz.cli.main import main
from rope_viz.cli.verify import read_learned
from rope_viz.models.model_config import ModelConfig, read_catalog_model
from rope_viz.studies.tensors import write_tensors

pytestmark = pytest.mark.float32_products

# Made by tests/goldens/make_learned_frequencies.py with transformers 5.23.0, in float32.
GOLDEN = json.loads((Path(__file__).parents[1] / "goldens" / "learned_frequencies.json").read_text(encoding="utf-8"))
LARGE4 = {"model_type": "mistral_large4_text"}
YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 2048.0, "original_max_position_embeddings": 512}
MODEL = ModelConfig.read({"model_type": "mistral_large4_text"})


@pytest.fixture
def weights(tmp_path):
    path = tmp_path / "model.safetensors"
    write_tensors(path, {"model.language_model.rotary_emb.alpha": np.array(GOLDEN["alpha"], dtype=np.float32)})
    return path


def test_angles_are_those_of_the_module(weights):
    held = read_learned(weights, MODEL, MODEL.main_layer)
    angle = GOLDEN["position"] * held.inv_freq
    np.testing.assert_allclose(np.cos(angle), GOLDEN["cos"], atol=1e-6)
    np.testing.assert_allclose(np.sin(angle), GOLDEN["sin"], atol=1e-6)


def test_command_names_the_largest_ratio(weights, tmp_path, capsys):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"model_type": "mistral_large4_text"}), encoding="utf-8")
    assert main(["verify", str(config), "--from", str(weights)]) == 1
    pair = int(np.argmax(np.abs(GOLDEN["alpha"])))
    assert f"at pair {pair}" in capsys.readouterr().out


def test_config_says_that_the_values_are_in_the_weights():
    assert any("the values are in the weights" in note for note in MODEL.notes)
    assert not any("LeRoPE" in note for note in read_catalog_model("llama-3.1-8b").notes)


def test_check_says_it_and_backends_agree():
    # transformers 5.23.0 computes attention_factor 1; vLLM 0.33.0 and SGLang 0.5.23 run its code for this model.
    found = {one.rule: one.message for one in check({"model_type": "mistral_large4_text"})}
    assert "the values are in the weights" in found["learned-frequencies"]
    assert "runtimes-differ" not in found
    shown = {one.rule: one.message for one in check({**LARGE4, "rope_parameters": {**YARN, "attention_factor": 1.0}})}
    assert "is used by transformers, vLLM and SGLang only" in shown["attention-factor"]


def test_what_cannot_be_read_gets_a_sentence(weights, tmp_path):
    llama = read_catalog_model("llama-3.1-8b")
    with pytest.raises(ValueError, match="in its config, not in its weights"):
        read_learned(weights, llama, llama.main_layer)
    other = tmp_path / "other.safetensors"
    write_tensors(other, {"norm.weight": np.ones(4, dtype=np.float32)})
    with pytest.raises(ValueError, match="names the file that has it"):
        read_learned(other, MODEL, MODEL.main_layer)
    write_tensors(other, {"rotary_emb.alpha": np.full(4, np.nan, dtype=np.float32)})
    with pytest.raises(ValueError, match="one for each pair"):
        read_learned(other, MODEL, MODEL.main_layer)
