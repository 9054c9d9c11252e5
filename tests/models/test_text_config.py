"""The language model is found inside its wrapper, as in transformers 5.23.0 and published configs."""

import pytest

from rope_viz.advice.memory.kv_cache import cache
from rope_viz.advice.memory.parameter_count import parameters
from rope_viz.models.model_config import ModelConfig, from_config

SIZES = {"hidden_size": 2048, "num_attention_heads": 16, "max_position_embeddings": 8192, "rope_theta": 5e5}
QWEN2 = {"model_type": "qwen2", **SIZES}

# (config, where its language model stands, its type)
KNOWN = [
    ({"model_type": "llama", **SIZES}, "", "llama"),
    ({"model_type": "gemma3", "text_config": {"hidden_size": 2560}}, "text_config", "gemma3_text"),
    ({"model_type": "llava", "text_config": {"model_type": "mistral"}}, "text_config", "mistral"),
    (
        {"model_type": "qwen2_5_omni", "thinker_config": {"text_config": SIZES}},
        "thinker_config.text_config",
        "qwen2_5_omni_text",
    ),
    ({"model_type": "t5gemma", "decoder": SIZES}, "decoder", "t5_gemma_module"),
    # The wrapper inside decides what its text part is.
    (
        {"model_type": "colqwen2", "vlm_config": {"model_type": "qwen2_5_vl", "text_config": SIZES}},
        "vlm_config.text_config",
        "qwen2_5_vl_text",
    ),
    # Early checkpoints keep the keys at the top.
    ({"model_type": "qwen2_vl", **SIZES}, "", "qwen2_vl_text"),
]
# Types whose code is not in transformers, in the shapes of their published configs.
OUTSIDE = [
    ({"model_type": "internvl_chat", "hidden_size": 3584, "llm_config": QWEN2}, "llm_config", "qwen2"),
    (
        {"model_type": "deepseek_vl_v2", "language_config": {"model_type": "deepseek_v2"}},
        "language_config",
        "deepseek_v2",
    ),
    ({"model_type": "vila", "llm_cfg": QWEN2, "hidden_size": 2048}, "llm_cfg", "qwen2"),
    (
        {"model_type": "omni", "thinker_config": {"text_config": QWEN2, "audio_config": {"hidden_size": 8}}},
        "thinker_config.text_config",
        "qwen2",
    ),
    ({"text_config": QWEN2}, "text_config", "qwen2"),
    # Under a name that nobody uses, where it is the only one that can be meant.
    (
        {"model_type": "boxed", "backbone": QWEN2, "vision_tower": SIZES, "audio_encoder": SIZES},
        "backbone",
        "qwen2",
    ),
    ({"model_type": "boxed", "model": {"text_config": QWEN2, "vit": SIZES}}, "model.text_config", "qwen2"),
    # A wrapper without a type around one of transformers.
    ({"language_model": {"model_type": "gemma3", "text_config": {}}}, "language_model.text_config", "gemma3_text"),
]


@pytest.mark.parametrize(("config", "place", "kind"), [*KNOWN, *OUTSIDE])
def test_text_part_is_found_in_its_wrapper(config, place, kind):
    part = ModelConfig.read(config).part
    assert part.is_in_file
    assert ".".join(part.path) == place
    assert part.kind == kind
    assert from_config(config)


def test_a_type_outside_the_list_around_the_part_is_named():
    assert all(ModelConfig.read(config).part.unlisted is None for config, _, _ in KNOWN)
    # deepseek_vl_v2 is outside transformers, and its published code was read.
    assert [ModelConfig.read(config).part.unlisted for config, _, _ in OUTSIDE] == [
        *("internvl_chat", None, "vila", "omni"),
        *("", "boxed", "boxed", ""),
    ]


def test_model_with_an_extra_decoder_is_read_itself():
    config = {**SIZES, "decoder": {"channels": 64}}
    assert ModelConfig.read(config).part.path == ()


def test_top_level_keys_are_read_only_without_a_text_part():
    at_top = {"model_type": "qwen2_vl", **SIZES}
    assert ModelConfig.read(at_top).part.loaded == ("text_config",)
    assert from_config(at_top)[""].base == 5e5
    assert from_config({**at_top, "text_config": {"rope_theta": 2e6}})[""].base == 2e6


FLAT = {
    **{"hidden_size": 3584, "num_attention_heads": 28, "num_key_value_heads": 4, "num_hidden_layers": 28},
    **{"intermediate_size": 18944, "vocab_size": 152064, "max_position_embeddings": 32768, "rope_theta": 1e6},
    "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]},
}
"""The sizes of Qwen2-VL-7B, at the top as it was published."""


@pytest.mark.parametrize("kind", ["qwen2_vl", "qwen2_5_vl", "hunyuan_vl", "paddleocr_vl"])
def test_top_level_sizes_belong_to_the_language_model(kind):
    """Run: AutoConfig.for_model(kind, **config).text_config has them."""
    extra = {"head_dim": 128} if kind.startswith(("hunyuan", "paddle")) else {}
    part = ModelConfig.read({"model_type": kind, **FLAT, **extra, "rope_scaling": None}).part
    wanted = {key: FLAT[key] for key in ("num_hidden_layers", "num_key_value_heads", "intermediate_size", "vocab_size")}
    assert {key: part.config.get(key) for key in wanted} == wanted


@pytest.mark.parametrize("kind", ["qwen2_vl", "qwen2_5_vl"])
def test_the_memory_of_a_flat_config_is_known(kind):
    # 28 layers, keys and values, 4 heads of 128, 2 bytes each.
    assert cache({"model_type": kind, **FLAT}).per_token == 28 * 2 * 4 * 128 * 2
    with pytest.raises(ValueError, match="num_hidden_layers must be a number"):
        cache({"model_type": kind, **FLAT, "num_hidden_layers": "28"})
    tied, apart = (parameters({"model_type": kind, **FLAT, "tie_word_embeddings": flag}) for flag in (True, False))
    assert apart - tied == 152064 * 3584
    # The class makes windows of the layers from max_window_layers on, where it is told to.
    windows = {"use_sliding_window": True, "sliding_window": 4096, "max_window_layers": 20}
    assert cache({"model_type": kind, **FLAT, **windows}).per_token == 20 * 2 * 4 * 128 * 2


def test_empty_text_part_gets_no_values_from_its_wrapper():
    """Run: Mistral3Config().text_config.head_dim is 128 at base 1e9, Mistral3Config(text_config={}) takes 1e4."""
    assert from_config({"model_type": "mistral3"})[""].base == 1e9
    assert from_config({"model_type": "mistral3", "text_config": {}})[""].base == 1e4
    # This class lays its values under whatever it is given.
    assert from_config({"model_type": "voxtral", "text_config": {}})[""].base == 1e8


def test_checkpoint_with_the_original_part_name_is_read():
    """Unlimited OCR keeps its text under language_config, and its class takes it from there."""
    config = {"model_type": "unlimited_ocr", "language_config": {**SIZES, "rope_theta": 7e5}}
    part = ModelConfig.read(config).part
    assert (part.path, part.loaded) == (("language_config",), ("text_config",))
    assert from_config(config)[""].base == 7e5


def test_text_part_that_is_no_object_is_named():
    with pytest.raises(ValueError, match="text_config must be an object, got 3"):
        _ = ModelConfig.read({"model_type": "gemma3", "text_config": 3}).part
