"""How many parameters the language model of a config.json has, and the bytes they take.

Counted as the classes of transformers 5.23.0 build them; tests/goldens/memory.json holds what they were found to have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rope_viz.advice.memory import TEXTS
from rope_viz.advice.memory.kv_cache import (
    ATTENTION,
    OTHER_NAMES,
    copy_usual_keys,
    count_kv_heads,
    count_listed_layers,
    find_layer_kinds,
    read_linear_attention,
    read_memory_fields,
)
from rope_viz.advice.memory.weight_matrices import (
    Matrix,
    count_experts,
    is_layer_dense,
    list_attention,
    list_feed_forward,
    list_matrices,
)
from rope_viz.advice.memory.weight_storage import (
    Quantization,
    find_plain_bytes,
    find_quantization,
    find_unread_method,
    find_weight_storage,
    is_expert_format,
    read_quantization,
)
from rope_viz.embedding.spec import short_repr
from rope_viz.models.architecture import find_architecture
from rope_viz.models.config_reader import Fields, read_model_type
from rope_viz.models.formats.json_source import source_file
from rope_viz.models.formats.side_files import COUNTED
from rope_viz.models.layer_patterns import resolve_layer_types
from rope_viz.models.model_config import ModelConfig, Source
from rope_viz.models.parameter_formulas import Sizes, count_parameters, has_formula, read_whole


def find_file_bytes(config: Mapping[str, Any]) -> int | None:
    """Return the bytes of the tensors in the GGUF file that a config was read from, None where it was from no such."""
    found = source_file(config).get("tensor_bytes")
    return found if isinstance(found, int) else None


def parameters(config: Source) -> int:
    """Return the number of parameters, embeddings included. Raises `ValueError` naming a size that is missing."""
    model = ModelConfig.read(config)
    found = count_by_formula(model)
    return count_by_usual_keys(model) if found is None else found


def count_weight_bytes(model: ModelConfig, config: Mapping[str, Any], count: int) -> tuple[int, dict[str, str]]:
    """Return (bytes of all weights as a config says they are stored, what was assumed: {name: value}).

    Raises `ValueError` where that depends on a method or on names of layers that are not read.
    """
    quantized = find_quantization(model.mapping, config)
    if quantized is None:
        if unread := find_unread_method(model.mapping, config):
            raise ValueError(TEXTS("reason.bits", unread=short_repr(unread)))
        return round(count * find_weight_storage(model.mapping, config)[0]), {}
    counted = read_whole(quantized.get(COUNTED), -1)
    if counted == 0:
        raise ValueError(TEXTS("reason.unread_layers"))
    if counted > 0:
        return counted, {}
    each, plain = find_weight_storage(model.mapping, config)[0], find_plain_bytes(model.mapping, config)
    experts = count_expert_weights(model, count) if is_expert_format(quantized) else 0
    if experts:
        return round(experts * each + (count - experts) * plain), {}
    rules = read_quantization(quantized)
    if rules is None:
        return round(count * each), {"all weights": TEXTS("assumed.bits", bits=8 * each)}
    return count_quantized_bytes(model, rules, count, plain)


def count_quantized_bytes(
    model: ModelConfig, rules: Quantization, count: int, plain: float
) -> tuple[int, dict[str, str]]:
    """Return the same for the rules of a quantization; what they leave out takes `plain` bytes per weight."""
    fields = read_memory_fields(model)
    hidden, vocabulary = fields.required("hidden_size"), fields.required("vocab_size")
    ends = [Matrix("embed_tokens", hidden, vocabulary)]
    ends += [] if ties_embeddings(model, fields) else [Matrix("lm_head", hidden, vocabulary)]
    matrices = [] if fields.config.get("block_configs") else list(list_matrices(fields))
    outside, towers = sum(matrix.count for matrix in ends), count_other_parts(model.mapping, hidden)[0]
    rest = count - outside - sum(matrix.count for matrix in matrices)
    assumed = dict(rules.assumed)
    if not -0.002 * count <= rest <= 0.03 * count + towers:
        if rules.usual is None:
            raise ValueError(TEXTS("reason.matrices" if fields.kind else "reason.unnamed_matrices", kind=fields.kind))
        assumed["quantized"] = TEXTS("assumed.some_weights")
        outside += towers
        return round((count - outside) * rules.usual.usual_bits / 8 + outside * plain), assumed
    total = float(rest) * plain
    for matrix in (*ends, *matrices):
        scheme = rules.find_scheme(matrix.name)
        total += matrix.count * plain if scheme is None else scheme.count_bytes(matrix)
    return round(total), assumed


def ties_embeddings(model: ModelConfig, fields: Fields) -> bool:
    """Return whether the head has the weights of the embeddings; composite classes keep that at their own level."""
    facts = fields.architecture.memory
    return bool({"tie_word_embeddings": facts.ties_embeddings, **model.mapping, **fields.config}["tie_word_embeddings"])


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
    total = fields.required("vocab_size") * hidden * (1 if ties_embeddings(model, fields) else 2)
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
    if kind == "recurrent_gemma":
        width, blocks = fields.size("lru_width") or hidden, fields.required("num_attention_heads")
        return 3 * hidden * width + fields.size("conv1d_width", default=4) * width + 2 * width * width // blocks
    attends, shared_query = kind in (*ATTENTION, "cross_attention"), fields.size("share_q_dim")
    if kind == "shared_attention" and fields.size("kv_lora_rank") is None:
        return 2 * hidden * fields.head_dim() * fields.required("num_attention_heads")
    if attends and shared_query is not None:
        heads, width = fields.required("num_attention_heads"), fields.head_dim()
        return shared_query * (hidden + heads * width) + hidden * width * (heads + 2 * count_kv_heads(fields))
    kernel = 0
    if kind == "linear_attention":
        keys, values, _, _, size = read_linear_attention(fields)
        kernel = (2 * keys + values) * size
    alike = "full_attention" if kind in ("cross_attention", "shared_attention") else kind
    return kernel + sum(matrix.count for matrix in list_attention(fields, hidden, alike))


def weight_bytes(config: Source) -> tuple[float, str]:
    """Return (bytes, storage type) of the weights, as the config says they are stored."""
    model = ModelConfig.read(config)
    held = find_file_bytes(model.mapping)
    if held is not None:
        return float(held), TEXTS("stored.header")
    config = model.fields.config
    stored = find_weight_storage(model.mapping, config)[1]
    return float(count_weight_bytes(model, config, parameters(model))[0]), stored


def count_feed_forward(fields: Fields, hidden: int, *, dense: bool) -> int:
    """Return the number of weights of a layer's feed-forward part; `dense`: it has no experts."""
    routed = 0 if dense else hidden * (count_experts(fields) or 0)
    return routed + sum(matrix.count for matrix in list_feed_forward(fields, hidden, dense=dense))


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
