"""How the RoPE keys of a config become one set of parameters per layer type, architecture by architecture.

The rules follow `convert_rope_params_to_dict` and `standardize_rope_params` of transformers 5.23.0 and what single
configuration classes do in their place, so that a config resolves here to what it resolves to there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from rope_viz.embedding.spec import MAX_HEAD_DIM, require_number, short_repr
from rope_viz.models import TEXTS
from rope_viz.models.architecture import Architecture
from rope_viz.models.config_reader import Fields, Params

Layers: TypeAlias = dict[str, Params]

# Layer types of `layer_types`, and the labels that DeepSeek V4 uses in their place.
LAYER_TYPES = frozenset(
    """
        full_attention sliding_attention chunked_attention window_attention indexed_attention linear_attention
        compressed_sparse_attention heavily_compressed_attention minimax_m3_sparse reference_sliding_attention
        hybrid hybrid_sliding conv moe main compress
    """.split()
)
# Rules of classes that fill each layer type in where rope_parameters is {}.
FILLS_LAYERS = frozenset(("global_and_local", "neomme"))
# Flat parameters have at least one of these keys.
FLAT = frozenset(("rope_type", "type", "factor", "rope_theta"))


def resolve_rope_parameters(fields: Fields) -> Layers:
    """Return the RoPE parameters by layer type, "" where all layers share one, with defaults filled in."""
    refuse_shared(fields)
    reading = fields.architecture.rope
    layers = RULES[reading.rule](fields)
    if "" not in layers and "main" not in layers:
        types = fields.layer_types()
        wanted = set((reading.layer_types or layers) if types is None else types)
        if reading.global_heads:
            wanted.add("full_attention")
        layers = {layer: layers[layer] for layer in sorted(wanted) if layers.get(layer) is not None}
    return fill_late_partial(fields, layers) if reading.late_partial else layers


def fill_late_partial(fields: Fields, layers: Layers) -> Layers:
    """Fill in partial_rotary_factor as classes do that compute it with the first scaled layer, and then for all.

    Layers that come before it and are plain keep the whole head.
    """
    partial = fields.config.get("partial_rotary_factor")
    if partial is None and "main" in layers:
        partial = deepseek_v4_partial(fields)
    seen = False
    for params in layers.values():
        seen = seen or params.get("rope_type", params.get("type", "default")) != "default"
        if seen and partial is not None and params.get("partial_rotary_factor") is None:
            params["partial_rotary_factor"] = partial
    return layers


def fold_keys(fields: Fields) -> Layers:
    """The general rule: rope_scaling before rope_parameters, then the old top-level keys, then the class default."""
    params = rope_mapping(fields)
    for layer in nested_keys(params):
        if fields.is_listed and not fields.architecture.rope.layer_types:
            raise ValueError(TEXTS("rope_parameters.nested", layer=layer, kind=fields.kind))
    partial = fields.config.get("partial_rotary_factor")
    if partial is None or fields.architecture.partial_rotary_fixed:
        partial = fields.default("partial_rotary_factor")
    return fill_defaults(fields, params or default_parameters(fields), fields.theta(), partial)


def is_empty(fields: Fields) -> bool:
    """Return whether rope_parameters is {}: the class then fills in plain RoPE, not its default parameters."""
    return fields.config.get("rope_parameters") == {} and not fields.config.get("rope_scaling")


def rope_mapping(fields: Fields) -> Params:
    """Return a copy of the winning rope dict of the file, {} where it has none."""
    return fields.mapping("rope_scaling") or fields.mapping("rope_parameters") or {}


def default_parameters(fields: Fields) -> Params:
    """Return a copy of the class's default RoPE parameters, {} where it has none or the file has {}."""
    params: Mapping[str, Any] = fields.default("rope_parameters") or {}
    if is_empty(fields) and params and not nested_keys(dict(params)):
        base = fields.architecture.rope.empty_base or params.get("rope_theta") or fields.theta()
        return {"rope_type": "default", "rope_theta": fields.theta(default=base)}
    return {key: dict(part) if isinstance(part, Mapping) else part for key, part in params.items()}


def fill_defaults(fields: Fields, params: Params, theta: float, partial: Any = None) -> Layers:
    """Return nested or flat parameters with base and partial factor filled in where they are missing."""
    nested = nested_keys(params)
    layers: Layers = {}
    for key in nested or [""]:
        part = params[key] if key else params
        if part is None:
            continue
        layers[key] = dict(part)
        if layers[key].get("rope_theta") is None:
            layers[key]["rope_theta"] = theta
        if partial is not None and layers[key].get("partial_rotary_factor") is None:
            layers[key]["partial_rotary_factor"] = partial
    if not nested and fields.architecture.rope.layer_types:
        return {layer: dict(layers[""]) for layer in fields.layer_types() or fields.architecture.rope.layer_types}
    return layers


def nested_keys(params: Params) -> list[str]:
    """Return the layer types that parameters are nested by; empty where they are flat."""
    nested = [key for key, part in params.items() if key in LAYER_TYPES and (part is None or isinstance(part, Mapping))]
    if nested or not FLAT.isdisjoint(params):
        return nested
    return [key for key, part in params.items() if isinstance(part, Mapping)]


def global_and_local(fields: Fields) -> Layers:
    """Gemma 3 and its like: a base per layer type under old names; rope_scaling is for the full layers only."""
    params, scaling = fields.mapping("rope_parameters") or {}, fields.mapping("rope_scaling") or {}
    layers: Layers = {}
    for layer, (key, default) in fields.architecture.rope.bases.items():
        part = params.get(layer) or {"rope_type": "default"}
        if not isinstance(part, Mapping):
            raise ValueError(TEXTS("rope_parameters.layer_object", layer=layer, part=short_repr(part)))
        # Only `rope_type` of an old rope_scaling counts here: its older name `type` loses to the default.
        scaled = scaling if fields.architecture.rope.scales_both or layer == "full_attention" else {}
        layers[layer] = {**part, **scaled}
        layers[layer].setdefault("rope_theta", fields.theta(key, default))
    return layers


def neox(fields: Fields) -> Layers:
    """GPT-NeoX: rotary_emb_base and rotary_pct."""
    params = rope_mapping(fields)
    partial = fields.config.get("rotary_pct")
    partial = fields.architecture.rope.rotary_pct if partial is None else partial
    return fill_defaults(fields, params, fields.theta("rotary_emb_base"), partial)


def as_given(fields: Fields) -> Layers:
    """Classes that take rope_parameters as it is and fold no old keys in."""
    params = fields.mapping("rope_parameters") or default_parameters(fields)
    if nested_keys(params):
        refuse_flat(fields)
    return fill_defaults(fields, params, fields.theta(default=10_000.0))


def refuse_shared(fields: Fields) -> None:
    """Raise `ValueError` where rope dicts say nothing of layer types, and the class looks those up in them.

    Run with each type of transformers 5.23.0: KeyError, or TypeError from the check of the field.
    """
    params, has_scaling = fields.mapping("rope_parameters"), fields.config.get("rope_scaling") is not None
    nested = fields.architecture.rope.nested
    always = nested == "always" or (nested == "with_rope_scaling" and has_scaling)
    missing = nested == "always" and is_empty(fields) and fields.architecture.rope.rule not in FILLS_LAYERS
    if missing or (always and params and not nested_keys(params)):
        raise ValueError(TEXTS("rope_parameters.no_types", kind=fields.kind))
    if fields.architecture.rope.refuses_flat_scaling:
        refuse_flat(fields)


def refuse_flat(fields: Fields) -> None:
    """Raise `ValueError` where rope_scaling says nothing of the layer types that the class looks for in it."""
    scaling = fields.mapping("rope_scaling")
    if scaling and not nested_keys(scaling):
        raise ValueError(TEXTS("rope_parameters.no_scaling_types", kind=fields.kind))


def ultrabert(fields: Fields) -> Layers:
    """UltraBERT: rope_theta is a list, one base per layer, and only used where there are no rope_parameters."""
    bases, types = fields.config.get("rope_theta"), fields.layer_types()
    fields = fields.with_values(rope_theta=None)
    if isinstance(bases, list) and types and not fields.config.get("rope_parameters"):
        return {kind: {"rope_type": "default", "rope_theta": base} for kind, base in zip(types, bases, strict=False)}
    refuse_flat(fields)
    return fold_keys(fields)


def mistral4(fields: Fields) -> Layers:
    """Mistral 4: the head is the whole head, and the share that rotates is qk_rope_head_dim of it."""
    rotated = fields.required("qk_rope_head_dim")
    share = rotated / (rotated + fields.required("qk_nope_head_dim"))
    if not fields.mapping("rope_scaling"):
        params = fields.mapping("rope_parameters") or default_parameters(fields)
        params.setdefault("partial_rotary_factor", share)
        return fill_defaults(fields, params, fields.theta())
    return fill_defaults(
        fields, fields.mapping("rope_scaling") or {}, fields.theta(), fields.config.get("partial_rotary_factor")
    )


def neomme(fields: Fields) -> Layers:
    """NeoMME: bases and shares by layer type; rope_theta at the top is for every type."""
    refuse_flat(fields)
    params = fields.mapping("rope_parameters") or {}
    for layer, base, share in (("full_attention", 1_000_000.0, 0.25), ("sliding_attention", 10_000.0, 1.0)):
        part = params.setdefault(layer, {})
        if isinstance(part, dict):
            part.setdefault("rope_type", "default")
            part.setdefault("rope_theta", fields.theta(default=base))
            part.setdefault("partial_rotary_factor", share)
    return fill_defaults(fields, params, 10_000.0)


def step3p5(fields: Fields) -> Layers:
    """Step 3.5: lists of bases and shares, one per layer; rope_scaling is for the full layers only."""
    params = fields.mapping("rope_parameters") or {}
    types = fields.layer_types() or ["full_attention"]
    if all(isinstance(params.get(kind), dict) for kind in types):
        share = fields.config.get("partial_rotary_factor")
        return fill_defaults(fields, {kind: params[kind] for kind in types}, 10_000.0, share)
    layers: Layers = {}
    for index, kind in enumerate(types):
        if kind not in layers:
            layers[kind] = {"rope_type": "default", "rope_theta": read_nth(fields, "rope_theta", index, 10_000.0)}
            if fields.config.get("partial_rotary_factors"):
                layers[kind]["partial_rotary_factor"] = read_nth(fields, "partial_rotary_factors", index, None)
    if "full_attention" in layers:
        layers["full_attention"].update(fields.mapping("rope_scaling") or {})
    return layers


def read_nth(fields: Fields, key: str, index: int, default: Any) -> Any:
    """Return an entry of a list with one value per layer, or the value itself where it is one for all."""
    value = fields.config.get(key)
    if isinstance(value, list):
        if index >= len(value):
            raise ValueError(TEXTS("rope_parameters.per_layer", key=key, count=len(value)))
        return value[index]
    return default if value is None else value


def dots3(fields: Fields) -> Layers:
    """dots.3: MLA heads of two sizes; the share that rotates is qk_rope_head_dim of each."""
    config = fields.config
    refuse_flat(fields)
    usual = "full_attention" if config.get("use_dsa") is False else "indexed_attention"
    types = sorted(
        {
            usual if kind.endswith(("full_attention", "indexed_attention")) else kind
            for kind in fields.layer_types() or [usual, "sliding_attention"]
        }
    )
    params = rope_mapping(fields)
    bases = {kind: fields.theta() for kind in types}
    bases["sliding_attention"] = fields.theta("swa_rope_theta", 50_000.0)
    layers: Layers = {}
    for kind in types:
        part = params.get(kind) if nested_keys(params) else params
        if part is not None and not isinstance(part, Mapping):
            raise ValueError(TEXTS("rope_parameters.layer_object", layer=kind, part=short_repr(part)))
        sizes = fields.layer(kind)
        base = fields.theta() if params or is_empty(fields) else bases[kind]
        share = sizes.required("qk_rope_head_dim") / sizes.head_dim()
        layers[kind] = {"rope_theta": base, **(part or {}), "partial_rotary_factor": share}
    return layers


def latent_and_linear(fields: Fields) -> Layers:
    """Ling 2.6: latent attention rotates all of qk_rope_head_dim, linear attention a share of head_dim."""
    layers = fold_keys(fields)
    if "full_attention" in layers:
        layers["full_attention"] = {**layers["full_attention"], "partial_rotary_factor": 1.0}
    if not fields.flag("linear_rope", default=True):
        layers.pop("linear_attention", None)
    return layers


def plain_rope(base: float, share: float | None = None) -> Layers:
    """Return unscaled parameters that all layers share."""
    params: Params = {"rope_type": "default", "rope_theta": base}
    return {"": params if share is None else {**params, "partial_rotary_factor": share}}


def fixed_base(fields: Fields) -> Layers:
    """GPT-J and RoFormer: the base is written in the code, and rotary_dim is a number of dimensions."""
    rotary = fields.size("rotary_dim")
    return plain_rope(10_000.0, rotary / fields.head_dim() if rotary else 1.0)


def telechat(fields: Fields) -> Layers:
    """TeleChat: the base in the code, grown once for the length that the model was trained with."""
    return plain_rope(10_000.0 * telechat_growth(fields, 1) ** (fields.head_dim() / (fields.head_dim() - 2)))


def telechat_growth(fields: Fields, length: int) -> int:
    """Return the growth of the base at a length, before the power d/(d-2): 2^ceil(log2(length / 8192) + 1) - 1."""
    longest = max(length, fields.size("training_seqlen") or fields.required("max_position_embeddings"))
    return max(int(2.0 ** math.ceil(math.log2(longest / 8192) + 1)) - 1, 1)


def qwen1(fields: Fields) -> Layers:
    """Qwen 1: rotary_emb_base and rotary_pct. What `use_dynamic_ntk` does begins beyond seq_length."""
    share = fields.config.get("rotary_pct")
    return plain_rope(fields.theta("rotary_emb_base"), 1.0 if share is None else share)


def base_under(fields: Fields) -> Layers:
    """Types that keep their base under another name, or under a key of an object."""
    base = get_dotted(fields.config, fields.architecture.rope.base_key)
    base = fields.config.get("rope_theta") if base is None else base
    return fold_keys(fields.with_values(general_rules=True, rope_theta=base))


def get_dotted(config: Mapping[str, Any], name: str) -> Any:
    """Return the value under a key, or, with a dot in the name, under a key of an object."""
    outer, _, inner = name.partition(".")
    part = config.get(outer)
    return part if not inner else part.get(inner) if isinstance(part, Mapping) else None


def deepseek_yarn(fields: Fields) -> Layers:
    """Sarvam's MLA model: the class takes the old name deepseek_yarn in rope_scaling as yarn."""
    scaling = fields.mapping("rope_scaling") or {}
    if "deepseek_yarn" not in (scaling.get("type"), scaling.get("rope_type")):
        return fold_keys(fields)
    renamed = {key: value for key, value in scaling.items() if key != "type"} | {"rope_type": "yarn"}
    return fold_keys(fields.with_values(rope_scaling=renamed))


def chatglm(fields: Fields) -> Layers:
    """ChatGLM: half of the head rotates, and the base is 10000 times rope_ratio."""
    ratio = fields.config.get("rope_ratio", 1.0)
    require_number(ratio, "rope_ratio", above=0.0, most=1e20)
    return plain_rope(10_000.0 * ratio, 0.5)


def deepseek_v4(fields: Fields) -> Layers:
    """DeepSeek V4: plain RoPE on the main layers, another base and perhaps YaRN on the compressed ones."""
    theta = fields.theta("rope_theta", 10_000.0)
    params = rope_mapping(fields)
    whole = fill_defaults(
        Fields(fields.config, Architecture("", listed=False)), params, theta, fields.config.get("partial_rotary_factor")
    )
    if {"main", "compress"} <= whole.keys():
        return {"main": whole["main"], "compress": whole["compress"]}
    partial = deepseek_v4_partial(fields)
    compress = {**whole.get("", {}), "rope_theta": fields.theta("compress_rope_theta", 160_000.0)}
    compress["partial_rotary_factor"] = partial
    if compress.get("rope_type", compress.get("type")) == "yarn":
        compress.setdefault("attention_factor", 1.0)
    return {"main": {"rope_theta": theta, "partial_rotary_factor": partial}, "compress": compress}


def deepseek_v4_partial(fields: Fields) -> Any:
    """Return partial_rotary_factor, else qk_rope_head_dim over head_dim, else the class default 64/512."""
    partial, rotated = fields.config.get("partial_rotary_factor"), fields.config.get("qk_rope_head_dim")
    if partial is not None or rotated is None:
        return 0.125 if partial is None else partial
    require_number(rotated, "qk_rope_head_dim", least=2, most=MAX_HEAD_DIM)
    return rotated / fields.head_dim()


def partial_from_rotary_dim(fields: Fields) -> Layers:
    """MiniMax: rotary_dim is a number of dimensions."""
    rotary = fields.size("rotary_dim")
    if rotary is None or fields.config.get("partial_rotary_factor") is not None:
        return fold_keys(fields)
    return fold_keys(fields.with_values(general_rules=True, partial_rotary_factor=rotary / fields.head_dim()))


RULES: dict[str, Callable[[Fields], Layers]] = {
    "": fold_keys,
    "as_given": as_given,
    "base_under": base_under,
    "chatglm": chatglm,
    "deepseek_v4": deepseek_v4,
    "deepseek_yarn": deepseek_yarn,
    "dots3": dots3,
    "fixed_base": fixed_base,
    "global_and_local": global_and_local,
    "latent_and_linear": latent_and_linear,
    "mistral4": mistral4,
    "neomme": neomme,
    "neox": neox,
    "qwen1": qwen1,
    "share_from_rotary_dim": partial_from_rotary_dim,
    "step3p5": step3p5,
    "telechat": telechat,
    "theta_only": lambda fields: plain_rope(fields.theta()),
    "ultrabert": ultrabert,
    "without_rope_scaling": lambda fields: fold_keys(fields.with_values(rope_scaling=None)),
    "written_base": lambda _: plain_rope(10_000.0),
}
"""By the name that a record gives as `rope.rule`."""
