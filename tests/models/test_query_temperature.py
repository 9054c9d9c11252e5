"""The factor on the query by position equals what the attention classes and Qwen's published file compute."""

import json
from pathlib import Path

import numpy as np
import pytest

from rope_viz.models.model_config import ModelConfig, read_catalog_model
from rope_viz.models.query_temperature import find_temperature

# Made by tests/goldens/make_query_temperature.py with transformers 5.23.0, in float32.
GOLDEN = json.loads((Path(__file__).parents[1] / "goldens" / "query_temperature.json").read_text(encoding="utf-8"))
# Made by tests/goldens/make_query_temperature_servers.py with vLLM 0.33.0 and SGLang 0.5.23, in float32.
SERVERS = json.loads((Path(__file__).parents[1] / "goldens" / "query_temperature_servers.json").read_text("utf-8"))
MORE = {"qwen": {"seq_length": GOLDEN["qwen_seq_length"], "use_logn_attn": True}}


@pytest.mark.parametrize("model_type", GOLDEN["factors"])
def test_factor_is_what_the_class_computes(model_type):
    found = find_temperature(ModelConfig.read({"model_type": model_type, **MORE.get(model_type, {})}))
    wanted = np.array(GOLDEN["factors"][model_type], dtype=np.float64)
    known = np.isfinite(wanted)
    np.testing.assert_allclose(found.factor(np.array(GOLDEN["positions"]))[known], wanted[known], rtol=3e-7)


@pytest.mark.parametrize("case", SERVERS["factors"])
def test_formulas_of_servers_give_the_same_factor(case):
    found = find_temperature(ModelConfig.read({"model_type": case.split(" ")[1]}))
    at = np.array(SERVERS["positions"])
    np.testing.assert_allclose(found.factor(at), SERVERS["factors"][case], rtol=3e-7)


@pytest.mark.parametrize("model_type", GOLDEN["factors"])
def test_start_is_the_first_position_above_1(model_type):
    found = find_temperature(ModelConfig.read({"model_type": model_type, **MORE.get(model_type, {})}))
    before, at = found.factor(np.array([found.start - 1.0, float(found.start)]))
    assert before == 1.0 < at


def test_models_without_it_have_none():
    assert find_temperature(read_catalog_model("llama-3.1-8b")) is None
    assert find_temperature(ModelConfig.read({"model_type": "llama4_text", "attn_temperature_tuning": False})) is None
    assert (
        find_temperature(ModelConfig.read({"model_type": "qwen", "seq_length": 2048, "use_logn_attn": False})) is None
    )


def test_learned_factor_has_no_formula():
    found = find_temperature(ModelConfig.read({"model_type": "mistral_large4_text"}))
    assert found.is_learned
    with pytest.raises(ValueError, match="in the weights"):
        found.factor(np.array([0.0]))


def test_a_length_that_cannot_be_meant_is_named():
    config = ModelConfig.read({"model_type": "llama4_text", "floor_scale": -1})
    with pytest.raises(ValueError, match="floor_scale"):
        find_temperature(config)
