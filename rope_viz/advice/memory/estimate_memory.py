"""The memory that a model takes at one length: the cache of transformers, the weights, and what an engine reserves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rope_viz.advice.memory import TEXTS, vllm_blocks
from rope_viz.advice.memory.kv_cache import (
    DTYPES,
    Cache,
    cache,
    has_no_cache,
    human,
    list_assumed_sizes,
    list_other_assumed_sizes,
    read_memory_fields,
)
from rope_viz.advice.memory.parameter_count import count_weight_bytes, find_file_bytes, parameters
from rope_viz.advice.memory.weight_storage import WEIGHT_TYPES, find_cache_type, find_weight_storage
from rope_viz.embedding.spec import MAX_LENGTH, require_number, short_repr
from rope_viz.models import TEXTS as CONFIGS
from rope_viz.models.config_reader import is_pipeline_part
from rope_viz.models.formats.json_source import describe_source, names_unread_keys, refuse_unread
from rope_viz.models.formats.side_files import is_length, read_side_values
from rope_viz.models.identity.identify_model import Identity
from rope_viz.models.model_config import ModelConfig, Source, normalise_errors
from rope_viz.texts.sentences import remove_period
from rope_viz.texts.texts import join_items

MOST_SEQUENCES = 1 << 20


def memory(
    config: Source,
    *,
    length: int,
    sequences: int = 1,
    dtype: str | None = None,
    weight_dtype: str | None = None,
    runtime: str | None = None,
    batched_tokens: int | None = None,
) -> dict[str, Any]:
    """Return the bytes of cache and weights and the number of parameters, under the keys of `rope-viz memory --json`.

    `kv_cache_bytes` is what the dynamic cache of transformers 5.23.0 holds for `sequences` texts of `length` tokens.
    A number that is not known is None, with the reason under `reasons`. `dtype` is the type of the cache and
    `weight_dtype` that of the weights, each in place of the file's own. `runtime` adds `reserved_bytes`; where layers
    have windows, vLLM's `batched_tokens` count, too (--max-num-batched-tokens). Raises
    `ValueError` where the config cannot be read or an argument has no meaning.
    """
    require_number(length, "length", least=1, most=MAX_LENGTH, integer=True)
    require_number(sequences, "sequences", least=1, most=MOST_SEQUENCES, integer=True)
    if dtype is not None and dtype not in DTYPES:
        raise ValueError(CONFIGS("value.one_of", name="dtype", options=join_items([*DTYPES]), got=short_repr(dtype)))
    if batched_tokens is not None:
        require_number(batched_tokens, "batched_tokens", least=1, most=MAX_LENGTH, integer=True)
    if weight_dtype is not None and weight_dtype not in WEIGHT_TYPES:
        raise ValueError(
            CONFIGS(
                "value.one_of", name="weight_dtype", options=join_items([*WEIGHT_TYPES]), got=short_repr(weight_dtype)
            )
        )
    model = ModelConfig.read(config)
    with normalise_errors():
        fields = read_memory_fields(model)
        usual, others = list_assumed_sizes(model), list_other_assumed_sizes(model)
    reasons: dict[str, str] = {}
    stored_cache = None if dtype else find_cache_type(model.mapping, fields.config)
    assumed = {} if dtype or stored_cache else {"dtype": "bfloat16"}
    dtype = dtype or stored_cache or "bfloat16"
    if usual:
        assumed["class defaults of transformers"] = TEXTS("assumed.for", keys=join_items(usual))
    if others:
        assumed["other class defaults"] = TEXTS("assumed.for", keys=join_items(others))
    found: dict[str, Any] = {"length": int(length), "sequences": int(sequences), "dtype": dtype}
    kept, found["kv_cache_bytes"] = None, None
    try:
        with normalise_errors():
            refuse_unread(model.mapping, "attention")
            if is_pipeline_part(model.mapping):
                found["kv_cache_bytes"] = 0
                reasons["kv_cache_bytes"] = TEXTS("reason.diffusion")
            elif has_no_cache(fields):
                found["kv_cache_bytes"] = 0
                reasons["kv_cache_bytes"] = TEXTS(
                    "reason.encoder" if fields.kind else "reason.unnamed_encoder", kind=fields.kind
                )
            elif dtype not in DTYPES:
                raise ValueError(TEXTS("reason.cache_type", dtype=dtype))
            else:
                kept = cache(model, dtype=dtype)
                found["kv_cache_bytes"] = count_cache_bytes(kept, int(length), int(sequences))
    except (ValueError, TypeError) as error:
        reasons["kv_cache_bytes"] = str(error)
    found["parameters"] = found["weight_bytes"] = None
    held = None if weight_dtype else find_file_bytes(model.mapping)
    each, stored, is_given = find_weight_storage(model.mapping, fields.config)
    if weight_dtype:
        each, stored = WEIGHT_TYPES[weight_dtype], weight_dtype
    elif held is not None:
        stored = TEXTS("stored.gguf")
    elif not is_given:
        assumed["weight_dtype"] = "bfloat16"
    found["weight_dtype"] = stored
    try:
        with normalise_errors():
            if is_pipeline_part(model.mapping):
                raise ValueError(TEXTS("reason.diffusion_weights"))
            found["parameters"] = parameters(model)
            found["weight_bytes"] = held
            if held is None and weight_dtype:
                found["weight_bytes"] = round(found["parameters"] * each)
            elif held is None:
                found["weight_bytes"], more = count_weight_bytes(model, fields.config, found["parameters"])
                assumed.update(more)
    except (ValueError, TypeError) as error:
        unknown = ("parameters", "weight_bytes") if found["parameters"] is None else ("weight_bytes",)
        reasons.update(dict.fromkeys(unknown, str(error)))
    if runtime is not None:
        found["runtime"] = runtime.lower()
        found["reserved_bytes"] = None
        if runtime.lower() != "vllm":
            reasons["reserved_bytes"] = TEXTS("reason.runtime", runtime=short_repr(runtime))
        elif kept is None:
            reasons["reserved_bytes"] = reasons.get("kv_cache_bytes", "")
        else:
            try:
                engine = vllm_blocks.VllmSettings(batched_tokens=batched_tokens or vllm_blocks.BATCHED_TOKENS)
                each = vllm_blocks.count_reserved_bytes(model, kept, int(length), engine)
                found["reserved_bytes"] = int(sequences) * each
                if batched_tokens is None and any(group.window for group in kept.groups):
                    assumed["max_num_batched_tokens"] = f"{vllm_blocks.BATCHED_TOKENS:,}"
            except ValueError as error:
                reasons["reserved_bytes"] = str(error)
    notes = list(kept.notes) if kept else []
    notes += describe_lengths(read_side_values(model.mapping, "generation"), int(length))
    if names_unread_keys(model.mapping):
        notes.append(describe_source(model.mapping))
    groups = [describe_group(group) for group in kept.groups] if kept else []
    return {**found, "groups": groups, "assumed": assumed, "reasons": reasons, "notes": notes}


def describe_lengths(generation: Mapping[str, Any], length: int) -> list[str]:
    """Return sentences on the lengths of a generation_config.json that end a text before this one."""
    found, answer = generation.get("max_length"), generation.get("max_new_tokens")
    sentences = list[str]()
    if is_length(found) and found < length:
        sentences.append(TEXTS("limit.max_length", limit=found))
    if is_length(answer) and answer < length:
        sentences.append(TEXTS("limit.max_new_tokens", limit=answer))
    return sentences


def with_catalog_sizes(config: ModelConfig, recognised: Identity) -> ModelConfig:
    """Return a config with the sizes of the recognised model of the catalog where the config states none."""
    sizes = {} if recognised.model is None else recognised.model.sizes
    if sizes.keys() - config.mapping.keys() and config.mapping.keys() & {"hidden_size", "num_attention_heads"}:
        return ModelConfig.read({**sizes, **config.mapping}, known=config.known)
    return config


def describe_group(group: Any) -> dict[str, Any]:
    """Return the layers of one kind: how many, bytes per token and layer, tokens at most, bytes at any length."""
    return {
        "kind": group.kind,
        "layers": group.layers,
        "bytes_per_token": group.per_token,
        "window": group.window,
        "state_bytes": group.state,
        **({"bytes_per_entry": group.entry, "tokens_per_entry": group.every} if group.entry else {}),
    }


def count_cache_bytes(kept: Cache, length: int, sequences: int) -> int:
    """Return what the dynamic cache of transformers holds: a layer with a window w keeps the last w - 1 tokens."""
    total = 0.0
    for group in kept.groups:
        tokens = length if group.window is None else min(length, max(group.window - 1, 0))
        total += group.bytes(length, kept=tokens)
    return round(sequences * total)


def describe_memory(found: dict[str, Any]) -> str:
    """Return the answer in lines, for the terminal."""
    reasons = found["reasons"]
    lines = []
    for key in ("kv_cache_bytes", "weight_bytes", "reserved_bytes"):
        if key not in found:
            continue
        if found[key] is None:
            lines.append(TEXTS(f"{key}.unknown", reason=remove_period(reasons[key])))
        elif key == "kv_cache_bytes" and key in reasons:
            lines.append(TEXTS(f"{key}.none", reason=remove_period(reasons[key])))
        else:
            stored = found["weight_dtype"] if found["parameters"] else ""
            values = {name: found.get(name) for name in ("sequences", "length", "dtype", "runtime")}
            lines.append(TEXTS(f"{key}.size", size=human(found[key]), bytes=found[key], stored=stored, **values))
    if found["parameters"] is not None:
        lines.append(TEXTS("parameters", parameters=found["parameters"]))
    names = TEXTS.group("assumed.names")
    lines += [TEXTS("assumed.line", name=names.get(name, name), value=each) for name, each in found["assumed"].items()]
    return "\n".join([*lines, *found["notes"]])
