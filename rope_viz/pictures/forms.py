"""A picture in every form: the browser's message, Plotly's JSON, numbers, a page, and files drawn by Matplotlib."""

from __future__ import annotations

import csv
import html
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go

from rope_viz.embedding.spec import shorten
from rope_viz.figures import clocks, files, sheet, theme
from rope_viz.pictures.kinds import Clocks, Figure, Kind, Table
from rope_viz.pictures.now import Now
from rope_viz.pictures.packed import bare, cells, columns, packed, prose
from rope_viz.pictures.page import Picture

FORMS = {
    "packed": "application/octet-stream",
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
    "pdf": "application/pdf",
}
"""{form: media type}."""

LOOKS = ("html", "svg", "png", "pdf")
"""Forms that have a size, a theme and a title of their own."""
OPTIONS = ("width", "height", "font", "theme", "title")
SCRIPTS = Path(__file__).parents[1] / "ui" / "components"


@dataclass(frozen=True)
class Paper:
    """How a file looks: size in pixels, font size in points (0: the usual ones), theme, title (empty: its own)."""

    width: int = 0
    height: int = 0
    font: float = 0
    theme: str = "light"
    title: str = ""


def paper(query: Mapping[str, str]) -> Paper:
    """How an address wants a file to look. Raises `ValueError` with a sentence."""
    sizes = {
        name: _number(name, query[name], *ends)
        for name, ends in {"width": (100, 5000), "height": (100, 5000), "font": (4, 72)}.items()
        if name in query
    }
    theme_name, title = query.get("theme", "light"), query.get("title", "")
    if theme_name not in ("light", "dark"):
        raise ValueError(f"theme must be light or dark, not {shorten(theme_name)}.")
    if len(title) > 300:
        raise ValueError(f"title must have at most 300 characters, got {len(title)}.")
    return Paper(int(sizes.get("width", 0)), int(sizes.get("height", 0)), sizes.get("font", 0), theme_name, title)


def render(picture: Picture, now: Now, form: str, look: Paper | None = None) -> bytes:
    """A picture of this `now` in one of `FORMS`. Raises `ValueError` with a sentence where it cannot be drawn."""
    drawn = picture(now)
    if form == "packed":
        return packed(picture, now, drawn)
    look = look or Paper()
    if form == "csv":
        if not isinstance(drawn, Figure):
            return table_csv(numbers(drawn))
        return files.to_csv(drawn.fig) if drawn.fig.data else b""
    if form == "html" and isinstance(drawn, Clocks):
        return clocks_page(drawn, look)
    if form == "html" and isinstance(drawn, Table):
        return table_page(drawn, look)
    if form == "json":
        return as_json(now, drawn)
    fig = figure(drawn)
    fig = theme.darkened(fig) if look.theme == "dark" else fig
    return WRITERS[form](fig, look.title or drawn.title)


WRITERS: Mapping[str, Callable[[go.Figure, str], bytes]] = files.WRITERS


def figure(drawn: Kind) -> go.Figure:
    """A still figure of any kind of picture."""
    if isinstance(drawn, Clocks):
        return clocks.still(drawn.message)
    return sheet.sheet(columns(drawn)) if isinstance(drawn, Table) else drawn.fig


def numbers(drawn: Clocks | Table) -> Mapping[str, Any]:
    """The numbers behind a picture that is no figure, by columns."""
    return clocks.numbers(drawn.message) if isinstance(drawn, Clocks) else columns(drawn)


def as_json(now: Now, drawn: Kind) -> bytes:
    """Plotly's own JSON, every array a list, with the spec, the title and the sentence beside it."""
    if isinstance(drawn, Figure):
        data, layout = [trace.to_plotly_json() for trace in drawn.fig.data], drawn.fig.layout.to_plotly_json()
    else:
        given = numbers(drawn)
        body = {"values": [list(values) for values in given.values()]}
        data, layout = [{"type": "table", "header": {"values": list(given)}, "cells": body}], {}
    out = {
        "data": _listed(data),
        "layout": _listed(layout),
        "title": drawn.title,
        "sentence": bare(drawn.sentence),
        "spec": now.spec_json,
    }
    return json.dumps(out, allow_nan=False, ensure_ascii=False).encode()


def table_csv(given: Mapping[str, Any]) -> bytes:
    """Columns as comma-separated values, all digits; what a spreadsheet would run gets an apostrophe in front."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(given)
    writer.writerows([_cell(value) for value in row] for row in zip(*given.values(), strict=True))
    return out.getvalue().encode()


def table_page(drawn: Table, look: Paper) -> bytes:
    """A table as a page of its own."""
    given = cells(drawn)
    head = "".join(f"<th>{html.escape(name)}</th>" for name in given)
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape('' if cell is None else str(cell))}</td>" for cell in row) + "</tr>"
        for row in zip(*given.values(), strict=True)
    )
    body = f"<p>{prose(drawn.sentence)}</p><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    style = "th,td{text-align:left;padding:4px 12px 4px 0;border-bottom:1px solid #8884}body{font-family:sans-serif}"
    return _page(look.title or drawn.title, body, look, style)


def clocks_page(drawn: Clocks, look: Paper) -> bytes:
    """A page on which the clocks turn, offline."""
    dials, script = ((SCRIPTS / name).read_text(encoding="utf-8") for name in ("dials.js", "clocks.js"))
    # Both scripts become one module: what the second imports from the first stands above it.
    kept = [line for line in script.splitlines() if not line.startswith(("import ", "export {"))]
    data = json.dumps({**drawn.message, "file": "", "alone": True}).replace("<", "\\u003c")
    root = 'root: document.querySelector(".rv-clocks"), memory: {}, component: { setStateValue() {} }'
    start = f"show({{ {root} }}, {data});"
    body = f'<div class="rv-clocks"></div><script type="module">{dials}\n{chr(10).join(kept)}\n{start}</script>'
    return _page(look.title or drawn.title, body, look, "body{margin:16px}")


def _page(title: str, body: str, look: Paper, style: str) -> bytes:
    dark = look.theme == "dark"
    back, text, line, main = (
        theme.DARK[colour] if dark else colour for colour in (theme.BACKGROUND, theme.TEXT, theme.RULE, theme.CURRENT)
    )
    names = f"--st-background-color:{back};--st-text-color:{text};--st-border-color:{line};--st-primary-color:{main}"
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{html.escape(title)}</title><style>body{{background:{back};color:{text}}}{style}</style></head>"
        f'<body style="{names};--st-font:sans-serif">{body}</body></html>'
    ).encode()


def _listed(value: Any) -> Any:
    """Plotly's values as plain JSON: arrays as lists, no NaN."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            return [_listed(each) for each in value.tolist()]
        return value.tolist()
    if isinstance(value, Mapping):
        return {name: _listed(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_listed(item) for item in value]
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _cell(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float):
        return "" if value != value else repr(value)
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "@", "\t", "-") else value


def _number(name: str, text: str, low: float, high: float) -> float:
    try:
        value = float(text) if len(text) < 20 else -1.0
    except ValueError:
        value = -1.0
    if not low <= value <= high:
        raise ValueError(f"{name} must be a number from {low} to {high}, not {shorten(text)}.")
    return value
