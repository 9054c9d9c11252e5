"""Mistral's params.json is read as the config.json that means the same.

Keys of the files: those that vLLM reads (vllm/transformers_utils/configs/mistral.py at 01da88c). Numbers: the published
config.json of the same model (catalog), transformers' own class, and YaRN's formula in float64.
"""

import json
import math

import numpy as np
import pytest

import rope_viz
from rope_viz.cli.main import main
from rope_viz.models.catalog import catalog
from rope_viz.models.formats import without_source
from rope_viz.models.formats.mistral_params import config_from_mistral
from rope_viz.models.model_config import ModelConfig
from rope_viz.models.read_upload import read_upload
from rope_viz.runtimes import emulate
from rope_viz.storage.limits import CONFIG_BYTES

SEVEN = {
    **{"dim": 4096, "n_layers": 32, "head_dim": 128, "hidden_dim": 14336, "n_heads": 32, "n_kv_heads": 8},
    **{"norm_eps": 1e-05, "vocab_size": 32768, "rope_theta": 1000000.0},
}
YARN = {"original_max_position_embeddings": 16384, "factor": 16, "apply_scale": False, "beta": 32, "alpha": 1}
MINISTRAL = {
    **{"dim": 3072, "n_layers": 26, "head_dim": 128, "hidden_dim": 9216, "n_heads": 32, "n_kv_heads": 8},
    **{"norm_eps": 1e-05, "vocab_size": 131072, "rope_theta": 1000000.0, "tied_embeddings": True},
    **{"max_position_embeddings": 262144, "max_seq_len": 262144, "yarn": YARN},
    **{"llama_4_scaling": {"original_max_position_embeddings": 16384, "beta": 0.1}, "vision_encoder": {"n": 1}},
}
MLA = {"q_lora_rank": 1536, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128}
EXPERTS = {"num_experts": 128, "num_experts_per_tok": 4, "expert_hidden_dim": 4096, "num_shared_experts": 1}
LARGE = {**SEVEN, **MLA, "head_dim": 128, "moe": {**EXPERTS, "first_k_dense_replace": 3}, "yarn": YARN}


def yarn_frequencies(base, dims, original, factor, fast, slow):
    """YaRN of arXiv 2309.00071 as Mistral's code has it: the ramp over the index, its bounds rounded outwards."""
    plain = base ** (-np.arange(0, dims, 2) / dims)
    low, high = (dims * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(base)) for turns in (fast, slow))
    low, high = max(math.floor(low), 0), min(math.ceil(high), dims - 1)
    ramp = np.clip((np.arange(dims // 2) - low) / (high - low), 0, 1)
    return plain * (1 - ramp) + plain / factor * ramp


def test_unscaled_file_means_the_published_config():
    found = ModelConfig.read(SEVEN)
    assert found.identity.model.id == "mistral-7b-v0.3"
    assert (found.model_type, found.fields.head_dim(), found.window) == ("mistral", 128, None)
    np.testing.assert_allclose(found.specs[""].inv_freq(), 1e6 ** (-np.arange(0, 128, 2) / 128), rtol=1e-12)
    assert "names no length: 128,000 tokens are assumed" in " ".join(found.notes)


def test_yarn_of_ministral_is_read_with_its_bounds():
    found = ModelConfig.read(MINISTRAL)
    assert found.identity.model.id == "ministral-3-3b"
    spec = found.specs[""]
    np.testing.assert_allclose(spec.inv_freq(), yarn_frequencies(1e6, 128, 16384, 16, 32, 1), rtol=1e-12)
    assert spec.attention_factor() == pytest.approx(1.0)
    assert found.mapping["rope_parameters"]["llama_4_scaling_beta"] == 0.1
    assert "Not read: vision_encoder." in " ".join(found.notes)


def test_transformers_computes_the_same_from_it():
    transformers = pytest.importorskip("transformers")
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    config = transformers.Ministral3Config(**without_source(config_from_mistral(MINISTRAL)))
    inv_freq, factor = ROPE_INIT_FUNCTIONS["yarn"](config, "cpu")
    np.testing.assert_allclose(inv_freq.numpy(), yarn_frequencies(1e6, 128, 16384, 16, 32, 1), rtol=1e-5)
    assert factor == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("scale", "factor"), [(False, 1.0), (True, 0.1 * math.log(8) + 1), (None, 0.1 * math.log(8) + 1)]
)
def test_apply_scale_decides_the_factor_on_cos_and_sin(scale, factor):
    yarn = {**YARN, "factor": 8, "apply_scale": scale}
    if scale is None:
        del yarn["apply_scale"]
    for params in ({**SEVEN, "yarn": yarn}, {**MINISTRAL, "yarn": yarn}):
        for runtime in ("transformers", "vllm"):
            assert emulate(params, runtime).attention_factor == pytest.approx(factor), runtime


def test_experts_and_compressed_attention_choose_the_model_type():
    mixtral = config_from_mistral({**SEVEN, "moe": {"num_experts": 8, "num_experts_per_tok": 2}})
    assert (mixtral["model_type"], mixtral["num_local_experts"]) == ("mixtral", 8)
    large = ModelConfig.read(LARGE)
    assert (large.model_type, large.specs[""].rotary_dim) == ("deepseek_v3", 64)
    assert large.mapping["n_routed_experts"] == 128
    np.testing.assert_allclose(large.specs[""].inv_freq(), yarn_frequencies(1e6, 64, 16384, 16, 32, 1), rtol=1e-12)


def test_listed_windows_become_layer_types():
    found = ModelConfig.read({**SEVEN, "sliding_window": [32768, None, None, None]})
    assert found.layer_types == ["sliding_attention", *["full_attention"] * 3] * 8
    assert found.fields.raw("sliding_window") == 32768
    assert ModelConfig.read({**SEVEN, "sliding_window": 4096}).window == 4096


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"yarn": {**YARN, "gamma": 1}}, "yarn of params.json has the unknown key 'gamma'"),
        ({"yarn": {"factor": 4}}, "yarn of params.json has no original_max_position_embeddings"),
        ({"yarn": {**YARN, "factor": "16"}}, "yarn.factor must be a number"),
        ({"yarn": [1]}, "yarn of params.json must be an object"),
        ({"moe": 8}, "moe of params.json must be an object"),
        ({"sliding_window": [4096], "n_layers": "32"}, "n_layers must be a number"),
    ],
)
def test_wrong_file_gets_a_sentence(change, message, tmp_path, capsys):
    path = tmp_path / "params.json"
    path.write_text(json.dumps(SEVEN | change))
    assert main(("table", str(path))) == 2
    err = capsys.readouterr().err
    assert message in err
    assert len(err.splitlines()) == 1
    with pytest.raises(ValueError, match=message.split("(")[0]):
        read_upload(path.read_bytes())


def test_every_command_and_the_app_read_the_file(tmp_path, capsys):
    path = tmp_path / "params.json"
    path.write_text(json.dumps(MINISTRAL))
    assert len(path.read_bytes()) < CONFIG_BYTES
    for command in (["check"], ["table"], ["runtimes"], ["memory", "--length", "32k"], ["export", "--to", "vllm"]):
        assert main((command[0], str(path), *command[1:])) == 0, command
    out = tmp_path / "config.json"
    assert main(("extend", str(path), "--to", "512k", "-o", str(out))) == 0
    written = json.loads(out.read_text())
    assert ModelConfig.read(written).specs[""].scaling.factor == 32.0
    assert not [key for key in written if key.startswith("_source")]
    assert "dim" not in written
    own = read_upload(path.read_bytes())
    assert "Read from Mistral's params.json." in " ".join(own.notes)
    capsys.readouterr()


# The Llama 3.1 8B of meta-llama: its config.json of transformers has the same numbers (catalog).
META = {
    **{"dim": 4096, "n_layers": 32, "n_heads": 32, "n_kv_heads": 8, "vocab_size": 128256, "norm_eps": 1e-05},
    **{"ffn_dim_multiplier": 1.3, "multiple_of": 1024, "rope_theta": 500000.0, "use_scaled_rope": True},
}


def test_metas_file_is_read_with_what_is_assumed_named():
    found, published = ModelConfig.read(META), ModelConfig.read(catalog()["llama-3.1-8b"].config)
    np.testing.assert_array_equal(found.specs[""].inv_freq(), published.specs[""].inv_freq())
    assert found.identity.model.id == "llama-3.1-8b"
    assert (found.mapping["intermediate_size"], found.limit) == (14336, 131_072)
    notes = " ".join(found.notes)
    assert "It names no factor: Llama 3.1's 8 over 8,192 tokens is assumed; Llama 3.2 has 32." in notes
    assert "It names no length: 131,072 tokens are assumed" in notes


def test_metas_file_may_name_the_factor():
    spec = ModelConfig.read({**META, "rope_scaling_factor": 32, "max_seq_len": 65536}).specs[""]
    assert (spec.scaling.factor, spec.target) == (32.0, 65536)
    with pytest.raises(ValueError, match="rope_scaling_factor must be a number"):
        config_from_mistral({**META, "rope_scaling_factor": "32"})


def test_llama_2_has_no_base_in_its_file():
    llama_2 = {"dim": 4096, "multiple_of": 256, "n_heads": 32, "n_layers": 32, "norm_eps": 1e-05, "vocab_size": -1}
    found = ModelConfig.read(llama_2)
    assert (found.specs[""].base, found.limit, found.mapping["intermediate_size"]) == (10_000.0, 4096, 11_008)
    assert "It names no rope_theta: 10,000 is assumed" in " ".join(found.notes)


# Qwen3 0.6B and Phi-4-mini as ExecuTorch writes them.
EXECUTORCH = {"dim": 1024, "n_layers": 28, "n_heads": 16, "n_kv_heads": 8, "vocab_size": 151936, "norm_eps": 1e-06} | {
    **{"hidden_dim": 3072, "head_dim": 128, "ffn_dim_multiplier": 1, "use_scaled_rope": False, "use_hf_rope": True},
    **{"rope_theta": 1e6, "use_qk_norm": True, "qk_norm_before_rope": True, "attention_qkv_bias": False},
}


def test_executorch_names_the_head_and_its_norms():
    found, published = ModelConfig.read(EXECUTORCH), ModelConfig.read(catalog()["qwen3-0.6b"].config)
    assert found.model_type == "qwen3"
    np.testing.assert_array_equal(found.specs[""].inv_freq(), published.specs[""].inv_freq())
    # 28 layers with keys and values of 8 heads with 128 channels in 2 bytes.
    assert rope_viz.memory(EXECUTORCH, length=1000)["kv_cache_bytes"] == 28 * 2 * 8 * 128 * 2 * 1000
    assert "use_hf_rope: its weights pair halves" in " ".join(found.notes)


def test_executorch_names_the_rotated_part_and_the_scaling():
    (part,) = ModelConfig.read({**META, "partial_rotary_factor": 0.75, "use_scaled_rope": False}).specs.values()
    assert (len(part.inv_freq()), part.base) == (48, 500_000.0)
    (scaled,) = ModelConfig.read({**META, "rope_scale_factor": 32, "high_freq_factor": 8}).specs.values()
    assert (scaled.scaling.factor, scaled.scaling.high_freq_factor) == (32.0, 8.0)
    (based,) = ModelConfig.read({**META, "rope_theta": None, "rope_freq_base": 1e6}).specs.values()
    assert based.base == 1e6


@pytest.mark.parametrize(
    "change", [{"no_rope_layer_interval": 4}, {"layer_types": ["conv"] * 32}, {"moe": True}, {"attention_type": "x"}]
)
def test_layers_of_executorch_that_differ_are_refused(change):
    name = next(iter(change))
    with pytest.raises(ValueError, match=f"{name} of params.json is not read"):
        config_from_mistral({**META, **change})
