"""A picture as an HTML page that moves without Python: the module, and the state of a widget."""

from __future__ import annotations

import html
import json
import math
from typing import Any

from rope_viz.embedding.spec import Knob, RopeSpec
from rope_viz.figures import theme
from rope_viz.figures.files.html_json import plotly_js
from rope_viz.models import spec_url
from rope_viz.picture.outputs import Figure
from rope_viz.picture.page import Picture
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.texts import Texts
from rope_viz.texts.outside_text import printable
from rope_viz.texts.texts import language_code
from rope_viz.widgets.module import ALONE, make_module
from rope_viz.widgets.state import find_picture, list_sliders, read_state, render

TEXTS = Texts("widget")
STEPS = 25
"""Values of each slider for which a page holds the picture, where the browser cannot compute it."""
STYLE = """
:root { color-scheme: light dark; --ground: LIGHT; }
@media (prefers-color-scheme: dark) { :root { --ground: DARK; } }
html { background: var(--ground); font-family: system-ui, 'Segoe UI', Roboto, 'Noto Sans', sans-serif; }
body { max-width: 1240px; margin: 16px auto; padding: 0 16px; }
""".replace("LIGHT", theme.BACKGROUND).replace("DARK", theme.DARK[theme.BACKGROUND])


def make_page(picture: Picture, request: PictureRequest) -> bytes:
    """Return the page. It holds plotly.js for a picture with axes, and needs no network."""
    state, note, library = read_state(picture, request), "", ""
    if not is_computed(picture, request.spec):
        state["_frames"] = list_frames(picture, request)
        note = f"<p>{html.escape(TEXTS('saved', steps=STEPS))}</p>"
    if issubclass(picture.kind, Figure):
        library = f"<script>{plotly_js()}</script>"
    title, data = html.escape(picture(request).title), json.dumps(state).replace("<", "\\u003c")
    start = f'render({{ model: makeModel({data}), el: document.querySelector("#picture") }});'
    page = (
        f'<!DOCTYPE html><html lang="{language_code()}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title} · RoPE Viz</title><style>{STYLE}</style>{library}</head>"
        f'<body><main id="picture" aria-label="{title}"></main>{note}'
        f'<script type="module">{make_module()}\n{start}</script></body></html>'
    )
    return printable(page).encode()


def is_computed(picture: Picture, spec: RopeSpec) -> bool:
    """True if the browser computes the picture of any spec that the sliders reach."""
    return not spec.is_scaled and picture in [find_picture(name) for name in ALONE]


def list_frames(picture: Picture, request: PictureRequest) -> dict[str, list[tuple[float, str]]]:
    """Return {slider: (value, message) of each step}; a value for which there is no picture is left out."""
    found: dict[str, list[tuple[float, str]]] = {}
    for row in list_sliders(request.spec):
        name = row.pop("name")
        frames = found[name] = []
        for value in list_values(Knob(**row)):
            try:
                spec = spec_url.move_knob(request.spec, name.rpartition(".")[2], value)
                frames.append((value, render(picture, with_spec(request, spec))))
            except ValueError:
                continue
    return found


def list_values(knob: Knob) -> list[float]:
    """Return `STEPS` values from a knob's lowest to its highest, at equal distances on its track."""
    found: dict[float, Any] = {}
    for step in range(STEPS):
        share = step / (STEPS - 1)
        if knob.log:
            value = knob.low * math.exp(share * math.log(knob.high / knob.low))
        else:
            value = knob.low + share * (knob.high - knob.low)
        found[round(value) if knob.integer else float(f"{value:.3g}")] = None
    return list(found)


def with_spec(request: PictureRequest, spec: RopeSpec) -> PictureRequest:
    """Return a request for another spec, without values of choices that were adjusted to the last one."""
    subject = request.subject._replace(spec=spec)
    return PictureRequest(
        subject, request.pin, request.given, request.view, variants=request.variants, language=request.language
    )
