"""How many parameters the language model of a config.json has, and the bytes they take.

Counted as the classes of transformers 5.23.0 build them; tests/goldens/memory.json holds what they were found to have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from rope_viz.advice.kv_cache import ATTENTION, kinds_of, kv_heads
from rope_viz.models.config_reader import Fields
from rope_viz.models.model_config import ModelConfig

# {quantisation method: bytes per weight}; the others say their bits.
QUANTIZED = {"fp8": 1.0, "mxfp4": 17 / 32, "fbgemm_fp8": 1.0, "finegrained_fp8": 1.0}


def parameters(config: Mapping[str, Any]) -> int:
    """The parameters of the language model, embeddings included. Raises `ValueError` naming a size that is missing."""
    fields = ModelConfig.read(config).fields
    hidden, kinds = fields.required("hidden_size"), kinds_of(fields)
    # Composite classes keep it at their own level.
    tied = bool(
        fields.config.get(
            "tie_word_embeddings", config.get("tie_word_embeddings", fields.architecture.memory.ties_embeddings)
        )
    )
    total = fields.required("vocab_size") * hidden * (1 if tied else 2)
    total += sum(count * mixer(fields, hidden, kind) for kind, count in Counter(kinds).items())
    dense = Counter(is_dense(fields, index) for index in range(len(kinds)))
    total += sum(count * feed_forward(fields, hidden, dense=each) for each, count in dense.items())
    return total + 2 * hidden * len(kinds)


def mixer(fields: Fields, hidden: int, kind: str) -> int:
    """The matrices of a layer's attention, or of what stands in its place."""
    if kind == "linear_attention":
        keys = (fields.size("linear_num_key_heads") or 16) * (fields.size("linear_key_head_dim") or 128)
        heads = fields.size("linear_num_value_heads") or 32
        values = heads * (fields.size("linear_value_head_dim") or 128)
        kernel = fields.size("linear_conv_kernel_dim") or 4
        return hidden * (2 * keys + 2 * values + 2 * heads) + (2 * keys + values) * kernel + values * hidden
    if kind == "conv":
        return 4 * hidden * hidden
    if kind == "mamba":
        inner = fields.required("mamba_n_heads") * fields.required("mamba_d_head")
        states = 2 * (fields.size("mamba_n_groups") or 1) * fields.required("mamba_d_state")
        return hidden * (2 * inner + states + fields.required("mamba_n_heads")) + inner * hidden
    if kind not in ATTENTION:
        return 0
    heads = fields.required("num_attention_heads")
    latent = fields.size("kv_lora_rank")
    if latent is not None:
        rotated, plain = fields.required("qk_rope_head_dim"), fields.required("qk_nope_head_dim")
        values, query = fields.required("v_head_dim"), fields.size("q_lora_rank")
        asked = heads * (rotated + plain)
        queries = hidden * asked if query is None else query * (hidden + asked)
        return queries + hidden * (latent + rotated) + latent * heads * (plain + values) + heads * values * hidden
    width = fields.head_dim()
    gated = 2 if fields.architecture.memory.gated_attention else 1
    return hidden * width * ((1 + gated) * heads + 2 * kv_heads(fields))


def is_dense(fields: Fields, index: int) -> bool:
    """Whether a layer of a model with experts has none."""
    first = fields.config.get("first_k_dense_replace") or 0
    return bool(index < first or index in (fields.config.get("mlp_only_layers") or ()))


def feed_forward(fields: Fields, hidden: int, *, dense: bool) -> int:
    """The matrices of a layer's feed-forward part; `dense`: it has no experts."""
    matrices = 2 if fields.architecture.memory.two_matrix_mlp else 3
    inner = fields.size("intermediate_size") or 4 * hidden
    experts = next((n for n in map(fields.size, ("n_routed_experts", "num_local_experts", "num_experts")) if n), None)
    if experts is None or dense:
        return matrices * hidden * inner
    width = fields.size("moe_intermediate_size") or inner
    shared = (fields.config.get("n_shared_experts") or 0) * width
    shared += fields.size("shared_expert_intermediate_size") or (
        width if fields.architecture.memory.shared_expert else 0
    )
    return matrices * hidden * (experts * width + shared) + experts * hidden


def weight_bytes(config: Mapping[str, Any]) -> tuple[float, str]:
    """(bytes, how they are stored) of the weights as the config says they are stored."""
    count, fields = parameters(config), ModelConfig.read(config).fields
    asked = config.get("quantization_config") or fields.config.get("quantization_config")
    if isinstance(asked, Mapping):
        method, bits = str(asked.get("quant_method", "")), asked.get("bits", asked.get("w_bit"))
        if asked.get("load_in_4bit"):
            bits = 4
        each = bits / 8 if isinstance(bits, (int, float)) and 0 < bits <= 16 else QUANTIZED.get(method)
        if each is not None:
            return count * each, f"{method or 'quantized'}, {8 * each:g} bits"
    named = next(
        (
            part.get(key)
            for part in (config, fields.config)
            for key in ("dtype", "torch_dtype")
            if isinstance(part.get(key), str)
        ),
        "bfloat16",
    )
    return count * (4.0 if named == "float32" else 2.0), str(named)
