"""Figures of a real model's heads: the map of their jobs, what each pair adds, and what other rotations do."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from rope_viz.embedding.spectrum import Bands
from rope_viz.figures import theme
from rope_viz.studies.real_model import JOBS, HeadMap, MeasuredHead
from rope_viz.texts import Texts

TEXTS = Texts("heads")
JOB_NAMES = TEXTS.group("jobs")
LETTERS = {"previous token": "P", "induction": "I", "same token": "S"}
COLOURS = {"previous token": theme.FURTHER[1], "induction": theme.FURTHER[0], "same token": theme.FURTHER[2]}
SHADE = [[0.0, theme.PANEL], [1.0, theme.RULE]]
MAP_HEIGHT, SIDE_HEIGHT = 300, 300


def job_map(heads: HeadMap, chosen: tuple[int, int] | None = None) -> go.Figure:
    """Draw all heads, layers from left to right: a letter and a colour for a job, grey for attention on token 0."""
    layers, count = heads.shape
    first = heads.scores("first token").T
    shade: dict[str, Any] = {
        "type": "heatmap",
        "x": np.arange(layers),
        "y": np.arange(count),
        "z": first.astype(np.float32),
        "zmin": 0.0,
        "zmax": 1.0,
        "colorscale": SHADE,
        "xgap": 2,
        "ygap": 2,
        "colorbar": {"thickness": 12, "outlinewidth": 0, "x": 1.01, "xpad": 4, "title": {"text": TEXTS("shade")}},
        "customdata": [[describe(heads.heads[layer, head]) for layer in range(layers)] for head in range(count)],
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    traces = [shade]
    for job in JOBS[:-1]:
        found = [place for place, head in heads.heads.items() if job in head.jobs]
        # A head with two jobs shows both letters, half a cell apart.
        shift = [0.22 * (len(heads.heads[place].jobs) > 1) * (1 if job == "induction" else -1) for place in found]
        traces.append(
            {
                "type": "scatter",
                "mode": "markers+text",
                "x": [layer + move for (layer, _), move in zip(found, shift, strict=True)],
                "y": [head for _, head in found],
                "text": [LETTERS[job]] * len(found),
                "textfont": {"color": theme.BACKGROUND, "size": 12},
                "marker": {"symbol": "square", "size": 20, "color": COLOURS[job]},
                "name": f"{JOB_NAMES[job]} ({len(found)})",
                "hoverinfo": "skip",
                "showlegend": True,
            }
        )
    shapes = [] if chosen is None else [outline(*chosen)]
    return theme.figure(
        traces,
        x={"title": TEXTS("layer_axis"), "range": [-0.5, layers - 0.5], "dtick": 3, "showgrid": False}
        | {"showspikes": False},
        y={"title": TEXTS("head_axis"), "range": [count - 0.5, -0.5], "dtick": 1, "showgrid": False},
        height=MAP_HEIGHT,
        shapes=shapes,
        showlegend=True,
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        hovermode="closest",
        margin={"l": 56, "r": 96, "t": 40, "b": 48},
    )


def describe(head: MeasuredHead) -> str:
    """Return the hover text of one head: its scores, and the share of sequences in which a job holds."""
    lines = [f"L{head.layer}H{head.head}"]
    for job in JOBS:
        share = f" ({head.shares[job]:.0%})" if job in head.jobs else ""
        lines.append(f"{JOB_NAMES[job]} {head.scores[job]:.2f}{share}")
    return "<br>".join(lines)


def outline(layer: int, head: int) -> dict[str, Any]:
    """Return the outline of the chosen head."""
    ends = {"x0": layer - 0.5, "x1": layer + 0.5, "y0": head - 0.5, "y1": head + 0.5}
    return {"type": "rect", "line": {"color": theme.TEXT, "width": 2}} | ends


def pair_margins(head: MeasuredHead, job: str | None, bands: Bands) -> go.Figure:
    """Draw what each pair adds to the logit of a job's right token, or of the attended token if `job` is None."""
    values = head.margin if job is None else head.job_margin[job]
    bar = {
        "type": "bar",
        "x": np.arange(len(values)),
        "y": values,
        "marker": {"color": theme.CURRENT if job is None else COLOURS.get(job, theme.PLAIN)},
        "hovertemplate": "pair %{x}: %{y:.2f}<extra></extra>",
    }
    return theme.figure(
        [bar],
        x=theme.pair_axis(len(values)),
        y={"title": TEXTS("margin_axis"), "zeroline": True, "zerolinecolor": theme.RULE},
        height=SIDE_HEIGHT,
        bars=[theme.BandBar(bands)],
        hovermode="closest",
    )


def changed_scores(head: MeasuredHead, job: str) -> go.Figure:
    """Draw a job's score as trained and under other rotations of this head, q and k unchanged."""
    names = TEXTS.group("rotations")
    rows = {"trained": head.scores[job]} | {name: score for name, score in head.changed[job].items() if name in names}
    bar = {
        "type": "bar",
        "orientation": "h",
        "y": [names[name] for name in rows],
        "x": list(rows.values()),
        "text": [f"{score:.2f}" for score in rows.values()],
        "textposition": "outside",
        "marker": {"color": [theme.PLAIN if name == "trained" else theme.CURRENT for name in rows]},
        "hovertemplate": "%{y}: %{x:.3f}<extra></extra>",
    }
    return theme.figure(
        [bar],
        x={"title": TEXTS("score_axis"), "range": [0, 1.08], "showspikes": False},
        y={"autorange": "reversed", "showgrid": False},
        height=SIDE_HEIGHT,
        hovermode="closest",
        margin={"l": 120, "r": 24, "t": 16, "b": 48},
    )
