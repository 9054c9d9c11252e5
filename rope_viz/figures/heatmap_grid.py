"""Heatmaps of equal size in a row, on a narrow screen two by two, with linked hover."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rope_viz.embedding.spec import FloatArray
from rope_viz.figures import theme

GAP = 0.035


@dataclass(frozen=True, eq=False)
class Heatmap:
    """One heatmap: title, smaller lines under it, values (rows, columns), and further trace properties."""

    title: str
    lines: Sequence[str]
    values: FloatArray
    trace: dict[str, Any] = field(default_factory=dict)


def draw_panels(
    panels: Sequence[Heatmap],
    labels: Sequence[str],
    *,
    ends: tuple[float, float],
    scale: Any,
    bar: dict[str, Any],
    rows: tuple[str, str] | None = None,
    frames: Sequence[int] = (),
    height: int = 430,
    narrow_height: int = 560,
) -> Any:
    """Draw square maps over the same `labels`, with one colour scale from `ends[0]` to `ends[1]`.

    `rows` names the rows and the columns, by default query and key. The rows with an index in `frames` get a frame in
    every panel.
    """
    rows = rows or (theme.TEXTS("lines.query"), theme.TEXTS("lines.key"))
    count = len(panels)
    width = (1.0 - GAP * (count - 1)) / count
    ticks, few = _choose_ticks(labels, 20), _choose_ticks(labels, 12)
    traces, notes, shapes = [], [], []
    axes: dict[str, Any] = {}
    at_side = {"thickness": 12, "outlinewidth": 0, "len": 1.0, "x": 1.01, "xpad": 4} | bar
    below = bar | {"orientation": "h", "thickness": 10, "outlinewidth": 0, "x": 0.5, "xanchor": "center", "len": 0.8}
    below |= {"yref": "container", "y": 0.0, "yanchor": "bottom", "title": {"text": ""}}
    narrow: dict[str, Any] = {"height": narrow_height, "margin": {"l": 66, "b": 126}, "coloraxis": {"colorbar": below}}
    top = 22 + 17 * max(len(panel.lines) for panel in panels)
    for index, panel in enumerate(panels):
        mark = "" if index == 0 else str(index + 1)
        traces.append(
            {
                "type": "heatmap",
                "name": panel.title,
                "x": list(labels),
                "y": list(labels),
                "z": panel.values.astype("float32"),
                "coloraxis": "coloraxis",
                "xaxis": f"x{mark}",
                "yaxis": f"y{mark}",
                "hovertemplate": f"{rows[0]} %{{y}}<br>{rows[1]} %{{x}}<br>%{{z:.4~f}}<extra></extra>",
                "xgap": 1 if len(labels) <= 32 else 0,
                "ygap": 1 if len(labels) <= 32 else 0,
                **panel.trace,
            }
        )
        lines = [f"<b>{panel.title}</b>", *panel.lines]
        notes.append(
            {
                "x": 0,
                "y": 1,
                "xref": f"x{mark} domain",
                "yref": f"y{mark} domain",
                "xanchor": "left",
                "yanchor": "bottom",
                "align": "left",
                "showarrow": False,
                "text": "<br>".join(lines),
                "name": "panel",
                "font": {"size": 12, "color": theme.TEXT},
            }
        )
        for row in frames:
            where = {"xref": f"x{mark} domain", "yref": f"y{mark}", "x0": 0, "x1": 1, "y0": row - 0.5, "y1": row + 0.5}
            shapes.append({"type": "rect", "line": {"color": theme.TEXT, "width": 1.5}} | where)
        start = index * (width + GAP)
        both = {"type": "category", "showgrid": False, **ticks}
        both |= {"showspikes": False, "ticklen": 2, "tickfont": {"size": 11}}
        linked = {} if index == 0 else {"matches": "x"}
        axes[f"xaxis{mark}"] = theme.merge_dicts(
            theme.AXIS,
            both,
            {
                "domain": [start, start + width],
                "anchor": f"y{mark}",
                "tickangle": -90,
                "title": {"text": rows[1], "standoff": 4},
            },
            linked,
        )
        axes[f"yaxis{mark}"] = theme.merge_dicts(
            theme.AXIS,
            both,
            {"anchor": f"x{mark}", "autorange": False, "range": [len(labels) - 0.5, -0.5], "domain": [0.0, 1.0]},
            {"showticklabels": index == 0},
            {} if index == 0 else {"matches": "y"},
        )
        if count > 1:
            narrow |= _narrow_axes(index, count, mark, top / narrow_height, few)
    axes["yaxis"]["title"] = {"text": rows[0], "standoff": 6, "font": {"size": 13}}
    return theme.figure(
        traces,
        x=axes.pop("xaxis"),
        y=axes.pop("yaxis"),
        height=height,
        notes=notes,
        shapes=shapes,
        hovermode="closest",
        coloraxis={"cmin": ends[0], "cmax": ends[1], "colorscale": scale, "colorbar": at_side},
        margin={"l": 100, "r": 64, "t": top, "b": 84},
        meta={"narrow": narrow, "linked": count > 1},
        **axes,
    )


def _narrow_axes(index: int, count: int, mark: str, head: float, ticks: dict[str, Any]) -> dict[str, Any]:
    """Return a panel's axes on a narrow screen: two per row, labels only along the left and the bottom."""
    rows = (count + 1) // 2
    row, column = divmod(index, 2)
    tall = (1.0 - head * 1.45 * (rows - 1)) / rows
    bottom = (rows - 1 - row) * (tall + head * 1.45)
    left = column * 0.52
    small = {"tickfont": {"size": 10}, **ticks}
    return {
        f"xaxis{mark}": {
            "domain": [left, left + 0.48],
            "showticklabels": row == rows - 1,
            **small,
            **({} if row == rows - 1 else {"title": {"text": ""}}),
        },
        f"yaxis{mark}": {"domain": [bottom, bottom + tall], "showticklabels": column == 0, **small},
    }


def _choose_ticks(labels: Sequence[str], most: int) -> dict[str, Any]:
    every = theme.thin_ticks(len(labels), most)
    return {"tickvals": every, "ticktext": [labels[t] for t in every]}
