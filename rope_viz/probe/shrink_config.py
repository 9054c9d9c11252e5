"""The config of a probe: the user's own, with everything small that RoPE does not depend on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rope_viz.embedding.spec import short_repr
from rope_viz.models.formats import without_source
from rope_viz.models.layer_patterns import LISTS, find_rotating_layers, repeat_pattern, resolve_layer_types
from rope_viz.models.model_config import ModelConfig
from rope_viz.probe.tokens import BEGIN, END, VOCABULARY

MOST_LAYERS = 8
LAYERS, USUAL_LAYERS = "num_hidden_layers", 48
HEADS, WIDTH, INTERMEDIATE = 2, 128, 128
MOST_WIDTH = 768
"""Layers times width from which a probe whose width depends on its heads has one head, so that it stays small."""
FULL, SLIDING = "full_attention", "sliding_attention"

# Sizes that RoPE does not depend on, by the names that classes give them. A config that lacks a key keeps lacking it,
# but for the intermediate size, whose class default is that of a full-sized model.
SMALLER: Mapping[str, int] = {
    **dict.fromkeys(
        """
        intermediate_size ffn_hidden_size ffn_dim n_inner moe_intermediate_size moe_ffn_hidden_size
        intermediate_size_mlp shared_expert_intermediate_size moe_shared_expert_intermediate_size
        shared_intermediate_size expert_ffn_hidden_size dense_intermediate_size feed_forward_hidden_size
        """.split(),
        INTERMEDIATE,
    ),
    **dict.fromkeys(
        """
        num_local_experts num_experts n_routed_experts moe_num_experts num_experts_per_tok moe_top_k moe_topk
        moe_num_active_experts moe_k top_k_experts num_experts_per_token
        linear_num_key_heads linear_num_value_heads
        """.split(),
        2,
    ),
    **dict.fromkeys(
        "n_group topk_group num_expert_group num_limited_groups n_shared_experts num_shared_experts".split(), 1
    ),
    "q_lora_rank": 64,
    "o_lora_rank": 64,
    "o_groups": 2,
    "index_n_heads": 2,
    "vocab_size": VOCABULARY,
    "hidden_size_per_layer_input": 32,
    "vocab_size_per_layer_input": VOCABULARY,
}
REMOVED = (
    "_name_or_path auto_map quantization_config compression_config transformers_version use_cache task_specific_params "
    "num_nextn_predict_layers mtp_num_hidden_layers dtype id2label label2id _about"
).split()
TOKENS = {"vocab_size": VOCABULARY, "bos_token_id": BEGIN, "eos_token_id": END, "pad_token_id": END}


@dataclass(frozen=True)
class Shape:
    """The sizes of a probe: layers, heads, key heads, width, and the types of its layers (None: all are alike)."""

    layers: int
    heads: int
    key_heads: int
    width: int
    layer_types: tuple[str, ...] | None


def shrink_config(model: ModelConfig) -> dict[str, Any]:
    """Return the config.json of a probe. A probe's own config stays as it is.

    It is that of the language model alone, where the user's config is a wrapper. Raises `ValueError` with a sentence
    for a model that no tiny one can stand for.
    """
    if model.problems:
        raise ValueError(model.problems[0])
    if model.fields.size("num_hidden_layers") is None:
        # Without a number of layers, that of its lists, or of a usual model: enough of them to show every type.
        name = {usual: own for own, usual in model.architecture.aliases.items()}.get(LAYERS, LAYERS)
        listed = (model.part.config.get(key) for key in LISTS)
        count = next((len(value) for value in listed if isinstance(value, (list, tuple))), USUAL_LAYERS)
        return shrink_config(ModelConfig.read({**model.part.config, "model_type": model.model_type, name: count}))
    if model.architecture.remote_code or not model.fields.is_listed:
        kind = short_repr(model.model_type).strip("'\"") if model.model_type else "this model"
        raise ValueError(f"no probe can be made of {kind}: its code travels with the weights, or is not known here")
    shape = find_shape(model)
    found = {key: value for key, value in without_source(model.part.config).items() if key not in REMOVED}
    layers = model.fields.size("num_hidden_layers")
    for key, value in found.items():
        if layers is None or not isinstance(value, (list, tuple)) or shape.layers >= layers:
            continue
        # Some lists go on with the layers of multi-token prediction.
        if len(value) == layers or (key in LISTS and len(value) > layers):
            found[key] = [value[place] for place in find_places(model, shape.layers)]
    by_layer = found.get("per_layer_config")
    if isinstance(by_layer, Mapping):
        places = [str(place) for place in find_places(model, shape.layers)]
        found["per_layer_config"] = {
            str(number): by_layer[place] for number, place in enumerate(places) if place in by_layer
        }
    for key, size in SMALLER.items():
        number = found.get(key)
        if (isinstance(number, int) and number > size) or (key == "intermediate_size" and number is None):
            found[key] = size
    found |= name_sizes(model, shape) | TOKENS
    if isinstance(found.get("first_k_dense_replace"), int):
        found["first_k_dense_replace"] = shape.layers  # the experts of such a model have nothing to do with RoPE
    if isinstance(found.get("max_window_layers"), int) and shape.layer_types is not None and "layer_types" not in found:
        found["max_window_layers"] = sum(kind == FULL for kind in shape.layer_types)
    return found | {"model_type": model.model_type, "torch_dtype": "float32"}


def name_sizes(model: ModelConfig, shape: Shape) -> dict[str, Any]:
    """Return the sizes under the names by which the config or its class says them."""
    sizes = {
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.key_heads,
        "hidden_size": shape.width,
    }
    own = {usual: name for name, usual in model.architecture.aliases.items()}
    given = model.part.config
    return {
        own[name] if name in own and name not in given else name: size
        for name, size in sizes.items()
        if name != "num_key_value_heads" or has_key_heads(model)
    }


def has_key_heads(model: ModelConfig) -> bool:
    """Return whether the class has a number of key heads of its own."""
    names = [name.rstrip("?+") for name in model.architecture.validation.whole]
    return "num_key_value_heads" in names or model.part.config.get("num_key_value_heads") is not None


def find_shape(model: ModelConfig) -> Shape:
    """Return the sizes of the probe of a config."""
    fields = model.fields
    heads = fields.required("num_attention_heads")
    key_heads = fields.size("num_key_value_heads", default=heads)
    count = min(heads, HEADS)
    size = fields.head_dim()
    # Where the config and the class name no size of a head, it is the width over the number of heads.
    is_named = fields.value("head_dim") is not None or fields.architecture.head_size not in ("head_dim", "hidden_size")
    layers = count_layers(model)
    is_tied = not is_named and not fields.has_latent_attention
    if is_tied and key_heads == heads and layers * count * size > MOST_WIDTH:
        count = 1
    width = count * size if is_tied else WIDTH
    types = resolve_layer_types(fields)
    cut = None if types is None else tuple(types[place] for place in find_places(model, layers))
    return Shape(layers, count, 1 if key_heads < heads else count, width, cut)


def count_layers(model: ModelConfig) -> int:
    """Return how many layers show every kind of layer in the order in which they repeat, at most `MOST_LAYERS`."""
    kinds = list(list_kinds(model))
    for period in range(1, min(len(kinds), MOST_LAYERS) + 1):
        if all(kind == kinds[place % period] for place, kind in enumerate(kinds)):
            return period
    return min(max(len(set(kinds)), 1), MOST_LAYERS)


def find_places(model: ModelConfig, layers: int) -> list[int]:
    """Return which layers of the model the probe has: the first ones, or one of each kind where they do not repeat."""
    kinds = list(list_kinds(model))
    if set(kinds[:layers]) == set(kinds):
        return list(range(layers))
    return sorted(kinds.index(kind) for kind in dict.fromkeys(kinds))[:layers]


def list_kinds(model: ModelConfig) -> Iterator[tuple[str, bool]]:
    """Yield, for each layer, its type and whether it rotates."""
    count = model.fields.size("num_hidden_layers") or 1
    pattern = model.architecture.layers.cache_pattern
    types = resolve_layer_types(model.fields)
    if types is None and pattern is not None:
        types = repeat_pattern(model.fields, pattern, count)
    types = types or [""] * count
    turned = find_rotating_layers(model.fields) or [True] * count
    yield from zip(types[:count], turned[:count], strict=False)
