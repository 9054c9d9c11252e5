"""Read a figure that was saved as JSON, by this package or by Plotly, and check that it can be drawn."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import plotly.colors
import plotly.exceptions
import plotly.graph_objects as go

from rope_viz.embedding.spec import short_repr
from rope_viz.figures import theme
from rope_viz.figures.files.axes import array_of, is_numeric
from rope_viz.figures.files.csv import plain_list
from rope_viz.storage.decode_json import decode_json

ENDLESS = {"inf": math.inf, "-inf": -math.inf}
PLACES = {"annotations": ("x", "y"), "shapes": ("x0", "x1", "y0", "y1")}
STRAIGHT = ("rect", "line", "circle")
CELLS = (str, int, float, type(None))


def from_json(content: bytes | str) -> tuple[go.Figure, dict[str, Any]]:
    """Return the figure in a JSON file and its other entries: title, spec, address, style (as parameters).

    Raise `ValueError` for anything but a figure that can be drawn.
    """
    saved = decode_json(content, "this is no JSON: take a file that a figure's JSON download gave")
    saved = saved if isinstance(saved, dict) else {}
    data, layout = saved.pop("data", None), saved.pop("layout", None)
    if not isinstance(data, list) or not isinstance(layout, dict):
        raise ValueError("there is no figure in this JSON: take a file that a figure's JSON download gave")
    if not isinstance(saved.get("style", {}), dict):
        raise ValueError(f"the style in this JSON must be parameters by name, not {short_repr(saved['style'])}")
    if not data and not any(layout.get(key) for key in ("annotations", "shapes")):
        raise ValueError("there is nothing to draw in this figure: its data are empty")
    data = [_read_trace(trace, f"trace {place} of this figure") for place, trace in enumerate(data, 1)]
    table = columns_of(saved.pop("table")) if "table" in saved else None
    if any(trace["type"] == "table" for trace in data):
        if len(data) > 1:
            raise ValueError("a table cannot be drawn together with other traces: remove one of them")
        table = _read_table(data[0])
        if not table and "kind" not in saved:
            raise ValueError("there is nothing to draw in this figure: its table is empty")
    try:
        fig = theme.DataFigure(data=data, layout={"template": go.layout.Template(), **_check_layout(layout)})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"this figure cannot be drawn: {first_reason(error)}") from None
    fig.table = None if table is None else lambda: table
    return fig, saved


def columns_to_json(columns: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Convert table columns to JSON values that `columns_of` reads back; gaps are null."""
    return {name: [_column_to_json(value) for value in plain_list(values)] for name, values in columns.items()}


def columns_of(saved: Any) -> dict[str, list[Any]]:
    """Read the columns that `columns_to_json` wrote; raise `ValueError` for anything else."""
    if not isinstance(saved, dict):
        raise ValueError(f"the table in this JSON must be columns by name, not {short_repr(saved)}")
    for name, values in saved.items():
        if not isinstance(values, list) or not all(isinstance(value, CELLS) for value in values):
            raise ValueError(f"the column {short_repr(name)} in this JSON must be a list of numbers and texts")
    return {name: _read_column(values) for name, values in saved.items()}


def first_reason(error: Exception) -> str:
    """Shorten Plotly's long validation message to one line."""
    text = str(error)
    found = re.search(r"received for the '(\w+)' property of ([\w.]*)\s+Received value: (.*)", text)
    if found:
        return f"{found[2]}.{found[1]} must not be {found[3][:60]}".removeprefix(".")
    first = next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
    return short_repr(first, 120)[1:-1]


def _column_to_json(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value if isinstance(value, CELLS) else str(value)


def _read_column(values: list[Any]) -> list[Any]:
    numbers = all(not isinstance(value, str) or value in ENDLESS for value in values)
    return [ENDLESS[value] if isinstance(value, str) else value for value in values] if numbers else values


def _read_table(trace: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the columns of a Plotly table; raise `ValueError` if header and cells do not match."""
    names, columns = ((trace.get(part) or {}) for part in ("header", "cells"))
    names, columns = ((part.get("values") if isinstance(part, dict) else None) for part in (names, columns))
    names, columns = names or [], columns or []
    if not isinstance(names, list) or not isinstance(columns, list) or len(names) != len(columns):
        raise ValueError("the table in this JSON must have a list of cells for every name in its header")
    heads = [" ".join(map(str, name)) if isinstance(name, list) else str(name) for name in names]
    if len(set(heads)) < len(heads):
        raise ValueError("two columns of the table in this JSON have one name")
    out = columns_of(dict(zip(heads, columns, strict=True)))
    longest = max(map(len, out.values()), default=0)
    return {name: values + [None] * (longest - len(values)) for name, values in out.items()}


def _check_layout(layout: dict[str, Any]) -> dict[str, Any]:
    """Return the layout without a foreign `meta`; raise `ValueError` for notes and shapes without coordinates."""
    layout = {
        **layout,
        **{
            key: _check_parts(layout[key], key[:-1], PLACES[key]) for key in PLACES if isinstance(layout.get(key), list)
        },
    }
    meta = layout.get("meta")
    narrow = meta.get("narrow", {}) if isinstance(meta, dict) else None
    return dict(layout) if meta is None or isinstance(narrow, dict) else {**layout, "meta": {}}


def _check_parts(parts: list[Any], what: str, keys: tuple[str, ...]) -> list[Any]:
    """Add Plotly's defaults for text or type to notes or shapes, and check their coordinates."""
    for place, part in enumerate(parts, 1):
        for key in keys if isinstance(part, dict) and (part.get("type") or "rect") in STRAIGHT else ():
            if not isinstance(part.get(key), (str, int, float)):
                raise ValueError(f"{key} of {what} {place} of this figure must be a number or a text")
    usual = {"text": ""} if what == "annotation" else {"type": "rect"}
    cleaned = [{k: v for k, v in part.items() if v is not None} if isinstance(part, dict) else part for part in parts]
    return [usual | part if isinstance(part, dict) else part for part in cleaned]


def _read_trace(given: Any, name: str) -> dict[str, Any]:
    """Return a trace with everything that drawing needs; raise `ValueError` if something is missing."""
    if not isinstance(given, dict) or not isinstance(given.get("type", "scatter"), str):
        raise ValueError(f"{name} must be an object with a type")
    trace: dict[str, Any] = {"type": "scatter", **given}
    if not isinstance(trace.get("meta", {}), dict):
        del trace["meta"]
    if trace["type"] == "heatmap":
        return _check_map(trace, name)
    if trace["type"] in ("scatter", "bar"):
        return _check_points(trace, name)
    return trace


def _check_points(trace: dict[str, Any], name: str) -> dict[str, Any]:
    """Check curves, points and bars: missing x or y count from 0, longer lists are cut to the shorter one."""
    arrays = {key: _check_line(trace[key], f"{key} of {name}") for key in "xy" if trace.get(key) is not None}
    if not arrays:
        raise ValueError(f"{name}, a {trace['type']}, has neither x nor y: there is nothing to draw")
    count = min(map(len, arrays.values()))
    for key in "xy":
        if key not in arrays:
            trace[key] = list(range(count))
        elif len(arrays[key]) > count:
            trace[key] = plain_list(arrays[key])[:count]
    if "text" in str(trace.get("mode")):
        text = trace.get("text", "")
        words = [text] * count if isinstance(text, str) else text if isinstance(text, list) else []
        trace["text"] = [*words, *[""] * count][:count]
    return trace


def _check_line(values: Any, name: str) -> Any:
    array = _read_array(values, name)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one list of numbers or texts")
    return array


def _read_array(values: Any, name: str) -> Any:
    try:
        array = array_of(values)
        if array.dtype.kind in "iufbUOM" and not (array.dtype == object and _read_nested(array)):
            return array
    except (ValueError, TypeError, KeyError):
        pass
    raise ValueError(f"{name} must be a list of numbers or texts, and lists in it equally long")


def _read_nested(values: Any) -> bool:
    return any(isinstance(value, (list, dict)) for value in values.ravel())


def _check_scale(scale: Any, name: str) -> list[list[Any]]:
    try:
        return [*map(list, plotly.colors.get_colorscale(scale))] if scale else theme.SEQUENTIAL
    except (plotly.exceptions.PlotlyError, ValueError, TypeError, AttributeError):
        raise ValueError(f"there is no colorscale {short_repr(scale)}, which {name} asks for") from None


def _check_map(trace: dict[str, Any], name: str) -> dict[str, Any]:
    """Check a map: equally long rows of numbers, and as many labels as rows and columns."""
    z = _read_array(trace.get("z"), f"z of {name}")
    if z.ndim != 2 or not z.size or not is_numeric(z):
        raise ValueError(f"z of {name}, a heatmap, must be rows of numbers, equally long")
    for key, count, what in (("x", z.shape[1], "columns"), ("y", z.shape[0], "rows")):
        if trace.get(key) is not None and len(_check_line(trace[key], f"{key} of {name}")) != count:
            raise ValueError(f"{key} of {name} must name its {count} {what}, one each")
    text = trace.get("text")
    if text is not None and _read_array(text, f"text of {name}").shape != z.shape:
        raise ValueError(f"text of {name} must have a text for each of its {z.shape[0]} by {z.shape[1]} cells")
    if not trace.get("coloraxis"):
        known = np.asarray(z, dtype=np.float64)
        known = known[np.isfinite(known)]
        ends = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
        for key, end in zip(("zmin", "zmax"), ends, strict=True):
            if trace.get(key) is None:
                trace[key] = end
        if not isinstance(trace.get("colorscale"), list):
            trace["colorscale"] = _check_scale(trace.get("colorscale"), name)
    return trace
