"""Conversion of a picture to every format: the browser's message, Plotly's JSON, CSV, HTML, and Matplotlib files."""

from __future__ import annotations

import gzip
import html
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

import plotly.graph_objects as go

from rope_viz import __version__
from rope_viz.figures import clocks, files, table_figure, theme
from rope_viz.figures.files import Style, is_key
from rope_viz.figures.files.apply_style import apply_style, css
from rope_viz.figures.files.colours import grey_pair
from rope_viz.figures.files.html_json import to_meta_elements
from rope_viz.figures.files.redraw_json import columns_to_json
from rope_viz.figures.files.render_sheet import MissingFontError
from rope_viz.models import spec_url
from rope_viz.picture import ROUTE, write_address
from rope_viz.picture.outputs import Clocks, Figure, Kind, Table
from rope_viz.picture.page import Picture
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.picture.public_address import read_public_address
from rope_viz.picture.wire_format import cells, columns, markdown_to_html, packed, strip_markup
from rope_viz.texts import Texts, use_language
from rope_viz.texts.languages import ENGLISH
from rope_viz.texts.outside_text import dump_printable, printable
from rope_viz.texts.texts import language_code
from rope_viz.web.bundle import bundle

HELD = ("config", "choices")
"""Metadata that only JSON files contain."""


def address(picture: Picture, query: Mapping[str, str]) -> str:
    """Return the address of a picture."""
    text = urlencode(query)
    return f"{ROUTE}/{picture.address}?{text}" if text else f"{ROUTE}/{picture.address}"


def view_query(picture: Picture, request: PictureRequest) -> dict[str, str]:
    """Return the part of a picture's query about its zoom and refinement."""
    view = (
        {"view": ",".join(map(spec_url.format_value, request.view))}
        if picture.zooms and request.view is not None
        else {}
    )
    part = min(request.part, picture.parts(request) - 1)
    return view | ({"part": str(part)} if part else {})


def restyle_address(address: str, look: Style) -> str:
    """Return a picture's address with another style."""
    path, _, before = address.partition("?")
    query = {key: text for key, text in parse_qsl(before, keep_blank_values=True) if not is_key(key)} | look.query()
    return f"{path}?{urlencode(query)}" if query else path


def own_inputs(picture: Picture, request: PictureRequest) -> dict[str, Any]:
    """Return what a picture depends on besides the spec, for its JSON: the choices and the user's config."""
    own = {"config": request.own.config} if picture.config and request.own is not None else {}
    try:
        return own | {"choices": write_address.choices_query(request, picture)}
    except KeyError:
        return own


def drop_json_only(saved: Mapping[str, Any]) -> dict[str, Any]:
    """Drop the metadata that only JSON files contain."""
    return {key: value for key, value in saved.items() if key not in HELD}


TEXTS = Texts("export")
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
WHOLE = ("png", "pdf")
"""Formats with built-in compression."""


def render(picture: Picture, request: PictureRequest, form: str, look: Style | None = None) -> bytes:
    """Render a picture in one of `FORMS`. Raise `ValueError` with a sentence if it cannot be rendered."""
    request = request.shared
    with use_language(request.language), theme.skip_validation():
        drawn = picture(request)
        if form == "packed":
            return packed(picture, request, drawn)
        look = look or Style()
        facts = meta(picture, request, drawn, look)
        try:
            return to_file(drawn, form, look, facts | own_inputs(picture, request) if form == "json" else facts)
        except MissingFontError as error:
            mark = " · ".join(filter(None, (look.mark, str(error))))
    # In English, with a line that names the font to install.
    return render(picture, replace(request, language=ENGLISH), form, replace(look, mark=mark))


def to_file(drawn: Kind, form: str, look: Style, facts: Mapping[str, Any]) -> bytes:
    """Return a rendered picture as a file with these facts as metadata."""
    fig = figure(drawn)
    if not isinstance(drawn, Figure) and form in ("csv", "html"):
        apply_style(fig, look, drawn.title)  # for its errors: all formats refuse the same styles
    if form == "html" and isinstance(drawn, Clocks):
        return clocks_page(drawn, look, facts)
    if form == "html" and isinstance(drawn, Table):
        return table_page(drawn, look, facts)
    if form == "json" and not isinstance(drawn, Figure):
        given = columns_to_json(numbers(drawn))
        body = {"values": list(given.values())}
        fig = go.Figure([{"type": "table", "header": {"values": list(given)}, "cells": body}])
    return files.render(fig, form, options=look, title=drawn.title, meta=facts)


def compressed(picture: Picture, request: PictureRequest, form: str, look: Style | None = None) -> bytes:
    """Render and gzip a picture for the server's cache; formats with built-in compression are left as they are.

    Streamlit would otherwise compress it for every response, on the server's event loop.
    """
    content = render(picture, request, form, look)
    return content if form in WHOLE else gzip.compress(content, 1 if request.coarse else 6, mtime=0)


def meta(picture: Picture, request: PictureRequest, drawn: Kind, look: Style) -> dict[str, Any]:
    """Return a file's metadata: the picture, the page's sentence, addresses and the spec.

    "address" is the page's address; "figure" is the picture's own, with its zoom and style.
    """
    view = f"{picture.address}, {drawn.variant}" if drawn.variant else picture.address
    page = "" if picture.page == "home" else picture.page
    own: dict[str, str] = {}
    try:
        query = write_address.query(request, picture)
        text = urlencode(query)
        page_address = f"{read_public_address()}/{page}" + (f"?{text}" if text else "")
        own = {"figure": address(picture, query | view_query(picture, request) | look.query())}
    except KeyError:
        # A stored content (a user's own config) has no name outside a session.
        page_address = ""
    zoom = {"zoom": list(request.view)} if picture.zooms and request.view is not None else {}
    facts = {"picture": picture.address, "view": view, "address": page_address, **own, **zoom}
    # The spec is the sidebar's, even if a page shows other models.
    shown = write_address.other_models(request, picture)
    of = {"models": ", ".join(shown.values())} if shown else {}
    return facts | of | {"sentence": strip_markup(drawn.sentence), "spec": request.subject.spec_json}


def figure(drawn: Kind) -> go.Figure:
    """Return a static figure of any kind of picture, for a table one with its cells."""
    if isinstance(drawn, Figure):
        return drawn.fig
    if isinstance(drawn, Clocks):
        return drawn.draw_static()
    return table_figure.sheet(columns(drawn))


def numbers(drawn: Clocks | Table) -> Mapping[str, Any]:
    """Return the numbers behind a picture without a Plotly figure, by column."""
    return drawn.numbers() if isinstance(drawn, Clocks) else columns(drawn)


def table_page(drawn: Table, look: Style, facts: Mapping[str, Any]) -> bytes:
    """Return a table as an HTML page with its metadata in the head."""
    given = cells(drawn)
    head = "".join(f"<th>{html.escape(name)}</th>" for name in given)
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape('' if cell is None else str(cell))}</td>" for cell in row) + "</tr>"
        for row in zip(*given.values(), strict=True)
    )
    body = (
        f"<p>{markdown_to_html(drawn.sentence)}</p><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    )
    style = "th,td{text-align:left;padding:4px 12px 4px 0;border-bottom:1px solid #8884}"
    return _page(drawn.title, body, look, facts, style)


def clocks_page(drawn: Clocks, look: Style, facts: Mapping[str, Any]) -> bytes:
    """Return an HTML page whose picture moves, and that needs no network."""
    name = drawn.renderer
    message = clocks.greyed(drawn.message) if look.grey else drawn.message
    data = dump_printable({**message, "file": "", "alone": True}).replace("<", "\\u003c")
    root = f'root: document.querySelector(".rv-{name}"), memory: {{}}, component: {{ setStateValue() {{}} }}'
    start = f"show({{ {root} }}, {data});"
    body = f'<div class="rv-{name}"></div><script type="module">{script(name)}\n{start}</script>'
    return _page(drawn.title, body, look, facts, "body{margin:16px}")


def script(name: str) -> str:
    """Return that script as one self-contained module, with only its imports visible."""
    return "\n".join(line for line in bundle(f"{name}.js").splitlines() if not line.startswith("export {"))


def _page(title: str, body: str, look: Style, facts: Mapping[str, Any], style: str) -> bytes:
    dark = look.theme == "dark"
    back, text, line, main = (
        theme.DARK[colour] if dark else colour for colour in (theme.BACKGROUND, theme.TEXT, theme.RULE, theme.CURRENT)
    )
    if look.grey:
        back, text, line, main = (
            grey_pair(colour)[dark] for colour in (theme.BACKGROUND, theme.TEXT, theme.RULE, theme.CURRENT)
        )
    font = css(look).replace('"', "'")
    names = f"--st-background-color:{back};--st-text-color:{text};--st-border-color:{line};--st-primary-color:{main}"
    ground = "transparent" if look.theme == "transparent" else back
    room = f"width:{look.width_px(0):g}px;" if look.width else ""
    above = look.title_of(title)
    head = to_meta_elements({"title": title, "version": f"RoPE Viz {__version__}", **facts})
    heading = f"<h1>{html.escape(above)}</h1>" if above else ""
    style = f"{style}h1{{font-size:1.15em}}"
    page = (
        f'<!DOCTYPE html><html lang="{language_code()}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{html.escape(above or title)}</title>{head}<style>body{{background:{ground};color:{text};{room}"
        f"font-family:{font};font-size:{look.font_px:g}px}}{style}</style></head>"
        f'<body style="{names};--st-font:{font}">{heading}{body}</body></html>'
    )
    return printable(page).encode()
