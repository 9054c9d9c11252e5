"""How many parameters the language model of a config.json has, and the bytes they take.

Counted as the classes of transformers 5.23.0 build them; tests/goldens/memory.json holds what they were found to have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from rope_viz.advice.kv_cache import ATTENTION, count_kv_heads, find_layer_kinds, read_linear_attention, read_mamba
from rope_viz.models.config_reader import Fields
from rope_viz.models.model_config import ModelConfig, Source

# {quantisation method: bytes per weight}; the others say their bits.
QUANTIZED = {"fp8": 1.0, "mxfp4": 17 / 32, "fbgemm_fp8": 1.0, "finegrained_fp8": 1.0}


def parameters(config: Source) -> int:
    """Return the number of parameters, embeddings included. Raises `ValueError` naming a size that is missing."""
    model = ModelConfig.read(config)
    fields = model.fields
    hidden, kinds = fields.required("hidden_size"), find_layer_kinds(fields)
    # Composite classes keep it at their own level.
    tied = {"tie_word_embeddings": fields.architecture.memory.ties_embeddings, **model.mapping, **fields.config}
    total = fields.required("vocab_size") * hidden * (1 if tied["tie_word_embeddings"] else 2)
    total += sum(count * count_mixer(fields, hidden, kind) for kind, count in Counter(kinds).items())
    dense = Counter(is_dense(fields, index) for index in range(len(kinds)))
    total += sum(count * count_feed_forward(fields, hidden, dense=each) for each, count in dense.items())
    return total + 2 * hidden * len(kinds)


def count_mixer(fields: Fields, hidden: int, kind: str) -> int:
    """Return the number of weights of a layer's attention, or of what it has in its place."""
    if kind == "linear_attention":
        keys, values, _, heads, kernel = read_linear_attention(fields)
        return hidden * (2 * keys + 2 * values + 2 * heads) + (2 * keys + values) * kernel + values * hidden
    if kind == "conv":
        return 4 * hidden * hidden
    if kind == "mamba":
        keys, values, _, heads, _ = read_mamba(fields)
        return hidden * (2 * values + 2 * keys + heads) + values * hidden
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
    return hidden * width * ((1 + gated) * heads + 2 * count_kv_heads(fields))


def is_dense(fields: Fields, index: int) -> bool:
    """Return whether a layer of a model with experts has none."""
    first = fields.config.get("first_k_dense_replace") or 0
    return bool(index < first or index in (fields.config.get("mlp_only_layers") or ()))


def count_feed_forward(fields: Fields, hidden: int, *, dense: bool) -> int:
    """Return the number of weights of a layer's feed-forward part; `dense`: it has no experts."""
    facts = fields.architecture.memory
    matrices = 2 if facts.two_matrix_mlp else 3
    inner = fields.size("intermediate_size") or 4 * hidden
    experts = next((n for n in map(fields.size, ("n_routed_experts", "num_local_experts", "num_experts")) if n), None)
    if experts is None or dense:
        return matrices * hidden * inner
    width = fields.size("moe_intermediate_size") or inner
    shared = (fields.config.get("n_shared_experts") or 0) * width
    shared += fields.size("shared_expert_intermediate_size") or (width if facts.shared_expert else 0)
    return matrices * hidden * (experts * width + shared) + experts * hidden


def weight_bytes(config: Source) -> tuple[float, str]:
    """Return (bytes, storage type) of the weights, as the config says they are stored."""
    model = ModelConfig.read(config)
    count, places = parameters(model), (model.mapping, model.fields.config)
    quantized = next((part["quantization_config"] for part in places if part.get("quantization_config")), None)
    if isinstance(quantized, Mapping):
        method, bits = str(quantized.get("quant_method", "")), quantized.get("bits", quantized.get("w_bit"))
        bits = 4 if quantized.get("load_in_4bit") else bits
        each = bits / 8 if isinstance(bits, (int, float)) and 0 < bits <= 16 else QUANTIZED.get(method)
        if each is not None:
            return count * each, f"{method or 'quantized'}, {8 * each:g} bits"
    names = (part.get(key) for part in places for key in ("dtype", "torch_dtype"))
    name = next((name for name in names if isinstance(name, str)), "bfloat16")
    return count * (4.0 if name == "float32" else 2.0), name
