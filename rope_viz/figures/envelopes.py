"""Curves of more points than a screen has columns, as their smallest and largest value in each."""

from __future__ import annotations

from typing import Any

import numpy as np

from rope_viz.embedding.spec import FloatArray
from rope_viz.figures import theme
from rope_viz.figures.scaling import Compared
from rope_viz.studies.envelope import envelope


def envelope_traces(x: FloatArray, low: FloatArray, high: FloatArray, c: Compared) -> list[dict[str, Any]]:
    """The smallest and the largest score of every column, and the area between; one line where there is room for all.

    Both borders have the dash of the curve, so that it is told from others where the columns are wide, too.
    """
    current = c.colour == theme.CURRENT
    if np.array_equal(low, high):
        hover = f"{c.label} %{{y:.4f}}<extra></extra>"
        return [theme.line(x, low, c.label, c.colour, dash=c.dash, width=2.5 if current else 1.8, hovertemplate=hover)]
    look: dict[str, Any] = {"dash": c.dash, "width": 1.4 if current else 1.1, "legendgroup": c.label}
    hover = f"{c.label} %{{customdata:.4f}} to %{{y:.4f}}<extra></extra>"
    area: dict[str, Any] = {"fill": "tonexty", "fillcolor": theme.tint(c.colour, 0.28)}
    area["customdata"] = low.astype(np.float32)
    return [
        theme.line(x, low, f"{c.label} min", c.colour, **look, hoverinfo="skip", hovertemplate=None),
        theme.line(x, high, f"{c.label} max", c.colour, **look, hovertemplate=hover, **area),
    ]


def thinned(x: Any, y: FloatArray, columns: int, *, start: int, log: bool) -> tuple[Any, FloatArray]:
    """A curve at the places start, start + 1, … as a zigzag through both ends of every column; itself where it fits."""
    if len(x) <= columns:
        return x, y
    at, low, high = envelope(y, columns, start=start, log=log)
    zigzag = np.empty(2 * len(at))
    zigzag[0::2], zigzag[1::2] = low, high
    return np.repeat(at, 2), zigzag
