"""Figures of a real model beyond its trained length: loss by position, and pairs without rotation."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go

from rope_viz.embedding.spec import FloatArray
from rope_viz.figures import theme
from rope_viz.figures.line_styles import METHODS
from rope_viz.figures.recall import TEXTS
from rope_viz.figures.scaling import short_label
from rope_viz.studies.real_model import BIN
from rope_viz.texts.numbers import format_tokens


def loss_by_position(losses: Mapping[str, FloatArray], trained: int, size: int = BIN) -> go.Figure:
    """Draw the mean over texts of (texts, bins of `size` tokens) per method, by the middle of each bin."""
    bins = next(iter(losses.values())).shape[1]
    x = (np.arange(bins) + 0.5) * size
    traces, ends = [], []
    for method, values in losses.items():
        (colour, dash), label, y = METHODS[method], short_label(method), values.mean(axis=0)
        template = f"{label}: %{{y:.2f}} nats<extra></extra>"
        traces.append(theme.line(x, y, label, colour, dash=dash, hovertemplate=template))
        ends.append((float(x[-1]), float(y[-1]), label, colour))
    every = np.concatenate([values.mean(axis=0) for values in losses.values()])
    span = (float(every.min()) - 0.2, float(every.max()) + 0.2)
    return theme.figure(
        traces,
        x={"title": TEXTS("real.position"), "range": [0, bins * size], **theme.length_ticks(0, bins * size, log=False)}
        | {"unifiedhovertitle": {"text": "position %{x:,}"}},
        y={"title": TEXTS("real.loss_axis"), "range": list(span)},
        shapes=[theme.rule(trained, f"trained {format_tokens(trained)}", axis="x")] if trained <= bins * size else [],
        notes=theme.spread_labels(ends, span, log=False),
        margin={"l": 68, "r": 120, "t": 26, "b": 48},
    )
