"""`architectures` decides where one model type has two codes: inclusionAI/Ling-mini-2.0, modeling_bailing_moe_v2.py."""

from rope_viz import emulate, from_config

# Keys of the published config.json of Ling-mini-2.0; its code rotates int(head_dim * partial_rotary_factor) dimensions.
LING = {
    **{"model_type": "bailing_moe", "hidden_size": 2048, "num_attention_heads": 16, "head_dim": 128},
    **{"partial_rotary_factor": 0.5, "max_position_embeddings": 32768, "rope_theta": 600000},
}


def test_bailing_moe_v2_rotates_half_of_the_head():
    assert from_config(LING | {"architectures": ["BailingMoeV2ForCausalLM"]})[""].rotary_dim == 64
    assert from_config(LING | {"architectures": ["BailingMoeForCausalLM"]})[""].rotary_dim == 128
    assert from_config(LING)[""].rotary_dim == 128


def test_what_was_not_run_is_not_claimed():
    config = LING | {"architectures": ["BailingMoeV2ForCausalLM"]}
    assert emulate(config, "vllm").known.how == "executed"
    assert emulate(config, "mlx-lm").known.how != "executed"
    assert emulate(config, "llama.cpp").inv_freq.size == 32
