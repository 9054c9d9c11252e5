"""Positions along a prompt: a line per axis over its tokens, what an image costs, where a second runtime differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from rope_viz.embedding.spec import FloatArray
from rope_viz.figures import theme
from rope_viz.figures.axes import look
from rope_viz.multi_axis.prompt_syntax import Laid, Wanted, first_difference
from rope_viz.runtimes.releases import format_name

View = tuple[float, float]
RUNTIMES = {
    "transformers": "transformers 5.23",
    "transformers-4.57": "transformers 4.57",
    **{name: format_name(name) for name in ("vllm", "sglang", "mlx-vlm", "llama.cpp")},
}
BINS = 900  # of tokens; in each the least and the greatest position are drawn
HEIGHT = 430
TINTS = {"text": None, "image": theme.CURRENT, "video": theme.FURTHER[0], "sound": theme.FURTHER[3]}


def positions(
    laid: Laid, runtime: str, other: Laid | None = None, other_runtime: str = "", *, view: View | None = None
) -> go.Figure:
    """A line per axis over the tokens; at the right the next token, `rope_delta` from its index; the other dashed."""
    values = laid.positions.values
    count = len(values)
    first, end = (0, count) if view is None else (max(0, int(view[0])), min(count, int(view[1]) + 2))
    traces = curves(laid, first, end, runtime)
    shapes, notes = bands(laid)
    if other is not None:
        traces += curves(other, first, end, other_runtime, dash="dash")
        at = first_difference(laid, other)
        if at is not None:
            shapes.append(theme.rule(at - 0.5, "", axis="x", dash="dot"))
            notes.append(differs(at, laid, other, runtime, other_runtime))
    top = float(max(values.max(), 1.0 if other is None else other.positions.values.max(), 8.0)) * 1.12
    traces.append(line_marker(count, laid, runtime))
    if laid.positions.rope_delta is not None:
        shapes.append(gap(count, laid, top))
        notes.append(gap_note(count, laid, top))
    notes += letters(laid)
    return theme.figure(
        traces,
        x={"title": "token", "range": [-0.5 - 0.01 * count, count * 1.16], "minallowed": -0.1 * count - 1},
        y={"title": "position", "range": [min(0.0, float(values.min())) - 0.02 * top, top]},
        height=HEIGHT,
        shapes=shapes,
        notes=notes,
        hovermode="x unified",
        margin={"l": 68, "r": 24, "t": 58, "b": 48},
        # What stands behind the last token needs its room.
        meta={"narrow": {"xaxis": {"range": [-0.5 - 0.01 * count, count * 1.45]}}},
    )


def curves(laid: Laid, first: int, end: int, runtime: str, *, dash: str = "solid") -> list[dict[str, Any]]:
    """A line per axis, and one over them where all axes count alike."""
    values = laid.positions.values
    alike = np.all(values == values[:, :1], axis=1)
    out = []
    # Columns come and go most often: they are drawn first, and finest.
    for k in reversed(range(len(laid.positions.axes))):
        x, y = outlined(values[:, k], first, min(end, len(values)))
        seen = look(laid.positions.axes[k])
        name = f"{seen.word} {seen.letter}, {RUNTIMES.get(runtime, runtime)}"
        hover = f"{name} %{{y:,.6~g}}<extra></extra>"
        width = 1.0 if seen.letter == "w" else 2.0
        out.append(theme.line(x, y, name, seen.colour, dash=dash, width=width, hovertemplate=hover))
    x, y = outlined(np.where(alike, values[:, 0], np.nan), first, min(end, len(values)))
    out.append(theme.line(x, y, "all axes", theme.TEXT, dash=dash, width=2.2, hoverinfo="skip", hovertemplate=None))
    return out


def outlined(values: FloatArray, first: int, end: int) -> tuple[FloatArray, FloatArray]:
    """The tokens [first, end) and their values; of many, the least and the greatest of each bin, and gaps as gaps."""
    count = end - first
    index = np.arange(first, end, dtype=np.float64)
    if count <= 2 * BINS:
        return index, values[first:end]
    edges = np.unique(np.linspace(first, end, BINS + 1).astype(np.int64))
    shown = values[first:end]
    sizes = np.diff(edges)
    # A row for each bin, filled up with gaps; a bin of gaps alone stays one.
    held = np.full((len(sizes), int(sizes.max())), np.nan)
    held[np.arange(held.shape[1]) < sizes[:, None]] = shown
    gone = np.isnan(held)
    low, high = np.where(gone, np.inf, held).argmin(axis=1), np.where(gone, -np.inf, held).argmax(axis=1)
    places = np.sort(np.stack([low, high], axis=1), axis=1)
    x = (edges[:-1, None] + places).astype(np.float64).ravel()
    return x, np.take_along_axis(held, places, axis=1).ravel()


def bands(laid: Laid) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The pieces as shaded columns, and what each is, above them."""
    shapes, notes = [], []
    total = laid.ends[-1]
    for index, piece in enumerate(laid.wanted):
        start, stop = laid.ends[index], laid.ends[index + 1]
        colour = TINTS[piece.what]
        if colour is not None and stop > start:
            box = {"type": "rect", "layer": "below", "yref": "paper", "y0": 0, "y1": 1, "line": {"width": 0}}
            shapes.append(box | {"x0": start - 0.5, "x1": stop - 0.5, "fillcolor": theme.tint(colour, 0.08)})
        if (stop - start) >= 0.1 * total or (colour is not None and (stop - start) >= 0.05 * total):
            where = {"x": (start + stop) / 2, "y": 1, "yref": "paper", "yanchor": "bottom", "showarrow": False}
            text = f"{called(piece)}<br>{laid.tokens(index):,} tokens<br>{theme.digits(laid.cost(index))} positions"
            notes.append(
                where | {"text": text, "font": {"size": 12, "color": theme.TEXT}, "align": "center", "name": "panel"}
            )
    return shapes, notes


def called(piece: Wanted) -> str:
    """A piece in words."""
    if piece.what == "image":
        return f"image {piece.width} × {piece.height}"
    if piece.what == "video":
        return f"film {piece.width} × {piece.height}, {piece.seconds:g} s"
    return "text" if piece.what == "text" else f"sound {piece.seconds:g} s"


def letters(laid: Laid) -> list[dict[str, Any]]:
    """The letter of each axis at its line, in the widest piece in which they part."""
    visual = [k for k, piece in enumerate(laid.wanted) if piece.what in ("image", "video")]
    if not visual:
        return []
    widest = max(visual, key=laid.tokens)
    start, stop = laid.ends[widest], laid.ends[widest + 1]
    values = laid.positions.values[start:stop]
    notes = []
    for k, axis in enumerate(laid.positions.axes):
        seen = look(axis)
        # Where each stands out: the first row's end, the last row, the middle.
        last = len(values) - 1 - int(np.argmax(values[::-1, k]))
        place = {"w": int(np.argmax(values[:, k])), "h": last}.get(seen.letter, len(values) // 2)
        at = {"x": start + place, "y": float(values[place, k]), "showarrow": False, "yshift": 9, "borderpad": 0}
        text = {"text": f"<b>{seen.letter}</b>", "font": {"size": 13, "color": seen.colour}}
        notes.append(at | text | {"bgcolor": theme.tint(theme.BACKGROUND, 0.75)})
    return notes


def line_marker(count: int, laid: Laid, runtime: str) -> dict[str, Any]:
    """The token that is written next: at its index, and the position it gets."""
    at = following(laid)
    marker = {"size": 9, "color": theme.CURRENT}
    name = f"next token, {RUNTIMES.get(runtime, runtime)}"
    point = {"type": "scatter", "mode": "markers", "x": [count], "y": [at], "marker": marker, "name": name}
    return point | {"hovertemplate": f"{name}: position %{{y:,}}<extra></extra>"}


def following(laid: Laid) -> float:
    """The position of the token behind the prompt: its index + rope_delta, where the model has such."""
    delta = laid.positions.rope_delta
    return laid.starts[-1] if delta is None else laid.positions.tokens + delta


def gap(count: int, laid: Laid, top: float) -> dict[str, Any]:
    """The gap between the next token's position and its index, as far as the figure goes."""
    ends = sorted((following(laid), min(float(count), top)))
    line = {"color": theme.CURRENT, "width": 1.5, "dash": "dot"}
    return {"type": "line", "x0": count, "x1": count, "y0": ends[0], "y1": ends[1], "line": line}


def gap_note(count: int, laid: Laid, top: float) -> dict[str, Any]:
    """What the gap is."""
    delta = laid.positions.rope_delta or 0.0
    where = {"x": count, "y": min(max(following(laid), 0.04 * top), 0.94 * top), "xanchor": "left", "xshift": 8}
    text = f"rope_delta<br><b>{signed(delta)}</b><br>token {count:,}<br>is at {theme.digits(following(laid))}"
    side = {"yanchor": "top" if following(laid) > 0.5 * top else "bottom", "align": "left"}
    look = {"text": text, "showarrow": False, "font": {"size": 12, "color": theme.CURRENT}}
    return where | side | look


def differs(at: int, laid: Laid, other: Laid, runtime: str, other_runtime: str) -> dict[str, Any]:
    """Where two runtimes part, and what each has there."""
    names = [RUNTIMES.get(name, name) for name in (runtime, other_runtime)]
    found = [written(each.positions.values, at) for each in (laid, other)]
    text = f"token {at:,} differs<br>{names[0]} {found[0]}<br>{names[1]}, dashed, {found[1]}"
    left = at > 0.55 * len(laid.positions.values)
    side = {"xanchor": "right" if left else "left", "xshift": -5 if left else 5, "align": "right" if left else "left"}
    where = {"x": at, "y": 0.98, "yref": "paper", "yanchor": "top", "showarrow": False}
    return where | side | {"text": text, "font": {"size": 12, "color": theme.TEXT}, "bgcolor": theme.BACKGROUND}


def written(values: FloatArray, at: int) -> str:
    """The positions of one token: one number where all axes agree."""
    if at >= len(values):
        return "has no such token"
    row = values[at].tolist()
    return theme.digits(row[0]) if len(set(row)) == 1 else f"({', '.join(theme.digits(each) for each in row)})"


def signed(value: float) -> str:
    """A whole number with its sign."""
    return f"{'−' if value < 0 else '+' if value > 0 else ''}{theme.digits(abs(value))}"


def table(laid: Sequence[tuple[str, Laid]]) -> Mapping[str, list[Any]]:
    """What each piece costs in each runtime: tokens and positions."""
    one = laid[0][1]
    out: dict[str, list[Any]] = {"piece": [called(piece) for piece in one.wanted]}
    out["tokens"] = [one.tokens(k) for k in range(len(one.wanted))]
    for runtime, each in laid:
        out[f"positions in {RUNTIMES.get(runtime, runtime)}"] = [each.cost(k) for k in range(len(each.wanted))]
    return out
