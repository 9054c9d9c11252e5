"""Load a language model from a GGUF file: its config with the keys of transformers, and its weights as float32.

The names of tensors and keys: https://github.com/ggml-org/llama.cpp, gguf-py/gguf/constants.py. llama.cpp rotates
neighbouring dimensions of the architecture `llama`; its rows of q and k return to transformers' order here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from rope_viz.embedding.spec import require_number, short_repr
from rope_viz.models.formats.gguf import GgufHeader, read_frequency_divisors, read_header
from rope_viz.models.formats.gguf_config import recognise_llama3
from rope_viz.models.model_config import from_config
from rope_viz.real_models.gguf_tensors import Floats, read_tensor
from rope_viz.tiny_lm.numpy_model import Layer, TinyLm


@dataclass(frozen=True)
class Architecture:
    """What the graph of an architecture does besides Llama's."""

    neighbours: bool = False
    """q and k are stored for a rotation of neighbouring dimensions."""
    normalises_heads: bool = False
    scales_embedding: bool = False
    activation: str = "silu"


ARCHITECTURES = {
    "llama": Architecture(neighbours=True),
    "qwen2": Architecture(),
    "qwen3": Architecture(normalises_heads=True),
    "gemma": Architecture(scales_embedding=True, activation="gelu"),
}
"""{llama.cpp's name, which is transformers' model type too: what differs}."""

PARTS = {
    "q": "attn_q.weight",
    "k": "attn_k.weight",
    "v": "attn_v.weight",
    "o": "attn_output.weight",
    "gate": "ffn_gate.weight",
    "up": "ffn_up.weight",
    "down": "ffn_down.weight",
    "before_attention": "attn_norm.weight",
    "before_mlp": "ffn_norm.weight",
}
BIASES = {"q_bias": "attn_q.bias", "k_bias": "attn_k.bias", "v_bias": "attn_v.bias"}
HEAD_NORMS = {"q_norm": "attn_q_norm.weight", "k_norm": "attn_k_norm.weight"}
CHANGED_GRAPH = ("expert_count", "attention.scale", "logit_scale", "rope.scaling.yarn_log_multiplier")
"""Keys that change the graph where they are not 0."""


def load_gguf(path: str | Path, progress: Callable[[int, int], None] | None = None) -> TinyLm:
    """Load the model of a GGUF file. `progress` is called with the number of loaded and of all layers.

    Raises `ValueError` for another architecture, for tensors that its graph does not have, and for a broken file.
    """
    header = read_header(path)
    config = make_config(header)
    about = ARCHITECTURES[header.architecture]
    check_tensors(header, config, about)
    count = config["num_hidden_layers"]
    embedding = read_tensor(header, "token_embd.weight")
    layers = []
    for index in range(count):
        layers.append(read_layer(header, index, config, about))
        if progress is not None:
            progress(index + 1, count)
    tied = config["tie_word_embeddings"]
    return TinyLm(
        name=Path(path).stem,
        spec=from_config(config)[""],
        heads=config["num_attention_heads"],
        epsilon=config["rms_norm_eps"],
        embedding=embedding,
        layers=tuple(layers),
        norm=read_tensor(header, "output_norm.weight"),
        unembedding=embedding if tied else read_tensor(header, "output.weight"),
        config=MappingProxyType(config),
        activation=about.activation,
        # transformers rounds the factor to the model's data type, which is float32 here.
        embedding_scale=math.sqrt(config["hidden_size"]) if about.scales_embedding else 1.0,
    )


def make_config(header: GgufHeader) -> dict[str, Any]:
    """Return the config of the model with transformers' keys.

    Raises `ValueError` for an architecture whose graph is not computed here, and for missing or wrong sizes.
    """
    kind = header.architecture
    if kind not in ARCHITECTURES:
        raise ValueError(
            f"{header.path.name} is a model of architecture {short_repr(kind)}; its forward pass is not built in: "
            f"those of {', '.join(ARCHITECTURES)} are"
        )
    for name in CHANGED_GRAPH:
        if header.find(name):
            raise ValueError(f"{kind}.{name} of the GGUF file changes the model's graph, which is not supported")
    width, heads = (find_size(header, name) for name in ("embedding_length", "attention.head_count"))
    head_dim = find_size(header, "attention.key_length", width // heads)
    rotary = find_size(header, "rope.dimension_count", head_dim)
    if rotary != head_dim or find_size(header, "attention.value_length", head_dim) != head_dim:
        raise ValueError("the GGUF file rotates only a part of each head, or has values of another size than keys")
    base = header.find("rope.freq_base", 10_000.0)
    epsilon = header.find("attention.layer_norm_rms_epsilon", 1e-6)
    require_number(base, "rope.freq_base", above=0.0)
    require_number(epsilon, "attention.layer_norm_rms_epsilon", least=0.0)
    embedding = header.tensors.get("token_embd.weight")
    if embedding is None or len(embedding.shape) != 2:
        raise ValueError("the GGUF file has no matrix token_embd.weight")
    config = {
        "model_type": kind,
        "hidden_size": width,
        "intermediate_size": find_size(header, "feed_forward_length"),
        "num_hidden_layers": find_size(header, "block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": find_size(header, "attention.head_count_kv", heads),
        "head_dim": head_dim,
        "vocab_size": embedding.shape[0],
        "max_position_embeddings": find_size(header, "context_length"),
        "rms_norm_eps": float(epsilon),
        "rope_theta": float(base),
        "tie_word_embeddings": "output.weight" not in header.tensors,
    }
    scaling = read_scaling(header, config)
    return config | ({"rope_scaling": scaling} if scaling else {})


def find_size(header: GgufHeader, name: str, default: int | None = None) -> int:
    """Return a size among the keys. Raises `ValueError` if it is missing or no positive whole number."""
    value = header.find(name, default)
    if value is None:
        raise ValueError(f"the GGUF file has no {header.architecture}.{name}")
    if isinstance(value, list) and value and len(set(value)) == 1:
        value = value[0]
    require_number(value, f"{header.architecture}.{name}", least=1, most=1 << 32, integer=True)
    return int(value)


def read_scaling(header: GgufHeader, config: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the scaling as transformers' `rope_scaling`, or None. Raises `ValueError` for other methods."""
    divisors = read_frequency_divisors(header)
    kind, factor = header.find("rope.scaling.type", "none"), header.find("rope.scaling.factor", 1.0) or 1.0
    if divisors:
        held = divisors.get("rope_freqs.weight")
        found = None if kind != "none" or held is None else recognise_llama3(held.tolist(), config["rope_theta"])
        if found is None:
            raise ValueError("the GGUF file divides frequencies by a list that is not that of a Llama 3.1 or 3.2 model")
        return found
    if kind == "none" or factor == 1.0:
        return None
    if kind not in ("linear", "yarn"):
        raise ValueError(f"the GGUF file scales RoPE by {short_repr(kind)}, which is not supported here")
    require_number(factor, "rope.scaling.factor", above=0.0)
    original = find_size(header, "rope.scaling.original_context_length", config["max_position_embeddings"])
    scaling = {"rope_type": kind, "factor": float(factor)}
    return scaling if kind == "linear" else scaling | {"original_max_position_embeddings": original}


def check_tensors(header: GgufHeader, config: Mapping[str, Any], about: Architecture) -> None:
    """Raise `ValueError` for a missing tensor, one of another shape, and one that the graph does not use."""
    width, inner, dim = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    q, k = config["num_attention_heads"] * dim, config["num_key_value_heads"] * dim
    if q % k:
        raise ValueError("the number of query heads must be a multiple of the number of key heads")
    sizes: dict[str, tuple[int, ...]] = {
        "q": (q, width), "k": (k, width), "v": (k, width), "o": (width, q),
        "gate": (inner, width), "up": (inner, width), "down": (width, inner),
        "before_attention": (width,), "before_mlp": (width,),
        "q_bias": (q,), "k_bias": (k,), "v_bias": (k,), "q_norm": (dim,), "k_norm": (dim,),
    }  # fmt: skip
    needed = {"token_embd.weight": (config["vocab_size"], width), "output_norm.weight": (width,)}
    optional = {"output.weight": (config["vocab_size"], width), "rope_freqs.weight": (dim // 2,)}
    names = PARTS | (HEAD_NORMS if about.normalises_heads else {})
    for index in range(config["num_hidden_layers"]):
        needed |= {f"blk.{index}.{name}": sizes[part] for part, name in names.items()}
        optional |= {f"blk.{index}.{name}": sizes[part] for part, name in BIASES.items()}
        missing = next((name for name in needed if name not in header.tensors), None)
        if missing is not None:
            raise ValueError(f"the GGUF file has no tensor {missing}")
    for name, place in header.tensors.items():
        wanted = needed.get(name, optional.get(name))
        if wanted is None:
            raise ValueError(
                f"the GGUF file has a tensor that {config['model_type']} does not use here: {short_repr(name)}"
            )
        if place.shape != wanted:
            raise ValueError(f"{name} must have shape {wanted}, got {place.shape}")


def read_layer(header: GgufHeader, index: int, config: Mapping[str, Any], about: Architecture) -> Layer:
    """Read the weights of one layer, with rows of q and k in the order of pairs (i, i + d/2)."""
    names = PARTS | BIASES | HEAD_NORMS
    found = {
        part: read_tensor(header, f"blk.{index}.{name}")
        for part, name in names.items()
        if f"blk.{index}.{name}" in header.tensors
    }
    if about.neighbours:
        for part in ("q", "k", "q_bias", "k_bias"):
            if part in found:
                found[part] = to_halves(found[part], config["head_dim"])
    return Layer(**found)


def to_halves(weight: Floats, head_dim: int) -> Floats:
    """Return rows of pairs (2i, 2i + 1) in every head in the order of pairs (i, i + d/2)."""
    rows = weight.reshape(-1, head_dim // 2, 2, weight[0].size)
    return np.ascontiguousarray(rows.swapaxes(1, 2).reshape(weight.shape))
