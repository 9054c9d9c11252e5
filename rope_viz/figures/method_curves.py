"""Curves over the pairs for any number of methods at once, and the share of the frequency that each leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from rope_viz.embedding import spectrum
from rope_viz.figures import theme
from rope_viz.figures.compared import Compared, label_margin, plain
from rope_viz.figures.line_names import Named, name_lines
from rope_viz.figures.rules import pin_rule_x

HOVER = "θ′/θ {0} %{{y:.4~g}}<extra></extra>"


def ratios(curves: Sequence[Compared], *, pin: int | None = None) -> go.Figure:
    """Draw θ′/θ per pair: 1 = unchanged, 1/s = divided by the factor s. A bar above shows the bands of each."""
    drawn = [spectrum.ratio(c.spec, length=c.spec.target) for c in curves]
    floor = max(min(0.5, *(float(share.min()) for share in drawn)), 1e-3)
    top = min(max(1.0, *(float(share.max()) for share in drawn)), 1e3)
    return draw_per_pair(
        curves,
        lambda c: theme.finite(np.where(c.inv_freq > 0, spectrum.ratio(c.spec, length=c.spec.target), np.nan)),
        {
            "title": "θ′ᵢ / θᵢ, scaled over plain frequency (log)",
            "type": "log",
            "range": theme.log_range(floor / 1.35, top * 1.35),
            **_ratio_ticks(floor, top),
        },
        log=True,
        pin=pin,
        hover="%{y:.4~g} of the plain frequency",
    )


def draw_per_pair(
    curves: Sequence[Compared],
    values: Callable[[Compared], Any],
    y: dict[str, Any],
    *,
    log: bool,
    pin: int | None,
    hover: str,
    before: bool = False,
) -> go.Figure:
    """Draw values over the pairs, a line per method, with its bands above; `before` adds the unscaled line."""
    spec, pairs = curves[0].spec, max(c.spec.pairs for c in curves)
    traces, lines = [], []
    # The current method is drawn last, on top.
    for c in [*([plain(curves[0])] if before else ()), *curves[1:], curves[0]]:
        drawn = values(c)
        width = 3 if c.colour == theme.CURRENT else 2
        traces.append(
            theme.line(
                np.arange(c.spec.pairs),
                drawn,
                c.label,
                c.colour,
                dash=c.dash,
                width=width,
                hovertemplate=f"{c.label} {hover}<extra></extra>",
            )
        )
        lines.append(Named(np.asarray(drawn, dtype=np.float64), c.label, c.colour))
    height = theme.height_of_bars(len(curves))
    margin = {"l": 68, "r": label_margin(curves), "t": theme.bar_room(len(curves)), "b": 48}
    return theme.figure(
        traces,
        x=theme.pair_axis(pairs),
        y=y,
        height=height,
        bars=[theme.BandBar(spectrum.bands(c.spec, length=c.spec.target), c.colour, c.dash) for c in curves],
        shapes=pin_rule_x(pin, spec),
        notes=name_lines(lines, y["range"], log=log, plot=height - margin["t"] - margin["b"]),
        margin=margin,
    )


def _ratio_ticks(floor: float, top: float) -> dict[str, Any]:
    values = [2.0**n for n in range(-9, 10) if floor / 1.35 <= 2.0**n <= top * 1.35]
    return {"tickvals": values, "ticktext": [f"{v:.0f}" if v >= 1 else f"1/{round(1 / v)}" for v in values]}
