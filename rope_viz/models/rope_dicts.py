"""The rope dicts of a config: the objects of the file that say how its layers scale."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from rope_viz.models.config_reader import Fields, Params
from rope_viz.models.rope_config import read_number, read_optional, read_rope_type
from rope_viz.models.rope_parameters import Layers, nested_keys

Path: TypeAlias = tuple[str, ...]

KEYS = ("rope_scaling", "rope_parameters")
"""Keys of a rope dict, in the order of precedence."""


@dataclass(frozen=True)
class RopeDict:
    """One rope dict: its place in the file, its content, its type under today's name, and the layers that read it."""

    path: Path
    rope: dict[str, Any]
    kind: str
    layers: tuple[str, ...]

    @property
    def key(self) -> str:
        """The place as text."""
        return ".".join(self.path)

    @property
    def layer(self) -> str:
        """The first layer type that reads the dict."""
        return self.layers[0]

    def number(self, key: str, default: float | None = None) -> float:
        """Return a number of the dict, or the default. Raises `ValueError` where there is neither."""
        return read_number(self.rope, key, default)

    def optional(self, key: str) -> float | None:
        """Return a number of the dict, None where the key is absent."""
        return read_optional(self.rope, key)


def list_ropes(text: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the rope dicts at the top of the language model's part of a file by key, without empty ones."""
    ropes = {key: text.get(key) for key in KEYS}
    return {key: rope for key, rope in ropes.items() if isinstance(rope, Mapping) and rope}


def find_rope_dicts(
    ropes: Mapping[str, Mapping[str, Any]], path: Path, fields: Fields, layers: Layers
) -> tuple[RopeDict, ...]:
    """Return the rope dicts that are read, in the order of precedence.

    `ropes` are those of `list_ropes`, `path` the place of the language model, `layers` its RoPE parameters by layer
    type.
    """
    found: list[RopeDict] = []
    for key, rope in ropes.items():
        # Where all layers share one embedding, a second dict is not read.
        if found and not layers.keys() - {""}:
            continue
        for nested in nested_keys(dict(rope)) or [""]:
            part = rope[nested] if nested else rope
            readers = find_layers(nested, fields, layers)
            if isinstance(part, Mapping) and readers:
                place = (*path, key, nested) if nested else (*path, key)
                kind = read_rope_type(fields, dict(part))
                found.append(RopeDict(place, dict(part), kind, readers))
    return tuple(found)


def find_layers(nested: str, fields: Fields, layers: Mapping[str, Params]) -> tuple[str, ...]:
    """Return the layer types that read a dict under this key, which is "" for a dict of all layers.

    A dict of all layers is for those that scale. A key that the architecture does not know has no layers.
    """
    if nested:
        return (nested,) if nested in layers else ()
    scaled = tuple(name for name, params in layers.items() if read_rope_type(fields, params) != "default")
    return scaled or tuple(layers)
