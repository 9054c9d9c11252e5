"""What a maker trained is said of what he trained alone: a changed scaling is told from it, by its key."""

import pytest

from rope_viz.advice.lint import check
from rope_viz.advice.rank_methods import recommend
from rope_viz.advice.runtime_instructions import write_config_file
from rope_viz.models.catalog import catalog
from rope_viz.models.model_config import ModelConfig, from_config

LLAMA31 = {
    **{"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32},
    **{"num_key_value_heads": 8, "num_hidden_layers": 32, "max_position_embeddings": 131072, "vocab_size": 128256},
    **{"rope_theta": 500000.0, "architectures": ["LlamaForCausalLM"]},
    "rope_scaling": {
        **{"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
        "original_max_position_embeddings": 8192,
    },
}
DEEPSEEK = {
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
GPT_OSS = {
    **{"model_type": "gpt_oss", "hidden_size": 2880, "head_dim": 64, "num_attention_heads": 64, "vocab_size": 201088},
    **{"num_key_value_heads": 8, "num_hidden_layers": 24, "max_position_embeddings": 131072, "rope_theta": 150000},
    **{"intermediate_size": 2880, "num_local_experts": 32, "num_experts_per_tok": 4, "sliding_window": 128},
    "rope_scaling": {
        **{"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False},
        "original_max_position_embeddings": 4096,
    },
}
"""The published config.json of each."""
GEMMA3_4B = {
    **{"model_type": "gemma3_text", "hidden_size": 2560, "num_attention_heads": 8, "num_key_value_heads": 4},
    **{"head_dim": 256, "num_hidden_layers": 34, "max_position_embeddings": 131072, "rope_theta": 1000000.0},
    **{"rope_local_base_freq": 10000.0, "rope_scaling": {"factor": 8.0, "rope_type": "linear"}},
    **{"sliding_window": 1024, "sliding_window_pattern": 6, "vocab_size": 262208, "intermediate_size": 10240},
}
LLAMA32_3B = {
    **LLAMA31,
    **{"hidden_size": 3072, "num_attention_heads": 24, "head_dim": 128, "num_hidden_layers": 28},
    **{"intermediate_size": 8192, "rope_scaling": {**LLAMA31["rope_scaling"], "factor": 32.0}},
}
LLAMA31_70B = {**LLAMA31, "hidden_size": 8192, "num_attention_heads": 64, "num_hidden_layers": 80}


def rescaled(base, **changes):
    rope = {key: value for key, value in {**base["rope_scaling"], **changes}.items() if value is not None}
    return {**base, "rope_scaling": rope}


CHANGED = [
    (LLAMA31, {"factor": 4.0}, "factor 4, not 8"),
    (LLAMA31, {"high_freq_factor": 8.0}, "high_freq_factor 8, not 4"),
    (DEEPSEEK, {"beta_fast": 8}, "beta_fast 8, not 32"),
    (DEEPSEEK, {"mscale": 0.707}, "mscale 0.707, not 1"),
    (DEEPSEEK, {"mscale": 0.707, "mscale_all_dim": 0.707}, "mscale_all_dim 0.707, not 1"),
    (GPT_OSS, {"truncate": None}, "truncate true, not false"),
    (GPT_OSS, {"attention_factor": 1.0}, "attention_factor 1, not the formula's"),
]


@pytest.mark.parametrize(("stock", "changes", "said"), CHANGED, ids=[said for *_, said in CHANGED])
def test_what_somebody_changed_is_not_said_to_be_what_the_maker_trained(stock, changes, said):
    config = rescaled(stock, **changes)
    found = ModelConfig.read(config).identity
    name = ModelConfig.read(stock).identity.name
    assert found.name == name
    assert not found.exact
    advice = recommend(config, found, 131_072)
    kept = advice.way("kept")
    assert kept.spec == found.spec
    assert f"as {name} ships it" not in kept.title
    assert said in kept.title
    # First comes what does ship.
    assert advice.best.spec == next(iter(from_config(stock).values()))
    assert said in advice.best.title
    told = [one for one in check(config) if one.rule == "not-as-shipped"]
    assert [one.severity for one in told] == ["warning"]
    assert said in told[0].message


@pytest.mark.parametrize("stock", [LLAMA31, DEEPSEEK, GPT_OSS], ids=lambda stock: stock["model_type"])
def test_what_ships_is_said_to_ship(stock):
    found = ModelConfig.read(stock).identity
    advice = recommend(stock, found, 131_072)
    assert advice.best.rank == "as it is"
    assert f"as {found.name} ships it" in advice.best.title
    assert advice.short == ("The model was trained with this scaling, so short texts work as its maker intended.",)
    assert "not-as-shipped" not in {one.rule for one in check(stock)}


def test_a_key_that_says_what_the_formula_gives_changes_nothing():
    # 0.1 ln(32) + 1
    config = rescaled(GPT_OSS, attention_factor=1.3465735902799727)
    assert ModelConfig.read(config).identity.exact
    assert "not-as-shipped" not in {one.rule for one in check(config)}


def test_a_fine_tune_for_another_length_is_no_more_than_noted():
    longer = {**rescaled(DEEPSEEK, factor=80), "max_position_embeddings": 327680}
    shorter = {**rescaled(LLAMA31, factor=4.0), "max_position_embeddings": 65536}
    named = {**rescaled(LLAMA31, high_freq_factor=8.0), "_name_or_path": "acme/support-bot"}
    for config, target in ((longer, 300_000), (shorter, 60_000), (named, 131_072)):
        assert {one.severity for one in check(config) if one.rule == "not-as-shipped"} == {"note"}
        advice = recommend(config, ModelConfig.read(config).identity, target)
        assert advice.best.rank == "as it is"
        assert "Unless the model was trained again with these values" in advice.short[0]


def test_a_method_that_its_maker_documents_is_not_called_changed():
    model = catalog()["qwen3-8b-yarn"]
    assert "not-as-shipped" not in {one.rule for one in check(model.whole)}
    kept = recommend(model.config, ModelConfig.read(model.config).identify(known=model), 16_384).way("kept")
    assert "the maker of Qwen3 8B documents" in kept.title


def test_a_factor_reaches_no_further_than_its_own_length():
    half = rescaled(DEEPSEEK, factor=20)
    assert ModelConfig.read(half).identity.reach == 20 * 4096
    advice = recommend(half, ModelConfig.read(half).identity, 131_072)
    assert "as it is" not in {one.rank for one in advice.ways}
    assert advice.best.spec.scaling.factor == 40
    assert recommend(half, ModelConfig.read(half).identity, 65_536).way("kept").reach == 81_920


def test_a_linear_factor_counts_from_the_trained_length():
    llama2 = {**catalog()["llama-2-7b"].whole, "max_position_embeddings": 32768}
    found = ModelConfig.read({**llama2, "rope_scaling": {"rope_type": "linear", "factor": 2.0}}).identity
    assert (found.trained.length, found.reach) == (4096, 8192)


@pytest.mark.parametrize("limit", [8_192, 16_384])
def test_a_limit_that_was_cut_is_raised_and_the_factor_stays(limit):
    config = {**LLAMA31, "max_position_embeddings": limit}
    found = ModelConfig.read(config).identity
    assert found.reach == 131_072
    assert f"max_position_embeddings is {limit:,}, below the 131,072" in found.sentence
    best = recommend(config, found, 131_072).best
    assert best.title.startswith("Raise max_position_embeddings")
    assert "only a limit in the config" in best.title
    written = write_config_file(best.spec, config)
    assert written.config["max_position_embeddings"] == 131_072
    assert written.config["rope_scaling"]["factor"] == 8.0
    assert recommend(config, found, 262_144).best.spec.scaling.factor == 16.0
    assert recommend(config, found, limit).best.rank == "as it is"


@pytest.mark.parametrize(
    "config",
    [LLAMA32_3B, LLAMA31_70B, GEMMA3_4B, {"model_type": "gemma3", "text_config": GEMMA3_4B}],
    ids=["llama 3.2 3b", "llama 3.1 70b", "gemma 3 4b", "nested gemma 3"],
)
def test_a_stock_config_of_no_listed_model_is_not_called_an_addition(config):
    found = ModelConfig.read(config).identity
    assert found.model is None
    advice = recommend(config, found, 131_072)
    assert advice.best.rank == "as it is"
    told = " ".join(advice.short)
    assert "original config" not in told
    assert "always on" not in told
    assert "unknown whether this model was trained with this scaling" in told
    if config["model_type"] == "llama":
        assert "llama 3 scaling is normally part of the training" in told.lower()
