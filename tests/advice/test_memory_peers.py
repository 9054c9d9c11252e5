"""Memory of tiny configs against the classes of transformers, which are built or run here."""

import pytest
import torch
from transformers import CONFIG_MAPPING, AutoModelForCausalLM, AutoModelForImageTextToText

import rope_viz
from rope_viz.advice.memory.kv_cache import cache
from rope_viz.advice.plan.extension_plan import make_plan
from rope_viz.models.model_config import ModelConfig

SMALL = {
    **{"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "num_hidden_layers": 5},
    **{"vocab_size": 128, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2},
}
GQA = {**SMALL, "num_key_value_heads": 2}
MLA = {
    **{"kv_lora_rank": 32, "q_lora_rank": 24, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "v_head_dim": 16},
    **{"n_routed_experts": 4, "moe_intermediate_size": 32, "first_k_dense_replace": 2},
}
COUNTED = {
    "llama": {**GQA, "attention_bias": True, "mlp_bias": True},
    "qwen2": {**GQA, "tie_word_embeddings": True},
    "gpt2": {"n_inner": 80, "n_embd": 48, "n_layer": 3, "n_head": 4, "n_positions": 64, "vocab_size": 128},
    "opt": {"hidden_size": 64, "ffn_dim": 96, "num_hidden_layers": 3, "num_attention_heads": 4, "vocab_size": 128},
    "phi": GQA,
    "gemma3_text": {**GQA, "head_dim": 16},
    "deepseek_v3": {**SMALL, **MLA},
    "deepseek_v2": {**SMALL, **MLA, "q_lora_rank": None},
    "qwen3_moe": {**GQA, "num_experts": 4, "moe_intermediate_size": 32, "decoder_sparse_step": 2},
    "ernie4_5_moe": {**GQA, "moe_num_experts": 4, "moe_intermediate_size": 32, "moe_layer_start_index": 2},
    "llama4_text": {**GQA, "head_dim": 16, "num_local_experts": 4, "interleave_moe_layer_step": 2},
    "mamba": {"hidden_size": 64, "num_hidden_layers": 3, "state_size": 8, "vocab_size": 128, "expand": 2},
    "falcon_h1": {**GQA, "mamba_n_heads": 8, "mamba_d_head": 16, "mamba_d_ssm": 128, "mamba_d_state": 16},
    "recurrent_gemma": {**GQA, "lru_width": 64},
    "nemotron": GQA,
    "jamba": {**GQA, "attn_layer_period": 3, "attn_layer_offset": 1, "num_experts": 4, "mamba_d_state": 12},
    "exaone_moe": {**GQA, "head_dim": 16, "num_experts": 4, "moe_intermediate_size": 32, "first_k_dense_replace": 3},
    "flint": {**GQA, "head_dim": 16, "num_experts": 4, "moe_intermediate_size": 32, "num_hidden_layers": 9},
    "deepseek_v32": {**SMALL, **MLA, "index_head_dim": 16, "index_n_heads": 2, "first_k_dense_replace": 1},
    "bailing_hybrid": {**SMALL, **MLA, "num_local_experts": 4, "layer_group_size": 2},
    "cohere2_moe": {**GQA, "num_experts": 4, "num_shared_experts": 2},
    "xlstm": {"hidden_size": 128, "num_heads": 4, "num_hidden_layers": 3, "vocab_size": 128},
    "lfm2": {**GQA, "layer_types": ["conv", "full_attention", "conv", "conv", "full_attention"]},
}
KINDS = ["sliding_attention", "full_attention", "sliding_attention", "full_attention", "sliding_attention"]
HYBRID = {"layers_block_type": ["linear_attention", "moe", "full_attention", "mlp"], "head_dim": 16}
CACHED = {
    "mamba": COUNTED["mamba"],
    "falcon_mamba": COUNTED["mamba"],
    "rwkv": {"hidden_size": 64, "num_hidden_layers": 3, "vocab_size": 128, "attention_hidden_size": 64},
    "jamba": {**GQA, "attn_layer_period": 2, "attn_layer_offset": 1, "num_experts": 2, "mamba_dt_rank": 4},
    "nemotron_h": {
        **{key: value for key, value in GQA.items() if key != "num_hidden_layers"},
        **HYBRID,
        **{"mamba_num_heads": 8, "mamba_head_dim": 16, "ssm_state_size": 16, "n_groups": 2, "n_routed_experts": 4},
        **{"moe_intermediate_size": 32, "moe_shared_expert_intermediate_size": 32, "num_experts_per_tok": 2},
    },
    "mimo_v2_flash": {**GQA, "sliding_window": 8, "n_routed_experts": 4, "num_experts_per_tok": 2, "head_dim": 16},
    "gemma4_text": {**GQA, "head_dim": 16, "sliding_window": 8, "hidden_size_per_layer_input": 8},
    "zamba2": {**SMALL, "num_hidden_layers": 54, "mamba_d_state": 8},
    "zaya": {**GQA, "head_dim": 16, "num_experts": 4, "moe_intermediate_size": 32, "router_hidden_size": 16},
    "hrm_text": {**SMALL, "num_hidden_layers": 2},
    "gemma3n_text": {
        **GQA,
        "head_dim": 16,
        "sliding_window": 8,
        "num_kv_shared_layers": 2,
        "layer_types": KINDS,
        "vocab_size_per_layer_input": 64,
    },
    "deepseek_v4": {
        **{**GQA, "num_key_value_heads": 1, "head_dim": 32, "sliding_window": 8, "num_hidden_layers": 4},
        **{"index_head_dim": 16, "index_n_heads": 2, "index_topk": 4, "n_routed_experts": 4, "q_lora_rank": 24},
        **{"o_groups": 2, "o_lora_rank": 8, "moe_intermediate_size": 32, "num_experts_per_tok": 2},
    },
    "xglm": {"d_model": 64, "attention_heads": 4, "num_layers": 3, "ffn_dim": 96, "vocab_size": 128},
}


def spellings(config, kind, given):
    """Return a configuration as a whole file, as a short one, and without what the class fills in."""
    return [{**file, "model_type": kind} for file in (config.to_dict(), config.to_diff_dict(), given)]


@pytest.mark.parametrize("kind", COUNTED)
def test_parameters_equal_those_of_a_small_class(kind):
    config = CONFIG_MAPPING[kind](**COUNTED[kind])
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    expected = sum(parameter.numel() for parameter in model.parameters())
    for given in spellings(config, kind, COUNTED[kind]):
        assert rope_viz.memory(given, length=1)["parameters"] == expected


@pytest.mark.parametrize("kind", ["llava", "qwen2_vl", "gemma3", "idefics3"])
def test_parameters_of_every_part_are_counted(kind):
    config = CONFIG_MAPPING[kind]()
    with torch.device("meta"):
        model = AutoModelForImageTextToText.from_config(config)
    expected = sum(parameter.numel() for parameter in model.parameters())
    for given in spellings(config, kind, {}):
        assert rope_viz.memory(given, length=1)["parameters"] == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize("kind", CACHED)
def test_cache_equals_that_of_a_small_model(kind):
    if kind == "deepseek_v4":
        # It keeps the gates of its overlap in float32 since then.
        pytest.importorskip("transformers", "5.24.0")
    config = CONFIG_MAPPING[kind](**CACHED[kind])
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
    with torch.no_grad():
        found = model(torch.arange(21)[None] + 3, use_cache=True)
    held = next(found[key] for key in ("past_key_values", "cache_params", "state") if found.get(key) is not None)
    states = held if isinstance(held, list) else [part for layer in held.layers for part in vars(layer).values()]
    tensors = [one for part in states for one in (part.values() if isinstance(part, dict) else [part])]
    sizes = {one.data_ptr(): one.numel() * one.element_size() for one in tensors if is_cached_tensor(one)}
    for given in spellings(config, kind, CACHED[kind]):
        assert rope_viz.memory(given, length=21)["kv_cache_bytes"] == sum(sizes.values())


RATIOS = [0, 128, 4, 4]


def small_deepseek(**keys):
    """Return a small DeepSeek V4 with four layers, as transformers writes it."""
    config = CONFIG_MAPPING["deepseek_v4"](**CACHED["deepseek_v4"], **keys)
    return {"model_type": "deepseek_v4", **config.to_dict()}


def with_ratios(ratios):
    """Return the same model with the key of older files."""
    return {**small_deepseek(), "layer_types": None, "compress_ratios": ratios}


def test_listed_ratios_equal_listed_layer_types():
    named = small_deepseek(compress_ratios=RATIOS)
    assert named["layer_types"][:2] == ["sliding_attention", "heavily_compressed_attention"]
    for key in ("kv_cache_bytes", "parameters"):
        # Published files have an entry more, for the layer that predicts further tokens.
        listed = rope_viz.memory(with_ratios([*RATIOS, 4]), length=300)[key]
        assert listed == rope_viz.memory(named, length=300)[key]
        assert listed != rope_viz.memory(small_deepseek(), length=300)[key]


def test_an_unknown_ratio_is_a_reason_and_no_refusal():
    found = rope_viz.memory(with_ratios([0, 7, 4, 4]), length=300)
    assert "compress_ratios must list 0, 4 or 128" in found["reasons"]["kv_cache_bytes"]
    assert not ModelConfig.read(with_ratios([0, 7, 4, 4])).problems
    assert make_plan(with_ratios([0, 7, 4, 4]), 2_097_152, ["transformers"]).file.fragment


def test_what_is_reserved_for_compressed_layers_is_unknown():
    found = rope_viz.memory(small_deepseek(), length=300, runtime="vllm")
    assert found["reserved_bytes"] is None
    assert "compressed layers" in found["reasons"]["reserved_bytes"]


def test_the_longest_length_fits_on_the_whole_way():
    held = cache(with_ratios(RATIOS))
    bytes_at = [held.bytes(length) for length in range(1200)]
    assert bytes_at != sorted(bytes_at), "entries take less than the tokens that waited for them"
    for room in (20_000, 30_011, bytes_at[700], bytes_at[1023]):
        longest = held.longest(room)
        assert max(bytes_at[: longest + 1]) <= room < bytes_at[longest + 1]


@pytest.mark.parametrize("kind", ["paddleocr_vl", "voxtral_realtime", "qwen2_5_omni_thinker"])
def test_head_dim_null_is_the_width_by_the_heads(kind):
    config = CONFIG_MAPPING[kind]().to_dict()
    text = config["text_config"]
    width = text["hidden_size"] // text["num_attention_heads"]
    counts = [
        rope_viz.memory({**config, "text_config": {**text, "head_dim": value}}, length=1)["parameters"]
        for value in (width, None)
    ]
    assert counts[0] == counts[1]


def test_a_size_that_the_formula_does_not_follow_is_a_reason():
    config = {"model_type": "convbert", "num_groups": 2}
    found = rope_viz.memory(config, length=1)
    assert found["parameters"] is found["weight_bytes"] is None
    assert "where num_groups is 2" in found["reasons"]["parameters"]
    assert rope_viz.memory({**config, "num_groups": 1}, length=1)["parameters"] > 0


def test_further_sizes_of_the_class_are_assumed():
    assumed = rope_viz.memory(COUNTED["mamba"] | {"model_type": "mamba"}, length=1)["assumed"]
    assert assumed["other class defaults"] == "for conv_kernel"


def test_a_layer_of_an_unknown_type_is_a_reason():
    config = {"model_type": "llama", **GQA, "layer_types": ["full_attention", "of_another_kind"] * 2}
    found = rope_viz.memory(config, length=1)
    assert found["kv_cache_bytes"] is None
    assert "of_another_kind" in found["reasons"]["kv_cache_bytes"]


def test_sizes_of_the_class_are_listed_as_assumed():
    assumed = rope_viz.memory({"model_type": "llama", "hidden_size": 64}, length=1)["assumed"]
    assert assumed["class defaults of transformers"] == "for num_hidden_layers, num_attention_heads, vocab_size"
    assert "class defaults of transformers" not in rope_viz.memory({"model_type": "llama", **GQA}, length=1)["assumed"]


def is_cached_tensor(value):
    """Return whether a value of a cache is a tensor with numbers of a layer."""
    return isinstance(value, torch.Tensor) and value.dim() > 1 and value.numel() > 0
