"""The rules of the check about keys in the wrong place, and about lists that are longer than the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rope_viz.advice.lint.lint_context import KNOWN_KEYS, TEXTS, Finding, place_of, write_keys
from rope_viz.embedding.spec import short_repr
from rope_viz.models.model_config import ModelConfig
from rope_viz.models.rope_config import ROPE_TYPES, normalise_rope_type
from rope_viz.models.rope_dicts import RopeDict
from rope_viz.models.text_config import find_inside
from rope_viz.texts import join

ONLY_INSIDE = tuple(KNOWN_KEYS["only_inside"])
BY_LAYER = tuple(KNOWN_KEYS["by_layer"])
MORE_LAYERS = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers")
"""Keys with the number of layers that predict further tokens; lists may have entries for them."""


def misplaced_keys(model: ModelConfig) -> Iterator[Finding]:
    """A key of the rope dict at the top of the config, where no class reads it.

    Source: the configuration classes of transformers 5.24.0, searched for these names; a published config with
    rope_type next to rope_scaling (amd/Zebra-Llama-1B, commit 3282f04).
    """
    found = find_misplaced(model)
    if not found:
        return
    site = find_dict_for(model)
    taken = {} if site is None else site.rope
    path = (*model.path, "rope_scaling") if site is None else site.path
    for key, value in found.items():
        if taken.get(key) == value:
            continue
        if path[-1] in model.text:
            text = TEXTS("misplaced-keys.near", key=key, value=short_repr(value), place=path[-1])
        else:
            text = TEXTS("misplaced-keys.outside", key=key, value=short_repr(value))
        repaired = None
        if taken.get(key) is not None:
            text = join(text, TEXTS("misplaced-keys.counts", place=path[-1], value=short_repr(taken[key])))
        elif site is not None or "rope_type" in found:
            text = join(text, TEXTS("misplaced-keys.move", place=path[-1]))
            repaired = move_keys(model, path, found)
        yield Finding("", "warning", place_of(model, key), text, None, repaired)


def find_misplaced(model: ModelConfig, level: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the keys of a rope dict that are at the top of the language model's part, or of a level, with values."""
    level = model.text if level is None else level
    record = model.fields.architecture
    read = {*record.defaults, *record.aliases}
    found = {key: level[key] for key in ONLY_INSIDE if key not in read and level.get(key) is not None}
    kind = found.get("rope_type", "linear")
    if not isinstance(kind, str) or normalise_rope_type(kind) not in ROPE_TYPES or kind == "default":
        found.pop("rope_type")
    # A factor alone may belong to anything.
    if found and "factor" not in read and level.get("factor") is not None:
        found["factor"] = level["factor"]
    return found


def find_dict_for(model: ModelConfig) -> RopeDict | None:
    """Return the rope dict that misplaced keys belong into: the only one, None where there are none or several."""
    return model.rope_dicts[0] if len(model.rope_dicts) == 1 else None


def move_keys(model: ModelConfig, path: tuple[str, ...], found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the config with misplaced keys in the dict at a path, where that has none of its own."""
    config = write_keys(model, model.path, **dict.fromkeys(found))
    part = find_inside(config, path[:-1])
    given = part.get(path[-1])
    part[path[-1]] = {**found, **(given if isinstance(given, Mapping) else {})}
    return config


def lists_longer_than_layers(model: ModelConfig) -> Iterator[Finding]:
    """A list with an entry for each layer that has more entries than the model has layers.

    Source: transformers 5.24.0, whose classes read one entry for each of num_hidden_layers.
    """
    count = model.fields.size("num_hidden_layers")
    if count is None:
        return
    more = max((value for key in MORE_LAYERS if isinstance(value := model.text.get(key), int)), default=0)
    for key in BY_LAYER:
        entries = model.text.get(key)
        # layer_types of a listed type is an error of its own.
        if not isinstance(entries, list) or (key == "layer_types" and model.fields.is_listed):
            continue
        extra = len(entries) - count
        if extra > more:
            text = TEXTS("lists-longer-than-layers.message", key=key, entries=len(entries), layers=count, count=extra)
            # Published files have one entry for a layer that predicts a further token, without a key for it.
            yield Finding("", "note" if extra == 1 else "warning", place_of(model, key), text)
