"""The values from which the browser shows a picture and moves it: the traits of a widget, the data of a saved page."""

from __future__ import annotations

import base64
import dataclasses
import json
from typing import Any

from rope_viz.embedding.spec import Knob, RopeSpec, knobs
from rope_viz.figures import clocks, hands, theme
from rope_viz.own_files import configs
from rope_viz.pages import registry
from rope_viz.picture import export
from rope_viz.picture.page import Picture
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.texts import join

PICTURES = {
    "Clocks": ("rotation", "turning"),
    "Hands": ("home", "turning"),
    "Frequencies": ("frequencies", "wavelengths"),
    "Decay": ("decay", "curves"),
    "Scaling": ("scaling", "comparison"),
}
"""{widget: (page, picture)}."""
SIZES = ("base", "context", "target")
"""The sizes of a spec with a slider. The others change the number of pairs."""
COLOURS = {
    "text": theme.TEXT,
    "border": theme.RULE,
    "primary": theme.CURRENT,
    "secondary-background": theme.PANEL,
}


def find_picture(widget: str) -> Picture:
    """Return the picture of a widget by its name."""
    return registry.picture(*PICTURES[widget])


def read_state(picture: Picture, request: PictureRequest) -> dict[str, Any]:
    """Return all values by name. Raise `ValueError` with a sentence if there is no picture."""
    return {
        "spec": write_spec(request.spec),
        "pin": request.pin,
        "_picture": render(picture, request),
        "_sliders": list_sliders(request.spec),
        "_fixed": list_fixed(),
    }


def write_spec(spec: RopeSpec) -> dict[str, Any]:
    """Return a spec as JSON."""
    return dataclasses.asdict(spec)


def read_spec(given: Any) -> RopeSpec:
    """Return the spec of its JSON. Raise `ValueError` if it is none."""
    return configs.spec_of(json.dumps(given).encode())


def render(picture: Picture, request: PictureRequest) -> str:
    """Return the message from which the browser draws a picture, as base64."""
    return base64.b64encode(export.render(picture, request, "packed")).decode()


def list_sliders(spec: RopeSpec) -> list[dict[str, Any]]:
    """Return the knob of each number of a spec that has a slider, with its name in the spec's JSON.

    Texts are plain: not every notebook takes a `Sentence` for one.
    """
    found: dict[str, Knob] = {name: knobs(spec)[name] for name in SIZES}
    for name, knob in knobs(spec.scaling).items():
        if getattr(spec.scaling, name) is not None:
            found[f"scaling.{name}"] = knob
    rows = [{"name": name, **dataclasses.asdict(knob)} for name, knob in found.items()]
    return [{key: str(value) if isinstance(value, str) else value for key, value in row.items()} for row in rows]


def list_fixed() -> dict[str, Any]:
    """Return what does not change with the spec: colours as (light, dark), and what `unscaled.js` computes from.

    `titles` are plain texts, of the clocks by mode, whose placeholders the browser fills in.
    """
    names = {"pairs": "{pairs}"}
    dials = {
        mode: str(
            join(clocks.TEXTS("dials.all", motion=clocks.TEXTS(f"dials.{mode}"), **names), clocks.TEXTS("dials.keys"))
        )
        for mode in clocks.STARTS
    }
    return {
        "colours": {name: (colour, theme.DARK[colour]) for name, colour in COLOURS.items()},
        "degrees": hands.FEW,
        "titles": {**dials, "hands": hands.TEXTS.entries["hands.title"]},
    }
