"""A new embedding is written where transformers reads it; everything else in the user's config stays."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from rope_viz.embedding.scaling import Linear, Yarn
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.edit_config import merge_dicts, write_new_keys
from rope_viz.models.model_config import from_config
from tests.offenders import for_each

CATALOG = Path(__file__).parents[2] / "rope_viz" / "models" / "catalog"
SIZES = {"hidden_size": 2048, "num_attention_heads": 16, "max_position_embeddings": 32768, "vocab_size": 1000}
VISION = {"hidden_size": 1280, "depth": 32, "max_position_embeddings": 64}
MROPE = {"mrope_section": [24, 20, 20], "mrope_interleaved": True, "rope_type": "default"}
QWEN3_VL = {
    "architectures": ["Qwen3VLForConditionalGeneration"],
    "model_type": "qwen3_vl",
    "image_token_id": 151655,
    "text_config": {"model_type": "qwen3_vl_text", **SIZES, "head_dim": 128, "rope_theta": 5e6, "rope_scaling": MROPE},
    "vision_config": VISION,
}
GEMMA3 = {
    "model_type": "gemma3",
    "text_config": {
        **{"model_type": "gemma3_text", "hidden_size": 3840, "head_dim": 256, "max_position_embeddings": 131072},
        **{"rope_local_base_freq": 10000, "rope_theta": 1000000, "rope_scaling": {"factor": 8, "rope_type": "linear"}},
        "sliding_window": 1024,
    },
    "vision_config": VISION,
}
MISTRAL3 = {
    "model_type": "mistral3",
    "text_config": {
        **{"model_type": "ministral3", **SIZES, "head_dim": 128},
        "rope_parameters": {
            **{"rope_type": "yarn", "type": "yarn", "rope_theta": 1e6, "factor": 16.0, "mscale": 1.0},
            **{"mscale_all_dim": 1.0, "original_max_position_embeddings": 2048, "llama_4_scaling_beta": 0.1},
        },
    },
}


def changed(config, spec, layer=""):
    """The config with this embedding in it."""
    return write_new_keys(config, spec, layer).whole


def twice(config, layer=""):
    """The embedding with YaRN to twice its reach."""
    spec = from_config(config)[layer]
    return RopeSpec(
        spec.head_dim, spec.rotary_dim, spec.base, spec.context, 2 * spec.target, Yarn(2.0 * spec.target / spec.context)
    )


def test_fragment_replaces_an_unread_rope_dict_completely():
    stale = {"rope_type": "yarn", "type": "yarn", "factor": 16.0, "mscale": 0.7, "mscale_all_dim": 0.5}
    config = {
        **{"model_type": "ministral3", "hidden_size": 4096, "num_attention_heads": 32, "head_dim": 128},
        **{"max_position_embeddings": 8192, "rope_scaling": {"rope_type": "default"}},
        "rope_parameters": {**stale, "rope_theta": 1e6, "original_max_position_embeddings": 512},
    }
    spec = dataclasses.replace(from_config(config)[""], target=16384, scaling=Yarn(2.0))
    laid_over = merge_dicts(write_new_keys(config, spec).fragment, config)
    assert from_config(laid_over)[""].attention_factor() == spec.attention_factor() != 1.0
    np.testing.assert_allclose(from_config(laid_over)[""].inv_freq(), spec.inv_freq(), rtol=1e-9)


def test_rope_parameters_are_written_into_the_text_part_only():
    out = changed(QWEN3_VL, twice(QWEN3_VL))
    text = out["text_config"]
    assert set(out) == set(QWEN3_VL)
    assert out["vision_config"] == VISION
    assert text["max_position_embeddings"] == 65536
    assert "rope_scaling" not in text
    assert text["rope_parameters"]["mrope_section"] == [24, 20, 20]
    assert text["rope_parameters"]["mrope_interleaved"] is True
    assert text["rope_parameters"]["rope_type"] == "yarn"
    assert text["rope_parameters"]["rope_theta"] == 5e6
    kept = {key for key in QWEN3_VL["text_config"] if key not in ("max_position_embeddings", "rope_scaling")}
    assert all(text[key] == QWEN3_VL["text_config"][key] for key in kept)
    assert from_config(out)[""].inv_freq() == pytest.approx(twice(QWEN3_VL).inv_freq(), rel=1e-12)


def test_fragment_removes_the_old_key_that_would_win():
    change = write_new_keys(QWEN3_VL, twice(QWEN3_VL))
    assert change.fragment["text_config"]["rope_scaling"] is None
    assert change.fragment["text_config"].keys() == {"max_position_embeddings", "rope_scaling", "rope_parameters"}


def test_original_config_is_not_modified():
    before = json.dumps(QWEN3_VL)
    changed(QWEN3_VL, twice(QWEN3_VL))
    assert json.dumps(QWEN3_VL) == before


def test_only_the_selected_layers_change():
    out = changed(GEMMA3, twice(GEMMA3, "full_attention"), "full_attention")
    params = out["text_config"]["rope_parameters"]
    assert params["full_attention"]["rope_type"] == "yarn"
    assert params["sliding_attention"] == {"rope_type": "default", "rope_theta": 10000.0}
    assert "rope_scaling" not in out["text_config"]
    assert out["text_config"]["rope_local_base_freq"] == 10000
    before, after = from_config(GEMMA3), from_config(out)
    assert after["sliding_attention"].inv_freq().tolist() == before["sliding_attention"].inv_freq().tolist()
    out = changed(GEMMA3, RopeSpec(256, base=5e4, context=131072), "sliding_attention")
    assert from_config(out)["sliding_attention"].base == 5e4
    assert from_config(out)["full_attention"] == before["full_attention"]


def test_other_scaled_layer_retains_its_trained_length():
    both = {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1e5}
    config = {"model_type": "modernbert", "rope_parameters": {"full_attention": both, "sliding_attention": both}}
    before = from_config(config)["sliding_attention"]
    out = changed(config, twice(config, "full_attention"), "full_attention")
    assert from_config(out)["sliding_attention"].inv_freq().tolist() == before.inv_freq().tolist()


def test_other_layer_retains_its_implied_factor():
    lists = {"short_factor": [1.0] * 32, "long_factor": [4.0] * 32, "original_max_position_embeddings": 2048}
    params = {"full_attention": {"rope_type": "default"}, "sliding_attention": {"rope_type": "longrope", **lists}}
    config = {"model_type": "modernbert", "max_position_embeddings": 8192, "rope_parameters": params}
    before = from_config(config)["sliding_attention"]
    after = from_config(changed(config, twice(config, "full_attention"), "full_attention"))["sliding_attention"]
    assert after.attention_factor() == before.attention_factor() > 1.0


def test_other_keys_that_the_model_reads_stay_in_the_rope_dict():
    out = changed(MISTRAL3, twice(MISTRAL3))["text_config"]["rope_parameters"]
    assert out["llama_4_scaling_beta"] == 0.1
    assert out["original_max_position_embeddings"] == 2048
    # The old method's own keys are gone: they would be read.
    assert not {"mscale", "mscale_all_dim", "type"} & out.keys()


def test_override_neutralises_keys_of_the_old_method():
    """vLLM lays it over the loaded dict, key by key (ModelConfig._update_nested of 0.33.0)."""
    override = write_new_keys(MISTRAL3, twice(MISTRAL3)).override
    rope = override["text_config"]["rope_parameters"]
    assert {key: rope[key] for key in ("mscale", "mscale_all_dim", "type")} == {
        **{"mscale": 1.0, "mscale_all_dim": 0.0},
        "type": "yarn",
    }


def test_an_override_never_sets_rope_scaling():
    """The loaded config sets rope_parameters by that name: null there would wipe them out."""
    assert "rope_scaling" not in write_new_keys(QWEN3_VL, twice(QWEN3_VL)).override["text_config"]


def test_top_level_keys_stay_and_the_override_is_nested():
    config = {"model_type": "qwen2_vl", **SIZES, "rope_theta": 1e6, "rope_scaling": {"type": "mrope", **MROPE}}
    change = write_new_keys(config, twice(config))
    assert "text_config" not in change.whole
    assert change.whole["rope_parameters"]["rope_type"] == "yarn"
    assert "rope_scaling" not in change.whole
    assert set(change.override) == {"text_config"}


def test_wrapper_that_reads_only_the_old_key_gets_it():
    config = {"model_type": "fuyu", "hidden_size": 4096, "num_attention_heads": 64, "max_position_embeddings": 16384}
    out = changed(config, twice(config))
    assert out["rope_scaling"]["rope_type"] == "yarn"
    assert from_config(out)[""].inv_freq() == pytest.approx(twice(config).inv_freq(), rel=1e-12)


def test_missing_text_part_is_written_with_wrapper_defaults():
    config = {"model_type": "mistral3"}
    out = changed(config, twice(config))
    assert out["text_config"]["head_dim"] == 128
    assert from_config(out)[""].inv_freq() == pytest.approx(twice(config).inv_freq(), rel=1e-12)


@pytest.mark.parametrize("original", [2048, 131072])
def test_a_trained_length_outside_the_rope_dict_is_written_there(original):
    """Outside it wins over the one inside, and PhimoeConfig has one of its own."""
    config = {"model_type": "llama", **SIZES, "original_max_position_embeddings": original}
    spec = twice({**config, "original_max_position_embeddings": None})
    out = changed(config, spec)
    assert from_config(out)[""].context == spec.context


def test_sizes_are_written_under_the_keys_in_use():
    cases = [
        ({"model_type": "qwen3", **SIZES}, "", {"head_dim": 64}),
        ({"model_type": "olmo2", **SIZES}, "", {"head_dim": 64}),
        ({"model_type": "deepseek_v3"}, "", {"qk_rope_head_dim": 32}),
        ({"model_type": "gemma4", "text_config": {}}, "sliding_attention", {"head_dim": 64}),
        ({"model_type": "gptj"}, "", {"rotary_dim": 32}),
    ]
    for config, layer, keys in cases:
        size = next(iter(keys.values()))
        before = from_config(config)[layer]
        head = before.head_dim if "rotary_dim" in keys else size
        spec = RopeSpec(head, size, before.base, before.context, before.target, pairing=before.pairing)
        out = changed(config, spec, layer)
        assert from_config(out)[layer] == spec, config["model_type"]
        assert keys.items() <= {**out, **out.get("text_config", {})}.items()


def test_rotated_share_is_written_where_a_default_would_apply():
    config = {"model_type": "glm4", **SIZES, "head_dim": 128}
    before = from_config(config)[""]
    assert before.rotary_dim == 64
    out = changed(config, RopeSpec(128, base=1e4, context=32768, scaling=Linear(2.0)))
    assert from_config(out)[""].rotary_dim == 128


def test_head_dim_is_written_where_its_class_would_multiply_null():
    """MixtralConfig leaves it null, and transformers 5.23.0 multiplies it for YaRN: TypeError."""
    config = {"model_type": "llava", "text_config": {"model_type": "mixtral", **SIZES}}
    assert changed(config, twice(config))["text_config"]["head_dim"] == 128
    assert "head_dim" not in changed(config, from_config(config)[""])["text_config"]


@for_each(sorted(CATALOG.glob("*.json")), lambda path: path.stem)
def test_every_catalog_model_survives_rewriting_each_layer(path):
    config = json.loads(path.read_text())
    config.pop("_about", None)
    before = from_config(config)
    for layer, spec in before.items():
        after = from_config(changed(config, spec, layer))
        assert set(after) == set(before)
        for other in before:
            for length in (None, 4 * before[other].target):
                assert after[other].inv_freq(length).tolist() == before[other].inv_freq(length).tolist()
                assert after[other].attention_factor(length) == before[other].attention_factor(length)
