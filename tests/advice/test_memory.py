"""`rope_viz.memory` for public configs whose cache, parameters or storage were counted by hand or run."""

import json
from pathlib import Path

import pytest

import rope_viz
from rope_viz.cli.main import main

CASES = json.loads((Path(__file__).parents[1] / "cases" / "memory" / "cases.json").read_text())["cases"]
LLAMA = {
    **{"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8},
    **{"num_hidden_layers": 32, "intermediate_size": 14336, "vocab_size": 128256},
}
# Two square matrices, two of 8 heads of 128 and three of the feed-forward part in each of 32 layers.
LAYERS = 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336)
GROUP_OF_4 = {"targets": ["Linear"], "weights": {"num_bits": 4}}


def cases_with(key):
    """Return the cases that give a value for this key."""
    return pytest.mark.parametrize("case", [case for case in CASES if key in case], ids=lambda case: case["name"])


def config_of(name):
    """Return the config of one case."""
    return next(case["config"] for case in CASES if case["name"] == name)


@cases_with("bytes_per_token")
def test_cache_grows_by_the_expected_bytes_per_token(case):
    short, long = (rope_viz.memory(case["config"], length=length)["kv_cache_bytes"] for length in (100_000, 100_001))
    assert long - short == case["bytes_per_token"]


@cases_with("parameters")
def test_parameters_are_those_of_the_class(case):
    found = rope_viz.memory(case["config"], length=1)
    assert found["parameters"] == pytest.approx(case["parameters"], rel=5e-3)


@cases_with("bits")
def test_weights_take_the_bits_of_the_quantization_config(case):
    found = rope_viz.memory(case["config"], length=1)
    assert f", {case['bits']} bits" in found["weight_dtype"]
    # Scales add a quarter at most, and few weights keep 16 bits.
    assert 1 < found["weight_bytes"] / (found["parameters"] * case["bits"] / 8) < 1.3


def test_step3_counts_its_experts():
    # stepfun-ai/Step3 README: 61 layers, 5 of them dense; 316B in the language model, 321B with the vision tower.
    assert rope_viz.memory(config_of("14-step3"), length=1)["parameters"] == pytest.approx(316e9, rel=2e-3)


@pytest.mark.parametrize("listed", ["4,5", [4, 5]])
def test_step3_has_experts_only_in_the_layers_that_it_lists(listed):
    # vllm/model_executor/models/step3_text.py of 0.33.0: every other layer has a plain feed-forward part.
    config = config_of("14-step3")
    few = {**config, "text_config": {**config["text_config"], "moe_layers_enum": listed}}
    found = [rope_viz.memory(each, length=1)["parameters"] for each in (config, few)]
    experts = 49 * 3 * 7168 * 5120 + 48 * 7168
    assert found[0] - found[1] == 54 * (experts - 3 * 7168 * 18432)


def test_recurrent_gemma_keeps_windows_and_states():
    found = rope_viz.memory(config_of("11-recurrentgemma-2b"), length=16_384)
    state = sum(group["layers"] * group["state_bytes"] for group in found["groups"])
    assert found["kv_cache_bytes"] - state == 8 * 2047 * 2 * 256 * 2
    assert state > 0


def test_an_encoder_keeps_no_cache_and_has_weights():
    found = rope_viz.memory(config_of("11-jina-embeddings-v3"), length=8192)
    assert found["kv_cache_bytes"] == 0
    assert "has no KV cache" in found["reasons"]["kv_cache_bytes"]
    assert found["weight_bytes"] > 0


def test_a_model_without_rope_gets_its_memory():
    config = {
        "model_type": "gpt2",
        "n_embd": 768,
        "n_head": 12,
        "n_layer": 12,
        "n_positions": 1024,
        "vocab_size": 50257,
    }
    assert rope_viz.memory(config, length=100)["kv_cache_bytes"] == 12 * 2 * 768 * 2 * 100


def test_a_broken_rope_does_not_hide_the_memory():
    found = rope_viz.memory({**LLAMA, "rope_scaling": {"rope_type": "nonsense", "factor": "x"}}, length=10)
    assert found["kv_cache_bytes"] == 10 * 131_072


def test_types_are_assumed_only_where_nothing_names_them():
    assert rope_viz.memory(LLAMA, length=1)["assumed"] == {"dtype": "bfloat16", "weight_dtype": "bfloat16"}
    given = rope_viz.memory({**LLAMA, "torch_dtype": "float32"}, length=1, dtype="float16", weight_dtype="fp8")
    assert given["assumed"] == {}
    assert given["weight_bytes"] == given["parameters"]
    assert rope_viz.memory({**LLAMA, "dtype": "float32"}, length=1)["weight_bytes"] == 4 * given["parameters"]


@pytest.mark.parametrize(
    ("quantized", "bits"),
    [
        ({"quant_method": "awq", "bits": 4, "zero_point": False}, 4 + 16 / 128),
        ({"quant_method": "awq", "bits": 4, "group_size": 64}, 4 + 20 / 64),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, 4 + 32 / 64),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True}, 4 + 8.125 / 64),
        ({"quant_method": "fp8"}, 8),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, 8 + 32 / 128**2),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, 4.5),
        ({"quant_algo": "FP8"}, 8),
        ({"quant_method": "compressed-tensors", "ignore": ["lm_head"], "config_groups": {"group_0": GROUP_OF_4}}, 4),
    ],
)
def test_storage_follows_the_quantization_method(quantized, bits):
    found = rope_viz.memory({**LLAMA, "quantization_config": quantized}, length=1)
    assert found["weight_bytes"] == round(LAYERS * bits / 8 + 2 * (found["parameters"] - LAYERS))


def test_a_method_without_rules_is_assumed_and_named():
    found = rope_viz.memory({**LLAMA, "quantization_config": {"quant_method": "mxfp4"}}, length=1)
    assert found["weight_bytes"] == round(found["parameters"] * 4.25 / 8)
    assert found["assumed"]["all weights"] == "in 4.25 bits"


def test_a_runtime_adds_what_it_reserves():
    plain, served = rope_viz.memory(LLAMA, length=17), rope_viz.memory(LLAMA, length=17, runtime="vLLM")
    assert served["kv_cache_bytes"] == plain["kv_cache_bytes"] == 17 * 131_072
    assert served["reserved_bytes"] == 32 * 131_072
    unknown = rope_viz.memory(LLAMA, length=17, runtime="other")
    assert unknown["reserved_bytes"] is None
    assert "reserved_bytes" in unknown["reasons"]


def test_the_command_counts_a_listed_model_with_its_sizes(capsys):
    # Qwen3-8B's config.json has 36 layers with 8 key heads; its model card gives 8.2B parameters.
    assert main(["memory", "qwen3-8b", "--length", "32k", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["kv_cache_bytes"] == 32_768 * 36 * 8 * 128 * 2 * 2
    assert round(found["parameters"] / 1e9, 1) == 8.2


def test_the_command_prints_json_and_has_its_exit_codes(tmp_path, capsys):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA))
    assert main(["memory", str(path), "--length", "1k", "--sequences", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kv_cache_bytes"] == 2 * 1024 * 131_072
    assert main(["memory", str(path), "--length", "1k"]) == 0
    assert "KV cache: 134 MB" in capsys.readouterr().out
    path.write_text("no json")
    assert main(["memory", str(path), "--length", "1k"]) == 3
    assert main(["memory", str(tmp_path / "none.json"), "--length", "1k"]) == 3
    path.write_text('{"model_type": "unheard-of", "hidden_size": 64, "num_attention_heads": 4}')
    assert main(["memory", str(path), "--length", "1k", "--json"]) == 1
    assert set(json.loads(capsys.readouterr().out)["reasons"]) == {"kv_cache_bytes", "parameters", "weight_bytes"}
