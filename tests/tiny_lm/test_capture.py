"""Captured q and k, rotated by our kernels, attend as the model does."""

import json
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from rope_viz import capture  # noqa: E402
from rope_viz.cli.main import main  # noqa: E402
from rope_viz.kernels import reference  # noqa: E402
from rope_viz.studies import capture_file  # noqa: E402
from rope_viz.studies import heads as studies  # noqa: E402
from rope_viz.studies.pair_sums import add_up  # noqa: E402
from rope_viz.studies.sums_file import add_files, read_sums  # noqa: E402
from rope_viz.tiny_lm import checkpoints  # noqa: E402

pytestmark = pytest.mark.float32_products

VERIFY = json.loads((Path(__file__).parents[1] / "goldens" / "verify.json").read_text())
SMALL = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "rope_theta": 10000.0}
EXPERTS = {"n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1, "moe_intermediate_size": 8}
LATENT = {"q_lora_rank": 16, "kv_lora_rank": 16, "qk_nope_head_dim": 12, "qk_rope_head_dim": 8, "v_head_dim": 8}
# What each has that the others have not: see the comment.
MODELS = {
    "llama": {},
    "llama with yarn": {"rope_parameters": YARN, "max_position_embeddings": 64},  # attention factor
    "qwen2": {},  # biases
    "qwen3": {"head_dim": 16},  # norms of q and k, a head larger than hidden / heads
    "gemma2": {"head_dim": 8, "query_pre_attn_scalar": 24, "sliding_window": 8},  # own scale, cap, windows
    "gemma3_text": {
        "head_dim": 8,
        "sliding_window": 8,
        "layer_types": ["sliding_attention", "full_attention"],
    },  # bases
    "glm": {"head_dim": 8, "pad_token_id": 0},  # interleaved, half of the dimensions
    "deepseek_v3": {**LATENT, **EXPERTS, "num_key_value_heads": 4, "first_k_dense_replace": 1},  # MLA, interleaved
    "gpt_neox": {"rotary_pct": 0.25, "hidden_size": 64, "num_key_value_heads": 4},  # q, k and v in one, partial
    "phi3": {"pad_token_id": 0},  # q, k and v in one
    "cohere": {"use_qk_norm": True, "pad_token_id": 0},  # interleaved, norms
    "olmo2": {"pad_token_id": 0},  # norms over all heads at once
    "gpt_oss": {"head_dim": 8, "num_local_experts": 4, "sliding_window": 8},  # sinks
    "mistral": {"sliding_window": 8},  # a window everywhere
    "stablelm": {"partial_rotary_factor": 0.5, "hidden_size": 64},
    "granite": {"attention_multiplier": 0.3},  # own scale
}
TOKENS = 24


def built(name, **changes):
    kind = name.split()[0]
    torch.manual_seed(3)
    config = transformers.AutoConfig.for_model(kind, **(SMALL | MODELS[name] | changes))
    config._attn_implementation = "eager"
    model = transformers.AutoModel.from_config(config).float().eval()
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim > 1:
                weight.normal_(std=0.3)
            else:
                weight.add_(0.2 * torch.randn_like(weight))
    return model


def stop(wrapped):
    raise RuntimeError("stop" if wrapped else "not wrapped")


def run(model, tokens=TOKENS, **options):
    ids = torch.randint(1, 60, (2, tokens), generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        return model(ids, output_attentions=True, use_cache=False, **options).attentions


def rotated(layer, spec):
    """The kernels' rotation of what was taken: (heads, tokens, head_dim), rotating dimensions first."""
    out = []
    for values in (layer.q, layer.k):
        heads = values.transpose(1, 0, 2)  # the kernels take (tokens, heads, head_dim)
        part = heads[..., : 2 * spec.pairs].astype(np.float64)
        turned = reference.rotate(
            part,
            np.arange(heads.shape[0]),
            spec.inv_freq(),
            pairing=spec.pairing,
            attention_factor=spec.attention_factor(),
        )
        out.append(np.concatenate([turned, heads[..., 2 * spec.pairs :]], axis=-1).transpose(1, 0, 2))
    return out


def attention(layer, spec):
    """The model's formula over q and k that the kernels rotated."""
    q, k = rotated(layer, spec)
    logits = layer.scale * q @ np.repeat(k, len(q) // len(k), axis=0).transpose(0, 2, 1)
    if layer.cap:
        logits = layer.cap * np.tanh(logits / layer.cap)
    distance = np.arange(q.shape[1])[:, None] - np.arange(q.shape[1])
    logits[:, (distance < 0) | (distance >= (layer.window or q.shape[1]))] = -np.inf
    powers = np.exp(logits)
    sinks = 0.0 if layer.sinks is None else np.exp(layer.sinks.astype(float))[:, None, None]
    return powers / (powers.sum(axis=2, keepdims=True) + sinks)


@pytest.mark.parametrize("name", MODELS)
def test_captured_heads_attend_as_the_model_does(name, tmp_path):
    model = built(name)
    with capture(model) as taken:
        wanted = run(model)
    assert sorted(taken.layers) == [0, 1]
    assert not taken.skipped
    taken.save(tmp_path / "qk.safetensors", dtype="float32")
    read = capture_file.read_capture(tmp_path / "qk.safetensors")
    for index, theirs in enumerate(wanted):
        layer, spec = read.layer(index), read.spec(index)
        ours = attention(layer, spec)
        np.testing.assert_allclose(ours, theirs[0].numpy(), atol=2e-5)
        for head in range(len(layer.q)):
            studied = studies.weights(layer.as_heads(spec), head, np.arange(TOKENS), studies.Turning.from_spec(spec))
            np.testing.assert_allclose(studied, theirs[0, head].numpy(), atol=2e-5)
    assert (
        max(float((theirs - theirs.mean()).abs().max()) for theirs in wanted) > 0.1
    )  # attention with something to say


@pytest.mark.parametrize("name", ["llama", "gemma3_text", "glm", "deepseek_v3", "gpt_neox"])
def test_sums_add_up_all_passes(name):
    """Of partly rotated heads, latent attention and layer types of different bases."""
    model = built(name)
    wholes = []
    for tokens in (TOKENS, 9):
        with capture(model) as taken:
            run(model, tokens)
        wholes.append(taken)
    with capture(model, sums=True) as summed:
        for tokens in (TOKENS, 9):
            run(model, tokens)
    assert list(summed.summed) == list(wholes[0].layers)
    for number, found in summed.summed.items():
        spec = wholes[0].spec(number)
        parts = [add_up(one.layers[number].q, one.layers[number].k, spec.pairs, spec.pairing) for one in wholes]
        assert found.sums.tokens == TOKENS + 9
        np.testing.assert_allclose(found.sums.q, parts[0].q + parts[1].q, rtol=1e-12)
        np.testing.assert_allclose(found.sums.k, parts[0].k + parts[1].k, rtol=1e-12)


def test_a_folder_is_summed_piece_by_piece(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("in the tin 12 " * 60)
    folder = Path(checkpoints.__file__).parent / "checkpoints" / "seed-0"
    words = ("capture", str(folder), "--text", str(text), "--sums", "--tokens", "64")
    paths = [str(tmp_path / f"{number}.safetensors") for number in range(3)]
    assert main((*words, "-o", paths[0])) == 0
    for number in (0, 1):
        assert main((*words, "--shard", f"{number}/2", "-o", paths[number + 1])) == 0
    whole, parts = read_sums(paths[0]), add_files(paths[1:])
    for number in whole.layers:
        assert whole.summed[number].sums.tokens == parts.summed[number].sums.tokens > 64
        np.testing.assert_allclose(whole.summed[number].sums.q[2:], parts.summed[number].sums.q[2:], rtol=1e-12)


def test_capturing_leaves_the_model_unchanged():
    model = built("qwen3")
    module = __import__("sys").modules[type(model).__module__]
    before = module.apply_rotary_pos_emb, module.ALL_ATTENTION_FUNCTIONS
    plain = run(model)
    with pytest.raises(RuntimeError, match="stop"), capture(model):
        stop(module.apply_rotary_pos_emb is not before[0])
    assert (module.apply_rotary_pos_emb, module.ALL_ATTENTION_FUNCTIONS) == before
    with capture(model):
        watched = run(model)
    assert all(torch.equal(one, other) for one, other in zip(plain, watched, strict=True))


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_layers_and_heads_can_be_chosen(implementation):
    model = built("llama")
    model.config._attn_implementation = implementation
    seen = []
    with capture(model, layers=[1], heads=[3, 0], progress=lambda done, of: seen.append((done, of))) as taken:
        model(torch.arange(TOKENS)[None])
    with capture(model) as whole:
        model(torch.arange(TOKENS)[None])
    assert list(taken.layers) == [1]
    layer, every = taken.layers[1], whole.layers[1]
    assert layer.heads == (3, 0)
    np.testing.assert_array_equal(layer.q, every.q[[3, 0]])
    np.testing.assert_array_equal(layer.k, every.k[[1, 0]])
    assert seen == [(1, 2), (2, 2)]
    with pytest.raises(ValueError, match=r"heads must be from 0 to 3, got \[4\]"), capture(model, heads=[4]):
        model(torch.arange(TOKENS)[None])


def test_a_nested_text_model_is_found_in_its_wrapper():
    config = transformers.AutoConfig.for_model("gemma3", text_config=SMALL | MODELS["gemma3_text"])
    config.vision_config.update({"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1})
    config.vision_config.num_attention_heads = 2
    model = transformers.Gemma3ForConditionalGeneration(config).float().eval()
    with capture(model) as taken:
        model.model.language_model(torch.arange(1, TOKENS)[None])
    assert sorted(taken.layers) == [0, 1]
    assert taken.spec(0).base == 10_000.0
    assert taken.spec(1).base == 1_000_000.0


def test_uncapturable_model_is_refused():
    with (
        pytest.raises(ValueError, match="BertModel cannot be captured"),
        capture(
            transformers.BertModel(transformers.BertConfig(hidden_size=8, num_attention_heads=2, num_hidden_layers=1))
        ),
    ):
        pass
    with capture(built("llama")) as taken:
        pass
    with pytest.raises(ValueError, match="nothing was taken"):
        taken.save("never")


def test_forward_pass_over_a_cache_is_refused():
    model = built("llama")
    with torch.inference_mode():
        cache = model(torch.arange(8)[None], use_cache=True).past_key_values
        with pytest.raises(ValueError, match="without a cache"), capture(model):
            model(torch.arange(4)[None], past_key_values=cache)


def test_float16_capture_reports_values_out_of_range(tmp_path):
    model = built("llama")
    with capture(model) as taken:
        run(model)
    taken.save(tmp_path / "half.safetensors")
    read = capture_file.read_capture(tmp_path / "half.safetensors")
    np.testing.assert_allclose(read.layer(0).q, taken.layers[0].q, rtol=1e-3, atol=1e-6)
    assert read.name == "LlamaModel"
    taken.layers[0].q[0, 0, 0] = 1e5
    with pytest.raises(ValueError, match="q of layer 0 has values beyond 65,504: save it as float32"):
        taken.save(tmp_path / "half.safetensors")


def broken(tmp_path, change):
    """The bytes of a capture after `change` had its way with what it says and holds."""
    from rope_viz.studies.tensors import open_tensors, write_tensors

    with capture(model := built("llama")) as taken:
        run(model)
    taken.save(tmp_path / "x", dtype="float32")
    file = open_tensors(tmp_path / "x")
    said, tensors = (
        json.loads(file.metadata["rope_viz"]),
        {name: file.read_tensor(name).copy() for name in file.entries},
    )
    said = change(said, tensors) or said
    text = said if isinstance(said, str) else json.dumps(said)
    write_tensors(tmp_path / "y", tensors, {"rope_viz": text})
    return (tmp_path / "y").read_bytes()


LIES = {
    "not json": lambda said, tensors: "{",
    "a list": lambda said, tensors: "[1]",
    "deep": lambda said, tensors: "[" * 100_000,
    "version": lambda said, tensors: said.update(version=9),
    "no config": lambda said, tensors: said.pop("config"),
    "no layers": lambda said, tensors: said.update(layers={}),
    "a wrong config": lambda said, tensors: said["config"].update(head_dim=-3),
    "kind": lambda said, tensors: said["layers"]["0"].update(kind="round"),
    "a layer that is not there": lambda said, tensors: said["layers"].update({"7": said["layers"]["0"]}),
    "a layer too many": lambda said, tensors: tensors.update({"layers.9.q": tensors["layers.0.q"]}),
    "a layer's name": lambda said, tensors: said["layers"].update({"-1": said["layers"]["0"]}),
    "scale": lambda said, tensors: said["layers"]["0"].update(scale="big"),
    "no scale": lambda said, tensors: said["layers"]["0"].update(scale=0),
    "cap": lambda said, tensors: said["layers"]["0"].update(cap=-1),
    "window": lambda said, tensors: said["layers"]["0"].update(window=1.5),
    "sinks": lambda said, tensors: said["layers"]["0"].update(sinks=[1.0]),
    "sinks of text": lambda said, tensors: said["layers"]["0"].update(sinks=["a"] * 4),
    "heads": lambda said, tensors: said["layers"]["0"].update(heads=[0]),
    "k of other tokens": lambda said, tensors: tensors.update({"layers.0.k": tensors["layers.0.k"][:, :3]}),
    "three key heads": lambda said, tensors: tensors.update({"layers.0.k": np.ones((3, TOKENS, 8), np.float32)}),
    "flat": lambda said, tensors: tensors.update({"layers.0.q": tensors["layers.0.q"][0]}),
    "narrow": lambda said, tensors: tensors.update({f"layers.0.{x}": tensors[f"layers.0.{x}"][..., :4] for x in "qk"}),
    "empty": lambda said, tensors: tensors.update({f"layers.0.{x}": tensors[f"layers.0.{x}"][:, :0] for x in "qk"}),
}


@pytest.mark.parametrize("name", LIES)
def test_inconsistent_capture_raises_a_clear_error(name, tmp_path):
    with pytest.raises(ValueError, match=r"must|file|layer") as caught:
        capture_file.read_capture(broken(tmp_path, LIES[name]))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 250


def test_nonfinite_values_are_counted(tmp_path):
    def change(said, tensors):
        tensors["layers.1.k"][0, 3, :2] = np.nan, np.inf

    read = capture_file.read_capture(broken(tmp_path, change))
    assert read.layer(0).q.shape == (4, TOKENS, 8)
    with pytest.raises(ValueError, match="k of layer 1 holds 2 values that are not finite numbers"):
        read.layer(1)
    with pytest.raises(ValueError, match="layer 5 was not captured; there are 0, 1"):
        read.layer(5)


def test_weights_file_is_refused_as_a_capture():
    with pytest.raises(ValueError, match="holds no capture: make one with `rope-viz capture`"):
        capture_file.read_capture(checkpoints.FOLDER / "seed-0" / "model.safetensors")


def test_verify_reads_the_module_of_a_real_class(tmp_path, capsys):
    row = next(row for row in VERIFY["rows"] if row["config"].get("rope_scaling", {}).get("rope_type") == "yarn")
    (tmp_path / "config.json").write_text(json.dumps(row["config"]))
    assert main(("verify", str(tmp_path), "--from", f"transformers:{tmp_path}")) == 0
    assert "Matches: all 16 frequencies of Qwen3RotaryEmbedding" in capsys.readouterr().out
    other = tmp_path / "other.json"
    other.write_text(json.dumps({**row["config"], "rope_theta": 5e5}))
    assert main(("verify", str(other), "--from", f"transformers:{tmp_path}")) == 1
