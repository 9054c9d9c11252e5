"""Points with their intervals as vertical lines, a few sets of them next to each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rope_viz.embedding.spec import FloatArray
from rope_viz.figures import theme
from rope_viz.figures.line_styles import LineStyle

SYMBOLS = ("circle", "diamond", "square", "circle-open")


@dataclass(frozen=True, eq=False)
class Points:
    """A set of points with the ends of their intervals, each (n,)."""

    label: str
    look: LineStyle
    mean: FloatArray
    low: FloatArray
    high: FloatArray


def draw_points(sets: Sequence[Points], x: FloatArray, gap: float, hover: str, *, lines: bool) -> list[dict[str, Any]]:
    """Return traces of the sets, `gap` apart at each x. `hover` gets x, the mean and both ends as customdata."""
    traces = []
    for index, each in enumerate(sets):
        at = x + (index - (len(sets) - 1) / 2) * gap
        ends = {"x": np.repeat(at, 3), "y": np.stack([each.low, each.high, np.full(len(x), np.nan)], axis=1).ravel()}
        style = {"color": each.look.colour, "width": 1.5}
        interval = {"type": "scatter", "mode": "lines", "name": f"{each.label}, 95 %", "line": style, **ends}
        traces.append(interval | {"hoverinfo": "skip", "showlegend": False, "legendgroup": each.label})
        marker = {"size": 8, "color": each.look.colour, "symbol": SYMBOLS[index % len(SYMBOLS)]}
        drawn = theme.line(at, each.mean, each.label, each.look.colour, dash=each.look.dash, marker=marker)
        drawn |= {"mode": "lines+markers" if lines else "markers", "hovertemplate": hover}
        drawn["legendgroup"] = each.label
        traces.append(drawn | {"customdata": np.stack([x, each.mean, each.low, each.high], axis=1)})
    return traces


def tabulate_points(name: str, x: Sequence[Any], sets: Sequence[Points]) -> dict[str, Any]:
    """Return the columns of a file: x, and each set's means with the ends of their intervals."""
    ends = (("", "mean"), (", low", "low"), (", high", "high"))
    return {name: list(x)} | {f"{each.label}{end}": getattr(each, part) for each in sets for end, part in ends}
