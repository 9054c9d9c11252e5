"""The config that a check is about, as its rules see it, and the findings that they make."""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.config_reader import Fields
from rope_viz.models.model_config import ModelConfig, Source, from_config
from rope_viz.models.rope_config import read_number, read_optional, read_rope_type
from rope_viz.models.rope_parameters import Layers, nested_keys
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


@dataclass(frozen=True)
class Site:
    """One rope dict of the config: its place, its content, its type under today's name, the layers it is read for."""

    path: Path
    rope: Config
    kind: str
    layers: tuple[str, ...]

    @property
    def key(self) -> str:
        return ".".join(self.path)

    @property
    def layer(self) -> str:
        """The first layer type that the dict is read for."""
        return self.layers[0]

    def number(self, key: str, default: float | None = None) -> float:
        """Return a number of the dict, or the default. Raises `ValueError` where there is neither."""
        return read_number(self.rope, key, default)

    def optional(self, key: str) -> float | None:
        """Return a number of the dict, None where the key is absent."""
        return read_optional(self.rope, key)


class View:
    """A config as the rules see it: `model` is the config that was read, everything else is derived from it."""

    def __init__(self, source: Source) -> None:
        self.model = ModelConfig.read(source)

    @property
    def config(self) -> Mapping[str, Any]:
        """The config as it stands in the file."""
        return self.model.mapping

    @property
    def fields(self) -> Fields:
        """The language model's keys with the class defaults behind them."""
        return self.model.fields

    @property
    def layers(self) -> Layers:
        """The RoPE parameters of each layer type with defaults filled in."""
        return self.model.rope_parameters

    @property
    def specs(self) -> dict[str, RopeSpec]:
        """The embedding of each layer type."""
        return self.model.specs

    @functools.cached_property
    def text(self) -> Mapping[str, Any]:
        """The language model's part of the config, without the class defaults."""
        part = inside(self.config, self.model.path)
        return part if isinstance(part, Mapping) else {}

    def place(self, *keys: str) -> str:
        """Return the place of a key of the language model, as text."""
        return ".".join((*self.model.path, *keys))

    @functools.cached_property
    def sites(self) -> tuple[Site, ...]:
        """The rope dicts of the config that are read, in the order of precedence."""
        found: list[Site] = []
        for key in ("rope_scaling", "rope_parameters"):
            rope = self.text.get(key)
            if not isinstance(rope, Mapping) or not rope or (found and not self.layers.keys() - {""}):
                continue
            for layer in nested_keys(dict(rope)) or [""]:
                part, layers = rope[layer] if layer else rope, self.layers_of(layer)
                if isinstance(part, Mapping) and layers:
                    path = (*self.model.path, key, layer) if layer else (*self.model.path, key)
                    found.append(Site(path, dict(part), self.scaling_type(part), layers))
        return tuple(found)

    def sites_of(self, *kinds: str) -> list[Site]:
        """Return the rope dicts of these types."""
        return [site for site in self.sites if site.kind in kinds]

    def site_for(self, layer: str) -> Site | None:
        """Return the rope dict that is read for a layer type, None where there is none."""
        return next((site for site in self.sites if layer in site.layers), None)

    def layers_of(self, layer: str) -> tuple[str, ...]:
        """Return the layer types that read a dict under this key; none where the architecture does not know the key."""
        if layer:
            return (layer,) if layer in self.layers else ()
        scaled = tuple(name for name, params in self.layers.items() if self.scaling_type(params) != "default")
        return scaled or tuple(self.layers)

    def scaling_type(self, rope: Mapping[str, Any]) -> str:
        return read_rope_type(self.fields, dict(rope))

    def changed(self, path: Path, **changes: Any) -> Config:
        """Return a copy of the config with these entries at that place; None removes one."""
        config = copy.deepcopy(dict(self.config))
        part = inside(config, path)
        for key, value in changes.items():
            if value is None:
                part.pop(key, None)
            else:
                part[key] = value
        return config

    def effect(self, repaired: Config, layer: str) -> Effect | None:
        """Return how far the config's frequencies are from those of another, at the longer of their lengths."""
        before, after = self.specs.get(layer), from_config(repaired).get(layer)
        if before is None or after is None:
            return None
        return find_max_ratio(before.inv_freq(before.target), after.inv_freq(after.target))


def inside(part: Any, path: Path) -> Any:
    """Return what a config has at a place, None where it has nothing there."""
    for key in path:
        part = part.get(key) if isinstance(part, Mapping) else None
    return part
