"""Memory of configs whose layers or sizes differ from the defaults of their class, against transformers, executed."""

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

import rope_viz
from rope_viz.cli.main import main

FILE = Path(__file__).parents[1] / "cases" / "memory" / "layers_and_sizes.json"
CONFIGS = {case["name"]: case["config"] for case in json.loads(FILE.read_text())["cases"]}
NEMOTRON = ("nemotron-3-nano", "nemotron-3-super", "nemotron-h-pattern")
BUILT = (*NEMOTRON, "hrm-text-8-layers", "granitemoeshared-with-shared-expert", "mamba-with-intermediate-size")


def count_in_transformers(config):
    """Return the number of parameters of the class that transformers builds from a config, on the meta device."""
    given = {key: value for key, value in config.items() if key != "model_type"}
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(config["model_type"], **given))
    return sum(parameter.numel() for parameter in model.parameters())


def run_cache(config, length):
    """Return the bytes of the cache of a model with random weights in float32 after a prompt."""
    given = {key: value for key, value in config.items() if key != "model_type"}
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(
        AutoConfig.for_model(config["model_type"], **given), dtype=torch.float32
    ).eval()
    with torch.no_grad():
        found = model(torch.arange(length)[None] + 3, use_cache=True)
    held = found["past_key_values"] if "past_key_values" in found else found["cache_params"]
    states = [part for layer in held.layers for part in vars(layer).values()] + list(getattr(held, "linear_cache", ()))
    tensors = [one for part in states for one in (part.values() if isinstance(part, dict) else [part])]
    kept = {one.data_ptr(): one for one in tensors if isinstance(one, torch.Tensor) and one.dim() > 1 and one.numel()}
    return sum(one.numel() * one.element_size() for one in kept.values())


@pytest.mark.parametrize("name", BUILT)
def test_parameters_are_those_that_transformers_builds(name):
    assert rope_viz.memory(CONFIGS[name], length=1)["parameters"] == count_in_transformers(CONFIGS[name])


@pytest.mark.parametrize(("name", "attention"), list(zip(NEMOTRON, (6, 8, 6), strict=True)))
def test_a_pattern_of_letters_says_which_layers_keep_keys(name, attention):
    # Two key heads of 128 numbers: 2 * 2 * 128 * 2 bytes for each of the layers with an asterisk.
    found = [rope_viz.memory(CONFIGS[name], length=length)["kv_cache_bytes"] for length in (131_071, 131_072)]
    assert found[1] - found[0] == attention * 1024
    assert CONFIGS[name]["hybrid_override_pattern"].count("*") == attention


def test_an_unknown_letter_is_a_reason():
    config = {**CONFIGS["nemotron-h-pattern"], "hybrid_override_pattern": "MEM?"}
    found = rope_viz.memory(config, length=1)
    assert "hybrid_override_pattern must consist of M * E -" in found["reasons"]["kv_cache_bytes"]
    assert found["parameters"] is None


@pytest.mark.parametrize("name", ["mamba-with-intermediate-size", "minimax-small"])
def test_states_are_those_that_transformers_keeps(name):
    config = {"vocab_size": 128, **CONFIGS[name]}
    if config["model_type"] == "minimax":
        config = {**config, "intermediate_size": 96, "num_local_experts": 4}
    found = rope_viz.memory(config, length=24, dtype="float32")
    assert found["kv_cache_bytes"] == run_cache(config, 24)


@pytest.mark.parametrize(("name", "size"), [("mamba-with-intermediate-size", 61_440), ("minimax-small", 40_960)])
def test_the_command_counts_states_in_the_given_type(name, size, tmp_path, capsys):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIGS[name]))
    assert main(["memory", str(path), "--length", "24", "--dtype", "float32", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kv_cache_bytes"] == size


def test_a_shared_expert_adds_its_three_matrices():
    config = CONFIGS["granitemoeshared-with-shared-expert"]
    sizes = [rope_viz.memory({**config, "shared_intermediate_size": size}, length=1)["parameters"] for size in (0, 512)]
    assert sizes[1] - sizes[0] == 32 * 3 * 4096 * 512


def test_kimi_k3_has_latent_experts_and_its_own_linear_heads():
    # Stated: 2.78T parameters in 1.56 TB, experts in MXFP4; 24 layers keep 512 + 64 numbers, 69 a state of 96 heads.
    found = rope_viz.memory(CONFIGS["kimi-k3"], length=131_072)
    assert found["parameters"] == pytest.approx(2.78e12, rel=2e-3)
    assert found["weight_bytes"] == pytest.approx(1.56e12, rel=3e-3)
    groups = {group["kind"]: group for group in found["groups"]}
    assert groups["full_attention"]["layers"] == 24
    assert groups["full_attention"]["layers"] * groups["full_attention"]["bytes_per_token"] * 131_072 == 3_623_878_656
    assert groups["linear_attention"]["layers"] == 69
    assert groups["linear_attention"]["state_bytes"] == 96 * 128 * 128 * 4 + 3 * 96 * 128 * 4 * 2
