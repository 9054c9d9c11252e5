"""Figures of a real model beyond its trained length: loss by position, and pairs without rotation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from rope_viz.embedding.spec import FloatArray
from rope_viz.figures import theme
from rope_viz.figures.line_styles import METHODS
from rope_viz.figures.recall import TEXTS, Line, with_band
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


def cost_of_short_texts(lines: Sequence[Line], plain: FloatArray) -> go.Figure:
    """Draw what each way adds to the loss of a short text, by its length, with intervals.

    `plain` is the loss without scaling at the lengths of the lines, (lengths,); it is drawn as 0.
    """
    first, last = float(lines[0].x[0]), float(lines[0].x[-1])
    low, high = first / 1.15, last * 1.15
    every = np.concatenate([part for line in lines for part in (line.low, line.high)])
    room = 0.1 * float(np.ptp([*every, 0.0]))
    span = (min(float(every.min()), 0.0) - room, max(float(every.max()), 0.0) + room)
    end = float(np.log10(last))
    ends = [(end, float(line.mean[-1]), line.label, line.colour) for line in lines]
    ends.append((end, 0.0, TEXTS("lines.unscaled"), theme.PLAIN))
    zero = theme.line(lines[0].x, np.zeros(len(plain)), TEXTS("lines.unscaled"), theme.PLAIN, dash="dot")
    zero |= {"customdata": plain, "hovertemplate": TEXTS("real.short_hover")}
    return theme.figure(
        [zero, *(trace for line in lines for trace in with_band(line, digits=3))],
        x={"title": TEXTS("real.short_length"), "type": "log", "range": theme.log_range(low, high)}
        | {"unifiedhovertitle": {"text": "%{x:,} tokens"}, **theme.length_ticks(low, high)},
        y={"title": TEXTS("real.short_axis"), "range": list(span)},
        notes=theme.spread_labels(ends, span, log=False),
        height=theme.SIDE_HEIGHT,
        margin={"l": 68, "r": 112, "t": 26, "b": 48},
    )
