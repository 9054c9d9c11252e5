"""Every model of the list gives the frequencies that transformers computed for it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.catalog import catalog, main_layer, model_specs
from rope_viz.models.model_config import from_config
from rope_viz.models.rope_config import to_config
from tests.offenders import for_each

# Made by running transformers 5.23.0 on the same parameters; what made it stands in the file.
GOLDENS: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "goldens" / "transformers_5.23.0_models.json").read_text()
)["presets"]
# Made by make_catalog.py: the rotary module of each model's own class.
BY_CLASS: dict[str, Any] = json.loads((Path(__file__).parents[1] / "goldens" / "catalog.json").read_text())["models"]
MODELS = sorted(catalog())


def main_spec(id: str) -> RopeSpec:
    return model_specs(id)[main_layer(catalog()[id], model_specs(id))]


def test_every_model_but_our_own_has_a_golden() -> None:
    assert GOLDENS.keys() | BY_CLASS.keys() == set(MODELS) - {"rope-viz-reader"}
    assert not GOLDENS.keys() & BY_CLASS.keys()


@for_each(sorted(BY_CLASS))
def test_a_model_rotates_as_its_class_in_transformers(id: str) -> None:
    specs = model_specs(id)
    assert specs.keys() == BY_CLASS[id].keys()
    for layer, golden in BY_CLASS[id].items():
        np.testing.assert_allclose(specs[layer].inv_freq(), golden["inv_freq"], rtol=5e-7)
        assert specs[layer].attention_factor() == pytest.approx(golden["attention_factor"], rel=2e-6)


@for_each(MODELS)
def test_a_model_has_family_size_and_scaling_tags(id: str) -> None:
    model = catalog()[id]
    assert model.family
    assert model.size
    assert model.scaled_by == main_spec(id).scaling.name


@for_each(sorted(GOLDENS))
def test_a_model_has_the_frequencies_of_transformers(id: str) -> None:
    spec, golden = main_spec(id), GOLDENS[id]
    lengths = {
        "inv_freq": None,
        "inv_freq_short": spec.context,
        "inv_freq_long": spec.context + 1,
        "inv_freq_at_2x": 2 * spec.context,
    }
    assert golden.keys() & lengths.keys()
    for key in golden.keys() & lengths.keys():
        np.testing.assert_allclose(spec.inv_freq(lengths[key]), golden[key], rtol=5e-7, err_msg=key)
    assert spec.attention_factor() == pytest.approx(golden["attention_factor"], rel=2e-6)


@for_each(MODELS)
def test_catalog_entry_names_its_source(id: str) -> None:
    model = catalog()[id]
    assert model.name
    assert model.source.strip("; ")
    assert model.status in ("V1", "V2", "UNVERIFIED")
    assert model.verified == (model.status != "UNVERIFIED")
    assert 1 <= (model.trained_length or model.original_length) <= main_spec(id).target
    assert model.layer is None or model.layer in model_specs(id)
    # A model is listed with its authors' pairing; transformers' own code may have permuted the weights.
    assert main_spec(id).pairing in model.pairing


@for_each(MODELS)
def test_trained_length_has_a_source_and_original_is_in_config(id: str) -> None:
    model = catalog()[id]
    assert (model.trained_length is None) == (not model.trained_source.strip())
    assert model.original_length == main_spec(id).context
    assert "original_length" not in model.config["_about"]


@for_each(MODELS)
def test_catalog_spec_survives_a_config_round_trip(id: str) -> None:
    for spec in model_specs(id).values():
        assert from_config(json.loads(json.dumps(to_config(spec)))) == {"": spec}


def test_an_unknown_model_is_named() -> None:
    with pytest.raises(ValueError, match="there is no model 'gpt-9' in the list"):
        model_specs("gpt-9")


def test_trained_length_may_differ_from_the_config() -> None:
    assert (catalog()["qwen3-8b"].trained_length, main_spec("qwen3-8b").context) == (32768, 40960)
    assert (catalog()["mistral-7b-v0.1"].trained_length, main_spec("mistral-7b-v0.1").context) == (8192, 32768)


def test_the_number_of_a_copied_config_is_no_trained_length() -> None:
    for id, original in (("llama-3.1-8b", 8192), ("gpt-oss-20b", 4096), ("deepseek-v3", 4096), ("phi-4-mini", 4096)):
        assert (catalog()[id].trained_length, catalog()[id].original_length) == (None, original)
