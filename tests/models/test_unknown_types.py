"""An unknown type is read by unmistakable keys, and the doubt is reported."""

import numpy as np
import pytest

from rope_viz.advice.lint import check
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.model_config import ModelConfig, from_config
from rope_viz.models.no_rope_types import describe_doubt

SIZES = {"model_type": "nobody_knows", "hidden_size": 4096, "num_attention_heads": 32, "max_position_embeddings": 8192}


@pytest.mark.parametrize(
    ("keys", "dims", "base"),
    [
        ({}, (128, 128), 1e4),
        ({"rope_theta": 5e5}, (128, 128), 5e5),
        ({"rotary_dim": 64}, (128, 64), 1e4),
        ({"head_dim": 96, "rotary_dim": 96}, (96, 96), 1e4),
        ({"rotary_pct": 0.25}, (128, 32), 1e4),
        ({"rope_pct": 0.25, "rotary_emb_base": 20000}, (128, 32), 2e4),
        ({"attn_config": {"rope_theta": 5e5}}, (128, 128), 5e5),
        ({"kv_channels": 64}, (64, 64), 1e4),
        ({"qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "kv_lora_rank": 512}, (64, 64), 1e4),
        ({"hidden_size": None, "num_attention_heads": None, "n_embd": 2048, "n_head": 32}, (64, 64), 1e4),
        ({"rope_theta": 5e5, "rotary_emb_base": 20000}, (128, 128), 5e5),
        ({"partial_rotary_factor": 0.5, "rotary_dim": 32}, (128, 64), 1e4),
    ],
)
def test_unmistakable_keys_of_an_unknown_type_are_used(keys, dims, base):
    spec = from_config({**SIZES, **keys})[""]
    assert (spec.head_dim, spec.rotary_dim) == dims
    np.testing.assert_array_equal(spec.inv_freq(), RopeSpec(*dims, base=base, context=8192).inv_freq())


def test_an_old_name_of_the_length_is_read():
    config = {**SIZES, "max_position_embeddings": None, "max_position_embedding": 32768}
    assert from_config(config)[""].context == 32768


def test_doubt_names_the_keys_that_were_used():
    said = describe_doubt(ModelConfig.read({**SIZES, "rotary_dim": 64, "n_embd": 4096, "hidden_size": None}).fields)
    assert "'nobody_knows' is unknown" in said
    assert "n_embd, rotary_dim" in said
    assert describe_doubt(ModelConfig.read({**SIZES, "model_type": "llama"}).fields) == ""


def test_unknown_wrapper_is_reported_and_its_text_part_read():
    fields = ModelConfig.read({"model_type": "my_vlm", "text_config": {**SIZES, "model_type": "llama"}}).fields
    assert (fields.kind, fields.is_listed) == ("llama", True)
    assert "'my_vlm' is unknown" in describe_doubt(fields)


def test_rotary_dim_above_head_dim_is_refused():
    with pytest.raises(ValueError, match="rotary_dim must be at most head_dim = 128, got 256"):
        from_config({**SIZES, "rotary_dim": 256})


BESIDE = {
    "an adapter": ({"peft_type": "LORA", "base_model_name_or_path": "Qwen/Qwen3-8B"}, "base model .*'Qwen/Qwen3-8B'"),
    "an index": ({"metadata": {}, "weight_map": {}}, "index of the weights"),
    "a tokenizer": ({"tokenizer_class": "LlamaTokenizer", "model_max_length": 8192}, "the config of a tokenizer"),
    "a preprocessor": ({"image_processor_type": "Qwen2VLImageProcessor"}, "the config of a preprocessor"),
    "generation": ({"_from_model_config": True, "eos_token_id": 2}, "generation_config.json"),
    "ultravox": ({"model_type": "ultravox", "text_model_id": "a/b", "hidden_size": 4096}, "text_model_id.*'a/b'"),
    "a rope dict": ({"rope_type": "yarn", "factor": 4.0}, "this is only the content of rope_scaling"),
    "nothing": ({"error": "Repository not found"}, "neither a model_type nor any size"),
}


@pytest.mark.parametrize("name", BESIDE)
def test_other_file_of_a_model_folder_is_named(name):
    config, said = BESIDE[name]
    with pytest.raises(ValueError, match=said):
        from_config(config)


def test_capitalised_type_suggests_the_intended_one():
    sizes = {"hidden_size": 4096, "num_attention_heads": 32, "max_position_embeddings": 8192}
    assert "Did you mean qwen3?" in describe_doubt(ModelConfig.read({"model_type": "Qwen3", **sizes}).fields)


def test_missing_model_type_is_reported():
    sizes = {"hidden_size": 4096, "num_attention_heads": 32, "max_position_embeddings": 8192, "rope_theta": 5e5}
    for config in (sizes, {**sizes, "model_type": None}, {**sizes, "architectures": ["LlamaForCausalLM"]}):
        said = [one.message for one in check(config) if one.rule == "unlisted-type"]
        assert len(said) == 1
        assert said[0].startswith("model_type is missing")
