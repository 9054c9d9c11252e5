"""Figures of real heads: the pairs they use, and how position changes their logits and their attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from rope_viz.embedding.spec import FloatArray
from rope_viz.embedding.spectrum import Bands
from rope_viz.figures import theme
from rope_viz.texts import Texts

TEXTS = Texts("heads")
MAP_HEIGHT = 400  # pixels
QUANTITIES = TEXTS.group("quantities")
"""Quantities the map of heads and pairs can show, as fields of `studies.heads.ByPair`."""


def heads_map(
    values: FloatArray, names: Sequence[str], bands: Bands, *, quantity: str, unrotated: int = 0, pin: int | None = None
) -> go.Figure:
    """Draw a quantity by head and pair, (heads, pairs), rows in the given order, pairs from high to low frequency.

    The last `unrotated` columns do not rotate. Bars above the columns show their bands.
    """
    phase = quantity == "phase"
    shown = values.astype(np.float32)
    if phase:
        ends, scale, bar = (-np.pi, np.pi), theme.CYCLIC, {"tickvals": [-np.pi, 0, np.pi], "ticktext": ["−π", "0", "π"]}
    else:
        # A few values are far larger than the rest (Jonasson calls them massive): end the scale at the 99 % quantile.
        top = float(np.quantile(values, 0.99)) or float(values.max()) or 1.0
        ends, scale, bar = (0.0, 1.0 if quantity == "steady" else top), theme.SEQUENTIAL, {}
    what = QUANTITIES[quantity]
    trace: dict[str, Any] = {
        "type": "heatmap",
        "x": np.arange(values.shape[1]),
        "y": list(range(len(names))),
        "z": shown,
        "zmin": ends[0],
        "zmax": ends[1],
        "colorscale": scale,
        "customdata": np.broadcast_to(np.array(names, dtype=object)[:, None], values.shape),
        "colorbar": {"thickness": 12, "outlinewidth": 0, "x": 1.01, "xpad": 4} | bar,
        "hovertemplate": "%{customdata}, pair %{x}<br>" + what + " %{z:.3~g}<extra></extra>",
    }
    shapes: list[dict[str, Any]] = []
    if unrotated:
        edge = values.shape[1] - unrotated - 0.5
        shapes.append(theme.rule(edge, TEXTS("unrotated"), axis="x"))
    if pin is not None and pin < values.shape[1]:
        shapes.append(
            {"type": "rect", "x0": pin - 0.5, "x1": pin + 0.5, "y0": 0, "y1": 1, "yref": "paper"}
            | {"line": {"color": theme.KEPT, "width": 1.5}}
        )
    every = theme.thin_ticks(len(names), 24)
    return theme.figure(
        [trace],
        x=theme.merge_dicts(theme.pair_axis(values.shape[1]), {"showgrid": False, "showspikes": False}),
        y={
            "range": [len(names) - 0.5, -0.5],
            "tickvals": every,
            "ticktext": [names[row] for row in every],
            "showgrid": False,
        },
        height=MAP_HEIGHT,
        shapes=shapes,
        bars=[theme.BandBar(bands)],
        hovermode="closest",
        margin={"l": 118, "r": 76, "t": 26, "b": 48},
    )


def mean_logits(
    curves: Sequence[tuple[str, str, str, FloatArray, FloatArray, FloatArray]], *, tokens: int, log: bool = True
) -> go.Figure:
    """Draw mean logit by distance; a curve is (label, colour, dash, distance, column minimum, column maximum)."""
    traces: list[dict[str, Any]] = []
    for label, colour, dash, x, low, high in curves:
        if not np.array_equal(low, high):
            traces.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "x": np.concatenate([x, x[::-1]]),
                    "y": np.concatenate([high, low[::-1]]),
                    "fill": "toself",
                    "fillcolor": theme.tint(colour, 0.35),
                    "line": {"width": 0, "color": colour},
                    "hoverinfo": "skip",
                    "name": f"{label}, range",
                    "showlegend": False,
                }
            )
        traces.append(theme.line(x, (low + high) / 2, label, colour, dash=dash, width=1.6))
    bottom = min(float(curve[4].min()) for curve in curves)
    top = max(float(curve[5].max()) for curve in curves)
    room = 0.06 * max(top - bottom, 1e-9)
    axis = {"title": "distance (tokens)", "range": [0, tokens], **theme.length_ticks(0, tokens, log=False)}
    if log:
        axis = {
            "title": "distance (tokens, log)",
            "type": "log",
            "range": theme.log_range(1, max(tokens, 2)),
            **theme.length_ticks(1, max(tokens, 2), most=14),
        }
    return theme.figure(
        traces,
        x=axis | {"unifiedhovertitle": {"text": "distance %{x:,}"}},
        y={"title": "mean logit", "range": [bottom - room, top + room], "zeroline": True, "zerolinecolor": theme.RULE},
        showlegend=len(curves) > 1,
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
    )
