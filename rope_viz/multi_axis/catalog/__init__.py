"""Models with positions on several axes that come with RoPE Viz: one config fragment each, with its source.

To add one, add a JSON file here with the config's own keys and `_about`: name, source, status (V1: run here or the
authors' code; V2: class defaults or copies that agree), note, grid ({axis: extent in units of position} of a usual
image or video, with its source in `grid_note`), step ({axis: units of position} of one patch, where that is not 1) and
family where the config has the arguments of a class.
"""

from __future__ import annotations

import functools
import importlib.resources
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from rope_viz.embedding.axes_spec import AxesSpec
from rope_viz.embedding.spec import short_repr
from rope_viz.models.several_axes.model_axes import split_by_head
from rope_viz.multi_axis import from_model, read_family


@dataclass(frozen=True)
class AxesModel:
    """A model of the list, with the keys of its `_about`."""

    id: str
    name: str
    source: str
    status: str
    note: str
    grid_note: str
    grid: Mapping[str, float] = field(hash=False)
    config: Mapping[str, Any] = field(hash=False)
    family: str | None = None
    step: Mapping[str, float] = field(default_factory=dict, hash=False)


@functools.cache
def axes_catalog() -> Mapping[str, AxesModel]:
    """Return {id: model}, sorted by name, read once."""
    files = [file for file in importlib.resources.files(__name__).iterdir() if file.name.endswith(".json")]
    models = [parse_model(file.name.removesuffix(".json"), file.read_text(encoding="utf-8")) for file in files]
    return MappingProxyType({model.id: model for model in sorted(models, key=lambda model: model.name.lower())})


@functools.cache
def model_parts(id: str) -> Mapping[str, AxesSpec]:
    """Return {part: rotation} of a model of the list. Raises `ValueError` by name."""
    if id not in axes_catalog():
        raise ValueError(f"there is no model {short_repr(id)} with several axes in the list")
    model = axes_catalog()[id]
    if model.family is None:
        return MappingProxyType(from_model(model.config))
    return MappingProxyType(split_by_head(model.family.split("/")[0], read_family(model.family, model.config)))


def parse_model(id: str, text: str) -> AxesModel:
    """Return one entry from the text of its file."""
    config = json.loads(text)
    about = config.pop("_about")
    sides = {key: MappingProxyType(about[key]) for key in ("grid", "step") if key in about}
    return AxesModel(id=id, config=MappingProxyType(config), **{**about, **sides})
