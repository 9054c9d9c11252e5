"""A table as a figure, for files made without a browser: every cell a text, rules between the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from rope_viz.figures import theme

ROW, MOST = 24, 40
WIDTH = 920
LETTER = 6.6
"""Pixels, about what a letter of 12 pixels takes."""


def sheet(columns: Mapping[str, Sequence[Any]]) -> go.Figure:
    """The columns side by side, wide texts on several lines; past 40 rows a line says how many are left out."""
    names = list(columns)
    rows = [[name.replace("_", " ") for name in names]]
    count = max((len(values) for values in columns.values()), default=0)
    rows += [[written(columns[name][row]) for name in names] for row in range(min(count, MOST))]
    widths = shares(rows)
    notes, shapes, down = [], [], 0
    for index, row in enumerate(rows):
        cells = [broken(text, width * WIDTH / LETTER - 2) for text, width in zip(row, widths, strict=True)]
        lines = max((cell.count("<br>") + 1 for cell in cells), default=1)
        for place, cell in enumerate(cells):
            font = {"size": 12, "color": theme.TEXT}
            text = f"<b>{cell}</b>" if index == 0 else cell
            where = {"x": sum(widths[:place]), "y": -down - 4, "xanchor": "left", "yanchor": "top", "align": "left"}
            notes.append(where | {"text": text, "showarrow": False, "font": font})
        down += 8 + 16 * lines
        rule = {"type": "line", "x0": 0, "x1": 1, "y0": -down, "y1": -down}
        shapes.append(rule | {"line": {"width": 1, "color": theme.RULE if index == 0 else theme.GRID}})
    if count > MOST:
        text = f"and {count - MOST:,} rows more, which the csv file holds"
        where = {"x": 0, "y": -down - 4, "xanchor": "left", "yanchor": "top"}
        notes.append(where | {"text": text, "showarrow": False, "font": {"size": 12, "color": theme.TEXT}})
        down += ROW
    hidden = {"showgrid": False, "showline": False, "showticklabels": False, "ticks": "", "tickvals": []}
    return theme.figure(
        [],
        x=hidden | {"range": [0, 1]},
        y=hidden | {"range": [-down, 0]},
        height=down + 24,
        notes=notes,
        shapes=shapes,
        margin={"l": 12, "r": 12, "t": 12, "b": 12},
    )


def written(value: Any) -> str:
    """A cell as a person reads it: numbers to six significant digits."""
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) or hasattr(value, "dtype") else theme.plain_text(str(value))


def shares(rows: Sequence[Sequence[str]]) -> list[float]:
    """The width of each column, by its widest cell where that is not too wide; they add up to 1."""
    widest = [min(max(len(text) for text in column), 60) + 3 for column in zip(*rows, strict=True)]
    return [width / sum(widest) for width in widest]


def broken(text: str, most: float) -> str:
    """The text on lines of at most so many letters, where its words allow."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) >= most:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "<br>".join(lines)
