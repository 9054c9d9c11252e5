"""What is exported from a composite config was given to transformers 5.23.0 to load, and it computed what is meant.

tests/goldens/make_composites.py exported every composite class and the shapes of published models, extended by YaRN to
twice their reach, and loaded them with transformers' own classes; vLLM's and SGLang's code merged the overrides.
"""

import dataclasses
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from rope_viz.advice.plan.export import export
from rope_viz.models.architecture import all_architectures
from rope_viz.models.model_config import ModelConfig, from_config
from rope_viz.models.spec_url import with_method
from rope_viz.runtimes import emulate
from tests.offenders import for_each

GOLDEN = Path(__file__).parents[1] / "goldens" / "composites_5.23.0.json"


@cache
def golden():
    return json.loads(GOLDEN.read_text())


def rows():
    return {row["name"]: row for row in golden()["rows"]}


def twice(row):
    start = from_config(row["config"])[row["layer"]]
    return with_method(dataclasses.replace(start, target=2 * start.target), "yarn")


@for_each(rows())
def test_export_equals_what_transformers_loaded_and_computed(row):
    spec = twice(row)
    assert spec.scaling.factor == pytest.approx(row["factor"], rel=1e-12)
    made = export(spec, to="transformers", config=row["config"], layer_type=row["layer"] or None)
    assert made.faithful, made.reason
    assert made.fragment == row["written"], (
        "the export writes another config: run tests/goldens/make_composites.py again"
    )
    found = from_config(made.config)
    assert set(found) == set(row["layers"])
    for layer, (index, attention_factor) in row["layers"].items():
        expected = np.array(golden()["frequencies"][index])
        factor = found[layer].scaling.factor_for(found[layer])
        np.testing.assert_allclose(found[layer].inv_freq(), expected, rtol=5e-7 + 2e-7 * max(factor, 1.0), atol=0)
        assert found[layer].attention_factor() == pytest.approx(attention_factor, rel=2e-6)


def test_golden_covers_every_composite_class_of_transformers():
    """Those left out: p-RoPE, whose standing pairs YaRN would turn, and those that transformers cannot extend."""
    done = {row["config"]["model_type"] for row in golden()["rows"]} | golden()["cannot"].keys()
    wrappers = {
        name
        for name, record in all_architectures().items()
        if record.text is not None
        and (record.since or name in ADDED)
        and rotates({"model_type": name})
        # The golden was made with 5.23.0.
        and record.since != "5.24.0"
    }
    standing = {name for name in wrappers if has_zero_frequencies({"model_type": name})}
    assert len(standing - ADDED) == 5
    assert wrappers - standing - {"cohere_compass", *ADDED} <= done
    # A language model with parts beside it, whose keys stand at the top.
    assert done - wrappers == {"dia_decoder", "moonshine", "moonshine_streaming"}
    assert len(done) > 100


# Read in the modeling files: their classes keep no rotary module of their own, or no default language model with one.
ADDED = {"gemma4_assistant", "lasr_ctc", "pi0"}


def rotates(config):
    try:
        return bool(from_config(config))
    except ValueError:
        return False


def has_zero_frequencies(config):
    return any(spec.scaling.name == "proportional" for spec in from_config(config).values())


@pytest.mark.parametrize("name", ["cosmos3_edge", "ernie4_5_vl_moe"])
def test_export_explains_what_a_class_refuses(name):
    config = {"model_type": name}
    spec = from_config(config)[""]
    made = export(
        with_method(dataclasses.replace(spec, target=2 * spec.target), "yarn"), to="transformers", config=config
    )
    assert not made.faithful
    assert "accepts only the default rope type" in made.reason
    # A larger base is the default type, and goes through.
    longer = with_method(dataclasses.replace(spec, target=2 * spec.target), "ntk")
    assert export(longer, to="transformers", config=config).faithful


def test_phi3_inside_a_wrapper_exports_longrope_lists():
    config = {"model_type": "llava", "text_config": {"model_type": "phi3", "max_position_embeddings": 4096}}
    spec = from_config(config)[""]
    made = export(with_method(dataclasses.replace(spec, target=8192), "yarn"), to="transformers", config=config)
    assert made.faithful, made.reason
    assert made.config["text_config"]["rope_parameters"]["rope_type"] == "longrope"
    linear = {**config["text_config"], "rope_parameters": {"rope_type": "linear", "factor": 2.0}}
    assert not emulate(linear, runtime="transformers").supported


def test_text_part_of_every_composite_class_is_found():
    for row in golden()["rows"]:
        part = ModelConfig.read(row["config"]).part
        assert part.is_in_file
        assert part.path == part.loaded or row["config"]["model_type"] in ("qwen2_vl", "qwen2_5_vl")
