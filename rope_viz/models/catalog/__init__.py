"""The models that come with RoPE Viz: one config.json fragment each, in the format of an upload.

To add one, write a file `<id>.json` in this folder: the config's own keys, and `_about` with these:

- `name`, `pairing`.
- `family`, as the maker names it, and `size`: parameters as the name of the model has them ("35B-A3B"), or as
  `rope-viz memory` counts them.
- `status`: V1 (a copy of the published file or the authors' code), V2 (class defaults or other copies that agree) or
  UNVERIFIED (a number from memory, or sources that conflict).
- `trained_length`, only where a paper, a model card, documentation or a training configuration states the length of
  training. A number that only a copied config states is an original length or a limit; it stays in the config and is
  not repeated here.
- `wrapper`, the model type at the top of the published file where the entry has its language model alone.
- `layer`, where the entry is about one layer type.
- `sizes`: what else the config.json states about layers, heads and vocabulary.
- `documented`: the extensions that the model's maker documents and the config does not contain.

Its source, and that of `trained_length` (the document and the place in it), are in the texts "model_sources".
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rope_viz.embedding.spec import RopeSpec, short_repr
from rope_viz.models import TEXTS
from rope_viz.models.identity.hf_cache import is_model_id, model_id_of_page
from rope_viz.models.rope_config import build_specs, find_main_layer
from rope_viz.models.rope_parameters import resolve_rope_parameters
from rope_viz.models.text_config import find_text_part, read_text_fields
from rope_viz.texts import Texts

NOTES, SOURCES = Texts("model_notes"), Texts("model_sources")


@dataclass(frozen=True)
class Model:
    """A model of the list.

    `trained_length` is a documented length of training; None where only a config was copied.

    Each of `documented` has `to` (tokens), `rope_scaling` (as it is written), `source` and `says`, the key of its title
    in the texts of plans.
    """

    id: str
    name: str
    family: str
    size: str
    status: str
    pairing: str
    config: Mapping[str, Any] = field(hash=False)
    trained_length: int | None = None
    wrapper: str = ""
    layer: str | None = None
    sizes: Mapping[str, Any] = field(default_factory=dict, hash=False)
    documented: Sequence[Mapping[str, Any]] = field(default=(), hash=False)

    @property
    def source(self) -> str:
        """Where its numbers are from: sources with "; " between them."""
        return SOURCES.entries[f"config.{self.id}"]

    @property
    def trained_source(self) -> str:
        """The document that states `trained_length`, "" where none does."""
        return SOURCES.entries.get(f"length.{self.id}", "")

    @property
    def note(self) -> str:
        """What is unusual about its numbers, "" for nothing."""
        return NOTES.entries.get(self.id, "")

    @property
    def whole(self) -> dict[str, Any]:
        """The config with what else is known of its sizes."""
        return {**self.sizes, **self.config}

    @property
    def original_length(self) -> int:
        """The length that the entry's scaling divides from; its limit where nothing is scaled."""
        specs = model_specs(self.id)
        return specs[main_layer(self, specs)].context

    @property
    def scaled_by(self) -> str:
        """The scaling method of the layer type that the entry is about, "none" for none."""
        specs = model_specs(self.id)
        return specs[main_layer(self, specs)].scaling.name

    @property
    def verified(self) -> bool:
        """Whether every number of the entry was found in a source."""
        return self.status != "UNVERIFIED"


@functools.cache
def catalog() -> Mapping[str, Model]:
    """Return {id: model} of all entries, sorted by name."""
    files = Path(__file__).parent.glob("*.json")
    models = [read_entry(file.stem, file.read_text(encoding="utf-8")) for file in files]
    return MappingProxyType({model.id: model for model in sorted(models, key=lambda model: model.name.lower())})


def find_by_name(name: str) -> Model | None:
    """Return the entry with this id, or the one that a Hub id such as Qwen/Qwen3-8B names; None if there is none."""
    if name in catalog():
        return catalog()[name]
    id = model_id_of_page(name.strip().rstrip("/")).removesuffix("@main")
    if not is_model_id(id) or "@" in id:
        return None
    wanted = letters_of(id.partition("/")[2])
    return next((model for model in catalog().values() if wanted in map(letters_of, (model.id, model.name))), None)


def letters_of(name: str) -> str:
    """Return a model's name in lower case, without spaces, hyphens and the like."""
    return "".join(letter for letter in name.lower() if letter.isalnum() or letter == ".")


@functools.cache
def model_specs(id: str) -> Mapping[str, RopeSpec]:
    """Return {layer type: embedding} of an entry, "" where all layers share one. Raises `ValueError` for no entry."""
    if id not in catalog():
        raise ValueError(TEXTS("model_config.no_model", id=short_repr(id)))
    fields = read_text_fields(find_text_part(catalog()[id].config))
    return MappingProxyType(build_specs(fields, resolve_rope_parameters(fields)))


def main_layer(model: Model, specs: Mapping[str, RopeSpec]) -> str:
    """Return the layer type that an entry is about."""
    return model.layer if model.layer is not None and model.layer in specs else find_main_layer(specs)


def read_entry(id: str, text: str) -> Model:
    """Return an entry from the text of its file."""
    config = json.loads(text)
    return Model(id=id, config=MappingProxyType(config), **config["_about"])
