"""The rules of the check about keys that contradict one another, or that no runtime reads."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from rope_viz.advice.lint.base_rules import has_base
from rope_viz.advice.lint.key_places import find_misplaced
from rope_viz.advice.lint.lint_context import KNOWN_KEYS, TEXTS, Finding, place_of, write_keys
from rope_viz.embedding.spec import short_repr
from rope_viz.models.architecture import TextPart, find_architecture
from rope_viz.models.config_reader import is_number
from rope_viz.models.model_config import ModelConfig
from rope_viz.models.rope_config import ORIGINAL, PRETRAINED_TYPES
from rope_viz.models.rope_parameters import LAYER_TYPES
from rope_viz.models.text_config import find_inside
from rope_viz.runtimes.compare import find_max_ratio
from rope_viz.texts import join
from rope_viz.texts.texts import join_items

# Keys that say nothing about a vision tower or an audio tower.
OUTSIDE = tuple(KNOWN_KEYS["outside"])
ROPE_DICTS = ("rope_scaling", "rope_parameters")
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
# Keys with a number, of the language model or of a rope dict.
NUMBER_KEYS = frozenset(KNOWN_KEYS["numbers"])


def numbers_as_text(model: ModelConfig) -> Iterator[Finding]:
    """A number is written as text, between quotes.

    Source: transformers 5.23.0 computes with the value, executed: Python raises TypeError for text.
    """
    paths: list[tuple[str, ...]] = [(), *((name,) for name in ROPE_DICTS)]
    paths += [(*path, layer) for path in paths[1:] for layer in sorted(LAYER_TYPES)]
    for path in paths:
        part = find_inside(model.text, path)
        for key, value in part.items() if isinstance(part, Mapping) else ():
            if key in NUMBER_KEYS and isinstance(value, str) and len(value) < 30 and NUMBER.fullmatch(value):
                text = TEXTS("numbers-as-text.message", key=key, value=short_repr(value))
                repaired = write_keys(model, (*model.path, *path), **{key: json.loads(value)})
                yield Finding("", "error", place_of(model, *path, key), text, None, repaired)


def two_bases(model: ModelConfig) -> Iterator[Finding]:
    """rope_theta is at the top and in rope_parameters, and both differ.

    Source: transformers 5.23.0 and 5.14.1, executed: an assignment to config.rope_theta changes nothing in the model,
    and is saved at the top beside the base in rope_parameters, which alone is read on loading. Readers of the old key
    use the other one (tests/goldens/training.json, axolotl).
    """
    nested = model.text.get("rope_parameters")
    outer, inner = model.text.get("rope_theta"), nested.get("rope_theta") if isinstance(nested, Mapping) else None
    if model.text.get("rope_scaling") or not (is_number(outer) and is_number(inner)) or outer == inner:
        return
    spec = model.specs.get("")
    if spec is None:
        return
    effect = find_max_ratio(spec.inv_freq(), dataclasses.replace(spec, base=float(outer)).inv_freq())
    text = TEXTS("two-bases.message", outer=outer, inner=inner)
    yield Finding("", "warning", place_of(model, "rope_theta"), text, effect)


def two_rope_dicts(model: ModelConfig) -> Iterator[Finding]:
    """rope_scaling and rope_parameters are both present and differ: only rope_scaling is read.

    Source: transformers 5.23.0, convert_rope_params_to_dict: rope_scaling is used if it is not empty.
    """
    old, new = (model.text.get(key) for key in ROPE_DICTS)
    if not (isinstance(old, Mapping) and isinstance(new, Mapping) and old and new):
        return
    if set(model.rope_parameters) != {""}:
        return
    ours, theirs = rename_type(old), rename_type(new)
    differ = [key for key in sorted(ours.keys() | theirs.keys()) if ours.get(key) != theirs.get(key)]
    # A base in only one of them is no contradiction.
    if differ and not (differ == ["rope_theta"] and "rope_theta" not in ours):
        named = join_items([short_repr(key).strip("'") for key in differ[:4]])
        text = TEXTS("two-rope-dicts.message", keys=named)
        yield Finding("", "warning", place_of(model, "rope_parameters"), text)


def rename_type(rope: Mapping[str, Any]) -> dict[str, Any]:
    """Return a rope dict under today's key for the type."""
    found = {key: value for key, value in rope.items() if key != "type"}
    return {**found, "rope_type": rope.get("rope_type", rope.get("type", "default"))}


def find_wrapper(config: Mapping[str, Any]) -> TextPart | None:
    """Return what is known of the composite class that a config, or a level of it, is for; None for others."""
    named = config.get("model_type")
    record = find_architecture(named) if isinstance(named, str) else None
    return None if record is None else record.text


def unread_rope_keys(model: ModelConfig) -> Iterator[Finding]:
    """Scaling outside the language model's part of the config, where no runtime reads it.

    Source: transformers 5.23.0, whose composite classes pass only that part to the language model's class. They still
    read a scaling of their own level, and raise AttributeError or KeyError if keys are missing there.
    """
    part, wrapper = model.part, find_wrapper(model.mapping)
    if not model.path or part.taken or (wrapper is not None and wrapper.rotates):
        return
    for depth, name in enumerate(part.path):
        level = find_inside(model.mapping, part.path[:depth])
        for key in ROPE_DICTS:
            if isinstance(level, Mapping) and isinstance(level.get(key), Mapping) and level[key]:
                text = TEXTS("unread-rope-keys.scaling", key=key, name=name)
                raises = wrapper_raises(level, level[key]) and part.unlisted is None
                text = join(text, TEXTS("unread-rope-keys.raises")) if raises else text
                place = ".".join((*part.path[:depth], key))
                yield Finding("", "error" if raises else "warning", place, text)
        for key, value in find_lost_keys(model, level).items() if part.unlisted is None else ():
            place = ".".join((*part.path[:depth], key))
            home = ".".join((*model.path, *(() if key == "rope_theta" else ("rope_scaling",))))
            text = TEXTS("unread-rope-keys.value", key=key, value=short_repr(value), name=name, home=home)
            yield Finding("", "warning", place, text)


def find_lost_keys(model: ModelConfig, level: Any) -> dict[str, Any]:
    """Return the base and the numbers of a scaling at a level outside the language model's part, which lacks them."""
    if not isinstance(level, Mapping):
        return {}
    found = find_misplaced(model, level)
    if is_number(level.get("rope_theta")) and not has_base(model.text):
        found["rope_theta"] = level["rope_theta"]
    return found


def wrapper_raises(level: Mapping[str, Any], rope: Mapping[str, Any]) -> bool:
    """Return whether a composite class raises for this scaling of its own level, where it has no lengths."""
    kind = rope.get("rope_type", rope.get("type"))
    if kind in ("linear", "dynamic", "yarn", "llama3") and "factor" not in rope:
        return True
    # With a base at the same level most classes read the dict before they have set the other keys of this level.
    wrapper = find_wrapper(level)
    early = level.get("rope_theta") is not None and not (wrapper is not None and wrapper.checks_late)
    lengths = level.get("max_position_embeddings") is not None and not early
    return kind in PRETRAINED_TYPES and (ORIGINAL not in rope or not lengths)


def sizes_outside(model: ModelConfig) -> Iterator[Finding]:
    """Sizes of the language model outside its part of the config, where its class uses its defaults instead.

    Source: transformers 5.23.0, whose composite classes pass only that part, and the keys that they take from their own
    level, to the language model's class.
    """
    part, fields = model.part, model.fields
    wrapper = find_wrapper(model.mapping)
    if not part.path or part.taken or wrapper is None:
        return
    for depth, name in enumerate(part.path):
        level = find_inside(model.mapping, part.path[:depth])
        if not isinstance(level, Mapping):
            continue
        lost = [
            key
            for key in OUTSIDE
            if level.get(key) is not None and fields.raw(key) is None and fields.default(key) not in (None, level[key])
        ]
        if lost:
            parts = [
                TEXTS("sizes-outside.part", key=key, used=fields.default(key), given=short_repr(level[key]))
                for key in lost[:3]
            ]
            used = join_items(parts)
            text = TEXTS("sizes-outside.message", name=name, used=used)
            yield Finding("", "warning", ".".join((*part.path[:depth], lost[0])), text)


def part_without_type(model: ModelConfig) -> Iterator[Finding]:
    """A language model without its model_type, where the wrapper's class looks it up.

    Source: transformers 5.23.0, every composite class loaded without it: Exaone4_5_Config alone raises KeyError.
    """
    wrapper = find_wrapper(model.mapping)
    part = None if wrapper is None or not wrapper.needs_type else find_inside(model.mapping, wrapper.path)
    if wrapper is not None and isinstance(part, Mapping) and not part.get("model_type"):
        place = ".".join(wrapper.path)
        text = TEXTS("part-without-type.message", place=place)
        repaired = write_keys(model, wrapper.path, model_type=wrapper.type)
        yield Finding("", "error", f"{place}.model_type", text, None, repaired)


def layer_types_unknown(model: ModelConfig) -> Iterator[Finding]:
    """A layer type that does not exist, or more or fewer layer types than layers.

    Source: transformers 5.23.0, validate_layer_type of the configuration classes, which raises.
    """
    names = model.fields.layer_types()
    if names is None or not model.fields.is_listed:
        return
    taken = model.fields.architecture.validation.also_layers
    unknown = [name for name in dict.fromkeys(names) if name not in LAYER_TYPES and name not in taken]
    if unknown:
        types = join_items([short_repr(name) for name in unknown[:3]])
        text = TEXTS("layer-types-unknown.unknown", types=types)
        yield Finding("", "error", place_of(model, "layer_types"), text)
    count = model.fields.size("num_hidden_layers")
    if count is not None and count != len(names):
        text = TEXTS("layer-types-unknown.count", entries=len(names), layers=count)
        yield Finding("", "error", place_of(model, "layer_types"), text)


def heads_do_not_divide(model: ModelConfig) -> Iterator[Finding]:
    """hidden_size is not a multiple of the number of heads, or that is not one of the number of key heads.

    Source: transformers 5.23.0, validate_architecture of LlamaConfig, and repeat_kv, which repeats a whole number of
    times.
    """
    heads, keys = model.fields.size("num_attention_heads"), model.text.get("num_key_value_heads")
    width = model.fields.size("hidden_size")
    own = model.fields.raw("head_dim") is not None or model.fields.default("head_dim") is not None
    if not own and not model.fields.has_latent_attention and heads and width and width % heads:
        text = TEXTS("heads-do-not-divide.heads", width=width, heads=heads, size=width // heads)
        yield Finding("", "warning", place_of(model, "hidden_size"), text)
    if isinstance(keys, int) and not isinstance(keys, bool) and keys > 0 and heads and heads % keys:
        text = TEXTS("heads-do-not-divide.keys", heads=heads, keys=keys)
        yield Finding("", "error", place_of(model, "num_key_value_heads"), text)


def out_of_range(model: ModelConfig) -> Iterator[Finding]:
    """A factor below 1, a factor on cos and sin of 0 or less, an original length above the limit, or a null base.

    Source: the warnings of transformers 5.23.0, validate_rope; a null base raises TypeError in its rotary classes, and
    a null type KeyError, executed (tests/goldens/refused.json).
    """
    reading = model.fields.architecture.rope
    bases = [params.get("rope_theta") for params in (model.text, *(site.rope for site in model.rope_dicts))]
    filled = reading.rule not in ("", "share_from_rotary_dim") or bool(model.fields.default("rope_parameters"))
    type_filled = reading.nested == "with_rope_scaling" or reading.rule == "without_rope_scaling"
    if model.fields.is_listed and not filled and "rope_theta" in model.text and all(base is None for base in bases):
        text = TEXTS("out-of-range.base_null")
        repaired = write_keys(model, model.path, rope_theta=None)
        yield Finding("", "error", place_of(model, "rope_theta"), text, None, repaired)
    for site in model.rope_dicts:
        nulls = {key for key, value in site.rope.items() if value is None}
        if "rope_type" in nulls and not type_filled:
            text = TEXTS("out-of-range.type_null")
            repaired = write_keys(model, site.path, rope_type=site.rope.get("type"))
            yield Finding("", "error", f"{site.key}.rope_type", text, None, repaired)
        if "factor" in nulls and site.kind == "yarn" and model.fields.has_latent_attention:
            text = TEXTS("out-of-range.factor_null")
            yield Finding("", "error", f"{site.key}.factor", text)
        if "rope_theta" in nulls and not reading.takes_null_base:
            text = TEXTS("out-of-range.layer_base_null")
            repaired = write_keys(model, site.path, rope_theta=None)
            yield Finding("", "error", f"{site.key}.rope_theta", text, None, repaired)
        factor, attention = site.optional("factor"), site.optional("attention_factor")
        if factor is not None and factor < 1 and site.kind != "default":
            text = TEXTS("out-of-range.factor", factor=factor)
            yield Finding("", "warning", f"{site.key}.factor", text)
        if attention is not None and attention <= 0 and site.kind in ("yarn", "longrope"):
            text = TEXTS("out-of-range.attention_factor", attention=attention)
            repaired = write_keys(model, site.path, attention_factor=None)
            yield Finding("", "error", f"{site.key}.attention_factor", text, None, repaired)
        if site.kind == "llama3" and model.specs[site.layer].context > model.limit:
            text = TEXTS("out-of-range.original", context=model.specs[site.layer].context, limit=model.limit)
            yield Finding("", "warning", f"{site.key}.{ORIGINAL}", text)
