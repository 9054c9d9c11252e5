"""Published configs that were once taken for something else: recognised under their own names."""

from rope_viz.models.model_config import ModelConfig

# EleutherAI/gpt-j-6b and answerdotai/ModernBERT-base, keys of config.json.
GPT_J = {
    **{"architectures": ["GPTJForCausalLM"], "model_type": "gptj", "n_embd": 4096, "n_head": 16, "n_layer": 28},
    **{"n_positions": 2048, "rotary": True, "rotary_dim": 64, "vocab_size": 50400, "n_inner": None},
}
MODERNBERT = {
    **{"architectures": ["ModernBertForMaskedLM"], "model_type": "modernbert", "hidden_size": 768},
    **{"intermediate_size": 1152, "num_attention_heads": 12, "num_hidden_layers": 22, "vocab_size": 50368},
    **{"global_rope_theta": 160000.0, "local_rope_theta": 10000.0, "local_attention": 128},
    **{"global_attn_every_n_layers": 3, "max_position_embeddings": 8192},
}


def test_gpt_j_is_recognised():
    identity = ModelConfig.read(GPT_J).identity
    assert (identity.name, identity.how) == ("GPT-J 6B", "numbers")
    assert identity.trained.is_documented


def test_a_masked_head_is_no_sign_of_a_fine_tune():
    assert ModelConfig.read(MODERNBERT).identity.signs == ()
    classifier = MODERNBERT | {"architectures": ["ModernBertForSequenceClassification"]}
    assert ModelConfig.read(classifier).identity.how == "fine-tune"
