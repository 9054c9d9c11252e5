"""Configs that several tests read, and functions that build variations of them."""


def llama(**changes):
    """Return a small config of type llama: 32 heads of 128 dimensions and 8,192 tokens, with `changes`."""
    sizes = {"hidden_size": 4096, "num_attention_heads": 32, "max_position_embeddings": 8192}
    return {"model_type": "llama", **sizes, **changes}


def yarn(original, factor=4.0, **more):
    """Return a `rope_scaling` dict of YaRN over an original length of `original` tokens."""
    return {"rope_type": "yarn", "factor": factor, "original_max_position_embeddings": original, **more}


def llama3(original, factor=8.0):
    """Return a `rope_scaling` dict of Llama 3 over an original length of `original` tokens."""
    bands = {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
    return {"rope_type": "llama3", "factor": factor, **bands, "original_max_position_embeddings": original}


def with_scaling(config, **changes):
    """Return `config` with other keys in its `rope_scaling`; a key that is changed to None is removed."""
    rope = {key: value for key, value in {**config["rope_scaling"], **changes}.items() if value is not None}
    return {**config, "rope_scaling": rope}


QWEN3 = {
    **{"model_type": "qwen3", "hidden_size": 4096, "num_attention_heads": 32, "head_dim": 128},
    **{"max_position_embeddings": 40960, "rope_theta": 1000000.0},
}
"""What RoPE needs to know of Qwen3 8B."""

FAULTY_QWEN3 = {**QWEN3, "rope_scaling": {"rope_type": "yarn", "factor": 4.0}}
"""Qwen3 8B with YaRN as it is often copied: without the original length, which transformers then takes to be 40,960."""

QWEN3_8B = {
    **{"architectures": ["Qwen3ForCausalLM"], "attention_bias": False, "head_dim": 128, "hidden_size": 4096},
    **{"intermediate_size": 12288, "max_position_embeddings": 40960, "max_window_layers": 36, "model_type": "qwen3"},
    **{"num_attention_heads": 32, "num_hidden_layers": 36, "num_key_value_heads": 8, "rope_scaling": None},
    **{"rope_theta": 1000000, "sliding_window": None, "tie_word_embeddings": False, "torch_dtype": "bfloat16"},
    **{"transformers_version": "4.51.0", "use_cache": True, "use_sliding_window": False, "vocab_size": 151936},
}
"""The published config.json of Qwen3 8B."""

LLAMA_3_1_8B = {
    **{"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32},
    **{"num_key_value_heads": 8, "num_hidden_layers": 32, "max_position_embeddings": 131072, "vocab_size": 128256},
    **{"rope_theta": 500000.0, "architectures": ["LlamaForCausalLM"], "rope_scaling": llama3(8192)},
}
DEEPSEEK_V3 = {
    **{"model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432, "kv_lora_rank": 512},
    **{"max_position_embeddings": 163840, "moe_intermediate_size": 2048, "n_routed_experts": 256},
    **{"num_attention_heads": 128, "num_hidden_layers": 61, "num_key_value_heads": 128, "q_lora_rank": 1536},
    **{"qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "rope_theta": 10000, "vocab_size": 129280},
    **{"num_experts_per_tok": 8, "first_k_dense_replace": 3, "n_shared_experts": 1},
    "rope_scaling": {
        **{"type": "yarn", "factor": 40, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0},
        "original_max_position_embeddings": 4096,
    },
}
GPT_OSS_20B = {
    **{"model_type": "gpt_oss", "hidden_size": 2880, "head_dim": 64, "num_attention_heads": 64, "vocab_size": 201088},
    **{"num_key_value_heads": 8, "num_hidden_layers": 24, "max_position_embeddings": 131072, "rope_theta": 150000},
    **{"intermediate_size": 2880, "num_local_experts": 32, "num_experts_per_tok": 4, "sliding_window": 128},
    "rope_scaling": yarn(4096, 32.0, beta_fast=32.0, beta_slow=1.0, truncate=False),
}
"""The rope keys and sizes in the published config.json of each."""

QWEN_7B = {
    **{"model_type": "qwen", "hidden_size": 4096, "num_attention_heads": 32, "kv_channels": 128, "seq_length": 8192},
    **{"max_position_embeddings": 8192, "rotary_emb_base": 10000, "rotary_pct": 1.0, "use_dynamic_ntk": False},
}
"""The first Qwen, whose code travels with the model."""

FOUR_NUMBERS_OF_LLAMA_3 = llama(num_hidden_layers=32, rope_theta=500_000.0, max_position_embeddings=4096)
"""Too few of the numbers of Llama 3 8B to recognise it, and another length."""

LONGROPE = {
    **{"model_type": "phi3", "hidden_size": 384, "num_attention_heads": 4, "num_hidden_layers": 2},
    **{"max_position_embeddings": 16384, "original_max_position_embeddings": 4096, "rope_theta": 12345.0},
    "rope_scaling": {
        "type": "longrope",
        "short_factor": [1.0 + i / 96 for i in range(48)],
        "long_factor": [2.0 + i / 7 for i in range(48)],
    },
}
"""A config unlike every model of the catalog, so that a value from a default would be noticed."""
