"""The figure of attention temperature by position: the factor on the query, for models that have one."""

from __future__ import annotations

import numpy as np

from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures import theme
from rope_viz.figures.frequencies import length_rules
from rope_viz.models.query_temperature import Temperature
from rope_viz.texts import Texts

TEXTS = Texts("decay")
HEIGHT = 300
STEPS, POINTS = 256, 400
"""Steps that are drawn exactly, and points of a smooth curve."""


def curve(temperature: Temperature, spec: RopeSpec, stop: int) -> theme.Figure:
    """Draw the factor on the query at the positions 1 … stop − 1."""
    first = max(1, min(temperature.length // 8, stop // 8))
    x = np.geomspace(first, stop - 1, POINTS)
    if temperature.rule.formula == "steps":
        edges = temperature.length * np.arange(1.0, STEPS + 1) - temperature.rule.first
        x = np.sort(np.concatenate([x, edges[(edges > first) & (edges < stop)]]))
    at = np.unique(np.floor(x).astype(np.int64))
    factor = temperature.factor(at.astype(np.float64))
    name = TEXTS("temperature.factor")
    hover = f"{name} ×%{{y:.4~g}}<extra></extra>"
    shape = {"color": theme.CURRENT, "width": 2, "shape": "hv" if temperature.rule.formula == "steps" else "linear"}
    span = [0.95, max(1.2, 1.05 * float(factor[-1]))]
    fig = theme.figure(
        [theme.line(at, factor, name, theme.CURRENT, line=shape, hovertemplate=hover)],
        x={
            "title": TEXTS("temperature.axis"),
            "type": "log",
            "range": theme.log_range(first, stop),
            "unifiedhovertitle": {"text": TEXTS("temperature.position") + " %{x:,.0f}"},
            **theme.length_ticks(first, stop),
        },
        y={"title": name, "range": span},
        height=HEIGHT,
        shapes=[rule for rule in length_rules(spec, axis="x", stop=stop) if rule["x0"] > first],
        notes=[theme.end_label(float(np.log10(at[-1])), float(factor[-1]), f"×{factor[-1]:.3g}", theme.CURRENT)],
        margin=theme.MARGIN | {"r": 70},
    )
    fig.table = lambda: {TEXTS("temperature.position"): at, name: factor}
    return fig
