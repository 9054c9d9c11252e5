"""Faults of published configs that the check names: bases, misplaced keys, keys of other code, lengths, lists."""

import copy
import json
import math
from pathlib import Path

import numpy as np
import pytest

from rope_viz import emulate
from rope_viz.advice.lint import check, repair
from rope_viz.advice.memory.kv_cache import cache
from rope_viz.advice.plan.runtime_matrix import RuntimeCase
from rope_viz.cli.main import main
from rope_viz.models.model_config import ModelConfig, from_config
from rope_viz.pages.model.runtimes.words import whose
from tests.configs import LLAMA_3_1_8B, QWEN3_8B, llama

CASES = Path(__file__).parents[1] / "cases" / "lints"


def read_case(name):
    return json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))


def find(config, rule):
    return [one for one in check(config, without=("runtimes-differ",)) if one.rule == rule]


def without_base(config):
    return {key: value for key, value in config.items() if key != "rope_theta"}


def test_a_missing_base_is_that_of_the_model_of_these_sizes():
    config = read_case("llama3-without-base")
    (found,) = find(config, "missing-base")
    assert found.severity == "error"
    assert "10,000" in found.message
    assert "500,000" in found.message
    assert found.effect.ratio > 10
    assert repair(config)["rope_theta"] == 500_000.0
    assert from_config(repair(config)) == from_config(LLAMA_3_1_8B)


def test_a_missing_base_is_written_where_the_file_has_its_others():
    config = {**without_base(LLAMA_3_1_8B), "rope_scaling": None, "rope_parameters": LLAMA_3_1_8B["rope_scaling"]}
    (found,) = find(config, "missing-base")
    assert found.repaired["rope_parameters"]["rope_theta"] == 500_000.0
    added = find({**without_base(LLAMA_3_1_8B), "vocab_size": 128_260}, "missing-base")
    assert [one.severity for one in added] == ["warning"]


@pytest.mark.parametrize(("vocabulary", "severities"), [(32_768, ["error"]), (32_000, []), (32_002, [])])
def test_the_vocabulary_tells_models_of_the_same_sizes_apart(vocabulary, severities):
    # Mistral 7B v0.1 has the default base and 32,000 entries; v0.3 has 1,000,000 and 32,768.
    sizes = {
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "max_position_embeddings": 32_768,
    }
    heads = {"num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "sliding_window": None}
    config = {"model_type": "mistral", **sizes, **heads, "vocab_size": vocabulary}
    found = find(config, "missing-base")
    assert [one.severity for one in found] == severities
    assert all("Mistral 7B v0.3" in one.message for one in found)


@pytest.mark.parametrize(
    "config",
    [
        llama(),
        {**without_base(LLAMA_3_1_8B), "vocab_size": 32_000},
        {**without_base(LLAMA_3_1_8B), "num_hidden_layers": 31},
    ],
    ids=["four numbers", "another vocabulary", "another size"],
)
def test_a_missing_base_of_no_known_model_is_no_finding(config):
    assert not find(config, "missing-base")


@pytest.mark.parametrize(
    ("changes", "severity"),
    [
        ({"rope_theta": 10_000.0}, "warning"),
        ({"rope_theta": 50_000_000.0}, "warning"),
        ({"rope_theta": 10_000.0, "max_position_embeddings": 4096}, "note"),
        ({"rope_theta": 50_000_000.0, "max_position_embeddings": 1_048_576}, "note"),
    ],
    ids=["smaller", "larger", "shorter fine-tune", "longer fine-tune"],
)
def test_another_base_is_a_warning_unless_the_length_goes_along(changes, severity):
    (found,) = find({**QWEN3_8B, **changes}, "other-base")
    assert found.severity == severity
    assert "1,000,000" in found.message
    assert found.repaired is None


def test_a_misplaced_rope_type_is_moved_into_its_dict():
    config = read_case("misplaced-rope-type")
    (found,) = find(config, "misplaced-keys")
    assert (found.severity, found.key) == ("warning", "rope_type")
    assert not find(config, "unknown-keys")
    assert "rope_type" not in found.repaired
    scaling = found.repaired["rope_scaling"]
    assert scaling == {"rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 8192}
    (spec,) = from_config(found.repaired).values()
    assert spec.scaling.factor == 32.0


@pytest.mark.parametrize(
    ("changes", "rules"),
    [
        ({"rope_type": "default"}, 0),
        ({"rope_type": "yarn", "rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, 0),
        ({"rope_type": "llama3", "rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, 1),
        ({"beta_fast": 64, "rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, 1),
    ],
    ids=["neutral", "said twice", "contradiction", "a number"],
)
def test_only_a_key_that_changes_something_is_misplaced(changes, rules):
    found = find(llama(rope_theta=500_000.0, **changes), "misplaced-keys")
    assert len(found) == rules
    if "beta_fast" in changes:
        assert found[0].repaired["rope_scaling"]["beta_fast"] == 64


@pytest.mark.parametrize("value", ["yarn", [4.0], 4.0, {}, None])
def test_a_misplaced_key_is_found_next_to_any_value(value):
    (found,) = find(llama(rope_theta=500_000.0, rope_type="yarn", rope_scaling=value), "misplaced-keys")
    assert found.repaired["rope_scaling"] == {"rope_type": "yarn"}


def test_a_misplaced_type_takes_its_factor_along():
    scaling = {"rope_type": "llama3", "low_freq_factor": 1.0, "high_freq_factor": 4.0, "factor": 8.0}
    found = find(llama(rope_theta=500_000.0, **scaling), "misplaced-keys")
    assert {one.key for one in found} == scaling.keys()
    assert found[0].repaired["rope_scaling"] == scaling
    assert not find(llama(rope_theta=500_000.0, factor=8.0), "misplaced-keys")


def test_keys_next_to_text_config_are_named():
    inner = {**without_base(llama()), "model_type": "llama"}
    outer = {"model_type": "llava", "rope_theta": 500_000.0, "rope_type": "yarn", "factor": 4.0}
    found = {one.key: one for one in find({**outer, "text_config": inner}, "unread-rope-keys")}
    assert found.keys() == {"rope_theta", "rope_type", "factor"}
    assert found["rope_theta"].message.endswith("Move it into text_config.")
    assert found["factor"].message.endswith("Move it into text_config.rope_scaling.")
    neutral = {**outer, "rope_type": "default", "text_config": {**inner, "rope_theta": 500_000.0}}
    assert not find(neutral, "unread-rope-keys")


def test_keys_of_another_code_are_named_with_their_values():
    (found,) = find(read_case("nomic-v15"), "keys-of-other-code")
    assert found.severity == "note"
    for words in ("rotary_scaling_factor 2", "max_trained_positions 2,048", "n_positions 8,192", "nomic_bert"):
        assert words in found.message
    assert "rotary_emb_fraction" not in found.message


@pytest.mark.parametrize(("more", "severity"), [(2, ["warning"]), (1, ["note"]), (0, [])])
def test_a_list_longer_than_the_layers_is_named(more, severity):
    path = Path(__file__).parents[1] / "cases" / "extend" / "01-deepseek-v4-flash.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    layers = config["num_hidden_layers"]
    config = {**config, "num_nextn_predict_layers": 0, "compress_ratios": [128] * (layers + more)}
    assert [one.severity for one in find(config, "lists-longer-than-layers")] == severity
    assert not find({**config, "num_nextn_predict_layers": 2}, "lists-longer-than-layers")


def test_the_length_that_a_server_derives_is_named(capsys):
    path = CASES / "linear-double-length.json"
    (found,) = find(read_case("linear-double-length"), "derived-length")
    assert found.severity == "note"
    for words in ("vLLM", "SGLang", "8,192", "factor 2"):
        assert words in found.message
    assert main(["runtimes", str(path)]) == 0
    assert found.message in capsys.readouterr().out
    assert main(["runtimes", str(path), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    lengths = {row["runtime"]: row["longest_length"]["tokens"] for row in rows if "longest_length" in row}
    assert lengths == {"vllm": 8192, "sglang": 8192}


def test_the_page_names_the_length_that_a_server_derives():
    asked = RuntimeCase(ModelConfig.read(read_case("linear-double-length")), "", from_config(LLAMA_3_1_8B)[""], "Mine")
    assert "8,192 tokens" in whose(asked, None)
    plain = RuntimeCase(ModelConfig.read(LLAMA_3_1_8B), "", from_config(LLAMA_3_1_8B)[""], "Mine")
    assert "longest length" not in whose(plain, None)


def test_sglang_ends_at_the_attention_factor_of_laguna():
    """Source: srt/configs/laguna.py of SGLang 0.5.23, read: attention_factor over its own factor is attn_factor."""
    config = read_case("laguna-xs2")
    (found,) = find(config, "attention-factor")
    assert "transformers, vLLM and SGLang only; the other runtimes compute 1.34657" in found.message
    factors = {
        name: emulate(config, name, layer_type="full_attention").attention_factor
        for name in ("transformers", "vllm", "sglang", "llama.cpp", "mlx-lm")
    }
    yarn = pytest.approx(0.1 * math.log(32.0) + 1.0)
    assert factors == {"transformers": 1.0, "vllm": 1.0, "sglang": 1.0, "llama.cpp": yarn, "mlx-lm": yarn}
    changed = copy.deepcopy(config)
    changed["rope_parameters"]["full_attention"]["attention_factor"] = 1.1
    assert emulate(changed, "sglang", layer_type="full_attention").attention_factor == pytest.approx(1.1)
    for name in ("vllm", "sglang", "mlx-lm"):
        known = emulate(config, name, layer_type="full_attention").known
        assert (known.how, "laguna" in known.source) == ("by rule", True)


def test_the_linear_layers_of_ling_rotate_half_of_their_heads():
    """Source: bailing_moe_linear.py of vLLM 0.33.0 and SGLang 0.5.23, read."""
    config = read_case("ling26-flash")
    specs = from_config(config)
    shapes = {layer: (spec.rotary_dim, spec.head_dim, spec.pairing) for layer, spec in specs.items()}
    assert shapes == {"full_attention": (64, 64, "interleaved"), "linear_attention": (64, 128, "half")}
    assert check(config) == []
    for name in ("vllm", "sglang", "mlx-lm"):
        for layer, spec in specs.items():
            found = emulate(config, name, layer_type=layer)
            assert found.known.how == "by rule"
            np.testing.assert_allclose(found.inv_freq, spec.inv_freq())
    assert emulate(config, "transformers").remote
    assert emulate({**config, "partial_rotary_factor": 0.25}, "vllm", layer_type="full_attention").inv_freq.size == 32
    assert emulate({**config, "partial_rotary_factor": 0.25}, "vllm", layer_type="linear_attention").inv_freq.size == 16


def test_ling_without_linear_rope_rotates_latent_layers_alone():
    config = {**read_case("ling26-flash"), "linear_rope": False}
    assert list(from_config(config)) == ["full_attention"]
    (found,) = find(config, "some-layers")
    assert "4 of 32" in found.message
    assert "linear_rope" in found.message


def test_the_linear_layers_of_ling_keep_a_square_state():
    """Four layers keep 512 + 64 numbers of a token, 28 a matrix of 128 × 128 numbers in float32 for each head."""
    latent, states = 4 * 131_072 * 576 * 2, 28 * 32 * 128 * 128 * 4
    assert cache(read_case("ling26-flash")).bytes(131_072) == latent + states


def test_ling_3_keeps_the_class_of_transformers():
    config = {**read_case("ling26-flash"), "architectures": ["BailingHybridForCausalLM"]}
    assert list(from_config(config)) == [""]
    assert [one.rule for one in find(config, "some-layers")] == ["some-layers"]
