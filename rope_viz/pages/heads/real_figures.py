"""Figures of a real model's heads: the map of their jobs, what each pair adds, and what other rotations do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from rope_viz.embedding.spec import FloatArray
from rope_viz.embedding.spectrum import Bands
from rope_viz.figures import theme
from rope_viz.figures.cell_text import subscript
from rope_viz.figures.heatmap_grid import Panel, draw_panels
from rope_viz.studies.real_model import JOBS, HeadMap, MeasuredHead
from rope_viz.texts import Texts

TEXTS = Texts("heads")
JOB_NAMES = TEXTS.group("jobs")
LETTERS = {"previous token": "P", "induction": "I", "same token": "S"}
COLOURS = {"previous token": theme.FURTHER[1], "induction": theme.FURTHER[0], "same token": theme.FURTHER[2]}
SHADE = [[0.0, theme.PANEL], [1.0, theme.RULE]]
MAP_HEIGHT, NARROW_MAP_HEIGHT, SIDE_HEIGHT = 330, 440, 320


def job_map(heads: HeadMap, chosen: tuple[int, int] | None = None) -> go.Figure:
    """Draw all heads, layers from left to right: a letter and a colour for a job, grey for attention on token 0."""
    layers, count = heads.shape
    cells = {"type": "heatmap", "x": np.arange(layers), "y": np.arange(count), "xgap": 2, "ygap": 2}
    shade: dict[str, Any] = cells | {
        "z": heads.scores("first token").T.astype(np.float32),
        "coloraxis": "coloraxis",
        "customdata": [[describe(heads.heads[layer, head]) for layer in range(layers)] for head in range(count)],
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    colour = np.full((count, layers), np.nan, np.float32)
    letters: list[dict[str, Any]] = []
    for number, job in enumerate(LETTERS):
        found = [place for place, head in heads.heads.items() if named_job(head) == job]
        for layer, head in found:
            colour[head, layer] = number
        letters.append(
            {
                "type": "scatter",
                "mode": "markers+text",
                "x": [layer for layer, _ in found],
                "y": [head for _, head in found],
                "text": ["".join(LETTERS[each] for each in heads.heads[at].jobs if each in LETTERS) for at in found],
                "textfont": {"color": theme.BACKGROUND, "size": 12},
                "marker": {"symbol": "square", "size": 9, "color": COLOURS[job]},
                "name": f"{LETTERS[job]}: {JOB_NAMES[job]} ({len(found)})",
                "hoverinfo": "skip",
                "showlegend": True,
            }
        )
    steps = [(number + end) / len(LETTERS) for number in range(len(LETTERS)) for end in (0, 1)]
    jobs = cells | {
        "z": colour,
        "zmin": -0.5,
        "zmax": len(LETTERS) - 0.5,
        "colorscale": [[step, COLOURS[job]] for step, job in zip(steps, np.repeat(list(LETTERS), 2), strict=True)],
        "showscale": False,
        "hoverinfo": "skip",
    }
    bar = {"thickness": 12, "outlinewidth": 0, "x": 1.01, "xpad": 4, "title": {"text": TEXTS("shade")}}
    below = {"orientation": "h", "thickness": 10, "x": 0.5, "xanchor": "center", "len": 0.8}
    below |= {"yref": "container", "y": 0.0, "yanchor": "bottom"}
    narrow = {"height": NARROW_MAP_HEIGHT, "margin": {"l": 40, "r": 8, "t": 80, "b": 112}}
    return theme.figure(
        [shade, jobs, *letters],
        x={"title": TEXTS("layer_axis"), "range": [-0.5, layers - 0.5], "dtick": 3, "showgrid": False}
        | {"showspikes": False},
        y={"title": TEXTS("head_axis"), "range": [count - 0.5, -0.5], "dtick": 1, "showgrid": False},
        height=MAP_HEIGHT,
        shapes=[] if chosen is None else [outline(*chosen)],
        showlegend=True,
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "itemclick": False},
        hovermode="closest",
        coloraxis={"cmin": 0.0, "cmax": 1.0, "colorscale": SHADE, "colorbar": bar},
        margin={"l": 56, "r": 96, "t": 40, "b": 48},
        meta={"narrow": narrow | {"coloraxis": {"colorbar": below}}},
    )


def named_job(head: MeasuredHead) -> str | None:
    """Return the first of a head's jobs that has a letter, or None."""
    return next((job for job in head.jobs if job in LETTERS), None)


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
        "marker": {"color": [COLOURS[job] if name == "trained" else theme.PLAIN for name in rows]},
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


def sentence_attention(maps: Sequence[tuple[str, FloatArray]], words: Sequence[str]) -> go.Figure:
    """Draw the attention of a head on a sentence, (title, (tokens, tokens)) per rotation; rows are queries."""
    labels = number_repeated(words)
    hidden = np.triu(np.ones((len(words), len(words)), dtype=bool), 1)
    panels = [Panel(title, [], np.where(hidden, np.nan, values)) for title, values in maps]
    bar = {"title": {"text": TEXTS("attention_bar"), "side": "top"}}
    return draw_panels(panels, labels, ends=(0.0, 1.0), scale=theme.SEQUENTIAL, bar=bar, narrow_height=420)


def number_repeated(words: Sequence[str]) -> list[str]:
    """Return unique labels: a repeated word has its number as a subscript."""
    return [
        word + (subscript(1 + list(words[:index]).count(word)) if list(words).count(word) > 1 else "")
        for index, word in enumerate(words)
    ]
