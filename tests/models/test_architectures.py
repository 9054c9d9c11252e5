"""Every architecture of transformers 5.24.0 resolves to what its own rotary module computes."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rope_viz.advice.lint import check
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.architecture import all_architectures
from rope_viz.models.model_config import from_config
from rope_viz.models.no_rope_types import reasons
from tests.offenders import for_each

GOLDENS = Path(__file__).parents[1] / "goldens"


@cache
def goldens(name: str) -> dict[str, Any]:
    return json.loads((GOLDENS / f"transformers_5.24.0_{name}.json").read_text())


def rows(name: str) -> dict[str, Any]:
    return {f"{index} {row['config']['model_type']}": row for index, row in enumerate(goldens(name)["rows"])}


def tolerance(spec: RopeSpec, length: int | None) -> float:
    """float32 arithmetic: a few roundings, and where two terms nearly cancel the factor magnifies them."""
    if spec.scaling.name in ("yarn", "llama3"):
        return 5e-7 + 2e-7 * max(spec.scaling.factor_for(spec), 1.0)
    # At a length beyond training the base itself is rounded to float32.
    return 3e-6 if spec.scaling.name == "dynamic" and length is not None else 5e-7


def assert_same(specs: dict[str, RopeSpec], layers: dict[str, Any], name: str, length: int | None = None) -> None:
    assert set(specs) == set(layers)
    for layer, (index, attention_factor) in layers.items():
        expected = np.array(goldens(name)["frequencies"][index])
        rtol = tolerance(specs[layer], length)
        np.testing.assert_allclose(specs[layer].inv_freq(length), expected, rtol=rtol, atol=0, err_msg=layer)
        assert specs[layer].attention_factor(length) == pytest.approx(attention_factor, rel=2e-6)


@for_each(rows("defaults"))
def test_default_config_gives_what_transformers_computes(row: dict[str, Any]) -> None:
    assert_same(from_config(row["config"]), row["layers"], "defaults")


@for_each(rows("defaults"))
def test_model_type_alone_gives_the_class_defaults(row: dict[str, Any]) -> None:
    assert_same(from_config({"model_type": row["config"]["model_type"]}), row["layers"], "defaults")


@for_each(rows("random"))
def test_random_config_gives_what_transformers_computes(row: dict[str, Any]) -> None:
    specs = from_config(row["config"])
    assert_same(specs, row["layers"], "random")
    for length, layers in row.get("at", {}).items():
        # The module keeps one attention factor; only the frequencies are recomputed with the length.
        expected = {layer: [index, row["layers"][layer][1]] for layer, (index, _) in layers.items()}
        assert_same(specs, expected, "random", int(length))


def test_every_architecture_in_the_table_can_be_read_alone() -> None:
    readable = [
        name
        for name, record in all_architectures().items()
        if not record.not_text and not (record.text is not None and record.text.type in reasons())
    ]
    assert len(readable) > 300
    for name in readable:
        assert from_config({"model_type": name})


def test_a_vision_encoder_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="model_type must be of a language model, but qwen2_vl_vision"):
        from_config({"model_type": "qwen2_vl_vision"})


# Read in the modeling files of transformers 5.24.0: which dimensions their rotation pairs.
PAIRINGS = {
    **dict.fromkeys(("llama", "qwen3", "gpt_neox", "gemma2", "gpt_oss", "phi3", "glm4_moe", "olmo2"), "half"),
    **dict.fromkeys(("gptj", "roformer", "glm", "glm4", "cohere", "deepseek_v2", "deepseek_v3"), "interleaved"),
    **dict.fromkeys(("deepseek_v32", "longcat_flash", "llama4_text", "ernie4_5", "helium", "chatglm"), "interleaved"),
}


@for_each(PAIRINGS.items())
def test_pairing_matches_the_code_of_the_architecture(entry: tuple[str, str]) -> None:
    name, pairing = entry
    assert from_config({"model_type": name})[""].pairing == pairing


def test_rope_interleave_false_switches_deepseek_to_half() -> None:
    assert from_config({"model_type": "deepseek_v3", "rope_interleave": False})[""].pairing == "half"
    assert from_config({"model_type": "llama", "rope_interleave": True})[""].pairing == "half"


HEAD = {"hidden_size": 4096, "num_attention_heads": 32, "head_dim": 128, "max_position_embeddings": 8192}
NESTED = {"full_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4}}
FLAT, LINEAR = {"rope_type": "default", "rope_theta": 1e5}, {"rope_type": "linear", "factor": 2.0}
# Each of these was given to the class of transformers 5.24.0: {what it raises or passes over: what is said here}.
REFUSED = [
    *(({"model_type": "llama", "hidden_size": value}, "hidden_size") for value in ("4096", 4096.0, True, [4096], None)),
    *(({"model_type": "qwen3", key: None}, key) for key in ("head_dim", "num_attention_heads")),
    *(({"model_type": "mistral", "num_attention_heads": value}, "num_attention_heads") for value in (0, -8, "32")),
    ({"model_type": "mistral", "sliding_window": "4096"}, "sliding_window"),
    ({"model_type": "qwen3", "num_key_value_heads": 8.5}, "num_key_value_heads"),
    ({"model_type": "llama", "rope_scaling": {"rope_type": {}, "factor": 8.0}}, "rope_type must be a name"),
    ({"model_type": "llama", "rope_scaling": {"rope_type": "linear", "factor": {}}}, "factor"),
    ({"model_type": "llama", "rope_parameters": NESTED}, "share one embedding"),
    # Whatever head_dim says; Qwen 2 and others take it.
    *(({"model_type": kind, "hidden_size": 4100}, "not a multiple") for kind in ("llama", "gemma2", "deepseek_v2")),
    *(
        ({"model_type": kind, "rope_parameters": FLAT}, "has no layer types")
        for kind in ("gemma4_text", "modernbert", "lfm3", "zaya")
    ),
    *(
        ({"model_type": kind, "rope_parameters": FLAT, "rope_scaling": LINEAR}, "has no layer types")
        for kind in ("gemma3_text", "olmo3")
    ),
    ({"model_type": "gemma4_text", "rope_scaling": {}}, "rope_scaling is empty"),
]


@pytest.mark.parametrize(("wrong", "said"), REFUSED, ids=str)
def test_value_refused_by_transformers_is_an_error_with_its_key(wrong: dict[str, Any], said: str) -> None:
    errors = [one.message for one in check({**HEAD, **wrong}) if one.severity == "error"]
    assert [message for message in errors if said in message], errors


def test_keys_that_rope_does_not_need_are_ignored() -> None:
    for wrong in ({"intermediate_size": [8192, 8192]}, {"vocab_size": None}, {"num_hidden_layers": "28"}):
        assert from_config({"model_type": "llama", **HEAD, **wrong}) == from_config({"model_type": "llama", **HEAD})
    # Both list and number are official for Gemma 3n, and transformers takes both.
    gemma = {"model_type": "gemma3n_text", **HEAD, "intermediate_size": [8192] * 35}
    assert from_config(gemma).keys() == {"full_attention", "sliding_attention"}
    assert not [one for one in check(gemma) if one.severity == "error"]


@pytest.mark.parametrize("kind", ["exaone4", "mistral", "llama", "kimi_k2", "zorp"])
def test_null_accepted_by_the_class_is_read(kind: str) -> None:
    keys: dict[str, Any] = {} if kind in ("exaone4", "mistral") else {"num_key_value_heads": None}
    if kind == "exaone4":
        # Without them its model divides by a pattern of 0.
        keys = {"layer_types": ["full_attention"] * 2, "num_hidden_layers": 2}
    assert from_config({**HEAD, "model_type": kind, "sliding_window": None, **keys})


def test_object_among_the_method_keys_is_no_layer_type() -> None:
    rope = {"rope_type": "linear", "factor": 2.0, "notes": {"by": "us"}}
    assert list(from_config({**HEAD, "model_type": "llama", "rope_scaling": rope})) == [""]
