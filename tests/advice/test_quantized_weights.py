"""Bytes of quantized weights, counted by hand: what is quantized, in how many bits, and what keeps 16."""

import pytest

import rope_viz
from rope_viz.advice.memory.quantized_names import Names

LLAMA_70B = {
    **{"model_type": "llama", "hidden_size": 8192, "num_attention_heads": 64, "num_key_value_heads": 8},
    **{"num_hidden_layers": 80, "intermediate_size": 28672, "vocab_size": 128256, "dtype": "float16"},
    **{"max_position_embeddings": 131072, "rope_theta": 500000.0, "tie_word_embeddings": False},
}
ATTENTION = 2 * 8192 * 8192 + 2 * 8192 * 1024
FEED_FORWARD = 3 * 8192 * 28672
ENDS = 128256 * 8192
NORMS = 161 * 8192
MOE = {
    **{"model_type": "qwen3_moe", "hidden_size": 2048, "num_attention_heads": 32, "num_key_value_heads": 4},
    **{"head_dim": 128, "num_hidden_layers": 48, "moe_intermediate_size": 768, "intermediate_size": 6144},
    **{"num_experts": 128, "num_experts_per_tok": 8, "vocab_size": 151936, "tie_word_embeddings": False},
    **{"decoder_sparse_step": 1, "mlp_only_layers": [], "dtype": "bfloat16", "max_position_embeddings": 40960},
}
MOE_ATTENTION = 2 * 2048 * 4096 + 2 * 2048 * 512
EXPERTS = 128 * 3 * 2048 * 768


def weigh(config, quantized):
    """Return the bytes of the weights of a config with this quantization."""
    return rope_viz.memory({**config, "quantization_config": quantized}, length=1)["weight_bytes"]


def test_llama_70b_in_awq_has_39_8_gb():
    quantized = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}
    layers = 80 * (ATTENTION + FEED_FORWARD)
    # 4 bits, and for 128 weights a scale of 16 bits and a zero point of 4.
    expected = layers * 4 / 8 + layers / 128 * (16 + 4) / 8 + 2 * (2 * ENDS + NORMS)
    assert weigh(LLAMA_70B, quantized) == expected
    assert round(expected / 1e9, 1) == 39.8


def test_gptq_adds_an_index_for_each_input():
    quantized = {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": True}
    order = 80 * (6 * 8192 + 28672) * 4
    awq = weigh(LLAMA_70B, {"quant_method": "awq", "bits": 4, "group_size": 128})
    assert weigh(LLAMA_70B, quantized) == awq + order
    # One group for all inputs: a scale and a zero point for each output.
    outputs = 80 * (2 * 8192 + 2 * 1024 + 2 * 28672 + 8192)
    whole = weigh(LLAMA_70B, {**quantized, "group_size": -1})
    assert whole == 80 * (ATTENTION + FEED_FORWARD) / 2 + outputs * 20 / 8 + order + 2 * (2 * ENDS + NORMS)


def test_a_group_that_is_missing_is_assumed_and_named():
    bare = {**LLAMA_70B, "quantization_config": {"quant_method": "awq", "bits": 4}}
    found = rope_viz.memory(bare, length=1)
    assert found["weight_bytes"] == weigh(LLAMA_70B, {"quant_method": "awq", "bits": 4, "group_size": 128})
    assert found["assumed"]["group_size"].startswith("128")


@pytest.mark.parametrize(
    ("names", "kept"),
    [
        (["lm_head"], 0),
        (["model.layers.0.self_attn.q_proj"], 8192 * 8192),
        (["model.layers.1*"], 11 * (ATTENTION + FEED_FORWARD)),
        (["model.layers.1.*"], ATTENTION + FEED_FORWARD),
        (["re:.*self_attn.*"], 80 * ATTENTION),
        (["self_attn"], 80 * ATTENTION),
        (["gate"], 0),
        (["re:.*mlp\\.(gate|up)_proj$"], 80 * FEED_FORWARD * 2 / 3),
        (["language_model.model.layers.79.mlp"], FEED_FORWARD),
    ],
)
def test_excluded_modules_keep_16_bits(names, kept):
    quantized = {"quant_method": "modelopt", "quant_algo": "FP8", "exclude_modules": names}
    plain = weigh(LLAMA_70B, {"quant_method": "modelopt", "quant_algo": "FP8"})
    assert weigh(LLAMA_70B, quantized) - plain == kept


def test_each_module_of_mixed_precision_has_its_own_bits():
    layers = {}
    for index in range(48):
        layers[f"model.layers.{index}.self_attn.q_proj"] = {"quant_algo": "FP8"}
        for name in ("gate", "up", "down"):
            names = (f"model.layers.{index}.mlp.experts.{expert}.{name}_proj" for expert in range(128))
            layers |= {key: {"quant_algo": "NVFP4", "group_size": 16} for key in names}
    quantized = {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": layers}
    plain = rope_viz.memory(MOE, length=1)["weight_bytes"]
    saved = 48 * (2048 * 4096 + EXPERTS * (2 - 4.5 / 8))
    assert weigh(MOE, quantized) == plain - saved
    without = rope_viz.memory({**MOE, "quantization_config": {**quantized, "quantized_layers": {}}}, length=1)
    assert without["weight_bytes"] is None
    assert "hf_quant_config.json" in without["reasons"]["weight_bytes"]
    assert without["parameters"] is not None


def test_groups_of_compressed_tensors_have_their_targets():
    eight = {"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": True}
    four = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32, "symmetric": True}
    groups = {
        "group_0": {"targets": ["re:.*self_attn.*"], "weights": eight},
        "group_1": {"targets": ["Linear"], "weights": four},
    }
    quantized = {"quant_method": "compressed-tensors", "ignore": ["lm_head"], "config_groups": groups}
    attention = 48 * (MOE_ATTENTION + (4096 + 2 * 512 + 2048) * 2)
    rest = rope_viz.memory(MOE, length=1)["weight_bytes"] - 2 * 48 * (MOE_ATTENTION + EXPERTS)
    assert weigh(MOE, quantized) == attention + 48 * EXPERTS * 4.5 / 8 + rest
    # Without the head among the ignored modules it is a linear layer as any other.
    head = 2048 * 151936
    assert weigh(MOE, quantized) - weigh(MOE, {**quantized, "ignore": []}) == head * (2 - 4.5 / 8)


def test_mlx_quantizes_embeddings_and_head_as_well():
    quantized = {"group_size": 64, "bits": 4, "model.layers.0.self_attn.q_proj": {"group_size": 64, "bits": 8}}
    each = 4 + 32 / 64
    expected = (80 * (ATTENTION + FEED_FORWARD) + 2 * ENDS) * each / 8 + 2 * NORMS + 8192 * 8192 * 4 / 8
    assert weigh(LLAMA_70B, quantized) == expected


@pytest.mark.parametrize("pattern", ["re:(a+)+$", "re:.*.*.*.*x", "re:(?P<n>a)", "re:[", "re:" + "a" * 500])
def test_an_expression_that_may_take_for_ever_is_refused_by_name(pattern):
    with pytest.raises(ValueError, match="of the quantization is"):
        Names.from_patterns([pattern])
    quantized = {"quant_method": "modelopt", "quant_algo": "FP8", "ignore": [pattern]}
    found = rope_viz.memory({**LLAMA_70B, "quantization_config": quantized}, length=1)
    assert found["weight_bytes"] is None
    assert "pattern" in found["reasons"]["weight_bytes"]


def test_a_list_of_too_many_patterns_is_refused():
    for pattern in ("re:.*l.*p.*{}", "*a*b{}*"):
        with pytest.raises(ValueError, match="of the quantization is too long"):
            Names.from_patterns(pattern.format(index) for index in range(5000))


@pytest.mark.parametrize(
    ("stored", "dtype"),
    [
        ({"kv_cache_scheme": {"num_bits": 8, "type": "float", "dynamic": False}}, "fp8"),
        ({"kv_cache_quant_algo": "FP8"}, "fp8"),
        ({"kv_cache_scheme": "FP8"}, "fp8"),
        ({"kv_cache_scheme": None}, "bfloat16"),
    ],
)
def test_the_cache_has_the_type_that_the_file_names(stored, dtype):
    config = {**LLAMA_70B, "quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8", **stored}}
    found = rope_viz.memory(config, length=1000)
    assert found["dtype"] == dtype
    assert ("dtype" in found["assumed"]) == (dtype == "bfloat16")
    assert found["kv_cache_bytes"] == 1000 * 80 * 2 * 8 * 128 * (1 if dtype == "fp8" else 2)
    assert rope_viz.memory(config, length=1000, dtype="float16")["kv_cache_bytes"] == 1000 * 80 * 2 * 8 * 128 * 2


def test_a_cache_in_few_bits_needs_its_type_named():
    config = {**LLAMA_70B, "quantization_config": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "NVFP4"}}
    found = rope_viz.memory(config, length=1000)
    assert found["kv_cache_bytes"] is None
    assert "NVFP4" in found["reasons"]["kv_cache_bytes"]
    assert rope_viz.memory(config, length=1000, dtype="fp8")["kv_cache_bytes"] == 1000 * 80 * 2 * 8 * 128


@pytest.mark.parametrize("side", [3, {"quantization": 3}, {"quantization": {"weight_bytes": True, "bits": "x"}}])
def test_a_broken_entry_of_a_link_changes_nothing(side):
    plain = rope_viz.memory(LLAMA_70B, length=100)
    found = rope_viz.memory({**LLAMA_70B, "_side_files": side}, length=100)
    assert found == plain
    lengths = {"generation": {"max_length": True, "max_new_tokens": "many"}}
    assert rope_viz.memory({**LLAMA_70B, "_side_files": lengths}, length=100) == plain


@pytest.mark.parametrize(
    "quantized",
    [{"quant_method": "hqq"}, {"quant_method": "torchao", "quant_type": "int4"}, {"quant_algo": "NO_SUCH_ALGORITHM"}],
)
def test_weights_of_an_unread_method_are_not_known(quantized):
    config = {**LLAMA_70B, "quantization_config": quantized}
    found = rope_viz.memory(config, length=1)
    name = next(iter(quantized.values()))
    assert (found["weight_bytes"], found["weight_dtype"]) == (None, name)
    assert name in found["reasons"]["weight_bytes"]
    assert rope_viz.memory(config, length=1, weight_dtype="int8")["weight_bytes"] == found["parameters"]


def test_an_empty_algorithm_leaves_weights_in_16_bits():
    quantized = {"quant_method": "modelopt", "quant_algo": None, "kv_cache_quant_algo": "FP8"}
    found = rope_viz.memory({**LLAMA_70B, "quantization_config": quantized}, length=1)
    assert (found["weight_bytes"], found["dtype"]) == (2 * found["parameters"], "fp8")
