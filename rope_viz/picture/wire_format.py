"""The browser's message format: [u32 length][JSON][raw arrays], with arrays referenced by offset."""

from __future__ import annotations

import html
import re
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rope_viz.figures import glossary, theme
from rope_viz.figures.files import Style, format_span, format_stem
from rope_viz.figures.files.axes import is_length
from rope_viz.figures.files.lines import line_names
from rope_viz.figures.words import FOOTNOTE, plain_cell, spell_out_footnotes, unescape
from rope_viz.picture import write_address
from rope_viz.picture.outputs import Clocks, Grid, Kind, Table
from rope_viz.picture.page import Picture
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.texts.outside_text import dump_printable

SHORT = {"float64": "f8", "float32": "f4", "int32": "i4", "int8": "i1", "uint8": "u1"}


def packed(picture: Picture, request: PictureRequest, drawn: Kind) -> bytes:
    """Return the message that shows a picture on its page."""
    message: dict[str, Any] = {
        "kind": picture.kind.renderer,
        "picture": picture.address,
        "title": drawn.title,
        "sentence": glossary.linked_html(markdown_to_html(drawn.sentence, footnotes=True)),
        "variant": drawn.variant,
        "file": file(picture, request, drawn.variant),
    }
    if isinstance(drawn, Clocks):
        return framed(message | dict(drawn.message))
    if isinstance(drawn, Table):
        message |= {"columns": cells(drawn, footnotes=True), "words": drawn.words}
        return framed(
            message
            | (
                {"states": drawn.states, "chosen": drawn.chosen, "letters": drawn.letters}
                if isinstance(drawn, Grid)
                else {}
            )
        )
    message |= {"spec": request.subject.spec_json, "zooms": picture.zooms, "pins": drawn.pins, "twins": theme.DARK}
    # to_plotly_json would copy these, which takes a quarter of a picture's time.
    traces, layout = drawn.fig._data, drawn.fig._layout
    axes = {key: axis.get("title", {}).get("text", "") for key, axis in layout.items() if key[1:].startswith("axis")}
    # The axes whose ticks are powers of two, also after a zoom.
    message["lengths"] = [key for key, title in axes.items() if is_length(title)]
    if not request.coarse:
        # The lines that the user may rename in a file.
        message["lines"] = line_names(traces)
    return pack(traces, layout, message, quick=request.coarse)


def file(picture: Picture, request: PictureRequest, variant: str = "", look: Style | None = None) -> str:
    """Return the stem of the picture's file name: what it shows, of which models, over which range."""
    look = look or Style()
    pinned = [*request.variants.values()] if picture.variants else []
    others = [model for model in dict.fromkeys(each.subject.model for each in pinned) if model != request.model]
    length = next((request[choice] for choice in picture.uses if choice.name == "length"), None)
    given = format_span(look.xmin, look.xmax, "x"), format_span(look.ymin, look.ymax, "y")
    # Axis limits set by the user replace the default range in the name.
    span = (0, length) if isinstance(length, int) and not given[0] else None
    zoom = request.view if picture.zooms and not (look.xmin is not None and look.xmax is not None) else None
    count = f"{len(pinned)}-pinned" if pinned else ""
    extra = [part for part in (format_span(*zoom, "zoom") if zoom else "", *given, count) if part]
    name = f"{picture.page}-{variant or picture.name}"
    own = write_address.other_models(request, picture)
    spec = request.spec if not own or request.model in own else None
    return format_stem(name, [*(own or [request.model]), *others], spec=spec, span=span, extra=extra)


def cells(table: Table, *, footnotes: bool = False) -> dict[str, list[Any]]:
    """Return a table's columns as lists of JSON values; without `footnotes`, sources are in brackets."""
    return {name: [plain(value) for value in values] for name, values in columns(table, footnotes=footnotes).items()}


def columns(table: Table, *, footnotes: bool = False) -> dict[str, Any]:
    """Return a table's columns by name, whether it was given as columns or as rows.

    Without `footnotes`, those of a table of text are replaced by their sources in brackets.
    """
    if isinstance(table.columns, Mapping):
        found = dict(table.columns)
    else:
        rows = list(table.columns)
        found = {name: [row.get(name) for row in rows] for name in (rows[0] if rows else {})}
    if footnotes or not table.words:
        return found
    return {
        name: [plain_cell(value) if isinstance(value, str) else value for value in values]
        for name, values in found.items()
    }


def plain(value: Any) -> Any:
    """Return a value as JSON allows it; None for NaN and infinities."""
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not np.isfinite(value) else value


def pack(
    traces: Sequence[dict[str, Any]], layout: dict[str, Any], message: Mapping[str, Any], *, quick: bool = False
) -> bytes:
    """Pack a message with a figure as plain data. `quick` sends heatmaps in 8 bits, for a moving knob."""
    arrays: list[bytes] = []
    offset = 0

    def put(value: Any, low: float | None = None, high: float | None = None) -> Any:
        nonlocal offset
        if isinstance(value, np.ndarray) and value.dtype.kind in "if" and value.ndim in (1, 2):
            array = value
            ends: list[float] = []
            if quick and low is not None and high is not None:
                steps = np.rint((array - low) * (254.0 / (high - low)))
                array = np.where(np.isnan(steps), 255, np.clip(steps, 0, 254)).astype(np.uint8)
                ends = [low, high]
            elif array.dtype.name not in SHORT:
                array = array.astype(np.int32 if array.dtype.kind == "i" else np.float64)
            raw = np.ascontiguousarray(array).tobytes()
            place = [SHORT[array.dtype.name], offset, array.size, array.shape[1] if array.ndim == 2 else 0, *ends]
            arrays.append(raw + b"\0" * (-len(raw) % 8))
            offset += len(arrays[-1])
            return {"$": place}
        if isinstance(value, np.ndarray):
            return value.tolist()
        if isinstance(value, dict):
            bounds = value.get("zmin"), value.get("zmax")
            return {name: put(item, *bounds) if name == "z" else put(item) for name, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [put(item) for item in value]
        return value.item() if isinstance(value, np.generic) else value

    figure = {"data": [put(trace) for trace in traces], "layout": put(layout)}
    return framed({**message, "figure": figure}, b"".join(arrays))


def framed(message: Mapping[str, Any], arrays: bytes = b"") -> bytes:
    """Return [u32 length][JSON, padded with blanks to a multiple of 8][arrays]."""
    header = dump_printable(message, separators=(",", ":"), allow_nan=False).encode()
    header += b" " * (-(4 + len(header)) % 8)
    return struct.pack("<I", len(header)) + header + arrays


def markdown_to_html(sentence: str, *, footnotes: bool = False) -> str:
    """Return a sentence as HTML.

    Its Markdown is limited to **bold**, *emphasis*, `code`, backslash escapes and `words.footnote`. Without
    `footnotes`, which need the app's scripts, the sources are in brackets.
    """
    if not footnotes:
        sentence = spell_out_footnotes(sentence)
    out, end = [], 0
    for found in MARKS.finditer(sentence):
        source, sign, code, bold, emphasis = found.groups()
        out.append(html.escape(sentence[end : found.start()]))
        end = found.end()
        if source:
            out.append(f'<a href="#source">{html.escape(unescape(source))}</a>')
            continue
        if sign:
            out.append(html.escape(sign))
            continue
        tag = "code" if code else "strong" if bold else "em"
        out.append(f"<{tag}>{html.escape(code) if code else markdown_to_html(bold or emphasis)}</{tag}>")
    return "".join([*out, html.escape(sentence[end:])])


def strip_markup(sentence: str) -> str:
    """Return a sentence without markup."""
    return html.unescape(re.sub(r"</?(code|strong|em)>", "", markdown_to_html(sentence)))


def escape_markup(text: str) -> str:
    """Escape the markup signs of plain text."""
    return re.sub(r"([\\`*])", r"\\\1", text)


MARKS = re.compile(FOOTNOTE.pattern + r"|\\([\\`*_\[\]<>$~|#&:+.)-])|`([^`]+)`|\*\*(.+?)\*\*|\*(\S.*?)\*")
