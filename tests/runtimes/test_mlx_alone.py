"""mlx-lm reads what the file at hand names, by the model file that the type at its top has (executed: make_mlx.py)."""

import pytest

from rope_viz.runtimes import emulate
from rope_viz.runtimes.compare import compare

# A text part alone is loaded by llama4_text.py, which has no scaling; its wrapper by llama4.py, which has.
LLAMA4_TEXT = {
    **{"model_type": "llama4_text", "hidden_size": 5120, "num_attention_heads": 40, "num_key_value_heads": 8},
    **{"num_hidden_layers": 8, "head_dim": 128, "max_position_embeddings": 131072, "rope_theta": 500000.0},
    **{"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}},
    **{"attention_chunk_size": 8192},
}


def test_text_part_of_llama_4_alone_is_not_scaled():
    (mlx,) = [one for one in compare(LLAMA4_TEXT) if one.emulation.runtime == "mlx-lm"]
    assert (mlx.agrees, mlx.how) == (False, "executed")
    assert mlx.effect.ratio == pytest.approx(4.0, rel=1e-6)
    assert mlx.emulation.attention_factor == 1.0
    wrapped = {"model_type": "llama4", "text_config": LLAMA4_TEXT}
    (mlx,) = [one for one in compare(wrapped) if one.emulation.runtime == "mlx-lm"]
    assert (mlx.agrees, mlx.how) == (True, "executed")


# Keys of a file, and what mlx-lm 0.32.2 raises for it.
TEN = {"hidden_size": 640, "num_attention_heads": 5, "max_position_embeddings": 131072, "rope_theta": 500000.0}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
RAISES = [
    ({"model_type": "ministral3", **TEN, "head_dim": 128, "rope_scaling": YARN}, "TypeError"),
    ({"model_type": "ministral3", **TEN, "head_dim": 128, "rope_parameters": {**YARN, "rope_theta": 5e5}}, "KeyError"),
    ({"model_type": "glm_moe_dsa", **TEN, "qk_rope_head_dim": 64, "kv_lora_rank": 64}, "TypeError"),
    ({"model_type": "deepseek_v2", **TEN, "qk_rope_head_dim": 64, "kv_lora_rank": 64}, "AttributeError"),
    ({"model_type": "qwen3", **TEN}, "TypeError"),
]


@pytest.mark.parametrize(("config", "error"), RAISES, ids=[f"{one['model_type']}-{error}" for one, error in RAISES])
def test_missing_keys_of_a_model_file_raise(config, error):
    found = emulate(config, runtime="mlx-lm")
    assert not found.supported
    assert found.reason.startswith(error)


def test_falcon_h1_without_head_dim_has_64_dimensions():
    found = emulate({"model_type": "falcon_h1", **TEN}, runtime="mlx-lm")
    assert (len(found.inv_freq), found.known.how) == (32, "executed")


def test_gpt_oss_without_scaling_is_plain():
    found = emulate({"model_type": "gpt_oss", **TEN, "head_dim": 64}, runtime="mlx-lm")
    assert found.attention_factor == 1.0
    assert found.inv_freq[-1] == pytest.approx(500000.0 ** (-62 / 64), rel=1e-6)


def test_params_json_has_no_type_for_mlx_lm():
    """Run: mlx-lm reads config["model_type"] and raises KeyError."""
    params = {"dim": 4096, "n_layers": 32, "n_heads": 32, "n_kv_heads": 8, "head_dim": 128, "hidden_dim": 14336}
    found = emulate({**params, "vocab_size": 32768, "rope_theta": 1e6, "norm_eps": 1e-5}, runtime="mlx-lm")
    assert (found.supported, found.known.how) == (False, "by rule")
    assert found.reason.startswith("KeyError: model_type")
