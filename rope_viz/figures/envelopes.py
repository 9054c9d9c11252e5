"""Curves with more points than screen columns, drawn by the smallest and largest value in each column."""

from __future__ import annotations

from typing import Any

import numpy as np

from rope_viz.embedding.spec import FloatArray
from rope_viz.figures import theme
from rope_viz.figures.compared import Compared
from rope_viz.studies.envelope import envelope


def envelope_traces(x: FloatArray, low: FloatArray, high: FloatArray, c: Compared) -> list[dict[str, Any]]:
    """Return the smallest and largest score of every column with the area between, or one line if they are equal.

    Both borders have the curve's dash, so that curves can be distinguished without colour.
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


def thin_curve(x: Any, y: FloatArray, columns: int, *, start: int, log: bool) -> tuple[Any, FloatArray]:
    """Return the curve y at start, start + 1, … as a zigzag through each column's extremes; unchanged if it fits."""
    if len(x) <= columns:
        return x, y
    at, low, high = envelope(y, columns, start=start, log=log)
    zigzag = np.empty(2 * len(at))
    zigzag[0::2], zigzag[1::2] = low, high
    return np.repeat(at, 2), zigzag
