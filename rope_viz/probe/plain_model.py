"""The models that need no other package: Llama and its like, with weights and forward pass in NumPy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rope_viz.probe.weights import STRENGTH, Float32, draw_matrix, draw_vector

ARCHITECTURES = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
}
"""{model type: its class} of those whose layers are those of Llama, with biases or norms of q and k."""


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
