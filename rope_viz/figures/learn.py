"""One pair of numbers as a rotating arrow: the simplest figure of RoPE."""

from __future__ import annotations

import math
from typing import Any

import plotly.graph_objects as go

from rope_viz.figures import theme

HEIGHT = 430


def arrow(m: int, speed: float = 1.0) -> go.Figure:
    """Draw (1, 0) rotated by m times `speed` radians, with its coordinates, and the start in grey."""
    angle = m * speed
    x, y = math.cos(angle), math.sin(angle)
    turn = [step * angle / 90 for step in range(91)] if abs(angle) < 2 * math.pi else []
    arc = {
        "type": "scatter",
        "x": [0.25 * math.cos(at) for at in turn],
        "y": [0.25 * math.sin(at) for at in turn],
        "mode": "lines",
        "line": {"color": theme.RULE, "width": 1.5},
        "hoverinfo": "skip",
        "name": "mθ",
        "meta": {"csv": False},
    }
    traces = [
        arc,
        theme.line([0.0, 1.0], [0.0, 0.0], "at position 0", theme.PLAIN, dash="dot"),
        theme.line([0.0, x], [0.0, y], f"at position {m:,}", theme.CURRENT, width=3.5, mode="lines+markers"),
    ]
    place: dict[str, Any] = {"showarrow": False, "font": {"size": 15, "color": theme.CURRENT}}
    # Place the label inside the circle, because a phone has no room outside.
    side: dict[str, Any] = {"xanchor": "right" if x >= 0 else "left", "yanchor": "bottom" if y >= 0 else "top"}
    side |= {"yshift": 6 if y >= 0 else -6}
    label = f"({_number(x)}, {_number(y)})"
    axis = {"range": [-1.45, 1.45], "dtick": 1, "zeroline": True, "zerolinecolor": theme.GRID, "showspikes": False}
    return theme.figure(
        traces,
        x=axis | {"title": "first number of the pair"},
        y=axis | {"title": "second number", "scaleanchor": "x"},
        height=HEIGHT,
        notes=[
            place | side | {"x": x, "y": y, "text": label},
            place | {"x": 1, "y": 0, "text": "(1, 0)", "yanchor": "top", "font": {"size": 12, "color": theme.PLAIN}},
        ],
        hovermode="closest",
    )


def _number(value: float) -> str:
    return f"{value + 0.0:.2f}".replace("-0.00", "0.00").replace("-", "−")
