"""What the rules of the check look at, a config and where its RoPE keys stand, and what they find."""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.config_reader import Fields
from rope_viz.models.model_config import ModelConfig, from_config
from rope_viz.models.rope_config import rope_type
from rope_viz.models.rope_parameters import Layers, nested_keys, rope_layers
from rope_viz.runtimes.compare import Effect, largest

Severity: TypeAlias = Literal["error", "warning", "note"]
Path: TypeAlias = tuple[str, ...]
Config: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong or worth knowing.

    `key` is where it stands in the config, `repaired` the whole config without the fault (None: there is no repair
    that is right for every model), `source` where the rule comes from.
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
    rope: Mapping[str, Any]
    kind: str
    layers: tuple[str, ...]

    @property
    def key(self) -> str:
        """The place as text."""
        return ".".join(self.path)


class View:
    """A config as the rules see it. Everything is computed when it is first asked for."""

    def __init__(self, config: Config) -> None:
        self.config = config

    @functools.cached_property
    def root(self) -> Path:
        """Where the language model's keys stand in the config, the top of it where they stand nowhere."""
        part = ModelConfig.read(self.config).part
        return part.path if part.stands else ()

    def place(self, key: str) -> str:
        """Where a key of the language model stands, as text."""
        return ".".join((*self.root, key))

    @functools.cached_property
    def text(self) -> Mapping[str, Any]:
        """The language model's part of the config."""
        part = inside(self.config, self.root)
        return part if isinstance(part, Mapping) else {}

    @functools.cached_property
    def fields(self) -> Fields:
        """The same with the class defaults behind it."""
        return ModelConfig.read(self.config).fields

    @functools.cached_property
    def layers(self) -> Layers:
        """The rope dict of each layer type with defaults filled in."""
        return rope_layers(self.fields)

    @functools.cached_property
    def specs(self) -> dict[str, RopeSpec]:
        """What the config means."""
        return from_config(self.config)

    @functools.cached_property
    def sites(self) -> tuple[Site, ...]:
        """The rope dicts of the config that are read, in the order of precedence."""
        found: list[Site] = []
        for key in ("rope_scaling", "rope_parameters"):
            rope = self.text.get(key)
            if not isinstance(rope, Mapping) or not rope or (found and not self.layers.keys() - {""}):
                continue
            nested = nested_keys(dict(rope))
            for layer in nested or [""]:
                part = rope[layer] if layer else rope
                if isinstance(part, Mapping) and self.read_for(layer):
                    path = (*self.root, key, layer) if layer else (*self.root, key)
                    found.append(Site(path, part, self.kind(part), self.read_for(layer)))
        return tuple(found)

    def read_for(self, layer: str) -> tuple[str, ...]:
        """The layer types that a dict under this key is read for; none where the architecture does not know the key."""
        if layer:
            return (layer,) if layer in self.layers else ()
        scaled = tuple(name for name, params in self.layers.items() if self.kind(params) != "default")
        return scaled or tuple(self.layers)

    def kind(self, rope: Mapping[str, Any]) -> str:
        """The type of scaling of a rope dict."""
        return rope_type(self.fields, dict(rope))

    @property
    def mla(self) -> bool:
        """Whether the model is of DeepSeek's kind, with a part of the head that never rotates."""
        return self.fields.has_latent_attention

    @property
    def limit(self) -> int:
        """max_position_embeddings."""
        return self.fields.required("max_position_embeddings")

    def changed(self, path: Path, **changes: Any) -> Config:
        """A copy of the config with these entries at that place; None removes one."""
        config = copy.deepcopy(self.config)
        part = inside(config, path)
        for key, value in changes.items():
            if value is None:
                part.pop(key, None)
            else:
                part[key] = value
        return config

    def effect(self, repaired: Config, layer: str) -> Effect | None:
        """How far the config's frequencies are from those of another config, at the longer of their lengths."""
        before, after = self.specs.get(layer), from_config(repaired).get(layer)
        if before is None or after is None:
            return None
        return largest(before.inv_freq(before.target), after.inv_freq(after.target))


def inside(part: Any, path: Path) -> Any:
    """What stands at a place, None where there is none."""
    for key in path:
        part = part.get(key) if isinstance(part, Mapping) else None
    return part
