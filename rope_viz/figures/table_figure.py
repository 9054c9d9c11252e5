"""A table as a figure, for files made without a browser."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rope_viz.figures import theme
from rope_viz.texts import Texts
from rope_viz.texts.line_breaks import count_letters, split_pieces, wrap_letters

TEXTS = Texts("tables")
ROW, MOST = 24, 40
WIDTH = 920
SMALL = 480
"""Pixels: the widest sheet, at the usual size of the font, that may leave out columns: a thumbnail."""
LETTER = 6.6
"""Average width in pixels of a letter at 12 px."""
EDGE, GAP, LEAST = 12, 3, 0.4


def sheet(columns: Mapping[str, Sequence[Any]], width: float = WIDTH, height: float | None = None) -> theme.DataFigure:
    """Draw the columns with long cells wrapped; past 40 rows a last line counts the rows left out.

    `width` and `height` are in pixels. If the words do not fit, the font shrinks. On a sheet of `SMALL` pixels at most,
    only the first rows and columns are drawn.
    """
    names = list(columns) or [TEXTS("no_rows")]
    count = max((len(values) for values in columns.values()), default=0)
    shown, room = min(count, MOST), math.inf
    if height is not None and width <= SMALL:
        shown, room = min(shown, int(height / ROW)), height - 2 * EDGE - ROW
        names = first_columns(columns, names, shown, (width - 2 * EDGE) / LETTER)
    rows = [[name.replace("_", " ") for name in names]]
    rows += [[format_cell(columns[name][row]) for name in names] for row in range(shown)]
    widths, needed = share_width(rows, (width - 2 * EDGE) / LETTER)
    type_size = min(1.0, max((width - 2 * EDGE) / LETTER / max(needed, 1), LEAST))
    letters = (width - 2 * EDGE) / LETTER / type_size
    font = {"size": 12 * type_size, "color": theme.TEXT}
    notes, shapes, down = [], [], 0.0
    for index, row in enumerate(rows):
        cells = [wrap_text(text, share * letters - GAP) for text, share in zip(row, widths, strict=True)]
        lines = max((cell.count("<br>") + 1 for cell in cells), default=1)
        if index > 1 and down + 8 + 16 * lines * type_size > room:
            shown = index - 1
            break
        for place, cell in enumerate(cells):
            text = f"<b>{cell}</b>" if index == 0 else cell
            where = {"x": sum(widths[:place]), "y": -down - 4, "xanchor": "left", "yanchor": "top", "align": "left"}
            notes.append(where | {"text": text, "showarrow": False, "font": font})
        down += 8 + 16 * lines * type_size
        rule = {"type": "line", "x0": 0, "x1": 1, "y0": -down, "y1": -down}
        shapes.append(rule | {"line": {"width": 1, "color": theme.RULE if index == 0 else theme.GRID}})
    if count > shown:
        text = TEXTS("more_rows", count=count - shown)
        where = {"x": 0, "y": -down - 4, "xanchor": "left", "yanchor": "top"}
        notes.append(where | {"text": text, "showarrow": False, "font": font})
        down += ROW
    hidden = {"showgrid": False, "showline": False, "showticklabels": False, "ticks": "", "tickvals": []}
    fig = theme.figure(
        [],
        x=hidden | {"range": [0, 1]},
        y=hidden | {"range": [-down, 0]},
        height=round(down) + 2 * EDGE,
        notes=notes,
        shapes=shapes,
        margin={side: EDGE for side in "lrtb"},
    )
    fig.table = lambda: columns
    fig.at_size = lambda wide, high: sheet(columns, wide, high)
    return fig


def first_columns(columns: Mapping[str, Sequence[Any]], names: Sequence[str], rows: int, letters: float) -> list[str]:
    """Return the first columns that fit into a width in letters without shrinking, at least one."""
    kept = list(names)
    while len(kept) > 1:
        cells = [[name.replace("_", " ") for name in kept]]
        cells += [[format_cell(columns[name][row]) for name in kept] for row in range(rows)]
        if share_width(cells, letters)[1] <= letters:
            break
        kept.pop()
    return kept


def format_cell(value: Any) -> str:
    """Format a cell, numbers with six significant digits."""
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return TEXTS("true" if value else "false")
    return f"{value:.6g}" if isinstance(value, float) or hasattr(value, "dtype") else theme.plain_text(str(value))


def share_width(rows: Sequence[Sequence[str]], letters: float) -> tuple[list[float], float]:
    """Return the width of each column, which add up to 1, and the least width of the table in letters.

    No column is narrower than its longest word; the rest of the `letters` available goes to the widest cells.
    """
    longest = [
        max(max((count_letters(piece.strip()) for piece in split_pieces(text)), default=0) for text in column) + GAP
        for column in zip(*rows, strict=True)
    ]
    widest = [min(max(map(count_letters, column)), 60) + GAP for column in zip(*rows, strict=True)]
    needed, spare = sum(longest), max(letters - sum(longest), 0.0)
    wanted = [max(wide - word, 0) for wide, word in zip(widest, longest, strict=True)]
    column_widths = [word + spare * want / (sum(wanted) or 1) for word, want in zip(longest, wanted, strict=True)]
    return [width / (sum(column_widths) or 1) for width in column_widths], needed


def wrap_text(text: str, most: float) -> str:
    """Wrap the text at `most` letters, without splitting words."""
    return "<br>".join(wrap_letters(text, most))
