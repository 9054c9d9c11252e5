"""How many parameters the language model of a config.json has, and the bytes they take.

Counted as the classes of transformers 5.23.0 build them; tests/goldens/memory.json holds what they were found to have.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rope_viz.advice.memory.kv_cache import (
    ATTENTION,
    NAMES,
    OTHER_NAMES,
    copy_usual_keys,
    count_kv_heads,
    count_listed_layers,
    find_layer_kinds,
    read_linear_attention,
    read_mamba,
    read_memory_fields,
)
from rope_viz.models.architecture import find_architecture
from rope_viz.models.config_reader import Fields, read_model_type
from rope_viz.models.formats.json_source import source_file
from rope_viz.models.layer_patterns import resolve_layer_types
from rope_viz.models.model_config import ModelConfig, Source
from rope_viz.models.parameter_formulas import LISTED, Sizes, count_parameters, first_number, has_formula, is_dense

# {quantisation method: bytes per weight}; the others name their bits.
QUANTIZED: Mapping[str, float] = NAMES["quantized"]

# {data type: bytes per number}.
WEIGHT_TYPES: Mapping[str, float] = NAMES["weight_types"]


def find_bytes_per_weight(quantized: Mapping[str, Any]) -> float | None:
    """Return the bytes that a quantization_config gives one weight, None where it names neither bits nor a method."""
    method = str(quantized.get("quant_method", ""))
    if quantized.get("load_in_4bit") or quantized.get("_load_in_4bit"):
        return 0.5
    if quantized.get("load_in_8bit") or quantized.get("_load_in_8bit"):
        return 1.0
    if method == "mxfp4":
        return QUANTIZED[method]
    bits = next((quantized[key] for key in ("bits", "w_bit", "weight_bits", "num_bits") if quantized.get(key)), None)
    if bits is None:
        bits = find_group_bits(quantized)
    if isinstance(bits, (int, float)) and not isinstance(bits, bool) and 0 < bits <= 16:
        return bits / 8
    algorithm = str(quantized.get("quant_algo") or quantized.get("weight_dtype") or "").lower()
    named = re.search(r"w(\d+)a|fp(\d+)|int(\d+)|float(\d+)", algorithm)
    if named:
        return int(next(part for part in named.groups() if part)) / 8
    return QUANTIZED.get(method)


def find_group_bits(quantized: Mapping[str, Any]) -> float | None:
    """Return the bits of the first group of weights (compressed-tensors, modelopt), None where none names them.

    Weights that share a scale take a part of its bits, too: a byte where the group says so, else a number of 16 bits.
    """
    groups = quantized.get("config_groups")
    for group in groups.values() if isinstance(groups, Mapping) else ():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        bits = weights.get("num_bits") if isinstance(weights, Mapping) else None
        if isinstance(weights, Mapping) and isinstance(bits, (int, float)):
            shared = read_size(weights, "group_size")
            scale = 8 if re.search("8", str(weights.get("scale_dtype"))) else 16
            return bits + (scale / shared if shared and "scale_dtype" in weights else 0)
    return None


def is_expert_format(quantized: Any) -> bool:
    """Return whether a quantization stores experts alone in few bits: MXFP4, as of gpt-oss and Kimi-K3."""
    if not isinstance(quantized, Mapping):
        return False
    return "mxfp4" in (str(quantized.get("quant_method")), str(quantized.get("format")).removesuffix("-pack-quantized"))


def find_file_bytes(config: Mapping[str, Any]) -> int | None:
    """Return the bytes of the tensors in the GGUF file that a config was read from, None where it was from no such."""
    found = source_file(config).get("tensor_bytes")
    return found if isinstance(found, int) else None


def find_weight_storage(*places: Mapping[str, Any]) -> tuple[float, str, bool]:
    """Return (bytes per weight, what the storage is called, whether a file says so) of the first place that says it."""
    for part in places:
        quantized = part.get("quantization_config") or part.get("compression_config")
        if isinstance(quantized, Mapping):
            each = find_bytes_per_weight(quantized)
            if each is not None:
                name = quantized.get("quant_method") or quantized.get("quant_algo") or "quantized"
                return each, f"{name}, {8 * each:g} bits", True
    names = (part.get(key) for part in places for key in ("dtype", "torch_dtype"))
    name = next((name.removeprefix("torch.") for name in names if isinstance(name, str) and name != "auto"), None)
    if name is None:
        return 2.0, "bfloat16", False
    return WEIGHT_TYPES.get(name, 2.0), name, name in WEIGHT_TYPES


def parameters(config: Source) -> int:
    """Return the number of parameters, embeddings included. Raises `ValueError` naming a size that is missing."""
    model = ModelConfig.read(config)
    found = count_by_formula(model)
    return count_by_usual_keys(model) if found is None else found


def count_weight_bytes(model: ModelConfig, config: Mapping[str, Any], count: int, each: float) -> int:
    """Return the bytes of all weights, of `each` bytes; where experts alone are quantized, the others have 16 bits."""
    named = [part.get("quantization_config") or part.get("compression_config") for part in (model.mapping, config)]
    experts = count_expert_weights(model, count) if any(is_expert_format(one) for one in named) else 0
    return round(experts * each + (count - experts) * 2) if experts else round(count * each)


def count_expert_weights(model: ModelConfig, count: int) -> int:
    """Return how many of the weights belong to routed experts: as many as one expert less takes away, for each."""
    part = model.part
    names = ("n_routed_experts", "num_local_experts", "num_experts", *OTHER_NAMES["num_experts"])
    key = next((name for name in names if read_size(part.config, name) > 1), None)
    if key is None or not part.is_in_file:
        return 0
    experts = read_size(part.config, key)
    fewer = {**part.config, key: experts - 1}
    changed = put_inside(model.mapping, part.path, fewer) if part.path else fewer
    return experts * (count - parameters(changed))


def find_type_names(kind: str) -> tuple[str, ...]:
    """Return the types of the other codes that share a model type."""
    record = find_architecture(kind)
    return () if record is None else tuple(record.by_class.values())


def count_by_formula(model: ModelConfig) -> int | None:
    """Return the number of parameters of a class of transformers, None for a config that none of them reads."""
    part, kind = model.part, read_model_type(model.mapping)
    if part.kind in (find_type_names(kind) if not part.loaded else ()):
        return None  # `architectures` names another code than that of the class of this type
    if has_formula(kind) and not model.mapping.get("block_configs"):
        # A part that is not in the file has the sizes that its wrapper's class fills in.
        if part.loaded and not part.config:
            return count_parameters(kind, model.mapping)
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
    config = model.fields.config
    each, stored, _ = find_weight_storage(model.mapping, config)
    return float(count_weight_bytes(model, config, parameters(model), each)), stored


def count_experts(fields: Fields) -> int | None:
    """Return how many routed experts a layer with experts has, None for a dense model."""
    names = ("n_routed_experts", "num_local_experts", "num_experts", *OTHER_NAMES["num_experts"])
    for name in names:
        value = first_number(fields.value(name))
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


def is_layer_dense(fields: Fields, index: int) -> bool:
    """Return whether a layer of a model with experts has none."""
    config, first = fields.config, fields.architecture.memory.first_dense
    if first and "moe_layer_start_index" not in config and not config.get("first_k_dense_replace"):
        config = {"first_k_dense_replace": first, **config}
    if fields.value(LISTED) is not None:
        config = {**config, LISTED: fields.value(LISTED)}
    return is_dense(config.get, index)


def count_feed_forward(fields: Fields, hidden: int, *, dense: bool) -> int:
    """Return the number of weights of a layer's feed-forward part; `dense`: it has no experts."""
    facts, config = fields.architecture.memory, fields.config
    matrices = 2 if facts.two_matrix_mlp else 3
    inner = fields.size("intermediate_size") or 4 * hidden
    inner //= 2 if facts.halves_intermediate else 1
    experts = count_experts(fields)
    if experts is None or dense:
        other = (config.get("dense_intermediate_size") or config.get("intermediate_size_mlp")) if experts else None
        return matrices * hidden * int(other or inner)
    width = first_number(fields.value("moe_intermediate_size")) or inner
    names = ("n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts")
    many = next((first_number(config[name]) for name in names if config.get(name) is not None), facts.shared_experts)
    own = next(
        (fields.value(name) for name in ("shared_expert_intermediate_size", "share_expert_dim") if fields.value(name)),
        0,
    )
    shared = (own or (width if facts.shared_expert else 0)) if not many else many * width
    return int(matrices * hidden * (experts * width + shared) + experts * hidden)


PARTS = ("vision_config", "audio_config", "vision_tower_config", "audio_encoder_config", "visual", "vit_config")


def count_other_parts(config: Mapping[str, Any], text_width: int) -> tuple[int, tuple[str, ...]]:
    """Return (number of weights, parts whose sizes are missing) of vision and audio towers at one level of a config."""
    total, missing = 0, []
    for key in PARTS:
        part = config.get(key)
        if not isinstance(part, Mapping) or not part:
            continue
        count = count_tower(part, text_width)
        if count is None:
            missing.append(key)
        total += count or 0
    return total, tuple(missing)


def read_size(part: Mapping[str, Any], *names: str) -> int:
    """Return the first of these sizes that is a whole number, 0 where none is."""
    values = (part.get(name) for name in names)
    return next((value for value in values if isinstance(value, int) and not isinstance(value, bool) and value > 0), 0)


def count_tower(part: Mapping[str, Any], text_width: int) -> int | None:
    """Return the number of weights of one tower with its projector, None where its sizes are missing."""
    depth = read_size(part, "depth", "num_hidden_layers", "encoder_layers", "num_layers", "layers", "n_layers")
    width = read_size(part, "embed_dim", "hidden_size", "d_model", "width", "n_embd")
    out = read_size(part, "out_hidden_size", "output_dim", "projector_output_dim") or text_width
    if "embed_dim" in part and "out_hidden_size" not in part:
        out = read_size(part, "hidden_size") or text_width
    if not depth or not width:
        return None
    inner = read_size(part, "intermediate_size", "encoder_ffn_dim", "ffn_dim")
    inner = inner or int(width * (part.get("mlp_ratio") or 4))
    gated = 3 if part.get("hidden_act") in ("silu", "swiglu") else 2
    depth += read_size(part, "num_global_layers")
    total = depth * (4 * width * width + gated * width * inner + 4 * width)
    patch, channels = read_size(part, "patch_size"), read_size(part, "in_channels", "num_channels", "in_chans") or 3
    total += width * channels * patch * patch * (read_size(part, "temporal_patch_size") or 1)
    total += width * read_size(part, "num_position_embeddings")
    merge = read_size(part, "spatial_merge_size")
    if merge:
        merged = width * merge * merge
        indexes = part.get("deepstack_visual_indexes")
        mergers = 1 + (len(indexes) if isinstance(indexes, (list, tuple)) else 0)
        return total + mergers * merged * (merged + out)
    return total + width * out
