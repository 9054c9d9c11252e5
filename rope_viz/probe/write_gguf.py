"""A probe as a GGUF file (ggml's docs/gguf.md): what llama.cpp's converter would write, by the rules of `runtimes`.

The converter itself takes only tokenizers that it knows. Names and order of rows follow `conversion/llama.py` and
`qwen.py` of llama.cpp 0c1e57098.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rope_viz.models.model_config import ModelConfig
from rope_viz.probe.plain_model import find_head_size
from rope_viz.probe.tokens import BEGIN, BYTES, END, VOCABULARY, list_tokens
from rope_viz.probe.weights import Float32
from rope_viz.runtimes import read_case
from rope_viz.runtimes.gguf_converter import RULES
from rope_viz.runtimes.rule_engine import ORIGINAL, Case, Refused, apply

ARCHITECTURES = {"llama": "llama", "mistral": "llama", "qwen2": "qwen2", "qwen3": "qwen3"}
"""{model type: architecture of the GGUF file}."""
NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
OUTER = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}
ALIGNMENT = 32
LARGEST_DIVISOR = 1e30
"""The converter writes it for a pair with zero frequency."""
FLOAT32, NORMAL, CONTROL = 0, 1, 3
UNUSED_MERGE = "ÿ þ"
"""The loader needs a list of merges. No prompt has these two bytes."""


def pack_probe(config: Mapping[str, Any], weights: Mapping[str, Float32]) -> Iterator[bytes]:
    """Yield the GGUF file of a probe. Raises `ValueError` for a model type that it is not written for."""
    architecture = ARCHITECTURES.get(config["model_type"])
    if architecture is None:
        known = ", ".join(ARCHITECTURES)
        raise ValueError(f"--gguf is for {known}, not for {config['model_type']}")
    try:
        case, _ = apply(RULES, read_case(ModelConfig.read(config)))
    except Refused as refusal:
        raise ValueError(f"llama.cpp's converter refuses this config: {refusal}") from None
    size = find_head_size(config)
    sizes = {
        "context_length": config["max_position_embeddings"],
        "embedding_length": config["hidden_size"],
        "block_count": config["num_hidden_layers"],
        "feed_forward_length": config["intermediate_size"],
        "attention.head_count": config["num_attention_heads"],
        "attention.head_count_kv": config.get("num_key_value_heads", config["num_attention_heads"]),
        "attention.key_length": size,
        "attention.value_length": size,
        "attention.layer_norm_rms_epsilon": float(config["rms_norm_eps"]),
        "vocab_size": VOCABULARY,
        **list_rope_keys(case),
    }
    keys = {"general.architecture": architecture, "general.name": "probe", "general.file_type": FLOAT32}
    keys |= {f"{architecture}.{name}": value for name, value in sizes.items()} | list_tokenizer_keys()
    yield from pack_gguf(keys, rename_tensors(config, weights, case))


def list_rope_keys(case: Case) -> dict[str, Any]:
    """Return the keys of the RoPE parameters that conversion leaves."""
    found: dict[str, Any] = {"rope.dimension_count": case.rotary_dim, "rope.freq_base": case.base}
    if case.kind in ("linear", "yarn"):
        found |= {"rope.scaling.type": case.kind, "rope.scaling.factor": case.number("factor")}
    if case.kind == "yarn":
        found["rope.scaling.original_context_length"] = int(case.rope[ORIGINAL])
    if case.attention is not None:
        found["rope.scaling.attn_factor"] = float(case.attention)
    return found


def list_tokenizer_keys() -> dict[str, Any]:
    """Return the keys of the probe's tokenizer."""
    keys = {
        "model": "gpt2",
        "pre": "gpt-2",
        "tokens": list_tokens(),
        "token_type": [NORMAL] * BYTES + [CONTROL] * (VOCABULARY - BYTES),
        "merges": [UNUSED_MERGE],
        "bos_token_id": BEGIN,
        "eos_token_id": END,
        "add_bos_token": False,
    }
    return {f"tokenizer.ggml.{name}": value for name, value in keys.items()}


def rename_tensors(config: Mapping[str, Any], weights: Mapping[str, Float32], case: Case) -> dict[str, Float32]:
    """Return the tensors by the names and in the order of rows that llama.cpp reads."""
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config.get("num_key_value_heads", 1)}
    found = {}
    for name, values in weights.items():
        if name in OUTER:
            found[OUTER[name]] = values
            continue
        _, _, layer, *part, suffix = name.split(".")
        is_reordered = ARCHITECTURES[config["model_type"]] == "llama" and part[-1] in heads
        found[f"blk.{layer}.{NAMES['.'.join(part)]}.{suffix}"] = (
            reorder_rows(values, heads[part[-1]]) if is_reordered else values
        )
    if case.divisors:
        divisors = [LARGEST_DIVISOR if math.isinf(value) else value for value in case.divisors]
        found["rope_freqs.weight"] = np.array(divisors, dtype=np.float32)
    return found


def reorder_rows(values: Float32, heads: int) -> Float32:
    """Return the rows of q or k so that pairs across halves become adjacent, as llama.cpp rotates a Llama."""
    rows = values.reshape(heads, 2, values.shape[0] // heads // 2, *values.shape[1:])
    return np.ascontiguousarray(rows.swapaxes(1, 2)).reshape(values.shape)


def pack_gguf(keys: Mapping[str, Any], tensors: Mapping[str, Float32]) -> Iterator[bytes]:
    """Yield a GGUF file of version 3 with float32 tensors."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    head += b"".join(pack_text(name) + pack_value(value) for name, value in keys.items())
    offset = 0
    for name, values in tensors.items():
        shape = values.shape[::-1]
        head += pack_text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, FLOAT32, offset)
        offset += values.nbytes + -values.nbytes % ALIGNMENT
    yield head + bytes(-len(head) % ALIGNMENT)
    for values in tensors.values():
        yield np.ascontiguousarray(values, dtype="<f4").tobytes() + bytes(-values.nbytes % ALIGNMENT)


def pack_text(text: str) -> bytes:
    """Return a text with its length."""
    content = text.encode()
    return struct.pack("<Q", len(content)) + content


def pack_value(value: bool | int | float | str | Sequence[str] | Sequence[int]) -> bytes:
    """Return type and content of a key's value."""
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + pack_text(value)
    if isinstance(value[0], str):
        return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(pack_text, map(str, value)))
    return struct.pack(f"<IIQ{len(value)}i", 9, 5, len(value), *value)
