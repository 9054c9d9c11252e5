"""Write into the records of model types what each configuration class of transformers 5.24.0 fills in for RoPE.

Run: `pip install transformers==5.24.0 torch==2.13.0` into an environment of its own, then
`python tests/goldens/make_architectures.py`. Nothing is downloaded: only configurations and rotary modules are made.

The facts are found by asking the classes, not by reading them: each is built with one probe value at a time, and what
comes out says which keys it honours. `transformers_classes.py` holds what this script and the goldens share.
"""

from __future__ import annotations

import json
from typing import Any

from huggingface_hub.errors import StrictDataclassFieldValidationError
from records import read_records, write_record
from transformers import CONFIG_MAPPING, PreTrainedConfig
from transformers_classes import attribute, build, interleaves, rotary_frequencies, text_types

SIZES = (
    "hidden_size",
    "num_attention_heads",
    "head_dim",
    "max_position_embeddings",
    "original_max_position_embeddings",
    "qk_rope_head_dim",
    "qk_nope_head_dim",
    "rotary_dim",
)
# Blt is a stack of four models with RoPE: the one over patches is the language model. The default text configuration
# of Cohere Compass has no rope_parameters at all, so nothing can be asked of it.
BY_HAND: dict[str, dict[str, Any]] = {
    "cohere_compass": {"text": ["text_config"], "type": "cohere_compass_text", "fixed": True},
    "cohere_compass_text": {
        "hidden_size": 8192,
        "num_attention_heads": 64,
        "max_position_embeddings": 8192,
        "head": "hidden_size",
        "layer_types": ["full_attention"],
    },
    "blt": {"text": ["global_config"], "type": "blt_global_transformer", "fixed": True},
}
# What a composite configuration may hold for its text part, with a value to ask for each.
PROBES: dict[str, Any] = {
    "hidden_size": 1280,
    "num_attention_heads": 10,
    "head_dim": 112,
    "max_position_embeddings": 5120,
    "rope_theta": 12345.0,
    "rope_scaling": {"rope_type": "default", "rope_theta": 12345.0},
    "rope_parameters": {"rope_type": "default", "rope_theta": 12345.0},
}
TEXT_KEYS = frozenset((*SIZES, *PROBES, "partial_rotary_factor"))
# The values of the generic Llama-like class, left out of the table.
# Read in the modeling files, because these classes keep no rotary module or no key of the usual name.
EXTRA: dict[str, dict[str, Any]] = {
    "gptj": {"partial": True, "head": "hidden_size"},
    "codegen": {"partial": True, "head": "hidden_size"},
    "roformer": {"head": "hidden_size"},
    "dots3_note_audio_encoder": {"head": "hidden_size"},
    "zamba2": {"head": "2*hidden_size", "head_wins": True},
    "recurrent_gemma": {
        "aliases": {"attention_window_size": "sliding_window"},
        "max_position_embeddings": 2048,
    },
}
WHOLE = (
    *("head_dim", "hidden_size", "intermediate_size", "kv_lora_rank", "max_position_embeddings"),
    *("num_attention_heads", "num_hidden_layers", "num_key_value_heads", "q_lora_rank", "qk_nope_head_dim"),
    *("qk_rope_head_dim", "sliding_window", "v_head_dim", "vocab_size"),
)
USUAL = {
    "default_theta": 10000.0,
    "pairing": "half",
    "whole": "head_dim? hidden_size intermediate_size max_position_embeddings num_attention_heads num_hidden_layers "
    "num_key_value_heads? vocab_size",
}


def main() -> None:
    records = read_records()
    for name in sorted(CONFIG_MAPPING):
        config = build(CONFIG_MAPPING[name])
        if config is None:
            continue
        entry = BY_HAND.get(name) or (text_entry(config) if name in text_types() else wrapper_entry(config))
        if not entry and config.__dict__.get("rope_parameters"):
            entry = {"not_text": True}
        if entry:
            entry = {key: value for key, value in entry.items() if value is not None and USUAL.get(key) != value}
            write_record(name, filled_in(name, records.get(name, {}), entry))


def filled_in(name: str, record: dict[str, Any], entry: dict[str, Any]) -> dict[str, Any]:
    """Return a record with what the classes say; keys that were read by hand, and their order, stay."""
    found: dict[str, Any] = {}
    if "text" in entry:
        named = {"text": "path", "type": "type", "fixed": "fixed_type", "fills": "fills", "merges": "merges"}
        text = {new: entry[old] for old, new in named.items() if old in entry}
        if "flat" in entry:
            more = [key for key in record.get("text", {}).get("hoisted", []) if key not in PROBES]
            text["hoisted"] = [*entry["flat"], *more]
        asked = (*named.values(), "hoisted")
        by_hand = {key: part for key, part in record.get("text", {}).items() if key not in asked}
        found["text"] = {**text, **by_hand}
    defaults = {key: entry[key] for key in (*SIZES, "rope_parameters", "partial_rotary_factor") if key in entry}
    if "default_theta" in entry:
        defaults["rope_theta"] = entry["default_theta"]
    found["defaults"] = defaults
    for old, new in RENAMED.items():
        if old in entry:
            found[new] = entry[old]
    if "layer_types" in entry:
        found["rope"] = {"layer_types": entry["layer_types"], **record.get("rope", {})}
        found["rope"]["layer_types"] = entry["layer_types"]
    if "text" not in entry and "not_text" not in entry:
        given = record.get("validation", {})
        rest = {key: value for key, value in given.items() if key != "whole"}
        asked = given.get("whole", []) if name in BY_HAND else entry.get("whole", "").split()
        found["validation"] = {"whole": asked, **rest} if asked else rest
    for key in ("source", "since"):
        found.setdefault(key, record.get(key, "transformers 5.24.0, executed" if key == "source" else "5.24.0"))
    return {**record, **found}


# {what a class is asked: the key of a record that holds it}
RENAMED = {
    "aliases": "aliases",
    "head": "head_size",
    "head_wins": "head_dim_wins",
    "odd_head": "pads_odd_head",
    "partial": "partial_rotary",
    "partial_fixed": "partial_rotary_fixed",
    "pairing": "pairing",
    "rope_interleave": "reads_rope_interleave",
    "not_text": "not_text",
}


def text_entry(config: PreTrainedConfig) -> dict[str, Any]:
    """The facts of a class that has a rotary embedding of its own."""
    kind = type(config)
    entry: dict[str, Any] = {key: number(default(kind, key)) for key in SIZES}
    entry["aliases"] = aliases(kind)
    entry.update(head_rule(kind))
    entry.update(rope_defaults(kind))
    entry["rope_interleave"] = "rope_interleave" in kind.__dataclass_fields__ or None
    entry["layer_types"] = layer_types(config)
    entry["partial"] = honours_partial(kind)
    if entry["head_dim"] is None and (attribute(config, "hidden_size") // attribute(config, "num_attention_heads")) % 2:
        entry["odd_head"] = True
    entry.update(EXTRA.get(config.model_type, {}))
    entry["pairing"] = "interleaved" if interleaves(kind) else "half"
    entry["whole"] = " ".join(filter(None, (whole(kind, key) for key in WHOLE)))
    return entry


def whole(kind: type, key: str) -> str:
    """The key where the class refuses a word for it, with a question mark where it takes null; empty where it does not.

    What comes out is strict validation of types: true, 4096.0 and [4096] are refused like the word.
    """
    if takes(kind, key, "4096"):
        return ""
    return key + ("?" if takes(kind, key, None) else "") + ("+" if takes(kind, key, [4096]) else "")


def takes(kind: type, key: str, value: Any) -> bool:
    """Whether a configuration class takes a value of this kind; what else it raises is another matter."""
    try:
        kind(**{key: value})
    except StrictDataclassFieldValidationError:
        return False
    except Exception:  # as ZeroDivisionError and AttributeError of single classes
        return True
    return True


def default(kind: type, key: str) -> Any:
    """The class default of a field, the instance's where the class has no such field but always such a number."""
    field = kind.__dataclass_fields__.get(kind.attribute_map.get(key, key))
    if field is None:
        return None if key == "head_dim" else attribute(build(kind), key)
    return field.default


def number(value: Any) -> Any:
    """The value where it is a number, else None."""
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def aliases(kind: type) -> dict[str, str] | None:
    """Other names of the sizes: {the name in config.json: the usual name}."""
    found = {other: key for key, other in kind.attribute_map.items() if key in SIZES}
    found.update({key: other for key, other in kind.attribute_map.items() if other in SIZES})
    return found or None


def head_rule(kind: type) -> dict[str, Any]:
    """Which key decides the head size where it is not head_dim, and whether an explicit head_dim still wins."""
    told = build(kind, head_dim=48)
    wins = told is not None and attribute(told, "head_dim") == 48
    if attribute(build(kind, qk_rope_head_dim=24), "head_dim") == 24:
        return {"head": "qk_rope_head_dim", "head_wins": wins or None}
    probe = build(kind, qk_rope_head_dim=24, qk_nope_head_dim=32)
    if attribute(probe, "head_dim") == 56 and default(kind, "qk_nope_head_dim"):
        return {"head": "qk_nope_head_dim+qk_rope_head_dim", "head_wins": wins or None}
    if wins or told is None:
        return {}
    probe = build(kind, hidden_size=1024, num_attention_heads=8) or build(kind)
    found = attribute(probe, "head_dim")
    return {"head": {128: "hidden_size", 256: "2*hidden_size"}.get(found)}


def rope_defaults(kind: type) -> dict[str, Any]:
    """default_theta, the default partial factor, and the default rope_parameters before these are folded in."""
    plain = (getattr(build(kind), "rope_parameters", None) or {}).copy()
    theta = getattr(kind, "rope_theta", None)
    theta = theta if isinstance(theta, (int, float)) else getattr(kind, "default_theta", 10000.0)
    entry: dict[str, Any] = {"default_theta": number(theta)}
    flat = not any(isinstance(value, dict) or value is None for value in plain.values())
    if flat:
        given = getattr(build(kind, rope_parameters={"rope_type": "default"}), "rope_parameters", None) or {}
        entry["partial_rotary_factor"] = given.get("partial_rotary_factor")
        asked = build(kind, rope_parameters={"rope_type": "default"}, partial_rotary_factor=0.375)
        asked = getattr(asked, "rope_parameters", None) or {}
        entry["partial_fixed"] = asked.get("partial_rotary_factor", 0.375) != 0.375 or None
        asked = getattr(build(kind, rope_theta=12345.0), "rope_parameters", None) or {}
        if asked.get("rope_theta") == 12345.0:
            plain.pop("rope_theta", None)
        asked = getattr(build(kind, partial_rotary_factor=0.375), "rope_parameters", None) or {}
        if asked.get("partial_rotary_factor") == 0.375:
            plain.pop("partial_rotary_factor", None)
    elif isinstance(getattr(kind, "default_theta", None), dict):
        entry["default_theta"] = None
    plain.pop("type", None)
    if plain not in ({}, {"rope_type": "default"}):
        entry["rope_parameters"] = plain
    return entry


def layer_types(config: PreTrainedConfig) -> list[str] | None:
    """The default layer types where the rotary module has frequencies for each."""
    return sorted(rotary_frequencies(config)) if set(rotary_frequencies(config)) != {""} else None


def honours_partial(kind: type) -> bool | None:
    """Whether plain RoPE of this class rotates only part of the head: most classes ignore the key."""
    half = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}
    full = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 1.0}
    sizes = []
    for wanted in (half, full):
        config = build(kind)
        nested = [
            key for key, value in (getattr(config, "rope_parameters", None) or {}).items() if isinstance(value, dict)
        ]
        config.rope_parameters = {key: dict(wanted) for key in nested} if nested else dict(wanted)
        found = rotary_frequencies(config)
        sizes.append(len(next(iter(found.values()))[0]) if found else 0)
    return True if sizes[0] and sizes[0] < sizes[1] else None


def wrapper_entry(config: PreTrainedConfig) -> dict[str, Any] | None:
    """Where a class made of other configurations keeps its text part, if that has RoPE."""
    text = config.get_text_config(decoder=True)
    path = find(config, text)
    if path is None or text.model_type not in text_types():
        return None
    spec = type(config).sub_configs_defaults.get(path[0])
    fixed = spec is not None and issubclass(spec.config_class, PreTrainedConfig)
    given = spec.init_kwargs if spec is not None and len(path) == 1 else {}
    fills = {key: value for key, value in given.items() if key in TEXT_KEYS}
    if not fills:
        usual = build(type(text)).__dict__
        fills = {key: number(text.__dict__.get(key)) for key in SIZES}
        fills = {key: value for key, value in fills.items() if value not in (None, number(usual.get(key)))}
        if text.rope_parameters != build(type(text)).rope_parameters:
            fills["rope_parameters"] = text.rope_parameters
    # Some add these values to a text part that is given, the others use them only where there is none.
    bare = build(type(text)).__dict__
    telling = [key for key in fills if key in SIZES and text.__dict__.get(key) != bare.get(key)]
    merged = build(type(config), **{path[0]: {"model_type": text.model_type}}) if len(path) == 1 and telling else None
    inner = merged.get_text_config(decoder=True).__dict__ if merged is not None else {}
    merges = bool(inner) and all(inner.get(key) == text.__dict__[key] for key in telling)
    flat = [key for key, value in PROBES.items() if hoisted(type(config), key, value)]
    entry = {"text": path, "type": text.model_type, "fixed": fixed or None, "fills": fills or None}
    return {**entry, "merges": merges or None, "flat": flat or None}


def hoisted(kind: type, key: str, value: Any) -> bool:
    """Whether a composite configuration without a text part takes this key from its top."""
    config = build(kind, **{key: value})
    text = config.get_text_config(decoder=True) if config is not None else None
    params = attribute(text, "rope_parameters")
    return "12345.0" in json.dumps(params) if key.startswith("rope") else attribute(text, key) == value


def find(config: PreTrainedConfig, wanted: PreTrainedConfig, depth: int = 3) -> list[str] | None:
    """The path of keys from a configuration to one it contains."""
    for key in config.sub_configs_defaults or {}:
        part = getattr(config, key, None)
        if part is wanted:
            return [key]
        if isinstance(part, PreTrainedConfig) and depth and (rest := find(part, wanted, depth - 1)):
            return [key, *rest]
    return None


if __name__ == "__main__":
    main()
