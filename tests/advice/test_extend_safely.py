"""`extend` on models that a careless change would break; expected values were executed in transformers 5.23.0."""

import json
from pathlib import Path

import numpy as np
import pytest

from rope_viz.advice.plan.config_file import find_new_findings, find_strayed_layers
from rope_viz.advice.plan.extension_plan import make_plan
from rope_viz.models.model_config import ModelConfig, from_config

CASES = Path(__file__).parents[1] / "cases" / "extend"
WINDOWED = {
    "04-command-a": 524_288,
    "04-exaone-4.0-32b": 524_288,
    "04-llama-4-maverick": 2_097_152,
    "04-mistral-7b-v0.1": 524_288,
    "04-starcoder2": 524_288,
}


def read_case(name):
    return json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))


def test_the_compressed_layers_of_deepseek_v4_keep_their_yarn():
    config = read_case("01-deepseek-v4-flash")
    plan = make_plan(config, 2_097_152, ["transformers", "sglang"])
    assert plan.recognised.layer == "compress"
    assert from_config(config)["compress"].inv_freq()[31] == pytest.approx(5.68e-07, rel=1e-3)
    assert from_config(plan.file.config)["compress"].inv_freq()[31] == pytest.approx(2.84e-07, rel=1e-3)
    assert np.array_equal(from_config(plan.file.config)["main"].inv_freq(), from_config(config)["main"].inv_freq())


def test_yarn_goes_on_from_the_shipped_attention_factor():
    """DeepseekV4Config adds attention_factor 1.0 to flat keys alone; a file with nested keys must name it."""
    nested = {
        "main": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.125},
        "compress": {"rope_type": "default", "rope_theta": 160000.0, "partial_rotary_factor": 0.125},
    }
    config = {key: value for key, value in read_case("01-deepseek-v4-flash").items() if "rope_scaling" not in key}
    config = {**config, "max_position_embeddings": 1_048_576, "rope_parameters": nested}
    plan = make_plan(config, 2_097_152, ["transformers"])
    before, written = ModelConfig.read(config), ModelConfig.read(plan.file.config)
    assert written.specs["compress"].attention_factor() == 1.0
    assert not find_new_findings(before, written)


def test_a_longer_limit_of_main_layers_changes_no_others():
    config = read_case("01-deepseek-v4-flash")
    plan = make_plan(config, 2_097_152, ["transformers"], layer="main")
    assert np.array_equal(
        from_config(plan.file.config)["compress"].inv_freq(), from_config(config)["compress"].inv_freq()
    )


def test_the_local_layers_of_modernbert_are_not_scaled():
    plan = make_plan(read_case("02-modernbert-base"), 32_768, ["transformers"])
    local = from_config(plan.file.config)["sliding_attention"]
    assert local.inv_freq()[31] == pytest.approx(1.3335e-04, rel=1e-4)
    assert local.attention_factor() == 1.0
    assert not any("4.52" in name or "4.57" in name for name in plan.file.runtimes)


@pytest.mark.parametrize("name", WINDOWED)
def test_a_model_within_its_window_gets_only_a_longer_limit(name):
    config = read_case(name)
    plan = make_plan(config, WINDOWED[name], ["transformers"])
    before, after = from_config(config)[""], from_config(plan.file.config)[""]
    assert np.array_equal(before.inv_freq(), after.inv_freq())
    assert before.attention_factor() == after.attention_factor()
    assert after.target == WINDOWED[name]
    assert "extends nothing" in plan.way.reasons[0]


@pytest.mark.parametrize("name", ["05-phi-4-mini", "05-phi-3.5-mini"])
def test_trained_longrope_lists_are_the_base_of_a_longer_context(name):
    config = read_case(name)
    plan = make_plan(config, 262_144, ["transformers"])
    before, after = from_config(config)[""], from_config(plan.file.config)[""]
    ratio = before.inv_freq(262_144) / after.inv_freq(262_144)
    assert plan.way.method == "longrope"
    assert np.array_equal(before.inv_freq(4096), after.inv_freq(4096))
    assert np.all(ratio >= 1.0 - 1e-9)
    assert np.all(ratio <= 2.0 + 1e-9)
    assert ratio[0] == pytest.approx(1.0)
    assert ratio[-1] == pytest.approx(2.0)
    assert plan.file.fit
    assert plan.file.runtimes


def test_gemma_4_keeps_pairs_of_zero_frequency():
    config = read_case("17-gemma-4-26b-a4b")
    plan = make_plan(config, 524_288, ["vllm"])
    assert all(one.made.faithful for one in plan.instructions)
    for way in plan.advice.ways:
        assert np.count_nonzero(way.spec.inv_freq()) == 64
    assert not any(way.rank == "its own, further" for way in plan.advice.ways)


@pytest.mark.parametrize("name", sorted(path.stem for path in CASES.glob("*.json")))
def test_what_is_written_brings_no_new_finding(name):
    model = ModelConfig.read(read_case(name))
    plan = make_plan(model, 2 * model.limit, ["transformers"])
    written = ModelConfig.read(plan.file.config)
    assert not find_new_findings(model, written)
    assert not find_strayed_layers(model, written, plan.recognised.layer)


def test_dual_chunk_attention_is_known_with_its_trained_length():
    config = read_case("09-qwen2.5-7b-1m")
    yarn = make_plan(config, 2_097_152, ["vllm"], way="yarn")
    assert yarn.recognised.trained.length == 262_144
    assert not yarn.instructions[0].made.faithful
    assert "DualChunkRotaryEmbedding" in yarn.instructions[0].proof
    best = make_plan(config, 2_097_152, ["vllm"])
    assert best.instructions[0].made.faithful
    assert best.way.method != "none"
    assert any(one.rule == "dual-chunk-attention" for one in best.found)


def test_both_halves_of_t5gemma_are_extended():
    plan = make_plan(read_case("06-t5gemma"), 65_536, ["transformers"])
    encoder, decoder = (plan.file.config[name] for name in ("encoder", "decoder"))
    for part in (encoder, decoder):
        spec = from_config({**part, "model_type": "t5_gemma_module"})[""]
        assert spec.scaling.name == "yarn"
        assert spec.target == 65_536
    assert "encoder" in plan.file.fragment


def test_an_encoder_with_its_own_length_is_named():
    plan = make_plan(read_case("06-dia"), 65_536, ["transformers"])
    assert "encoder_config stays as it is" in plan.file.generation


def test_sglang_gets_flat_keys_for_deepseek_v4():
    plan = make_plan(read_case("01-deepseek-v4-flash"), 2_097_152, ["sglang"])
    assert plan.instructions[0].made.faithful
    assert '"compress"' not in plan.instructions[0].text


# Muse-Glimmer-30B's numbers without the lists that its class fills in.
# Source: transformers 5.23.0, configuration_muse_glimmer.py: every 4th layer, counted backward from the last, has full
# attention and base 0; the others have a window of 2,048.
MUSE = {
    **{"model_type": "muse_glimmer_text", "num_hidden_layers": 52, "hidden_size": 6656, "num_attention_heads": 32},
    **{"num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 131072, "sliding_window": 2048},
    "rope_theta": 10000.0,
}


@pytest.mark.parametrize("base", [1e4, 5e5])
def test_muse_without_lists_gets_only_a_longer_limit(base):
    """llama.cpp scales no layer of Muse: it rotates only windowed layers, with a scale of their own.

    Source: llama-model.cpp and models/muse-glimmer.cpp of llama-cpp-python 0.3.36; meta-oss-cookbook issue 37.
    """
    plan = make_plan({**MUSE, "rope_theta": base}, 262_144, ["llama.cpp", "transformers"])
    assert plan.way.method == "none"
    assert "Distances stay within 2,048 tokens" in plan.way.reasons[0]
    assert "--rope-scale " not in plan.instructions[0].text
    assert plan.file.config["max_position_embeddings"] == 262_144


def test_muse_without_lists_rotates_and_caches_as_its_class():
    transformers = pytest.importorskip("transformers")
    for layers in (52, 50):
        made = transformers.CONFIG_MAPPING["muse_glimmer_text"](num_hidden_layers=layers)
        model = ModelConfig.read({**MUSE, "num_hidden_layers": layers})
        assert model.layer_types == made.layer_types
        assert model.rotating_layers == [bool(base) for base in made.layer_rope_theta]
        assert model.window == made.sliding_window


def test_both_parts_of_pi0_are_extended():
    """The action expert continues the positions of the language model.

    Source: transformers 5.23.0, modeling_pi0.py: dit_position_ids count on from the text, and the keys of both meet.
    """
    transformers = pytest.importorskip("transformers")
    config = transformers.CONFIG_MAPPING["pi0"]().to_dict()
    plan = make_plan(config, 32_768, ["transformers"])
    assert "dit_config is extended in the same way" in plan.file.generation
    assert "also in dit_config" in plan.file.proof[0]
    text, expert = plan.file.config["vlm_config"]["text_config"], plan.file.config["dit_config"]
    written = transformers.CONFIG_MAPPING["pi0"](**json.loads(json.dumps(dict(plan.file.config))))
    rotary = transformers.models.gemma.modeling_gemma.GemmaRotaryEmbedding
    live = [rotary(part) for part in (written.vlm_config.text_config, written.dit_config)]
    for one in live:
        assert one.inv_freq.tolist() == pytest.approx(plan.way.spec.inv_freq().tolist(), rel=1e-5)
        assert one.attention_scaling == pytest.approx(plan.way.spec.attention_factor())
    assert text["max_position_embeddings"] == expert["max_position_embeddings"] == 32_768


def test_the_cross_attention_layers_of_mllama_are_named():
    """Source: transformers 5.23.0, modeling_mllama.py: MllamaTextCrossAttention applies no rotation."""
    transformers = pytest.importorskip("transformers")
    config = transformers.CONFIG_MAPPING["mllama"]().to_dict()
    plan = make_plan(config, 524_288, ["transformers"])
    assert "The 8 cross-attention layers stay as they are: they have no positions." in plan.file.generation
    assert "vision_config" not in plan.file.fragment


def test_the_proof_names_the_layer_types_that_were_computed():
    plan = make_plan(read_case("02-modernbert-base"), 32_768, ["transformers"])
    assert "(layer types full_attention and sliding_attention)" in plan.file.proof[0]
    assert "for the full_attention layers. The sliding_attention layers keep theirs." in plan.instructions[0].proof
