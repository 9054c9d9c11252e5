"""What each architecture reads from its config.json: class defaults, key names, and how the RoPE keys are folded.

`architectures.json` holds the facts; tests/goldens/make_architectures.py asked the classes of transformers 5.23.0.
The rules here follow `convert_rope_params_to_dict` and `standardize_rope_params` of that version and the overrides of
single architectures, so that a config resolves here to what it resolves to there.
"""

from __future__ import annotations

import functools
import importlib.resources
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from rope_viz.spec import MAX_HEAD_DIM, MAX_LENGTH, require_number, shorten

Params: TypeAlias = dict[str, Any]
Layers: TypeAlias = dict[str, Params]

# Where composite configurations of unknown type keep their language model, most telling first.
TEXT_KEYS = ("text_config", "llm_config", "language_config", "language_model_config", "thinker_config", "decoder")
# Layer types of `layer_types`, and the labels that DeepSeek V4 uses in their place.
LAYER_TYPES = frozenset(
    (
        *("full_attention", "sliding_attention", "chunked_attention", "window_attention", "indexed_attention"),
        *("linear_attention", "compressed_sparse_attention", "heavily_compressed_attention", "minimax_m3_sparse"),
        *("reference_sliding_attention", "hybrid", "hybrid_sliding", "conv", "moe", "main", "compress"),
    )
)
RENAMED_LAYERS = {
    "mamba": "linear_attention",
    "attention": "full_attention",
    "deepseek_sparse_attention": "indexed_attention",
    "qwen_sparse_attention": "indexed_attention",
}


@functools.cache
def table() -> dict[str, dict[str, Any]]:
    """{model type: facts} of every architecture of transformers 5.23.0 that has text RoPE."""
    text = importlib.resources.files("rope_viz").joinpath("architectures.json").read_text(encoding="utf-8")
    loaded: dict[str, dict[str, Any]] = json.loads(text)
    return {**loaded, **REMOTE_CODE}


# Architectures whose code is not in transformers but travels with the model.
REMOTE_CODE: dict[str, dict[str, Any]] = {
    "chatglm": {
        "aliases": {"kv_channels": "head_dim", "seq_length": "max_position_embeddings"},
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "head_dim": 128,
        "max_position_embeddings": 2048,
        "pairing": "interleaved",
        "partial": True,
    },
    "internlm2": {"hidden_size": 4096, "num_attention_heads": 32, "max_position_embeddings": 2048},
}


class Fields:
    """A config with the defaults of its class behind it. Every reader raises `ValueError` naming the key."""

    def __init__(self, config: Mapping[str, Any], facts: Mapping[str, Any], kind: str) -> None:
        self.config, self.facts, self.kind = config, facts, kind

    def raw(self, key: str) -> Any:
        """The value in the config under this name or its other one, None where absent."""
        names = [key, *(other for other, usual in self.facts.get("aliases", {}).items() if usual == key)]
        return next((self.config[name] for name in names if self.config.get(name) is not None), None)

    def number(self, key: str, **bounds: Any) -> float | None:
        """The number under this key, or the class default, or None."""
        value = self.raw(key)
        if value is None:
            value = self.facts.get(key)
        if value is not None:
            require_number(value, key, **bounds)
        return None if value is None else float(value)

    def size(self, key: str) -> int | None:
        """A whole number of at least 1 under this key, or the class default, or None."""
        value = self.number(key, least=1, most=MAX_LENGTH, integer=True)
        return None if value is None else int(value)

    def required(self, key: str) -> int:
        """As `size`, but it must be there."""
        value = self.size(key)
        if value is None:
            raise ValueError(f"{key} is missing: expected a whole number")
        return value

    def mapping(self, key: str) -> Params | None:
        """A copy of the object under this key, None where absent or empty."""
        value = self.config.get(key)
        if value is not None and not isinstance(value, Mapping):
            raise ValueError(f"{key} must be an object, got {shorten(value)}")
        return (
            {name: dict(part) if isinstance(part, Mapping) else part for name, part in value.items()} if value else None
        )

    def theta(self, key: str = "rope_theta", default: float | None = None) -> float:
        """The base under this key, or the class default."""
        value = self.config.get(key)
        if value is None:
            value = self.facts.get("default_theta", 10_000.0) if default is None else default
        require_number(value, key)
        return float(value)

    def head_dim(self) -> int:
        """The size of the part of a head that carries RoPE, as the class derives it."""
        rule = self.facts.get("head", "head_dim")
        if rule == "head_dim":
            found = None if "head_dim" in self.config and self.config["head_dim"] is None else self.size("head_dim")
        elif "hidden_size" in rule:
            found = None
        else:
            found = sum(self.required(key) for key in rule.split("+"))
        if found is None:
            doubled = 2 if rule == "2*hidden_size" else 1
            found = doubled * self.required("hidden_size") // self.required("num_attention_heads")
        require_number(found, "head_dim", least=2, most=MAX_HEAD_DIM)
        return found

    def layer_types(self) -> list[str] | None:
        """The layer types the config names, under their present names and in order, None where it names none."""
        value = self.config.get("layer_types")
        if value is None:
            return None
        if not isinstance(value, (list, tuple)) or not all(isinstance(name, str) for name in value):
            raise ValueError(f"layer_types must be a list of names, got {shorten(value)}")
        return [RENAMED_LAYERS.get(str(name), str(name)) for name in value]

    def layer(self, layer: str) -> Fields:
        """The same with what `per_layer_config` overrides for the layers of this type."""
        overrides = self.mapping("per_layer_config") or {}
        types = self.layer_types()
        if self.kind in GLOBAL_HEADS and "per_layer_config" not in self.config:
            changed = {"head_dim": self.config.get("global_head_dim", 512)} if layer == "full_attention" else {}
        else:
            by_index = {int(key): value for key, value in overrides.items() if key.isdigit() and len(key) < 6}
            named = by_index if types is None else {i: v for i, v in by_index.items() if types[i : i + 1] == [layer]}
            changed = next((dict(value) for value in named.values() if isinstance(value, Mapping)), {})
            if types is None and layer != "full_attention":
                changed = {}
        return Fields({**self.config, **changed}, self.facts, self.kind)


def text_fields(config: Mapping[str, Any]) -> Fields:
    """The fields of the language model inside a config, which may be the whole config."""
    fills: Mapping[str, Any] = {}
    kind = name_of(config)
    for _ in range(4):
        facts = table().get(kind, {})
        if "text" not in facts:
            break
        part: Any = config
        for key in facts["text"]:
            part = part.get(key) if part else None
            if part is not None and not isinstance(part, Mapping):
                raise ValueError(f"{key} must be an object, got {shorten(part)}")
        if part is None and any(
            key in config for key in ("hidden_size", "rope_theta", "rope_scaling", "rope_parameters")
        ):
            # Early checkpoints of Qwen2-VL and its like keep the text keys at the top.
            part = {key: value for key, value in config.items() if key != "model_type"}
        inner = facts["type"] if facts.get("fixed") or not part else name_of(part) or facts["type"]
        fills = facts.get("fills", {}) if not part and inner == facts["type"] else {}
        config, kind = {**fills, **(part or {})}, inner
    if kind not in table():
        for _ in range(4):
            inside = next((config[key] for key in TEXT_KEYS if isinstance(config.get(key), Mapping)), None)
            if inside is None or "hidden_size" in config:
                break
            config, kind = inside, name_of(inside) or kind
            if kind in table():
                return text_fields({**config, "model_type": kind})
    facts = table().get(kind, UNKNOWN)
    if facts.get("not_text"):
        raise ValueError(f"model_type must be a language model's: {kind} has positions in more than one dimension")
    return Fields(config, facts, kind)


# An architecture that is not in the table: partial rotary is believed where the config names it.
UNKNOWN: dict[str, Any] = {"partial": True, "rope_interleave": True}


def name_of(config: Mapping[str, Any]) -> str:
    """The model type, empty where there is none."""
    value = config.get("model_type")
    if value is not None and not isinstance(value, str):
        raise ValueError(f"model_type must be a name, got {shorten(value)}")
    return value or ""


def rope_layers(fields: Fields) -> Layers:
    """The RoPE parameters by layer type, by "" where all layers share one; defaults are filled in."""
    rule = RULES.get(fields.kind, folded)
    layers = rule(fields)
    types = fields.layer_types()
    wanted: Iterable[str] = layers
    if "" not in layers and fields.kind != "deepseek_v4":
        wanted = set(types) if types is not None else fields.facts.get("layer_types", layers)
        if fields.kind in GLOBAL_HEADS:
            wanted = {*wanted, "full_attention"}
    return {layer: layers[layer] for layer in sorted(wanted) if layers.get(layer) is not None}


def folded(fields: Fields) -> Layers:
    """The general rule: rope_scaling before rope_parameters, then the old top-level keys, then the class default."""
    params = fields.mapping("rope_scaling") or fields.mapping("rope_parameters")
    params = params or {**fields.facts.get("rope_parameters", {})}
    partial = fields.facts.get("partial_rotary_factor")
    if fields.config.get("partial_rotary_factor") is not None and not fields.facts.get("partial_fixed"):
        partial = fields.config["partial_rotary_factor"]
    return filled(fields, params, fields.theta(), partial)


def filled(fields: Fields, params: Params, theta: float, partial: Any = None) -> Layers:
    """Nested or flat parameters with base and partial factor filled in where they are missing."""
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
    if not nested and fields.facts.get("layer_types"):
        return {layer: dict(layers[""]) for layer in fields.layer_types() or fields.facts["layer_types"]}
    return layers


def nested_keys(params: Params) -> list[str]:
    """The layer types that parameters are nested by, empty where they are flat."""
    return [key for key, part in params.items() if isinstance(part, Mapping) or (part is None and key in LAYER_TYPES)]


def global_and_local(
    theta: tuple[str, float], local: tuple[str, float | None], *, scale_both: bool = False
) -> Callable[[Fields], Layers]:
    """Gemma 3 and its like: a base per layer type under old names; rope_scaling is for the full layers only."""

    def rule(fields: Fields) -> Layers:
        params = fields.mapping("rope_parameters") or {}
        scaling = fields.mapping("rope_scaling") or {}
        layers: Layers = {}
        for layer, (key, default) in (("full_attention", theta), ("sliding_attention", local)):
            part = params.get(layer) or {}
            if not isinstance(part, Mapping):
                raise ValueError(f"rope_parameters.{layer} must be an object, got {shorten(part)}")
            scaled = scaling if scale_both or layer == "full_attention" else {}
            layers[layer] = {"rope_type": "default", **part, **scaled}
            if "type" in layers[layer] and "rope_type" not in {**part, **scaled}:
                layers[layer]["rope_type"] = layers[layer]["type"]
            layers[layer].setdefault("rope_theta", fields.theta(key, default))
        return layers

    return rule


def neox(share: float) -> Callable[[Fields], Layers]:
    """GPT-NeoX: rotary_emb_base and rotary_pct."""

    def rule(fields: Fields) -> Layers:
        params = fields.mapping("rope_scaling") or fields.mapping("rope_parameters") or {}
        partial = fields.config.get("rotary_pct")
        return filled(fields, params, fields.theta("rotary_emb_base"), share if partial is None else partial)

    return rule


def as_given(fields: Fields) -> Layers:
    """Classes that take rope_parameters as it is and know no old keys."""
    params = fields.mapping("rope_parameters") or {**fields.facts.get("rope_parameters", {})}
    return filled(fields, params, 10_000.0)


def fixed_base(fields: Fields) -> Layers:
    """GPT-J and RoFormer: the base is written in the code, and rotary_dim is a number of dimensions."""
    rotary = fields.size("rotary_dim")
    share = rotary / fields.head_dim() if rotary else 1.0
    return {"": {"rope_type": "default", "rope_theta": 10_000.0, "partial_rotary_factor": share}}


def plain_theta(fields: Fields) -> Layers:
    """ESM: rope_theta and nothing else."""
    return {"": {"rope_type": "default", "rope_theta": fields.theta()}}


def chatglm(fields: Fields) -> Layers:
    """ChatGLM: half of the head rotates, and the base is 10000 times rope_ratio."""
    ratio = fields.config.get("rope_ratio", 1.0)
    require_number(ratio, "rope_ratio", above=0.0, most=1e20)
    return {"": {"rope_type": "default", "rope_theta": 10_000.0 * ratio, "partial_rotary_factor": 0.5}}


def deepseek_v4(fields: Fields) -> Layers:
    """DeepSeek V4: plain RoPE on the main layers, another base and perhaps YaRN on the compressed ones."""
    partial = fields.config.get("partial_rotary_factor")
    whole = folded(Fields({**fields.config, "rope_theta": fields.theta("rope_theta", 10_000.0)}, {}, ""))
    if {"main", "compress"} <= whole.keys():
        return {"main": whole["main"], "compress": whole["compress"]}
    rotated = fields.config.get("qk_rope_head_dim")
    if partial is None:
        if rotated is not None:
            require_number(rotated, "qk_rope_head_dim", least=2, most=MAX_HEAD_DIM)
        partial = 0.125 if rotated is None else rotated / fields.head_dim()
    main = {
        "rope_type": "default",
        "rope_theta": fields.theta("rope_theta", 10_000.0),
        "partial_rotary_factor": partial,
    }
    compress = {**whole.get("", {}), "rope_theta": fields.theta("compress_rope_theta", 160_000.0)}
    compress["partial_rotary_factor"] = partial
    if compress.get("rope_type", compress.get("type")) == "yarn":
        compress.setdefault("attention_factor", 1.0)
    return {"main": main, "compress": compress}


def partial_from_rotary_dim(fields: Fields) -> Layers:
    """MiniMax: rotary_dim is a number of dimensions."""
    rotary = fields.size("rotary_dim")
    if rotary is None or fields.config.get("partial_rotary_factor") is not None:
        return folded(fields)
    return folded(Fields({**fields.config, "partial_rotary_factor": rotary / fields.head_dim()}, fields.facts, ""))


gemma3 = global_and_local(("rope_theta", 1_000_000.0), ("rope_local_base_freq", 10_000.0))
modernbert = global_and_local(("global_rope_theta", 160_000.0), ("local_rope_theta", 10_000.0), scale_both=True)
olmo3 = global_and_local(("rope_theta", 500_000.0), ("", 500_000.0))
# Their full-attention layers have larger heads, under `global_head_dim`.
GLOBAL_HEADS = ("gemma4_text", "gemma4_unified_text", "diffusion_gemma_text", "embedding_gemma2_text")

RULES: dict[str, Callable[[Fields], Layers]] = {
    **dict.fromkeys(("gemma3_text", "gemma3n_text", "t5gemma2_text", "t5gemma2_decoder"), gemma3),
    **dict.fromkeys(("modernbert", "modernbert-decoder"), modernbert),
    **dict.fromkeys(
        (*GLOBAL_HEADS, "laguna", "mellum", "zaya", "beam", "mimo_v2_flash", "cohere_compass_text"), as_given
    ),
    **dict.fromkeys(("gptj", "codegen", "roformer"), fixed_base),
    **dict.fromkeys(("minimax_m2",), partial_from_rotary_dim),
    "olmo3": olmo3,
    "gpt_neox": neox(0.25),
    "gpt_neox_japanese": neox(1.0),
    "esm": plain_theta,
    "chatglm": chatglm,
    "deepseek_v4": deepseek_v4,
}
