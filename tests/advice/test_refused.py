"""What transformers refuses is never computed here as if it were fine, key by key and value by value."""

import json
from pathlib import Path

import pytest

from rope_viz.advice.lint import check, repair

GOLDENS = Path(__file__).parents[1] / "goldens"
GOLDEN = json.loads((GOLDENS / "refused.json").read_text())


def changed(base, key, value):
    inner = base.get("text_config")
    return {**base, key: value} if inner is None else {"text_config": {**inner, key: value}}


def errors(config):
    return [one for one in check(config) if one.severity == "error"]


@pytest.mark.parametrize("kind", GOLDEN["refused"])
def test_a_value_that_transformers_refuses_is_an_error(kind):
    base = GOLDEN["bases"][kind]
    assert not errors({"model_type": kind, **base})
    for key, values in GOLDEN["refused"][kind].items():
        for value in values:
            assert errors({"model_type": kind, **changed(base, key, value)}), (key, value)


def test_every_text_type_refuses_what_its_class_refuses():
    """154 types, each with nulls and fractions in its place (tests/goldens/make_refused_types.py)."""
    golden = json.loads((GOLDENS / "refused_types.json").read_text())
    # Their sizes stand under other names than those of the small configs.
    for kind in ("codegen", "gptj"):
        del golden["types"][kind]
    assert len(golden["types"]) > 150
    for kind, row in golden["types"].items():
        base = {"model_type": kind, **golden["bases"][row["base"]]}
        assert not errors(base), kind
        for key, values in row["refused"].items():
            for value in values:
                assert errors({**base, key: value}), (kind, key, value)


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [
        ("falcon", "num_kv_heads", 4096.0),
        ("falcon", "alibi", 0),
        ("starcoder2", "head_dim", 4096.0),
        ("exaone4", "sliding_window", None),
        ("exaone4", "sliding_window_pattern", None),
        ("gpt_oss", "num_local_experts", 4096.0),
        ("phi3", "original_max_position_embeddings", 4096.0),
        ("phi3", "original_max_position_embeddings", None),
        ("qwen3_vl_text", "layer_types", None),
    ],
)
def test_a_key_of_one_type_is_refused_by_name(kind, key, value):
    config = {name: value for name, value in GOLDEN["bases"]["llama"].items() if (kind, name) != ("falcon", "head_dim")}
    assert not errors({"model_type": kind, **config})
    assert [one for one in errors({"model_type": kind, **config, key: value}) if key in one.message]


def test_a_method_without_its_factor_is_an_error_with_a_repair():
    """transformers raises KeyError; some runtimes take the ratio of the lengths, or 1."""
    yarn = {"rope_type": "yarn", "original_max_position_embeddings": 2048}
    for faulty in (yarn, {**yarn, "Factor": 4.0}):
        config = {"model_type": "llama", **GOLDEN["bases"]["llama"], "rope_scaling": faulty}
        assert "transformers-refuses" in [one.rule for one in errors(config)]
        mended = repair(config)
        assert mended["rope_scaling"]["factor"] == 4.0
        assert not errors(mended)


YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096}


def test_scaling_beside_the_language_model_is_an_error_where_transformers_raises():
    """Run on five composite classes: they have no length of their own, and these types ask for it."""
    llava = {"model_type": "llava", **GOLDEN["bases"]["llava"]}
    for key in ("rope_scaling", "rope_parameters"):
        for raising in (YARN, {"rope_type": "linear"}, {**YARN, "rope_type": "llama3"}):
            assert errors({**llava, key: raising})
        assert not errors({**llava, key: {"rope_type": "linear", "factor": 4.0}})
        assert not errors({**llava, key: YARN, "max_position_embeddings": 8192})


def test_a_flat_scaling_over_layer_types_and_a_part_without_type_are_errors():
    sizes = {key: value for key, value in GOLDEN["bases"]["llama"].items() if key != "rope_theta"}
    linear = {"rope_type": "linear", "factor": 4.0}
    for kind in ("ultrabert", "neomme", "mellum"):
        assert not errors({"model_type": kind, **sizes})
        assert errors({"model_type": kind, **sizes, "rope_scaling": linear})
    nameless = {"model_type": "exaone4_5", "text_config": sizes}
    assert errors(nameless)
    assert not errors(repair(nameless))


def test_a_null_type_and_a_null_base_are_errors_with_a_repair():
    llama = {"model_type": "llama", **GOLDEN["bases"]["llama"]}
    for faulty in (
        {**llama, "rope_theta": None},
        {**llama, "rope_scaling": {"rope_type": None, "type": "linear", "factor": 4.0}},
    ):
        assert errors(faulty)
        assert not errors(repair(faulty))


def test_a_method_that_a_class_does_not_know_is_an_error():
    linear = {"rope_scaling": {"rope_type": "linear", "factor": 4.0}}
    for kind in ("phi3", "gemma4_text"):
        assert errors({"model_type": kind, **GOLDEN["bases"]["llama"], **linear})
