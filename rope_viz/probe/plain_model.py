"""The probes that need no other package: weights of Llama and its like, for the forward pass in NumPy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rope_viz.embedding.spec import FloatArray
from rope_viz.probe.answers import Targets
from rope_viz.probe.hypotheses import Hypothesis, Rotation
from rope_viz.probe.weights import STRENGTH, Float32, draw_matrix, draw_vector, round_to_bfloat16
from rope_viz.tiny_lm.numpy_model import LayerAttention, LayerWeights, Llama, run_layers

ARCHITECTURES = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
}
"""{model type: its class} of those whose layers are those of Llama, with biases or norms of q and k."""
DEFAULTS = {"rms_norm_eps": 1e-6, "tie_word_embeddings": False}
"""What their classes fill in, and mlx-lm requires."""

TENSORS = {
    **{name: f"self_attn.{name}_proj.weight" for name in "qkvo"},
    **{name: f"mlp.{name}_proj.weight" for name in ("gate", "up", "down")},
    **{f"{name}_bias": f"self_attn.{name}_proj.bias" for name in "qkvo"},
    **{f"{name}_bias": f"mlp.{name}_proj.bias" for name in ("gate", "up", "down")},
    "before_attention": "input_layernorm.weight",
    "before_mlp": "post_attention_layernorm.weight",
    "q_norm": "self_attn.q_norm.weight",
    "k_norm": "self_attn.k_norm.weight",
}
"""{field of `LayerWeights`: the tensor's name in a layer of transformers}."""


def is_plain(config: Mapping[str, Any]) -> bool:
    """Return whether a probe's config is of a model that this module computes."""
    return config.get("model_type") in ARCHITECTURES and config.get("hidden_act", "silu") == "silu"


def find_head_size(config: Mapping[str, Any]) -> int:
    """Return the size of a head."""
    return int(config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"])


def list_shapes(config: Mapping[str, Any]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield name and shape of every tensor, as checkpoints of these classes name them."""
    kind = config["model_type"]
    width, inner, size = config["hidden_size"], config["intermediate_size"], find_head_size(config)
    queries, keys = config["num_attention_heads"] * size, config.get("num_key_value_heads", 1) * size
    yield "model.embed_tokens.weight", (config["vocab_size"], width)
    for layer in range(config["num_hidden_layers"]):
        start = f"model.layers.{layer}"
        rows = {"q_proj": queries, "k_proj": keys, "v_proj": keys}
        for name, count in rows.items():
            yield f"{start}.self_attn.{name}.weight", (count, width)
            if kind == "qwen2" or config.get("attention_bias"):
                yield f"{start}.self_attn.{name}.bias", (count,)
        yield f"{start}.self_attn.o_proj.weight", (width, queries)
        if kind != "qwen2" and config.get("attention_bias"):
            yield f"{start}.self_attn.o_proj.bias", (width,)
        if kind == "qwen3":
            yield f"{start}.self_attn.q_norm.weight", (size,)
            yield f"{start}.self_attn.k_norm.weight", (size,)
        for name, shape in (("gate_proj", (inner, width)), ("up_proj", (inner, width)), ("down_proj", (width, inner))):
            yield f"{start}.mlp.{name}.weight", shape
            if config.get("mlp_bias"):
                yield f"{start}.mlp.{name}.bias", shape[:1]
        yield f"{start}.input_layernorm.weight", (width,)
        yield f"{start}.post_attention_layernorm.weight", (width,)
    yield "model.norm.weight", (width,)
    if not config.get("tie_word_embeddings"):
        yield "lm_head.weight", (config["vocab_size"], width)


def draw_weights(config: Mapping[str, Any]) -> dict[str, Float32]:
    """Return the seeded weights of a probe."""
    return {name: draw_tensor(name, shape) for name, shape in list_shapes(config)}


def draw_tensor(name: str, shape: tuple[int, ...]) -> Float32:
    """Return one tensor. Norms of q and k bring these to the strength that they have without a norm."""
    if len(shape) > 1:
        return draw_matrix(name, shape)
    if name.endswith("bias"):
        return draw_vector(name, shape[0])
    return draw_vector(name, shape[0], STRENGTH if name.endswith(("q_norm.weight", "k_norm.weight")) else 1.0)


def compute_log_probs(
    config: Mapping[str, Any],
    weights: Mapping[str, Float32],
    prompt: Sequence[int],
    targets: Targets,
    hypotheses: Mapping[str, Hypothesis],
) -> dict[str, FloatArray]:
    """Return the log-probabilities of the targets under each hypothesis that rotates no more than a head has."""
    model, ids = build_model(config, weights), np.asarray(prompt)
    rows, places = np.unique(targets[:, 0], return_inverse=True)
    found = {}
    for name, hypothesis in hypotheses.items():
        if any(2 * one.inv_freq.size > model.head_dim for one in hypothesis.layers.values()):
            continue
        state = run_layers(model, ids, describe_layers(config, hypothesis, len(ids)), rows)
        logits = state @ model.unembedding.T
        most = logits.max(axis=1)
        total = most + np.log(np.exp(logits - most[:, None]).sum(axis=1))
        found[name] = (logits[places, targets[:, 1]] - total[places]).astype(np.float64)
    return found


def build_model(config: Mapping[str, Any], weights: Mapping[str, Float32]) -> Llama:
    """Return the model of a probe."""
    embedding = weights["model.embed_tokens.weight"]
    layers = [
        LayerWeights(
            **{
                field: weights[f"model.layers.{layer}.{name}"]
                for field, name in TENSORS.items()
                if f"model.layers.{layer}.{name}" in weights
            }
        )
        for layer in range(config["num_hidden_layers"])
    ]
    return Llama(
        heads=config["num_attention_heads"],
        epsilon=config.get("rms_norm_eps", DEFAULTS["rms_norm_eps"]),
        embedding=embedding,
        layers=tuple(layers),
        norm=weights["model.norm.weight"],
        unembedding=weights.get("lm_head.weight", embedding),
    )


def describe_layers(config: Mapping[str, Any], hypothesis: Hypothesis, length: int) -> list[LayerAttention]:
    """Return the attention of each layer under a hypothesis, for a prompt of this length."""
    tables = {kind: make_table(rotation, hypothesis, length) for kind, rotation in hypothesis.layers.items()}
    found = []
    for layer in range(config["num_hidden_layers"]):
        kind = "" if "" in hypothesis.layers else config["layer_types"][layer]
        window = find_window(config, layer) if hypothesis.has_windows else None
        cos, sin = tables[kind]
        found.append(
            LayerAttention(
                cos,
                sin,
                pairing=hypothesis.layers[kind].pairing,
                scale=hypothesis.softmax_multiplier / math.sqrt(find_head_size(config)),
                window=None if window is None else window + hypothesis.wider,
            )
        )
    return found


def make_table(rotation: Rotation, hypothesis: Hypothesis, length: int) -> tuple[Float32, Float32]:
    """Return cos and sin of every position, shape (length, pairs), with the attention factor.

    The angles are in float32, as engines have them.
    """
    positions = np.arange(hypothesis.shift, hypothesis.shift + length, dtype=np.float32)
    angles = positions[:, None] * rotation.inv_freq.astype(np.float32)
    if hypothesis.rounds_angles:
        angles = round_to_bfloat16(angles)
    exact = angles.astype(np.float64)
    cos: Float32 = (rotation.attention_factor * np.cos(exact)).astype(np.float32)
    sin: Float32 = (rotation.attention_factor * np.sin(exact)).astype(np.float32)
    return cos, sin


def find_window(config: Mapping[str, Any], layer: int) -> int | None:
    """Return the window of one layer in tokens, None where it sees everything. Source: transformers 5.24.0."""
    window = config.get("sliding_window", 4096)
    kind = config["model_type"]
    if not window or kind == "llama" or (kind != "mistral" and not config.get("use_sliding_window")):
        return None
    types = config.get("layer_types")
    if types is not None:
        return int(window) if types[layer] == "sliding_attention" else None
    return None if kind != "mistral" and layer < config.get("max_window_layers", 28) else int(window)
