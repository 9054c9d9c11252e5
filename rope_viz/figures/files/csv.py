"""A figure's numbers as CSV: its own table if it has one, else what is drawn, always one table.

Lines that start with # hold metadata; `pandas.read_csv(path, comment="#")` skips them.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from rope_viz.figures.files import lines
from rope_viz.figures.files.axes import array_of, is_numeric
from rope_viz.figures.files.rich_text import strip_markup
from rope_viz.figures.files.style import ERRORS, Style, format_one_line
from rope_viz.texts.outside_text import printable

Columns = Mapping[str, Any]
# Characters that CSV readers treat as a separator, a quote, a line end or a comment.
QUOTED = re.compile(r'[",#\r\n]')


def to_csv(fig: go.Figure, style: Style, title: str, meta: Mapping[str, Any] | None) -> bytes:
    """Return the CSV file; raise `ValueError` for labels of lines that the figure does not have."""
    out = io.StringIO()
    for name, value in header_lines(title, meta):
        out.write(f"# {name}: {value}\n")
    shown = relabel_columns(read_columns(fig), fig, style) or {"no rows": ()}
    filled = [[*map(format_cell, plain_list(values))] for values in shown.values()]
    rows = max(map(len, filled))
    out.write(format_row([guard_formula(name) for name in shown]))
    for index in range(rows):
        out.write(format_row([values[index] if index < len(values) else "" for values in filled]))
    return printable(out.getvalue()).encode()


def format_row(row: Sequence[Any]) -> str:
    """Format a row; cells with a comma, a quote, a line break or a # are quoted."""
    words = [f'"{word.replace(chr(34), 2 * chr(34))}"' if QUOTED.search(word) else word for word in map(str, row)]
    # An empty line would be skipped on reading.
    return (",".join(words) if words != [""] else '""') + "\n"


def plain_list(values: Any) -> list[Any]:
    """Return a column as plain Python values."""
    if isinstance(values, np.ndarray):
        return list(values.tolist())
    return [value.item() if isinstance(value, np.generic) else value for value in values]


WRITTEN = ("scatter", "bar", "heatmap")


def header_lines(title: str, meta: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Return (name, value) of the lines above the table, each on one line; none without `meta`."""
    if meta is None:
        return []
    entries = {"title": title, **{key: value for key, value in meta.items() if value not in (None, "")}}
    return [(format_one_line(name), format_one_line(value)) for name, value in entries.items()]


def read_columns(fig: go.Figure) -> Columns:
    """Return the columns of the table, name -> values."""
    table = getattr(fig, "table", None)
    if table is not None:
        return dict(table())
    shown = [trace for trace in fig.data if (trace.meta or {}).get("csv") is not False]
    if other := next((trace.type for trace in shown if trace.type not in WRITTEN), None):
        raise ValueError(ERRORS("no_table", kind=other))
    maps = [trace for trace in shown if trace.type == "heatmap"]
    return _stack_maps(fig, maps) if maps else _join_curves(fig, shown)


def _stack_maps(fig: go.Figure, maps: Sequence[Any]) -> Columns:
    out: dict[str, list[Any]] = {}
    if len(maps) > 1:
        out["map"] = []
    rows_title, columns_title = _axis_title(fig, maps[0], "y"), _axis_title(fig, maps[0], "x")
    corner = f"{rows_title} \\ {columns_title}".strip()
    out[corner] = []
    for trace in maps:
        z = array_of(trace.z)
        rows = np.arange(len(z)) if trace.y is None else array_of(trace.y)
        heads = np.arange(z.shape[1]) if trace.x is None else array_of(trace.x)
        if len(maps) > 1:
            out["map"] += [strip_markup(trace.name or "")] * len(z)
        out[corner] += [strip_markup(row) if isinstance(row, str) else row for row in rows.tolist()]
        for name, values in zip(heads.tolist(), z.T, strict=True):
            out.setdefault(strip_markup(name) if isinstance(name, str) else f"{name:.10g}", []).extend(values.tolist())
    return out


def _join_curves(fig: go.Figure, traces: Sequence[Any]) -> Columns:
    """Join curves over equal x values; other curves get their own x column."""
    out: dict[str, Any] = {}
    last: Any = None
    for trace in traces:
        horizontal = trace.type == "bar" and trace.orientation == "h"
        at, values = (trace.y, trace.x) if horizontal else (trace.x, trace.y)
        at = array_of(at)
        if last is None or not _is_same(at, last):
            words = [strip_markup(each) for each in at.tolist()] if not is_numeric(at) else at
            out[_free_name(_axis_title(fig, trace, "y" if horizontal else "x") or "x", out)] = words
            last = at
        out[_free_name(strip_markup(trace.name or "y"), out)] = array_of(values)
    return out


def _is_same(a: Any, b: Any) -> bool:
    if a.shape != b.shape:
        return False
    return bool(np.array_equal(a, b, equal_nan=is_numeric(a) and is_numeric(b)))


def _axis_title(fig: go.Figure, trace: Any, letter: str) -> str:
    short = (trace.xaxis if letter == "x" else trace.yaxis) or letter
    layout = fig.layout
    axis = f"{letter}axis{short[1:]}"
    own = layout[axis].title.text if axis in layout else None
    return strip_markup(own or layout[f"{letter}axis"].title.text or "")


def _free_name(name: str, used_names: Mapping[str, Any]) -> str:
    count = 2
    free = name
    while free in used_names:
        free, count = f"{name} ({count})", count + 1
    return free


def relabel_columns(table: Columns, fig: go.Figure, style: Style) -> Columns:
    """Rename the columns of lines to which the user gave a label, and leave out those of hidden lines."""
    custom, hidden = dict(style.labels), dict(style.hidden)
    data = [trace.to_plotly_json() for trace in fig.data]
    lines.find_lines(data, [*custom, *hidden])
    names = [strip_markup(name) for name in lines.line_names(data)]

    def find_line(column: str) -> str:
        return max((name for name in names if column == name or column.startswith(f"{name} ")), key=len, default="")

    out: dict[str, Any] = {}
    for column, values in table.items():
        name = find_line(column)
        if name not in hidden:
            out[_free_name(custom.get(name, name) + column[len(name) :], out)] = values
    return out


def format_cell(value: Any) -> Any:
    """Return a cell: "" for gaps, numbers in full precision, texts guarded."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float):
        return repr(value)
    return guard_formula(value) if isinstance(value, str) else value


def guard_formula(word: str) -> str:
    """Prefix a text with an apostrophe if a spreadsheet would run it as a formula."""
    try:
        float(word)
    except ValueError:
        return f"'{word}" if word.startswith(("=", "+", "@", "-", "\t")) else word
    return word
