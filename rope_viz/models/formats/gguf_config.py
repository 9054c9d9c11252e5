"""A GGUF file as a config.json: its keys under the names of transformers, and what llama.cpp computes from them.

The keys are those of gguf-py/gguf/constants.py of llama.cpp 0c1e57098. What the converter wrote for every architecture
is in tests/goldens/converted.json. `FILE` holds what no key of a config.json can hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rope_viz.embedding.scaling import Llama3, mscale
from rope_viz.embedding.spec import MAX_HEAD_DIM, MAX_LENGTH, RopeSpec, require_number, short_repr
from rope_viz.models.architecture import find_architecture, listed_types
from rope_viz.models.config_reader import Params
from rope_viz.models.formats import FILE, NAMES
from rope_viz.models.long_names import LONGEST

# {llama.cpp's architecture: model type}, where the two are not spelled with the same letters.
MODEL_TYPES: Mapping[str, str] = NAMES["gguf"]["model_types"]

# Their classes read the base from keys of their own, and not from the usual ones.
OWN_KEYS = ("baichuan", "chatglm", "qwen")

# {key of a config: keys of the GGUF after the architecture's name, the first that is there counts}
SIZES: Mapping[str, Sequence[str]] = NAMES["gguf"]["sizes"]
NEEDED = ("hidden_size", "max_position_embeddings")
LISTED = ("intermediate_size", "num_attention_heads", "num_key_value_heads")
"""Sizes that a GGUF may list for every layer."""
ROPE_KEYS = tuple(
    """
    context_length rope.freq_base rope.freq_base_swa rope.dimension_count rope.dimension_count_swa rope.scaling.type
    rope.scaling.factor rope.scale_linear rope.scaling.original_context_length rope.scaling.attn_factor
    rope.scaling.yarn_log_multiplier rope.scaling.yarn_beta_fast rope.scaling.yarn_beta_slow
    """.split()
)
"""What llama.cpp computes the rotation from."""
FAR = 1e20
"""A divisor from which on a pair counts as not rotating; the converter writes 1e30."""
LLAMA3 = tuple((factor, 1.0, 4.0, 8192) for factor in (8.0, 32.0, 16.0))
"""(factor, low and high bound, original length) of released models, whose files hold the divisors alone."""


def is_whole_source(found: Mapping[str, Any]) -> bool:
    """True if an entry under `FILE` has what llama.cpp's rules need; a config of unknown origin may hold anything."""
    keys, divisors, rotary = found.get("keys"), found.get("divisors"), found.get("rotary_dim")
    if (
        not isinstance(keys, Mapping)
        or not isinstance(divisors, Mapping)
        or not isinstance(found.get("architecture"), str)
    ):
        return False
    try:
        require_number(rotary, "rotary_dim", least=2, most=MAX_HEAD_DIM, integer=True)
        for name, value in keys.items():
            if name != "rope.scaling.type":
                require_number(value, name)
        require_number(keys.get("context_length"), "context_length", least=1, most=MAX_LENGTH, integer=True)
        lists = [read_divisors(name, values) for name, values in divisors.items()]
    except ValueError:
        return False
    return found.get("format") == "GGUF" and all(len(values) == int(rotary) // 2 for values in lists)  # type: ignore[arg-type]


def is_gguf_summary(found: Any) -> bool:
    """True for an object with the header of a GGUF file, as `summarise` and the browser's script make it."""
    return isinstance(found, Mapping) and set(found) == {"gguf"} and isinstance(found["gguf"], Mapping)


def config_from_gguf(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return the config.json that means what a GGUF header says.

    `summary` has `keys` (short values by name), `divisors` (lists by tensor), and where known `tensor_bytes`,
    `vocabulary` and `tied`; `unreadable` where the browser could not read it. Raises `ValueError` then, and where the
    architecture or a size is missing.
    """
    if summary.get("unreadable"):
        raise ValueError("the header of this GGUF file is cut off or of an unknown version: download the file again")
    keys, divisors = (read_object(summary, name) for name in ("keys", "divisors"))
    kind = keys.get("general.architecture")
    if not isinstance(kind, str) or not kind:
        raise ValueError("the GGUF file does not name an architecture")
    prefix = f"{kind}."
    own = {name.removeprefix(prefix): value for name, value in keys.items() if name.startswith(prefix)}
    config: dict[str, Any] = {"model_type": find_model_type(kind)}
    kind = kind[:LONGEST]  # in sentences, too
    for key in ("general.name", "general.basename"):
        if isinstance(keys.get(key), str) and "_name_or_path" not in config:
            config["_name_or_path"] = keys[key]
    config |= read_sizes(kind, own)
    for key, value in (("vocab_size", summary.get("vocabulary")), ("tie_word_embeddings", summary.get("tied"))):
        if value is not None:
            config[key] = value
    rotary = read_head(kind, own, config)
    lists = {name: read_divisors(name, values) for name, values in divisors.items()}
    config |= write_rope(config, read_rope(kind, own, config, rotary, lists))
    rope = {name: own[name] for name in ROPE_KEYS if own.get(name) is not None}
    held = {"format": "GGUF", "architecture": kind, "keys": rope, "rotary_dim": rotary, "divisors": lists}
    size = summary.get("tensor_bytes")
    return config | {FILE: held | ({"tensor_bytes": size} if isinstance(size, int) and size > 0 else {})}


def read_object(part: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the object under a name, {} where there is none. Raises `ValueError` for anything else."""
    found = part.get(name) or {}
    if not isinstance(found, Mapping):
        raise ValueError(f"{name} of the GGUF header must be an object, got {short_repr(found)}")
    return found


def find_model_type(kind: str) -> str:
    """Return the model type of one of llama.cpp's architectures; the name itself where none is known."""
    if kind in MODEL_TYPES:
        return MODEL_TYPES[kind]
    if kind in OWN_KEYS:
        return f"{kind} (GGUF)"
    letters = "".join(letter for letter in kind if letter.isalnum())
    for wanted in (letters, f"{letters}text"):
        for name in sorted(listed_types()):
            record = find_architecture(name)
            is_text = record is not None and record.text is None and not record.not_text
            if is_text and name.replace("_", "").replace("-", "") == wanted:
                return name
    return kind


def read_sizes(kind: str, own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sizes of the model; of a size by layer the largest. Raises `ValueError` for a missing or wrong one."""
    found: dict[str, Any] = {}
    for name, keys in SIZES.items():
        key = next((key for key in keys if own.get(key) is not None), None)
        if key is None:
            if name in NEEDED:
                raise ValueError(f"the GGUF file has no {kind}.{keys[0]}")
            continue
        value = own[key]
        values = value if isinstance(value, list) and value and name in LISTED else [value]
        for each in values:
            require_number(each, f"{kind}.{key}", least=0, most=1 << 40, integer=True)
        found[name] = int(max(values))
        if name == "num_key_value_heads" and len(values) > 1 and 0 in values:
            found["layer_types"] = ["full_attention" if each else "linear_attention" for each in values]
    for name, most in (("max_position_embeddings", MAX_LENGTH), ("hidden_size", 1 << 40)):
        require_number(found[name], f"{kind}.{SIZES[name][0]}", least=1, most=most)
    return {name: value for name, value in found.items() if value != 0}


def read_head(kind: str, own: Mapping[str, Any], config: dict[str, Any]) -> int:
    """Add the sizes of a head to the config, and return how many of its dimensions rotate."""
    size = own.get("attention.key_length_mla", own.get("attention.key_length"))
    if size is None:
        heads = config.get("num_attention_heads")
        if heads is None:
            raise ValueError(f"the GGUF file has no {kind}.attention.head_count")
        size = config["hidden_size"] // heads
    require_number(size, f"{kind}.attention.key_length", least=1, most=MAX_HEAD_DIM * 8, integer=True)
    rotary = own.get("rope.dimension_count", size)
    require_number(rotary, f"{kind}.rope.dimension_count", least=2, most=MAX_HEAD_DIM, integer=True)
    record = find_architecture(config["model_type"])
    values = own.get("attention.value_length_mla", own.get("attention.value_length"))
    if "kv_lora_rank" in config or (record is not None and "qk_rope_head_dim" in record.head_size):
        config |= {"qk_rope_head_dim": int(rotary)}
        # Without the keys of MLA the length of a key is that of the compressed cache.
        if "attention.key_length_mla" in own or "kv_lora_rank" not in config:
            config |= {"qk_nope_head_dim": int(size - rotary)}
        if "attention.value_length_mla" in own:
            config |= {"v_head_dim": int(values)}
    else:
        config |= {"head_dim": int(max(size, rotary))}
    return int(rotary)


def read_divisors(name: str, values: Any) -> list[float]:
    """Return the divisors of one tensor. Raises `ValueError` for anything but numbers above 0."""
    if not isinstance(values, (list, tuple)) or not 1 <= len(values) <= MAX_HEAD_DIM:
        raise ValueError(f"{name} of the GGUF file must be a list of divisors")
    for value in values:
        require_number(value, f"{name} entries", above=0.0)
    return [float(value) for value in values]


def read_rope(
    kind: str, own: Mapping[str, Any], config: Mapping[str, Any], rotary: int, divisors: Mapping[str, Sequence[float]]
) -> Params:
    """Return rope_parameters: flat, or by layer type where the model type has them so."""
    record = find_architecture(config["model_type"])
    main = read_layer(kind, own, config, rotary, divisors)
    if record is None or not record.rope.layer_types:
        return main
    base = own.get("rope.freq_base_swa", 10_000.0 if record.rope.bases else main["rope_theta"])
    require_number(base, f"{kind}.rope.freq_base_swa", above=1.0, most=1e30)
    local = {"rope_type": "default", "rope_theta": float(base)}
    if record.partial_rotary and config.get("head_dim"):
        local["partial_rotary_factor"] = own.get("rope.dimension_count_swa", config["head_dim"]) / config["head_dim"]
    return {layer: main if layer != "sliding_attention" else local for layer in record.rope.layer_types}


def write_rope(config: Mapping[str, Any], params: Params) -> dict[str, Any]:
    """Return the parameters under the keys that transformers 4 and 5 both read, where the class reads them as usual."""
    record = find_architecture(config["model_type"])
    scaled = record is not None and record.defaults.get("rope_parameters")
    if record is not None and (record.rope.rule or record.rope.layer_types or scaled):
        return {"rope_parameters": params}
    places = ("rope_theta", "partial_rotary_factor")
    top, scaling = ({key: params[key] for key in params if (key in places) is here} for here in (True, False))
    return top | ({} if scaling["rope_type"] == "default" else {"rope_scaling": scaling})


def read_layer(
    kind: str, own: Mapping[str, Any], config: Mapping[str, Any], rotary: int, divisors: Mapping[str, Sequence[float]]
) -> Params:
    """Return the parameters of the layers without a window."""
    base, factor = own.get("rope.freq_base", 10_000.0), own.get("rope.scaling.factor", own.get("rope.scale_linear"))
    factor = factor or 1.0
    require_number(base, f"{kind}.rope.freq_base", above=1.0, most=1e30)
    require_number(factor, f"{kind}.rope.scaling.factor", above=0.0, most=1e9)
    scaling = own.get("rope.scaling.type", "linear")
    params: Params = {"rope_theta": float(base)}
    if config.get("head_dim", rotary) != rotary:
        params["partial_rotary_factor"] = rotary / config["head_dim"]
    original = own.get("rope.scaling.original_context_length", config["max_position_embeddings"])
    attention = own.get("rope.scaling.attn_factor")
    if divisors:
        return params | read_lists(kind, config, float(base), rotary, divisors, original, attention)
    if scaling == "yarn":
        found: Params = {"rope_type": "yarn", "factor": float(factor), "original_max_position_embeddings": original}
        log_mul = own.get("rope.scaling.yarn_log_multiplier")
        if log_mul is not None:
            require_number(log_mul, f"{kind}.rope.scaling.yarn_log_multiplier")
            # The converter of DeepSeek's architecture writes a tenth, and its loader multiplies it again.
            value = round(float(log_mul) * (10.0 if kind == "deepseek2" else 1.0), 6)
            found |= {"mscale": value, "mscale_all_dim": value}
        elif attention is not None:
            require_number(attention, f"{kind}.rope.scaling.attn_factor")
            found["attention_factor"] = float(attention) * mscale(float(factor))
        return params | found
    if scaling == "none" or factor == 1.0:
        return params | {"rope_type": "default"}
    return params | {"rope_type": "linear", "factor": float(factor)}


def read_lists(
    kind: str,
    config: Mapping[str, Any],
    base: float,
    rotary: int,
    divisors: Mapping[str, Sequence[float]],
    original: Any,
    attention: Any,
) -> Params:
    """Return the scaling that has these divisors: Llama 3's or Gemma 4's by their shape, else LongRoPE's lists."""
    one = divisors.get("rope_freqs.weight")
    short = one or divisors.get("rope_factors_short.weight")
    long = one or divisors.get("rope_factors_long.weight")
    if short is None or long is None:
        raise ValueError(f"the GGUF file has only one of the two lists of divisors: {', '.join(divisors)}")
    for values in (short, long):
        if len(values) != rotary // 2:
            raise ValueError(f"the GGUF file has {len(values)} divisors for {rotary // 2} pairs of {kind}")
    turning = sum(value < FAR for value in short)
    if one and turning < len(one) and all(value == 1.0 for value in one[:turning]):
        return {"rope_type": "proportional", "partial_rotary_factor": turning / len(one)}
    if one:
        found = recognise_llama3(one, base)
        if found:
            return found
    require_number(original, f"{kind}.rope.scaling.original_context_length", least=1, most=MAX_LENGTH, integer=True)
    factor = 1.0 if attention is None else attention
    require_number(factor, f"{kind}.rope.scaling.attn_factor")
    lists = {"short_factor": list(short), "long_factor": list(long), "attention_factor": float(factor)}
    return {"rope_type": "longrope", "original_max_position_embeddings": int(original), **lists}


def recognise_llama3(divisors: Sequence[float], base: float) -> Params | None:
    """Return the parameters of method `llama3` whose divisors these are, None where no released model has them."""
    for factor, low, high, original in LLAMA3:
        scaling = Llama3(factor=factor, low_freq_factor=low, high_freq_factor=high)
        spec = RopeSpec(head_dim=2 * len(divisors), base=base, context=original, scaling=scaling)
        if np.allclose(divisors, spec.plain_inv_freq / spec.inv_freq(), rtol=1e-4):
            bounds = {"low_freq_factor": low, "high_freq_factor": high}
            return {"rope_type": "llama3", "factor": factor, **bounds, "original_max_position_embeddings": original}
    return None
