"""Positions along a prompt: a line per axis, the cost of images, and where a second runtime differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from rope_viz.embedding.spec import FloatArray
from rope_viz.figures import theme
from rope_viz.multi_axis.prompt_syntax import Piece, PromptLayout, first_difference
from rope_viz.pages.axes.figures import TEXTS, look
from rope_viz.runtimes.releases import format_name
from rope_viz.texts.numbers import format_number

View = tuple[float, float]
RUNTIMES = {
    "transformers": "transformers 5.23",
    "transformers-4.57": "transformers 4.57",
    **{name: format_name(name) for name in ("vllm", "sglang", "mlx-vlm", "llama.cpp")},
}
BINS = 900  # of tokens; each is drawn by its lowest and highest position
HEIGHT = 430
TINTS = {"text": None, "image": theme.CURRENT, "video": theme.FURTHER[0], "audio": theme.FURTHER[3]}


def positions(
    layout: PromptLayout,
    runtime: str,
    other: PromptLayout | None = None,
    other_runtime: str = "",
    *,
    view: View | None = None,
) -> go.Figure:
    """Draw a line per axis over the tokens, the next token `rope_delta` from its index, a second runtime dashed."""
    values = layout.positions.values
    count = len(values)
    first, end = (0, count) if view is None else (max(0, int(view[0])), min(count, int(view[1]) + 2))
    traces = curves(layout, first, end, runtime)
    shapes, notes = bands(layout)
    if other is not None:
        traces += curves(other, first, end, other_runtime, dash="dash")
        at = first_difference(layout, other)
        if at is not None:
            shapes.append(theme.rule(at - 0.5, "", axis="x", dash="dot"))
            notes.append(difference_note(at, layout, other, runtime, other_runtime))
    top = float(max(values.max(), 1.0 if other is None else other.positions.values.max(), 8.0)) * 1.12
    traces.append(line_marker(count, layout, runtime))
    if layout.positions.rope_delta is not None:
        shapes.append(gap(count, layout, top))
        notes.append(gap_note(count, layout, top))
    notes += letters(layout)
    return theme.figure(
        traces,
        x={
            "title": TEXTS("prompt.token_axis"),
            "range": [-0.5 - 0.01 * count, count * 1.16],
            "minallowed": -0.1 * count - 1,
        },
        y={"title": TEXTS("prompt.position_axis"), "range": [min(0.0, float(values.min())) - 0.02 * top, top]},
        height=HEIGHT,
        shapes=shapes,
        notes=notes,
        hovermode="x unified",
        margin={"l": 68, "r": 24, "t": 58, "b": 48},
        # Room for the label after the last token.
        meta={"narrow": {"xaxis": {"range": [-0.5 - 0.01 * count, count * 1.45]}}},
    )


def curves(layout: PromptLayout, first: int, end: int, runtime: str, *, dash: str = "solid") -> list[dict[str, Any]]:
    """Return a line per axis, and one on top where all axes agree."""
    values = layout.positions.values
    alike = np.all(values == values[:, :1], axis=1)
    out = []
    # The column axis varies most: draw it first, and thinnest.
    for k in reversed(range(len(layout.positions.axes))):
        x, y = thin_out(values[:, k], first, min(end, len(values)))
        seen = look(layout.positions.axes[k])
        name = TEXTS("prompt.line", axis=seen.label, runtime=RUNTIMES.get(runtime, runtime))
        hover = f"{name} %{{y:,.6~g}}<extra></extra>"
        width = 1.0 if seen.letter == "w" else 2.0
        out.append(theme.line(x, y, name, seen.colour, dash=dash, width=width, hovertemplate=hover))
    x, y = thin_out(np.where(alike, values[:, 0], np.nan), first, min(end, len(values)))
    out.append(
        theme.line(
            x, y, TEXTS("prompt.all_axes"), theme.TEXT, dash=dash, width=2.2, hoverinfo="skip", hovertemplate=None
        )
    )
    return out


def thin_out(values: FloatArray, first: int, end: int) -> tuple[FloatArray, FloatArray]:
    """Return the tokens [first, end) and their values; of many, only the lowest and highest per bin. Gaps stay gaps."""
    count = end - first
    index = np.arange(first, end, dtype=np.float64)
    if count <= 2 * BINS:
        return index, values[first:end]
    edges = np.unique(np.linspace(first, end, BINS + 1).astype(np.int64))
    shown = values[first:end]
    sizes = np.diff(edges)
    # A row per bin, padded with NaN; a bin of NaN alone stays a gap.
    grid = np.full((len(sizes), int(sizes.max())), np.nan)
    grid[np.arange(grid.shape[1]) < sizes[:, None]] = shown
    is_gap = np.isnan(grid)
    low, high = np.where(is_gap, np.inf, grid).argmin(axis=1), np.where(is_gap, -np.inf, grid).argmax(axis=1)
    places = np.sort(np.stack([low, high], axis=1), axis=1)
    x = (edges[:-1, None] + places).astype(np.float64).ravel()
    return x, np.take_along_axis(grid, places, axis=1).ravel()


def bands(layout: PromptLayout) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return shaded columns for the pieces of the prompt, and their labels."""
    shapes, notes = [], []
    total = layout.ends[-1]
    for index, piece in enumerate(layout.pieces):
        start, stop = layout.ends[index], layout.ends[index + 1]
        colour = TINTS[piece.what]
        if colour is not None and stop > start:
            box = {"type": "rect", "layer": "below", "yref": "paper", "y0": 0, "y1": 1, "line": {"width": 0}}
            shapes.append(box | {"x0": start - 0.5, "x1": stop - 0.5, "fillcolor": theme.tint(colour, 0.08)})
        if (stop - start) >= 0.1 * total or (colour is not None and (stop - start) >= 0.05 * total):
            where = {"x": (start + stop) / 2, "y": 1, "yref": "paper", "yanchor": "bottom", "showarrow": False}
            text = TEXTS(
                "prompt.piece", piece=name_piece(piece), tokens=layout.tokens(index), positions=layout.cost(index)
            )
            notes.append(
                where | {"text": text, "font": {"size": 12, "color": theme.TEXT}, "align": "center", "name": "panel"}
            )
    return shapes, notes


def name_piece(piece: Piece) -> str:
    """Name a piece of the prompt."""
    return TEXTS(f"pieces.{piece.what}", width=piece.width, height=piece.height, seconds=piece.seconds)


def letters(layout: PromptLayout) -> list[dict[str, Any]]:
    """Label each axis by its letter at its line, in the largest image or video."""
    visual = [k for k, piece in enumerate(layout.pieces) if piece.what in ("image", "video")]
    if not visual:
        return []
    widest = max(visual, key=layout.tokens)
    start, stop = layout.ends[widest], layout.ends[widest + 1]
    values = layout.positions.values[start:stop]
    notes = []
    for k, axis in enumerate(layout.positions.axes):
        seen = look(axis)
        # Where each axis is most visible: end of the first row, last row, middle.
        last = len(values) - 1 - int(np.argmax(values[::-1, k]))
        place = {"w": int(np.argmax(values[:, k])), "h": last}.get(seen.letter, len(values) // 2)
        at = {"x": start + place, "y": float(values[place, k]), "showarrow": False, "yshift": 9, "borderpad": 0}
        text = {"text": f"<b>{seen.letter}</b>", "font": {"size": 13, "color": seen.colour}}
        notes.append(at | text | {"bgcolor": theme.tint(theme.BACKGROUND, 0.75)})
    return notes


def line_marker(count: int, layout: PromptLayout, runtime: str) -> dict[str, Any]:
    """Return a marker for the next token at its index and position."""
    at = next_position(layout)
    marker = {"size": 9, "color": theme.CURRENT}
    name = TEXTS("prompt.next_token", runtime=RUNTIMES.get(runtime, runtime))
    point = {"type": "scatter", "mode": "markers", "x": [count], "y": [at], "marker": marker, "name": name}
    return point | {"hovertemplate": TEXTS("prompt.next_hover", name=name)}


def next_position(layout: PromptLayout) -> float:
    """Return the position after the prompt: index + rope_delta, if the model defines it."""
    delta = layout.positions.rope_delta
    return layout.starts[-1] if delta is None else layout.positions.tokens + delta


def gap(count: int, layout: PromptLayout, top: float) -> dict[str, Any]:
    """Return a line from the next token's position to its index, clipped to the figure."""
    ends = sorted((next_position(layout), min(float(count), top)))
    line = {"color": theme.CURRENT, "width": 1.5, "dash": "dot"}
    return {"type": "line", "x0": count, "x1": count, "y0": ends[0], "y1": ends[1], "line": line}


def gap_note(count: int, layout: PromptLayout, top: float) -> dict[str, Any]:
    """Return the label of this gap."""
    delta = layout.positions.rope_delta or 0.0
    where = {"x": count, "y": min(max(next_position(layout), 0.04 * top), 0.94 * top), "xanchor": "left", "xshift": 8}
    text = TEXTS("prompt.delta", delta=format_signed(delta), token=count, position=next_position(layout))
    side = {"yanchor": "top" if next_position(layout) > 0.5 * top else "bottom", "align": "left"}
    look = {"text": text, "showarrow": False, "font": {"size": 12, "color": theme.CURRENT}}
    return where | side | look


def difference_note(
    at: int, layout: PromptLayout, other: PromptLayout, runtime: str, other_runtime: str
) -> dict[str, Any]:
    """Return a label where two runtimes first differ, with the positions of both."""
    names = [RUNTIMES.get(name, name) for name in (runtime, other_runtime)]
    found = [format_position(each.positions.values, at) for each in (layout, other)]
    first, second = (position or TEXTS("prompt.no_token") for position in found)
    text = TEXTS("prompt.first_difference", token=at, name=names[0], here=first, other=names[1], there=second)
    left = at > 0.55 * len(layout.positions.values)
    side = {"xanchor": "right" if left else "left", "xshift": -5 if left else 5, "align": "right" if left else "left"}
    where = {"x": at, "y": 0.98, "yref": "paper", "yanchor": "top", "showarrow": False}
    return where | side | {"text": text, "font": {"size": 12, "color": theme.TEXT}, "bgcolor": theme.BACKGROUND}


def format_position(values: FloatArray, at: int) -> str:
    """Format the positions of one token, as a single number if all axes agree; "" if there is no such token."""
    if at >= len(values):
        return ""
    row = values[at].tolist()
    return format_number(row[0]) if len(set(row)) == 1 else f"({', '.join(format_number(each) for each in row)})"


def format_signed(value: float) -> str:
    """Format a whole number with its sign."""
    return f"{'−' if value < 0 else '+' if value > 0 else ''}{format_number(abs(value))}"


def table(layouts: Sequence[tuple[str, PromptLayout]]) -> Mapping[str, list[Any]]:
    """Return the tokens and positions of each piece in each runtime."""
    one = layouts[0][1]
    out: dict[str, list[Any]] = {TEXTS("columns.piece"): [name_piece(piece) for piece in one.pieces]}
    out[TEXTS("columns.tokens")] = [one.tokens(k) for k in range(len(one.pieces))]
    for runtime, each in layouts:
        out[TEXTS("columns.positions", runtime=RUNTIMES.get(runtime, runtime))] = [
            each.cost(k) for k in range(len(each.pieces))
        ]
    return out
