"""Figures of two models side by side."""

from __future__ import annotations

import numpy as np

from rope_viz.advice.plan.compare_models import ModelComparison
from rope_viz.embedding import spectrum
from rope_viz.figures import line_styles, theme
from rope_viz.pages.compare.words import TEXTS

LEAST = 1.25
"""The axis reaches at least this factor above and below 1."""


def ratio(found: ModelComparison) -> theme.DataFigure:
    """Draw the second model's frequencies over those of the first by pair, with the bands of both above."""
    first, second = found.sides
    values = theme.finite(np.where(found.ratio > 0, found.ratio, np.nan))
    pair = np.arange(len(values))
    largest = float(np.nanmax(values, initial=1.0))
    smallest = float(np.nanmin(values, initial=1.0))
    low, high = min(smallest / 1.15, 1 / LEAST), max(largest * 1.15, LEAST)
    look = line_styles.SLOTS[0]
    name = f"{theme.plain_text(second.name)} / {theme.plain_text(first.name)}"
    traces = [
        theme.line(pair, np.ones(len(values)), theme.plain_text(first.name), theme.CURRENT, hoverinfo="skip"),
        theme.line(
            pair,
            values,
            name,
            look.colour,
            dash=look.dash,
            width=2.5,
            hovertemplate="×%{y:.4~g}<extra></extra>",
        ),
    ]
    ticks = [value for value in (*TICKS, *(1 / each for each in TICKS if each > 1)) if low <= value <= high]
    drawn = np.flatnonzero(np.isfinite(values))
    notes = []
    if drawn.size:
        end = int(drawn[-1])
        lines = [
            (float(len(values) - 1), 1.0, theme.plain_text(first.name), theme.CURRENT),
            (float(end), float(values[end]), theme.plain_text(second.name), look.colour),
        ]
        notes = theme.spread_labels(lines, theme.log_range(low, high), log=True)
    fig = theme.figure(
        traces,
        x=theme.pair_axis(len(values)),
        y={
            "title": TEXTS("axis"),
            "type": "log",
            "range": theme.log_range(low, high),
            "tickvals": sorted(ticks),
            "ticktext": [f"{each:g}" if each >= 1 else f"1/{1 / each:g}" for each in sorted(ticks)],
        },
        bars=[
            theme.BandBar(spectrum.bands(side.spec, length=found.length), colour, dash)
            for side, (colour, dash) in ((first, line_styles.CURRENT), (second, look))
        ],
        notes=notes,
        margin=theme.MARGIN | {"r": 150},
    )
    return fig


TICKS = (1, 1.25, 1.5, 2, 3, 4, 6, 8, 16, 32, 64, 128, 256, 1024, 4096)
