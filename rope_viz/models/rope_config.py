"""A model's config.json to its rotary embeddings, and back.

Both generations of keys are read as transformers 5.24.0 reads them: `rope_scaling`, `rope_theta` and their relatives at
the top, and `rope_parameters`, flat or nested by layer type. See `architectures` for what each architecture fills in.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rope_viz.embedding.scaling import DynamicNtk, Linear, Llama3, LongRope, NtkAware, Proportional, Yarn
from rope_viz.embedding.spec import MAX_HEAD_DIM, MAX_LENGTH, Pairing, RopeSpec, Scaling, require_number, short_repr
from rope_viz.models import TEXTS
from rope_viz.models.config_reader import Fields, Params
from rope_viz.models.rope_parameters import Layers
from rope_viz.texts.texts import join_items

# Names that older files use for today's types.
RENAMED_TYPES = {"su": "longrope", "mrope": "default", "xdrope": "dynamic", "none": "default"}
ROPE_TYPES = ("default", "linear", "dynamic", "yarn", "longrope", "llama3", "proportional")
# A type that the code of the GTE models and vLLM read, and transformers does not.
FIXED_NTK = "ntk"
# YaRN whose attention factor is 0.07 ln s + 1: vLLM 0.33.0, transformers_utils/config.py, and TeleChat3's own code.
TELECHAT3_YARN, TELECHAT3_WEIGHT = "telechat3-yarn", 0.07
ORIGINAL = "original_max_position_embeddings"
# Types that transformers computes from the length before extension.
PRETRAINED_TYPES = ("llama3", "yarn", "longrope")


def build_specs(fields: Fields, layers: Layers) -> dict[str, RopeSpec]:
    """Return the embedding of each layer type. Raises `ValueError` where no layer rotates or a number is wrong."""
    if not layers:
        raise ValueError(TEXTS("rope_config.no_layer"))
    return {layer: build_spec(fields, layer, params) for layer, params in layers.items()}


def find_main_layer(layers: Mapping[str, Any]) -> str:
    """Return the layer type that a config is about: the one that sees the whole context, else the first.

    DeepSeek V4's main layers see a window; its compressed layers see everything.
    """
    return next((name for name in ("", "full_attention", "compress", "main") if name in layers), next(iter(layers)))


def to_config(spec: RopeSpec) -> dict[str, Any]:
    """Return a config.json fragment in today's form that `from_config` and transformers read as this embedding.

    Raises `ValueError` where transformers has no such method.
    """
    params: Params = {"rope_type": spec.scaling.rope_type, "rope_theta": spec.base}
    if not spec.scaling.rope_type:
        raise ValueError(TEXTS("rope_config.no_method", name=spec.scaling.name))
    length = spec.target
    if spec.rotary_dim != spec.head_dim:
        if spec.scaling.rotates_whole_head:
            raise ValueError(TEXTS("rope_config.proportional"))
        params["partial_rotary_factor"] = partial_factor_for(spec.rotary_dim, spec.head_dim)
    params |= spec.scaling.config_keys(spec)
    if params["rope_type"] == "dynamic":
        length = spec.context
        if spec.target != length:
            params["max_position_embeddings"] = spec.target
    elif spec.context != length or params["rope_type"] in PRETRAINED_TYPES:
        params["original_max_position_embeddings"] = spec.context
    interleaved = {"rope_interleave": True} if spec.pairing == "interleaved" else {}
    return {"head_dim": spec.head_dim, "max_position_embeddings": length, "rope_parameters": params, **interleaved}


def partial_factor_for(rotary_dim: int, head_dim: int) -> float:
    """Return a partial_rotary_factor that gives this many dimensions although readers round down."""
    share = rotary_dim / head_dim
    return share if int(head_dim * share) == rotary_dim else math.nextafter(share, 1.0)


def build_spec(fields: Fields, layer: str, params: Params) -> RopeSpec:
    """Return the embedding of one layer type from its RoPE parameters, defaults filled in."""
    sizes = fields.layer(layer) if layer else fields
    head_dim = sizes.head_dim()
    length = sizes.required("max_position_embeddings")
    kind = read_rope_type(fields, params)
    base = read_number(params, "rope_theta")
    require_number(base, "rope_theta", above=1.0, most=1e30)
    rotary_dim = rotary_dim_of(fields, params, kind, head_dim)
    if head_dim % 2 and rotary_dim == head_dim and fields.architecture.pads_odd_head:
        # The class default has an odd quotient; transformers rotates it with one more dimension than there is.
        head_dim += 1
    context = length if kind == "dynamic" else find_original_length(fields, layer, params, kind, length)
    target = length
    if kind == "dynamic" and params.get("max_position_embeddings") is not None:
        target = read_length(params, "max_position_embeddings")
    return RopeSpec(
        head_dim=head_dim,
        rotary_dim=rotary_dim,
        base=base,
        context=context,
        target=target,
        scaling=build_scaling(fields, layer, params, kind, length / context, rotary_dim),
        pairing=pairing_of(sizes),
    )


def read_rope_type(fields: Fields, params: Params) -> str:
    """Return the type of scaling under today's name."""
    kind = params.get("rope_type", params.get("type", "default"))
    kind = "default" if kind is None else kind
    if not isinstance(kind, str):
        raise ValueError(TEXTS("rope_config.type_name", kind=short_repr(kind)))
    kind = normalise_rope_type(RENAMED_TYPES.get(kind, kind))
    if kind == TELECHAT3_YARN:
        return "yarn"
    if kind == "yarn" and fields.architecture.runtime("transformers").get("su_is_longrope"):
        return "longrope"
    if kind not in (*ROPE_TYPES, FIXED_NTK):
        raise ValueError(TEXTS("rope_config.types", types=join_items(ROPE_TYPES), kind=short_repr(kind)))
    return kind


def normalise_rope_type(kind: str) -> str:
    """Return a type spelled with capitals or punctuation, "YaRN" or "Llama-3", as it is meant; others unchanged.

    No runtime takes it so: transformers 5.23.0 looks it up as it is and raises KeyError.
    """
    letters = "".join(letter for letter in kind.lower() if letter.isalnum())
    return kind if kind in ROPE_TYPES else next((name for name in ROPE_TYPES if name == letters), kind)


def rotary_dim_of(fields: Fields, params: Params, kind: str, head_dim: int) -> int:
    """Return how many dimensions of the head rotate."""
    share = params.get("partial_rotary_factor")
    share = (fields.architecture.rope.plain_partial_default if kind == "default" else 1.0) if share is None else share
    require_number(share, "partial_rotary_factor", least=0.0, most=1.0)
    # Plain RoPE is computed by the architecture's own code, and most of it does not know partial_rotary_factor.
    if kind == "proportional" or (kind == "default" and not fields.architecture.partial_rotary):
        return head_dim
    dim = int(head_dim * share)
    if dim < 2:
        raise ValueError(TEXTS("rope_config.share", head_dim=head_dim, share=share))
    return dim


def find_original_length(fields: Fields, layer: str, params: Params, kind: str, length: int) -> int:
    """Return original_max_position_embeddings: the top-level key wins over flat parameters; default `length`."""
    name = "original_max_position_embeddings"
    outer = fields.size(name)
    if kind in PRETRAINED_TYPES and not layer and outer is not None:
        return outer
    return length if params.get(name) is None else read_length(params, name)


def pairing_of(fields: Fields) -> Pairing:
    """Return which dimensions form a pair in the code of this architecture."""
    asked = fields.config.get("rope_interleave")
    if asked is None or not fields.architecture.reads_rope_interleave:
        return fields.architecture.pairing
    if not isinstance(asked, bool):
        raise ValueError(TEXTS("rope_config.interleave", got=short_repr(asked)))
    return "interleaved" if asked else "half"


def build_scaling(fields: Fields, layer: str, params: Params, kind: str, ratio: float, rotary_dim: int) -> Scaling:
    """Return the scaling method with the knobs of the parameters."""
    if kind == "default":
        return Scaling()
    if kind == "dynamic" and fields.architecture.rope.alpha_is_ntk and params.get("alpha"):
        return NtkAware(factor=read_number(params, "alpha"))
    if kind == FIXED_NTK:
        divisors = fixed_ntk_divisors(params, rotary_dim)
        return LongRope(short_factor=divisors, long_factor=divisors, attention=1.0)
    if kind == "proportional":
        share = params.get("partial_rotary_factor")
        return Proportional(share=1.0 if share is None else float(share), factor=read_number(params, "factor", 1.0))
    if kind == "longrope":
        attention = read_optional(params, "attention_factor")
        if fields.architecture.rope.short_mscale_is_attention and params.get("short_mscale") is not None:
            attention = read_number(params, "short_mscale")
        return LongRope(
            short_factor=read_factors(params, "short_factor"),
            long_factor=read_factors(params, "long_factor"),
            factor=read_optional(params, "factor"),
            attention=attention,
        )
    if kind == "yarn":
        is_telechat3 = params.get("rope_type", params.get("type")) == TELECHAT3_YARN
        return Yarn(
            factor=read_number(params, "factor", ratio),
            beta_fast=read_number(params, "beta_fast", 32.0) or 32.0,
            beta_slow=read_number(params, "beta_slow", 1.0) or 1.0,
            truncate=read_truncate(params, layer),
            attention=read_optional(params, "attention_factor"),
            mscale=read_optional(params, "mscale"),
            mscale_all_dim=read_optional(params, "mscale_all_dim"),
            attention_weight=TELECHAT3_WEIGHT if is_telechat3 else None,
        )
    factor = read_number(params, "factor")
    if kind == "llama3":
        return Llama3(
            factor=factor,
            low_freq_factor=read_number(params, "low_freq_factor"),
            high_freq_factor=read_number(params, "high_freq_factor"),
        )
    return Linear(factor=factor) if kind == "linear" else DynamicNtk(factor=factor)


def fixed_ntk_divisors(params: Params, rotary_dim: int) -> tuple[float, ...]:
    """Return what type "ntk" of the GTE models divides each of the pairs by: factor^(2(i+1)/d), or mixed NTK.

    Source: NTKScalingRotaryEmbedding in vLLM 0.33.0, rotary_embedding/ntk_scaling_rope.py, executed for the test.
    """
    factor, pairs = read_number(params, "factor"), rotary_dim // 2
    power = read_optional(params, "mixed_b")
    power = 1.0 if power is None else power
    return tuple(factor ** ((pair / pairs) ** power) for pair in range(1, pairs + 1))


def read_truncate(params: Params, layer: str) -> bool:
    """Return whether YaRN rounds its correction range."""
    value = params.get("truncate", True)
    if value is not None and not isinstance(value, (bool, int)):
        raise ValueError(TEXTS("rope_config.truncate", got=short_repr(value)))
    # transformers 5.23.0 looks for it in the outer dictionary, so that nested parameters always round.
    return True if layer else bool(value)


def read_optional(params: Params, key: str) -> float | None:
    """Return a number, or None where the key is absent."""
    return None if params.get(key) is None else read_number(params, key)


def read_number(params: Params, key: str, default: float | None = None) -> float:
    """Return a finite number, or the default where the key is absent."""
    value = params.get(key, default)
    value = default if value is None else value
    if value is None:
        raise ValueError(TEXTS("rope_config.missing", key=key))
    # Far beyond any use, but within what can be computed for every length.
    positive = key in ("factor", "alpha", "low_freq_factor", "high_freq_factor")
    require_number(value, key, least=1e-9 if positive else -1e9, most=1e9 if key != "rope_theta" else None)
    return float(value)


def read_length(params: Params, key: str) -> int:
    """Return a length in tokens."""
    require_number(params[key], key, least=1, most=MAX_LENGTH, integer=True)
    return int(params[key])


def read_factors(params: Params, key: str) -> tuple[float, ...]:
    """Return a list of LongRoPE divisors."""
    values = params.get(key)
    if not isinstance(values, (list, tuple)) or not values:
        raise ValueError(TEXTS("value.list", name=key, got=short_repr(values)))
    if len(values) > MAX_HEAD_DIM:
        raise ValueError(TEXTS("rope_config.per_pair", key=key, count=len(values)))
    label = TEXTS("value.entries", name=key)
    for value in values:
        require_number(value, label, least=1e-9, most=1e9)
    return tuple(float(value) for value in values)
