"""The models that need no other package: Llama and its like, with weights and forward pass in NumPy."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rope_viz.embedding.spec import FloatArray
from rope_viz.kernels.reference import rotate
from rope_viz.probe.answers import Targets
from rope_viz.probe.hypotheses import Hypothesis, Rotation
from rope_viz.probe.weights import STRENGTH, Float32, draw_matrix, draw_vector, round_to_bfloat16

BLOCK = 256  # rows of attention at once

ARCHITECTURES = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
}
"""{model type: its class} of those whose layers are those of Llama, with biases or norms of q and k."""
DEFAULTS = {"rms_norm_eps": 1e-6, "tie_word_embeddings": False}
"""What their classes fill in, and mlx-lm requires."""


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
    ids, last = np.asarray(prompt), config["num_hidden_layers"] - 1
    rows, places = np.unique(targets[:, 0], return_inverse=True)
    every = np.arange(len(ids))
    start = weights["model.embed_tokens.weight"][ids]
    first = project_inputs(config, weights, 0, start, rows if last == 0 else every)
    found = {}
    for name, hypothesis in hypotheses.items():
        if any(2 * one.inv_freq.size > find_head_size(config) for one in hypothesis.layers.values()):
            continue
        tables = {layer: make_table(one, hypothesis, len(ids)) for layer, one in hypothesis.layers.items()}
        hidden, projected = start, first
        for layer in range(last + 1):
            chosen = rows if layer == last else every
            if layer:
                projected = project_inputs(config, weights, layer, hidden, chosen)
            hidden = apply_layer(config, weights, layer, hidden, projected, chosen, hypothesis, tables)
        logits = normalise(hidden, weights["model.norm.weight"], config) @ find_head(weights).T
        most = logits.max(axis=1)
        total = most + np.log(np.exp(logits - most[:, None]).sum(axis=1))
        found[name] = (logits[places, targets[:, 1]] - total[places]).astype(np.float64)
    return found


def find_head(weights: Mapping[str, Float32]) -> Float32:
    """Return the matrix of the logits, which may be that of the embeddings."""
    return weights.get("lm_head.weight", weights["model.embed_tokens.weight"])


def make_table(rotation: Rotation, hypothesis: Hypothesis, length: int) -> tuple[FloatArray, FloatArray]:
    """Return cos and sin of every position, shape (length, pairs), from angles in float32 as engines have them."""
    positions = np.arange(hypothesis.shift, hypothesis.shift + length, dtype=np.float32)
    angles = positions[:, None] * rotation.inv_freq.astype(np.float32)
    if hypothesis.rounds_angles:
        angles = round_to_bfloat16(angles)
    return np.cos(angles.astype(np.float64)), np.sin(angles.astype(np.float64))


def project(weights: Mapping[str, Float32], name: str, values: Float32) -> Float32:
    """Return what a matrix of this name, with its bias, makes of values."""
    out: Float32 = values @ weights[f"{name}.weight"].T
    bias = weights.get(f"{name}.bias")
    return out if bias is None else out + bias


def project_inputs(
    config: Mapping[str, Any], weights: Mapping[str, Float32], layer: int, hidden: Float32, rows: NDArray[np.intp]
) -> tuple[Float32, Float32, Float32]:
    """Return q at these rows, k and v of one layer before rotation, shape (tokens, heads, size)."""
    start, size = f"model.layers.{layer}", find_head_size(config)
    inputs = normalise(hidden, weights[f"{start}.input_layernorm.weight"], config)
    found = []
    for name, values in (("q", inputs[rows]), ("k", inputs), ("v", inputs)):
        out = project(weights, f"{start}.self_attn.{name}_proj", values).reshape(len(values), -1, size)
        norm = weights.get(f"{start}.self_attn.{name}_norm.weight")
        found.append(out if norm is None else normalise(out, norm, config))
    return found[0], found[1], found[2]


def apply_layer(
    config: Mapping[str, Any],
    weights: Mapping[str, Float32],
    layer: int,
    hidden: Float32,
    projected: tuple[Float32, Float32, Float32],
    rows: NDArray[np.intp],
    hypothesis: Hypothesis,
    tables: Mapping[str, tuple[FloatArray, FloatArray]],
) -> Float32:
    """Return the output of one layer at these rows, from its q, k and v before rotation."""
    start = f"model.layers.{layer}"
    kind = "" if "" in hypothesis.layers else config["layer_types"][layer]
    rotation, (q, k, v) = hypothesis.layers[kind], projected
    turn = functools.partial(
        rotate, table=tables[kind], pairing=rotation.pairing, attention_factor=rotation.attention_factor
    )
    window = find_window(config, layer) if hypothesis.has_windows else None
    window = window and window + hypothesis.wider
    scale = hypothesis.softmax_multiplier / math.sqrt(q.shape[-1])
    mixed = attend(turn(q, rows), turn(k, np.arange(len(k))), v, rows, window, scale)
    hidden = hidden[rows] + project(weights, f"{start}.self_attn.o_proj", mixed.reshape(len(rows), -1))
    inputs = normalise(hidden, weights[f"{start}.post_attention_layernorm.weight"], config)
    gate = project(weights, f"{start}.mlp.gate_proj", inputs)
    falling: Float32 = np.exp(-gate)
    inner: Float32 = gate / (falling + 1) * project(weights, f"{start}.mlp.up_proj", inputs)
    out: Float32 = hidden + project(weights, f"{start}.mlp.down_proj", inner)
    return out


def attend(q: Float32, k: Float32, v: Float32, rows: NDArray[np.intp], window: int | None, scale: float) -> Float32:
    """Return what attention mixes at these rows, shape (rows, heads, size), in blocks that fit the cache."""
    share = q.shape[1] // k.shape[1]
    out = np.empty_like(q)
    places = np.arange(len(k))
    for first in range(0, len(rows), BLOCK):
        asked = rows[first : first + BLOCK]
        end = asked.max() + 1
        begin = 0 if window is None else max(0, int(asked.min()) - window + 1)
        hidden = places[begin:end] > asked[:, None]
        if window is not None:
            hidden |= places[begin:end] <= asked[:, None] - window
        for head in range(q.shape[1]):
            keys, values = (part[begin:end, head // share] for part in (k, v))
            scores = q[first : first + BLOCK, head] @ keys.T * np.float32(scale)
            scores[hidden] = -np.inf
            scores -= scores.max(axis=1, keepdims=True)
            np.exp(scores, out=scores)
            out[first : first + BLOCK, head] = scores @ values / scores.sum(axis=1, keepdims=True)
    return out


def normalise(values: Float32, weight: Float32, config: Mapping[str, Any]) -> Float32:
    """Return the RMS norm over the last axis."""
    mean = np.mean(values * values, axis=-1, keepdims=True)
    out: Float32 = values / np.sqrt(mean + np.float32(config.get("rms_norm_eps", DEFAULTS["rms_norm_eps"]))) * weight
    return out


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
