"""Figures of one attention head: its attention by distance, and what each pair adds to a logit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from rope_viz.embedding.spec import FloatArray
from rope_viz.embedding.spectrum import Bands
from rope_viz.figures import theme
from rope_viz.figures.theme import TEXTS


def attention_by_distance(curves: Sequence[tuple[str, str, str, FloatArray]], *, most: int) -> go.Figure:
    """Draw mean attention by distance, (label, colour, dash, values) per embedding."""
    traces = [
        theme.line(
            np.arange(min(len(values), most)),
            values[:most],
            label,
            colour,
            dash=dash,
            mode="lines+markers" if most <= 64 else "lines",
            hovertemplate=f"{label}: %{{y:.1%}}<extra></extra>",
        )
        for label, colour, dash, values in curves
    ]
    top = max(float(np.max(values[:most])) for _, _, _, values in curves)
    return theme.figure(
        traces,
        x={
            "title": TEXTS("axes.distance_tokens"),
            "range": [-0.5, most - 0.5],
            "unifiedhovertitle": {"text": TEXTS("hovers.distance")},
            **theme.length_ticks(0, most, log=False),
        },
        y={"title": TEXTS("axes.attention"), "range": [0, min(1.05, 1.1 * top)], "tickformat": ".0%"},
        height=theme.SIDE_HEIGHT,
        showlegend=len(traces) > 1,
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
    )


def parts(values: FloatArray, bands: Bands, *, before: FloatArray | None = None, still: int = 0) -> go.Figure:
    """Draw each pair's contribution to the correct token's logit above the others, with that in training as a mark.

    Colours are those of the bands, named above the bars: kept, blended, divided. The last `still` columns do not
    rotate.
    """
    pairs = np.arange(len(values))
    colours = [theme.BAND_COLOURS[min(kind, 2)] for kind in bands.kind] + [theme.PLAIN] * still
    traces: list[dict[str, Any]] = [
        {
            "type": "bar",
            "x": pairs,
            "y": values.astype(np.float32),
            "name": TEXTS("lines.now"),
            "marker": {"color": colours[: len(values)]},
            "hovertemplate": TEXTS("hovers.now"),
        }
    ]
    every = [values]
    if before is not None:
        every.append(before)
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": pairs,
                "y": before.astype(np.float32),
                "name": TEXTS("lines.trained"),
                "marker": {"symbol": "line-ew-open", "size": 16, "color": theme.TEXT, "line": {"width": 2}},
                "hovertemplate": TEXTS("hovers.trained"),
            }
        )
    low = min(0.0, *(float(each.min()) for each in every))
    high = max(0.0, *(float(each.max()) for each in every))
    room = max(high - low, 1e-9)
    return theme.figure(
        traces,
        x=theme.pair_axis(len(values)),
        y={"title": TEXTS("axes.logit"), "range": [low - 0.08 * room, high + 0.18 * room], "zeroline": True},
        height=theme.SIDE_HEIGHT,
        bars=[theme.BandBar(bands)],
        bargap=0.2,
    )
