"""Models of GGUF files compute the logits of transformers, in NumPy and in PyTorch."""

import re

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from rope_viz.models.formats.gguf import read_header  # noqa: E402
from rope_viz.models.identity.local_models import MODELS  # noqa: E402
from rope_viz.real_models.gguf_model import (  # noqa: E402
    load_gguf,
    make_config,
    make_tokenizer,
)
from rope_viz.real_models.torch_forward import KeyValueCache, TorchLm  # noqa: E402
from rope_viz.studies.heads import Turning  # noqa: E402
from rope_viz.tiny_lm import numpy_model  # noqa: E402
from tests.tiny_lm.gguf_writer import convert, write  # noqa: E402

pytestmark = pytest.mark.float32_products

SMALL = {
    "vocab_size": 96, "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 12, "max_position_embeddings": 64, "pad_token_id": 0,
}  # fmt: skip
MODELS_TRIED = {
    "llama": {"tie_word_embeddings": True},
    "llama untied": {"attention_bias": True},
    "llama wide": {"head_dim": 16, "num_key_value_heads": 1},
    "qwen2": {"num_attention_heads": 4},
    "qwen3": {"head_dim": 20},
    "gemma": {"head_dim": 16, "hidden_activation": "gelu_pytorch_tanh"},
}
TOKENS = 40


def built(name):
    torch.manual_seed(5)
    config = transformers.AutoConfig.for_model(name.split()[0], **(SMALL | MODELS_TRIED[name]))
    model = transformers.AutoModelForCausalLM.from_config(config).float().eval()
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim > 1:
                weight.normal_(std=0.2)
            else:
                weight.add_(0.2 * torch.randn_like(weight))
        for name, weight in model.named_parameters():
            if name.endswith("o_proj.bias"):  # our graph has none
                weight.zero_()
    return model


@pytest.fixture
def small(tmp_path):
    """Write a model and return its path, with changed keys and tensors."""

    def make(name="llama", keys=(), drop=(), **tensors):
        found, weights = convert(built(name))
        weights = {part: array for part, array in weights.items() if part not in drop} | tensors
        write(tmp_path / "m.gguf", found | dict(keys), weights)
        return tmp_path / "m.gguf"

    return make


@pytest.mark.parametrize("name", MODELS_TRIED)
def test_logits_are_those_of_transformers(name, small):
    model, ids = built(name), np.random.default_rng(0).integers(0, 96, TOKENS)
    with torch.inference_mode():
        wanted = model(torch.from_numpy(ids)[None]).logits[0].numpy()
    ours = load_gguf(small(name))
    weights = (weight for part, weight in model.named_parameters() if not part.endswith("o_proj.bias"))
    assert ours.parameters == sum(weight.numel() for weight in weights)
    np.testing.assert_allclose(numpy_model.logits(ours, ids), wanted, atol=1e-4, rtol=1e-4)
    fused = TorchLm(ours)
    found = (fused.hidden(ids) @ fused.unembedding.T).numpy()
    np.testing.assert_allclose(found, wanted, atol=1e-4, rtol=1e-4)
    losses = torch.nn.functional.cross_entropy(
        torch.from_numpy(wanted[:-1]), torch.from_numpy(ids[1:]), reduction="none"
    )
    np.testing.assert_allclose(fused.losses(ids, rows=7), losses.numpy(), atol=1e-4)


def test_both_forward_passes_agree_under_a_scaling(small):
    ours, ids = load_gguf(small("qwen3")), np.random.default_rng(1).integers(0, 96, TOKENS)
    turn = Turning(ours.spec.inv_freq() / 3.0, 1.07)
    fused = TorchLm(ours)
    found = (fused.hidden(ids, turn) @ fused.unembedding.T).numpy()
    np.testing.assert_allclose(found, numpy_model.logits(ours, ids, turn), atol=1e-4)


@pytest.mark.parametrize("name", ["llama", "qwen3"])
def test_cached_tokens_continue_as_in_transformers(name, small):
    model, ids = built(name), np.random.default_rng(2).integers(1, 96, TOKENS)
    fused, cache, first = TorchLm(load_gguf(small(name))), KeyValueCache(), 25
    fused.hidden(ids[:10], cache=cache)
    rest = fused.hidden(ids[10:], cache=cache)
    np.testing.assert_allclose(rest.numpy(), fused.hidden(ids)[10:].numpy(), atol=1e-4)
    start = torch.from_numpy(ids[:first])[None]
    wanted = model.generate(start, max_new_tokens=8, do_sample=False, eos_token_id=None)[0, first:].tolist()
    assert fused.write_greedily(cache.cut(first - 1), int(ids[first - 1]), 8) == wanted
    assert cache.tokens == TOKENS


def test_attention_of_grouped_heads_has_rows_of_sum_one(small):
    ours, ids = load_gguf(small("llama")), np.arange(20)
    found = numpy_model.attention(ours, ids, layer=1)
    assert found.shape == (4, 20, 20)
    np.testing.assert_allclose(found.sum(axis=2), 1.0, atol=1e-6)
    assert [part.shape for part in numpy_model.queries_and_keys(ours, ids)[1]] == [(4, 20, 12), (2, 20, 12)]


def test_config_has_the_keys_of_transformers(small):
    path = small("llama", {"llama.rope.scaling.type": "yarn", "llama.rope.scaling.factor": 4.0})
    config = make_config(read_header(path))
    theirs = built("llama").config
    for name, value in config.items():
        if name not in ("rope_theta", "rope_scaling"):
            assert getattr(theirs, name) == pytest.approx(value), name
    assert config["rope_theta"] == theirs.rope_parameters["rope_theta"]
    assert config["rope_scaling"] == {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}


def test_divisors_of_llama_3_are_recognised(small):
    scaling = {
        "rope_type": "llama3", "rope_theta": 10_000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }  # fmt: skip
    config = transformers.LlamaConfig(**(SMALL | {"rope_parameters": scaling}))
    scaled, _ = transformers.modeling_rope_utils.ROPE_INIT_FUNCTIONS["llama3"](config, "cpu")
    plain = 10_000.0 ** (-np.arange(6) / 6)
    divisors = (plain / scaled.numpy()).astype(np.float32)
    assert load_gguf(small(**{"rope_freqs.weight": divisors})).config["rope_scaling"]["factor"] == 8.0
    with pytest.raises(ValueError, match="not that of a Llama 3"):
        load_gguf(small(**{"rope_freqs.weight": 1.5 * divisors}))


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"general.architecture": "mamba"}, "architecture 'mamba'; its forward pass is not built in"),
        ({"llama.expert_count": 8}, r"llama.expert_count .* changes the model's graph"),
        ({"llama.rope.dimension_count": 6}, "rotates only a part of each head"),
        ({"llama.rope.scaling.type": "longrope", "llama.rope.scaling.factor": 2.0}, "scales RoPE by 'longrope'"),
        ({"llama.block_count": 3}, "no tensor blk.2.attn_q.weight"),
        ({"llama.block_count": 1}, "does not use here: 'blk.1"),
        ({"llama.feed_forward_length": 81}, r"blk.0.ffn_gate.weight must have shape \(81, 48\)"),
        ({"llama.attention.head_count": "x"}, "attention.head_count must be"),
    ],
)
def test_another_model_is_refused_in_a_sentence(keys, said, small):
    with pytest.raises(ValueError, match=said):
        load_gguf(small("llama", keys))


def test_a_missing_or_unknown_tensor_is_named(small):
    with pytest.raises(ValueError, match=r"no tensor output_norm\.weight"):
        load_gguf(small(drop=("output_norm.weight",)))
    with pytest.raises(ValueError, match=re.escape("does not use here: 'blk.0.extra'")):
        load_gguf(small(**{"blk.0.extra": np.ones(4)}))


@pytest.mark.real_model
def test_smollm2_has_the_logits_of_transformers():
    path = MODELS["smollm2"].weights
    pytest.importorskip("gguf", reason="transformers reads GGUF files with the gguf package")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
    sentence = "It is a truth universally acknowledged, that a single man in possession of a good fortune must want. "
    ids = np.array(make_tokenizer(read_header(path, long_arrays=True)).encode(sentence * 20).ids[:256])
    assert len(ids) == 256
    with torch.inference_mode():
        wanted = theirs(torch.from_numpy(ids)[None]).logits[0].numpy()
    found = numpy_model.logits(load_gguf(path), ids)
    # With transformers 5.23.0 and gguf 0.19.0 it was 1.2e-4, and all 256 first choices were the same.
    assert np.abs(found - wanted).max() < 1e-3
    np.testing.assert_array_equal(found.argmax(axis=1), wanted.argmax(axis=1))
