"""`probe make`: what is kept of a config, and what the files hold."""

import json

import numpy as np
import pytest

from rope_viz.cli.main import main
from rope_viz.models.catalog import catalog
from rope_viz.models.formats.gguf import read_header
from rope_viz.models.model_config import ModelConfig, read_catalog_model
from rope_viz.probe.make_probe import make_probe, read_overrides
from rope_viz.probe.plain_model import list_shapes
from rope_viz.probe.shrink_config import MOST_LAYERS, shrink_config
from rope_viz.probe.tokens import FIRST, LAST, VOCABULARY, list_tokens, make_tokenizer_files, to_text
from rope_viz.probe.weights import draw_matrix, read_safetensors, round_to_bfloat16
from tests.configs import llama
from tests.offenders import for_each

pytestmark = pytest.mark.float32_products


@pytest.mark.parametrize("name", ["llama-3.1-8b", "qwen3-8b-yarn", "mistral-7b-v0.1", "qwen2.5-7b"])
def test_a_probe_has_the_rope_of_its_config_and_little_else(name, tmp_path):
    model = read_catalog_model(name)
    made = make_probe(model, tmp_path, {"max_position_embeddings": 4096})
    read = ModelConfig.read(tmp_path)
    for layer, spec in model.specs.items():
        np.testing.assert_array_equal(read.specs[layer].inv_freq(), spec.inv_freq())
        assert read.specs[layer].attention_factor() == spec.attention_factor()
        assert read.specs[layer].pairing == spec.pairing
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 8 << 20
    weights = read_safetensors((tmp_path / "model.safetensors").read_bytes())
    assert {key: value.shape for key, value in weights.items()} == dict(list_shapes(made))
    assert read_overrides(tmp_path) == {"max_position_embeddings": 4096}


def readable_models():
    return [id for id in catalog() if not read_catalog_model(id).problems]


@for_each([id for id in readable_models() if not read_catalog_model(id).architecture.remote_code])
def test_a_probe_s_config_is_its_own_probe(id):
    small = shrink_config(read_catalog_model(id))
    assert shrink_config(ModelConfig.read(small)) == small
    assert small["num_hidden_layers"] <= MOST_LAYERS
    before, after = read_catalog_model(id).specs, ModelConfig.read(small).specs
    for layer, spec in before.items():
        np.testing.assert_array_equal(after[layer].inv_freq(spec.target), spec.inv_freq(spec.target))
        assert after[layer].head_dim == spec.head_dim


def test_short_configs_and_vocabularies_are_filled_up(tmp_path):
    written = make_probe({**llama(), "vocab_size": 2}, tmp_path)
    assert written["vocab_size"] == VOCABULARY
    assert {"rms_norm_eps", "tie_word_embeddings"} <= set(written)  # mlx-lm requires them
    other = ModelConfig.read({**catalog()["gpt-oss-20b"].config, "vocab_size": 2})
    assert shrink_config(other)["vocab_size"] == VOCABULARY


def test_a_probe_has_every_type_of_layer():
    layers = {id: shrink_config(read_catalog_model(id))["num_hidden_layers"] for id in ("llama-3.1-8b", "gemma-3-1b")}
    assert layers == {"llama-3.1-8b": 1, "gemma-3-1b": 6}


def test_a_text_names_exactly_its_tokens():
    vocabulary = json.loads(make_tokenizer_files()["tokenizer.json"])["model"]["vocab"]
    assert len(vocabulary) == len(list_tokens()) == VOCABULARY
    text = to_text(list(range(FIRST, LAST + 1)))
    assert [vocabulary[letter] for letter in text] == list(range(FIRST, LAST + 1))
    with pytest.raises(ValueError, match="text of their own"):
        to_text([32])


def test_weights_are_the_same_in_bfloat16():
    drawn = draw_matrix("model.layers.0.self_attn.q_proj.weight", (64, 32))
    np.testing.assert_array_equal(round_to_bfloat16(drawn), drawn)
    assert np.std(drawn) == pytest.approx(1.9 / 32**0.5, rel=0.05)


def test_experts_are_alike():
    together = draw_matrix("model.layers.0.mlp.experts.gate_up_proj", (4, 8, 16))
    assert all(np.array_equal(together[0], one) for one in together)
    names = [f"model.layers.0.mlp.experts.{expert}.up_proj.weight" for expert in (0, 3)]
    np.testing.assert_array_equal(draw_matrix(names[0], (8, 16)), draw_matrix(names[1], (8, 16)))


def test_a_gguf_file_says_what_the_converter_would_write(tmp_path, capsys):
    assert main(["probe", "make", "qwen3-8b-yarn", "-o", str(tmp_path), "--gguf"]) == 0
    header = read_header(tmp_path / "probe.gguf")
    assert header.keys["general.architecture"] == "qwen3"
    assert header.keys["qwen3.rope.scaling.type"] == "yarn"
    assert header.keys["qwen3.rope.scaling.factor"] == 4.0
    (spec,) = ModelConfig.read(tmp_path / "probe.gguf").specs.values()
    np.testing.assert_allclose(spec.inv_freq(), read_catalog_model("qwen3-8b-yarn").specs[""].inv_freq(), rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["chatglm"], "no such file"),
        (["glm-4-9b-chat"], "its code travels with the weights"),
        (["llama-3.1-8b", "--overrides", "[1]"], "--overrides must be a JSON object"),
        (["llama-3.1-8b", "--overrides", "{"], "--overrides must be a JSON object"),
    ],
)
def test_what_no_probe_can_be_made_of_gets_a_sentence(arguments, words, tmp_path, capsys):
    assert main(["probe", "make", *arguments, "-o", str(tmp_path / "out")]) == 2
    assert words in capsys.readouterr().err


WRAPPER = {
    "model_type": "gemma3",
    "text_config": {
        "model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2,
        "max_position_embeddings": 384, "rope_theta": 10000.0,
    },
}  # fmt: skip


def test_overrides_of_a_wrapper_are_those_of_its_language_model(tmp_path):
    inner = {"rope_theta": 5000.0}
    make_probe(WRAPPER, tmp_path, {"text_config": inner})
    assert read_overrides(tmp_path) == inner
    with pytest.raises(ValueError, match="rope_theta is not within text_config"):
        make_probe(WRAPPER, tmp_path, inner)


def test_lists_are_cut_with_extra_layers():
    config = {
        "model_type": "deepseek_v4", "num_hidden_layers": 11, "compress_ratios": [0, 0, *[4, 128] * 5],
        "num_attention_heads": 4, "hidden_size": 64, "head_dim": 512, "qk_rope_head_dim": 64,
    }  # fmt: skip
    assert shrink_config(ModelConfig.read(config))["compress_ratios"] == [0, 4, 128]
