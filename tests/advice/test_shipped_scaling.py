"""Only the scaling that a maker shipped is called trained; a changed one is recognised by its key."""

import pytest

from rope_viz.advice.lint import check
from rope_viz.advice.plan.config_file import write_config_file
from rope_viz.advice.plan.rank_methods import recommend
from rope_viz.models.catalog import catalog
from rope_viz.models.model_config import ModelConfig, from_config
from tests.configs import DEEPSEEK_V3, GPT_OSS_20B, LLAMA_3_1_8B, with_scaling

GEMMA3_4B = {
    **{"model_type": "gemma3_text", "hidden_size": 2560, "num_attention_heads": 8, "num_key_value_heads": 4},
    **{"head_dim": 256, "num_hidden_layers": 34, "max_position_embeddings": 131072, "rope_theta": 1000000.0},
    **{"rope_local_base_freq": 10000.0, "rope_scaling": {"factor": 8.0, "rope_type": "linear"}},
    **{"sliding_window": 1024, "sliding_window_pattern": 6, "vocab_size": 262208, "intermediate_size": 10240},
}
LLAMA32_3B = {
    **LLAMA_3_1_8B,
    **{"hidden_size": 3072, "num_attention_heads": 24, "head_dim": 128, "num_hidden_layers": 28},
    **{"intermediate_size": 8192, "rope_scaling": {**LLAMA_3_1_8B["rope_scaling"], "factor": 32.0}},
}
LLAMA31_70B = {**LLAMA_3_1_8B, "hidden_size": 8192, "num_attention_heads": 64, "num_hidden_layers": 80}


CHANGED = [
    (LLAMA_3_1_8B, {"factor": 4.0}, "factor 4, not 8"),
    (LLAMA_3_1_8B, {"high_freq_factor": 8.0}, "high_freq_factor 8, not 4"),
    (DEEPSEEK_V3, {"beta_fast": 8}, "beta_fast 8, not 32"),
    (DEEPSEEK_V3, {"mscale": 0.707}, "mscale 0.707, not 1"),
    (DEEPSEEK_V3, {"mscale": 0.707, "mscale_all_dim": 0.707}, "mscale_all_dim 0.707, not 1"),
    (GPT_OSS_20B, {"truncate": None}, "truncate true, not false"),
    (GPT_OSS_20B, {"attention_factor": 1.0}, "attention_factor 1, not the formula's"),
]


@pytest.mark.parametrize(("stock", "changes", "said"), CHANGED, ids=[said for *_, said in CHANGED])
def test_changed_scaling_is_not_attributed_to_the_maker(stock, changes, said):
    config = with_scaling(stock, **changes)
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


@pytest.mark.parametrize("stock", [LLAMA_3_1_8B, DEEPSEEK_V3, GPT_OSS_20B], ids=lambda stock: stock["model_type"])
def test_shipped_scaling_is_reported_as_shipped(stock):
    found = ModelConfig.read(stock).identity
    advice = recommend(stock, found, 131_072)
    assert advice.best.rank == "as it is"
    assert f"as {found.name} ships it" in advice.best.title
    assert advice.short == ("The model was trained with this scaling, so short texts work as its maker intended.",)
    assert "not-as-shipped" not in {one.rule for one in check(stock)}


def test_key_equal_to_its_default_formula_changes_nothing():
    # 0.1 ln(32) + 1
    config = with_scaling(GPT_OSS_20B, attention_factor=1.3465735902799727)
    assert ModelConfig.read(config).identity.exact
    assert "not-as-shipped" not in {one.rule for one in check(config)}


def test_a_fine_tune_for_another_length_is_no_more_than_noted():
    longer = {**with_scaling(DEEPSEEK_V3, factor=80), "max_position_embeddings": 327680}
    shorter = {**with_scaling(LLAMA_3_1_8B, factor=4.0), "max_position_embeddings": 65536}
    named = {**with_scaling(LLAMA_3_1_8B, high_freq_factor=8.0), "_name_or_path": "acme/support-bot"}
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
    half = with_scaling(DEEPSEEK_V3, factor=20)
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
    config = {**LLAMA_3_1_8B, "max_position_embeddings": limit}
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
def test_scaling_of_an_unlisted_stock_config_is_no_addition(config):
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
