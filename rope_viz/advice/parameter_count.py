"""How many parameters the language model of a config.json has, and the bytes they take.

Counted as the classes of transformers 5.23.0 build them; tests/goldens/memory.json holds what they were found to have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rope_viz.advice.feed_forward import count_feed_forward, is_layer_dense
from rope_viz.advice.kv_cache import ATTENTION, count_kv_heads, find_layer_kinds, read_linear_attention, read_mamba
from rope_viz.advice.memory_fields import copy_usual_keys, count_listed_layers, read_memory_fields
from rope_viz.advice.part_parameters import count_other_parts
from rope_viz.advice.weight_storage import find_file_bytes, find_weight_storage
from rope_viz.models.config_reader import Fields, read_model_type
from rope_viz.models.layer_patterns import resolve_layer_types
from rope_viz.models.model_config import ModelConfig, Source
from rope_viz.models.parameter_formulas import Sizes, count_parameters, has_formula


def parameters(config: Source) -> int:
    """Return the number of parameters, embeddings included. Raises `ValueError` naming a size that is missing."""
    model = ModelConfig.read(config)
    found = count_by_formula(model)
    return count_by_usual_keys(model) if found is None else found


def count_by_formula(model: ModelConfig) -> int | None:
    """Return the number of parameters of a class of transformers, None for a config that none of them reads."""
    part, kind = model.part, read_model_type(model.mapping)
    if has_formula(kind) and not model.mapping.get("block_configs"):
        text = fill_layer_types(model, part.config)
        config = text if not part.loaded else put_inside(model.mapping, part.loaded, {"model_type": part.kind, **text})
        return count_parameters(kind, config)
    if has_formula(part.kind) and not part.config.get("block_configs"):
        config = fill_layer_types(model, part.config)
        hidden = Sizes(config, part.kind).number("hidden_size")
        return count_parameters(part.kind, config) + count_other_parts(model.mapping, int(hidden))[0]
    return None


def fill_layer_types(model: ModelConfig, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a language model with usual names for unusual ones, and the types of its layers."""
    fields = read_memory_fields(model)
    types = None if config.get("layer_types") else resolve_layer_types(fields)
    counted = count_listed_layers(config)
    return {**copy_usual_keys(config), **config, **counted, **({"layer_types": types} if types else {})}


def put_inside(config: Mapping[str, Any], path: Sequence[str], part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a config with this part at a path."""
    inner = config.get(path[0])
    rest = inner if isinstance(inner, Mapping) else {}
    return {**config, path[0]: dict(part) if len(path) == 1 else put_inside(rest, path[1:], part)}


def count_by_usual_keys(model: ModelConfig) -> int:
    """Return the number of parameters of a model that no class of transformers reads, by the usual keys."""
    fields = read_memory_fields(model)
    hidden, kinds = fields.required("hidden_size"), find_layer_kinds(fields)
    # Composite classes keep it at their own level.
    tied = {"tie_word_embeddings": fields.architecture.memory.ties_embeddings, **model.mapping, **fields.config}
    total = fields.required("vocab_size") * hidden * (1 if tied["tie_word_embeddings"] else 2)
    if not fields.config.get("block_configs"):
        total += sum(count * count_mixer(fields, hidden, kind) for kind, count in Counter(kinds).items())
    if fields.config.get("block_configs"):
        return total + count_blocks(fields, hidden) + count_other_parts(model.mapping, hidden)[0]
    dense = Counter(is_layer_dense(fields, index) for index in range(len(kinds)))
    total += sum(count * count_feed_forward(fields, hidden, dense=each) for each, count in dense.items())
    return total + 2 * hidden * len(kinds) + count_other_parts(model.mapping, hidden)[0]


def count_blocks(fields: Fields, hidden: int) -> int:
    """Return the number of weights of blocks that each have sizes of their own (block_configs of Nemotron NAS)."""
    heads, width, total = fields.required("num_attention_heads"), fields.head_dim(), 0
    for block in fields.config["block_configs"]:
        attention, feed_forward = block.get("attention") or {}, block.get("ffn") or {}
        if attention.get("replace_with_linear"):
            total += hidden * hidden
        elif not attention.get("no_op"):
            kept = heads // (attention.get("n_heads_in_group") or 1)
            total += 2 * hidden * width * (heads + kept) + hidden
        if feed_forward.get("replace_with_linear"):
            total += hidden * hidden
        elif not feed_forward.get("no_op"):
            inner = feed_forward.get("intermediate_size")
            if inner is None:
                # Two thirds of the multiple, rounded up to 256, as in modeling_decilm.py.
                inner = -(-int(2 * (feed_forward.get("ffn_mult") or 4) * hidden / 3) // 256) * 256
            total += 3 * hidden * inner + hidden
    return total


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
    if kind == "recurrent_gemma":
        width, blocks = fields.size("lru_width") or hidden, fields.required("num_attention_heads")
        return 3 * hidden * width + fields.size("conv1d_width", default=4) * width + 2 * width * width // blocks
    if kind not in (*ATTENTION, "cross_attention", "shared_attention"):
        return 0
    heads = fields.required("num_attention_heads")
    latent = fields.size("kv_lora_rank")
    if latent is not None:
        rotated, plain = fields.required("qk_rope_head_dim"), fields.required("qk_nope_head_dim")
        values, query = fields.size("v_head_dim") or plain, fields.size("q_lora_rank")
        asked = heads * (rotated + plain)
        queries = hidden * asked if query is None else query * (hidden + asked)
        return queries + hidden * (latent + rotated) + latent * heads * (plain + values) + heads * values * hidden
    width = fields.head_dim()
    if kind == "shared_attention":
        return 2 * hidden * width * heads
    shared_query = fields.size("share_q_dim")
    if shared_query is not None:
        return shared_query * (hidden + heads * width) + hidden * width * (heads + 2 * count_kv_heads(fields))
    gated = 2 if fields.architecture.memory.gated_attention else 1
    return hidden * width * ((1 + gated) * heads + 2 * count_kv_heads(fields))


def weight_bytes(config: Source) -> tuple[float, str]:
    """Return (bytes, storage type) of the weights, as the config says they are stored."""
    model = ModelConfig.read(config)
    held = find_file_bytes(model.mapping)
    if held is not None:
        return float(held), "GGUF file"
    count, places = parameters(model), (model.mapping, model.fields.config)
    each, stored, _ = find_weight_storage(*places)
    return count * each, stored
