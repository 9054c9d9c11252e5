"""The findings that rules of the check make, and what the rules ask of a `ModelConfig`."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from rope_viz.models.model_config import ModelConfig, from_config
from rope_viz.models.rope_dicts import RopeDict
from rope_viz.models.text_config import find_inside
from rope_viz.runtimes.compare import Effect, find_max_ratio
from rope_viz.storage.decode_json import read_own
from rope_viz.texts import Texts

TEXTS = Texts("findings")

Severity: TypeAlias = Literal["error", "warning", "note"]
Path: TypeAlias = tuple[str, ...]
Config: TypeAlias = dict[str, Any]
KNOWN_KEYS = read_own(__file__, "known_keys.json")
"""Keys by what is known of them."""


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with a config, or worth knowing.

    `key` is its place in the config. `repaired` is the whole config without the fault, None where no repair is right
    for every model. `source` says where the rule is known from.
    """

    rule: str
    severity: Severity
    key: str
    message: str
    effect: Effect | None = None
    repaired: Config | None = None
    source: str = ""


def find_dicts(model: ModelConfig, *kinds: str) -> list[RopeDict]:
    """Return the rope dicts of these types."""
    return [one for one in model.rope_dicts if one.kind in kinds]


def find_dict(model: ModelConfig, layer: str) -> RopeDict | None:
    """Return the rope dict that is read for a layer type, None where there is none."""
    return next((one for one in model.rope_dicts if layer in one.layers), None)


def place_of(model: ModelConfig, *keys: str) -> str:
    """Return the place of a key of the language model, as text."""
    return ".".join((*model.path, *keys))


def write_keys(model: ModelConfig, path: Path, **changes: Any) -> Config:
    """Return a copy of the config with these entries at that place; None removes one."""
    config = copy.deepcopy(dict(model.mapping))
    part = find_inside(config, path)
    for key, value in changes.items():
        if value is None:
            part.pop(key, None)
        else:
            part[key] = value
    return config


def measure_effect(model: ModelConfig, repaired: Config, layer: str) -> Effect | None:
    """Return how far the config's frequencies are from those of another, at the longer of their lengths."""
    before, after = model.specs.get(layer), from_config(repaired).get(layer)
    if before is None or after is None:
        return None
    return find_max_ratio(before.inv_freq(before.target), after.inv_freq(after.target))
