"""A figure as JSON, from which `redraw_json` can draw it again, and as a page that works offline."""

from __future__ import annotations

import functools
import html
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import plotly.graph_objects as go

from rope_viz.figures import theme
from rope_viz.figures.files.apply_style import apply_style
from rope_viz.figures.files.axes import array_of
from rope_viz.figures.files.redraw_json import columns_to_json
from rope_viz.figures.files.style import Style
from rope_viz.texts.outside_text import HIDDEN, dump_printable, escape_hidden, printable
from rope_viz.texts.texts import language_code

KIND = "rope-viz figure"


def to_json(fig: go.Figure, style: Style, title: str, meta: Mapping[str, Any] | None) -> bytes:
    """Return the figure as Plotly's `data` and `layout`, with its metadata, style and table.

    The table is the CSV's, if the figure has one beyond its traces. The style is stored but not applied, so that a
    redraw can use another.
    """
    plain = fig.to_plotly_json()
    layout = {key: value for key, value in plain["layout"].items() if key != "template"}
    facts = {"kind": KIND, "title": title, **(meta or {}), "style": style.query()}
    table = getattr(fig, "table", None)
    stored = {} if table is None else {"table": columns_to_json(table())}
    content = to_json_values({**facts, **stored, "data": plain["data"], "layout": layout})
    text = json.dumps(content, ensure_ascii=False, allow_nan=False)
    return (escape_hidden(text) + "\n").encode()


def to_html(fig: go.Figure, style: Style, title: str, meta: Mapping[str, Any] | None) -> bytes:
    """Return one page with the figure, plotly.js and metadata in its head, without Plotly's upload button."""
    sheet = apply_style(fig, style, title, responsive=True)
    layout = sheet.layout
    layout.pop("width", None)
    layout.pop("height", None)
    size = "width:100vw;height:100vh"
    if style.width or style.height:
        size = f"width:{sheet.width:.6g}px;height:{sheet.height:.6g}px"
    margin = layout.get("margin") or {}
    layout["margin"] = {side: float(value) * sheet.scale for side, value in margin.items()}
    if sheet.title:
        lift = 2.0 * style.font_px
        layout["title"] = {
            "text": html.escape(sheet.title, quote=False),
            "x": 0.01,
            "xanchor": "left",
            "yref": "container",
        }
        layout["title"] |= {"y": 1.0, "yanchor": "top", "pad": {"t": 6}, "font": {"size": 1.15 * style.font_px}}
        layout["margin"]["t"] = layout["margin"].get("t", 30.0) + lift
    head = to_meta_elements({"title": title, **(meta or {})})
    shown = to_json_values({"data": sheet.data, "layout": layout})
    figure = dump_printable(shown, ensure_ascii=False, allow_nan=False)
    config = '{"responsive":true,"displaylogo":false,"showSendToCloud":false}'
    ground = str(layout.get("paper_bgcolor", theme.BACKGROUND))
    name = html.escape(printable(title))
    return (
        f'<!DOCTYPE html>\n<html lang="{language_code()}"><head><meta charset="utf-8"><title>{name}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">{head}</head>\n'
        f'<body style="margin:0;background:{ground}">'
        f'<div id="figure" role="img" aria-label="{name}" style="{size}"></div>\n'
        f"<script>{plotly_js()}</script>\n"
        f"<script>const figure = {_escape_script(figure)};\n"
        f'Plotly.newPlot("figure", figure.data, figure.layout, {config});</script></body></html>\n'
    ).encode()


def to_meta_elements(facts: Mapping[str, Any]) -> str:
    """Return metadata as HTML meta elements."""
    return "".join(
        f'<meta name="rope-viz:{html.escape(str(name))}" content="{html.escape(printable(_format_value(value)))}">'
        for name, value in facts.items()
        if value not in (None, "")
    )


@functools.cache
def plotly_js() -> str:
    """Return plotly.js, escaped for use inside a script element.

    Two of its strings hold control characters, which a page's text must not have.
    """
    from plotly.offline import get_plotlyjs

    script = str(get_plotlyjs()).replace("</script", "<\\/script")
    return HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", script)


def _escape_script(text: str) -> str:
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _format_value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(to_json_values(value), ensure_ascii=False)


def to_json_values(value: Any) -> Any:
    """Convert to JSON values: arrays to lists, NaN and infinities to null."""
    if isinstance(value, Mapping):
        if set(value) >= {"bdata", "dtype"}:
            return to_json_values(array_of(value))
        return {str(key): to_json_values(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return to_json_values(value.tolist())
    if isinstance(value, (list, tuple)):
        return [to_json_values(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)
