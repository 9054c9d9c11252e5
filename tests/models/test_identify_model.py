"""Which model a config is, how long it was trained for, and what its length keys get wrong."""

import pytest

from rope_viz.models.catalog import catalog
from rope_viz.models.model_config import ModelConfig
from tests.configs import FOUR_NUMBERS_OF_LLAMA_3, QWEN3_8B, yarn
from tests.offenders import for_each

# Published with the numbers of another entry, which a config without a name is taken for.
SAME_NUMBERS = {
    "deepseek-v4-flash-compress": "deepseek-v4-flash",
    "deepseek-v4-pro-compress": "deepseek-v4-pro",
    "glm-5.1": "glm-5",
    "kimi-k2.7-code": "kimi-k2.5",
}


@for_each(list(catalog()))
def test_every_catalog_model_is_identified_by_its_numbers(id):
    config = {**catalog()[id].sizes, **{key: value for key, value in catalog()[id].config.items() if key != "_about"}}
    found = ModelConfig.read(config).identity
    model = catalog()[SAME_NUMBERS.get(id, id)]
    assert found.model == model
    assert found.trained.length == (model.trained_length or model.original_length)
    assert not found.mistakes


def test_a_name_tells_models_of_the_same_numbers_apart():
    for id, name in (("glm-5.1", "zai-org/GLM-5.1"), ("kimi-k2.7-code", "nvidia/Kimi-K2.7-Code")):
        found = ModelConfig.read({**catalog()[id].whole, "_name_or_path": name}).identity
        assert (found.model, found.how) == (catalog()[id], "model")


def test_stock_qwen3_is_trained_on_less_than_its_limit():
    found = ModelConfig.read({**QWEN3_8B, "_name_or_path": "Qwen/Qwen3-8B"}).identity
    assert found.how == "model"
    assert (found.trained.length, found.says, found.room, found.reach) == (32_768, 40_960, 8_192, 32_768)
    assert "Recognised: Qwen3 8B (8 of 8 fields match). Trained length: 32,768 tokens." in found.sentence
    assert "max_position_embeddings 40,960 = 32,768 trained + 8,192 for the prompt" in found.sentence


def test_model_without_a_name_is_identified_by_its_numbers():
    found = ModelConfig.read(QWEN3_8B).identity
    assert found.how == "numbers"
    assert "Recognised by its numbers: Qwen3 8B" in found.sentence


@pytest.mark.parametrize(
    ("changes", "sign"),
    [
        ({"vocab_size": 152_000}, "64 entries more"),
        ({"_name_or_path": "acme/support-bot"}, "its name is support-bot"),
        ({"unsloth_fixed": True}, "Unsloth"),
        ({"architectures": ["Qwen3ForSequenceClassification"]}, "Qwen3ForSequenceClassification"),
    ],
)
def test_fine_tune_is_identified_as_one(changes, sign):
    found = ModelConfig.read({**QWEN3_8B, **changes}).identity
    assert found.how == "fine-tune"
    assert found.sentence.startswith("Recognised: a fine-tune of Qwen3 8B (")
    assert sign in found.sentence
    assert found.trained.length == 32_768


def test_longer_limit_without_scaling_is_reported_as_a_mistake():
    found = ModelConfig.read({**QWEN3_8B, "max_position_embeddings": 131_072}).identity
    assert found.reach == 32_768
    assert "max_position_embeddings is 131,072 without scaling" in found.mistakes[0]


def test_a_factor_that_counts_from_the_stock_limit_is_a_mistake():
    rope = yarn(40_960, 3.2)
    found = ModelConfig.read({**QWEN3_8B, "max_position_embeddings": 131_072, "rope_scaling": rope}).identity
    assert "original_max_position_embeddings is 40,960" in found.mistakes[0]


def test_trained_length_names_its_source():
    other = {**QWEN3_8B, "num_hidden_layers": 20, "max_position_embeddings": 16_384}
    assert ModelConfig.read(other).identity.trained.source == "max_position_embeddings of the config"
    scaled = {**other, "rope_scaling": yarn(4096)}
    assert ModelConfig.read(scaled).identity.trained.length == 4096
    assert "original_max_position_embeddings" in ModelConfig.read(scaled).identity.trained.source
    documented = ModelConfig.read(QWEN3_8B).trained_length
    assert (documented.length, documented.is_documented) == (32_768, True)
    assert "arXiv" in documented.source or "Qwen" in documented.source
    stated = ModelConfig.read({**QWEN3_8B, "max_position_embeddings": 131_072}).identify(trained=131_072)
    assert (stated.trained.length, stated.trained.source, stated.mistakes) == (131_072, "your setting", ())


def test_a_qwen3_of_another_size_has_the_same_room():
    found = ModelConfig.read(
        {**QWEN3_8B, "num_hidden_layers": 40, "hidden_size": 5120, "num_attention_heads": 40}
    ).identity
    assert (found.model, found.trained.length, found.room) == (None, 32_768, 8_192)


def test_another_base_or_another_layer_count_is_another_model():
    assert ModelConfig.read({**QWEN3_8B, "rope_theta": 5_000_000}).identity.model is None
    assert ModelConfig.read({**QWEN3_8B, "num_hidden_layers": 35}).identity.model is None
    assert (
        "Nearest: Qwen3 8B, 7 of 8 fields match, but the base differs"
        in ModelConfig.read({**QWEN3_8B, "rope_theta": 5_000_000}).identity.near
    )


LLAMA3 = {**FOUR_NUMBERS_OF_LLAMA_3, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128_256}


def test_a_few_numbers_that_agree_make_no_model():
    found = ModelConfig.read(FOUR_NUMBERS_OF_LLAMA_3).identity
    assert (found.model, found.trained.length) == (None, 4096)
    assert "Nearest: Llama 3 8B, 4 of 7 fields match, too few to recognise it" in found.sentence
    assert (
        ModelConfig.read({**FOUR_NUMBERS_OF_LLAMA_3, "_name_or_path": "meta-llama/Meta-Llama-3-8B"}).identity.model
        == catalog()["llama-3-8b"]
    )


def test_number_of_matching_fields_is_reported():
    assert ModelConfig.read(LLAMA3).identity.agree == (7, 7)
    assert ModelConfig.read({**LLAMA3, "vocab_size": 128_300}).identity.agree == (6, 7)
    assert "7 of 7 fields match" in ModelConfig.read(LLAMA3).identity.sentence
    assert ModelConfig.read({**LLAMA3, "intermediate_size": 11008}).identity.model is None


def test_raised_limit_names_the_model_that_scales_to_it():
    found = ModelConfig.read({**LLAMA3, "max_position_embeddings": 131_072}).identity
    assert found.model == catalog()["llama-3-8b"]
    assert (
        "Llama 3.1 8B has the same sizes and this length. For that model, rope_scaling is missing" in found.mistakes[0]
    )
    assert "same sizes" not in ModelConfig.read({**QWEN3_8B, "max_position_embeddings": 131_072}).identity.mistakes[0]


def test_kimi_k2_under_its_own_type_is_the_catalog_model():
    model = catalog()["kimi-k2-instruct"]
    assert ModelConfig.read({**model.sizes, **model.config, "model_type": "kimi_k2"}).identity.model == model
