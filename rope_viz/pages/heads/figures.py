"""Figures of real heads: the pairs they use, and how position changes their logits and their attention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from rope_viz.embedding.spec import FloatArray
from rope_viz.embedding.spectrum import Bands
from rope_viz.figures import theme
from rope_viz.figures.cell_text import subscript
from rope_viz.figures.heatmap_grid import Heatmap, draw_panels
from rope_viz.studies.real_model import JOBS, HeadMap, MeasuredHead
from rope_viz.texts import Texts

TEXTS = Texts("heads")
MAP_HEIGHT = 400  # pixels
QUANTITIES = TEXTS.group("quantities")
"""Quantities the map of heads and pairs can show, as fields of `studies.heads.PairStatistics`."""
BELOW_1 = ("steady", "concentration_q", "concentration_k")
"""Quantities from 0 to 1."""


def heads_map(
    values: FloatArray,
    names: Sequence[str],
    bands: Bands,
    *,
    quantity: str,
    unrotated: int = 0,
    pin: int | None = None,
    labels: Mapping[str, str] = QUANTITIES,
) -> go.Figure:
    """Draw a quantity by head and pair, (heads, pairs), rows in the given order, pairs from high to low frequency.

    The last `unrotated` columns do not rotate. Bars above the columns show their bands. `labels` name the quantities.
    NaN is left empty.
    """
    phase = quantity == "phase"
    shown = values.astype(np.float32)
    if phase:
        ends, scale, bar = (-np.pi, np.pi), theme.CYCLIC, {"tickvals": [-np.pi, 0, np.pi], "ticktext": ["−π", "0", "π"]}
    else:
        # A few values are far larger than the rest (Jonasson calls them massive): end the scale at the 99 % quantile.
        top = float(np.nanquantile(values, 0.99)) or float(np.nanmax(values)) or 1.0
        ends, scale, bar = (0.0, 1.0 if quantity in BELOW_1 else top), theme.SEQUENTIAL, {}
    what = labels[quantity]
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
        "hovertemplate": TEXTS("hovers.map", what=what),
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
                    "name": TEXTS("curves.range", name=label),
                    "showlegend": False,
                }
            )
        traces.append(theme.line(x, (low + high) / 2, label, colour, dash=dash, width=1.6))
    bottom = min(float(curve[4].min()) for curve in curves)
    top = max(float(curve[5].max()) for curve in curves)
    room = 0.06 * max(top - bottom, 1e-9)
    axis = {
        "title": theme.TEXTS("axes.distance_tokens"),
        "range": [0, tokens],
        **theme.length_ticks(0, tokens, log=False),
    }
    if log:
        axis = {
            "title": TEXTS("whole.distance_axis"),
            "type": "log",
            "range": theme.log_range(1, max(tokens, 2)),
            **theme.length_ticks(1, max(tokens, 2), most=14),
        }
    return theme.figure(
        traces,
        x=axis | {"unifiedhovertitle": {"text": theme.TEXTS("hovers.distance")}},
        y={
            "title": TEXTS("whole.logit_axis"),
            "range": [bottom - room, top + room],
            "zeroline": True,
            "zerolinecolor": theme.RULE,
        },
        showlegend=len(curves) > 1,
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
    )


JOB_NAMES = TEXTS.group("jobs")

LETTERS = {"previous token": "P", "induction": "I", "same token": "S"}

COLOURS = {"previous token": theme.FURTHER[1], "induction": theme.FURTHER[0], "same token": theme.FURTHER[2]}

SHADE = [[0.0, theme.PANEL], [1.0, theme.RULE]]

REAL_MAP_HEIGHT, NARROW_MAP_HEIGHT, SIDE_HEIGHT = 330, 440, 320


def job_map(heads: HeadMap, chosen: tuple[int, int] | None = None) -> go.Figure:
    """Draw all heads, layers from left to right: a letter and a colour for a job, grey for attention on token 0."""
    names, (layers, count) = dict(JOB_NAMES), heads.shape
    cells = {"type": "heatmap", "x": np.arange(layers), "y": np.arange(count), "xgap": 2, "ygap": 2}
    shade: dict[str, Any] = cells | {
        "z": heads.scores("first token").T.astype(np.float32),
        "coloraxis": "coloraxis",
        "customdata": [[describe(heads.heads[layer, head], names) for layer in range(layers)] for head in range(count)],
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
                "name": TEXTS("curves.job", letter=LETTERS[job], job=names[job], count=len(found)),
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
    bar = {
        "thickness": 12,
        "outlinewidth": 0,
        "x": 1.01,
        "xpad": 4,
        "title": {"text": TEXTS("shade"), "font": {"size": 13}},
    }
    below = {"orientation": "h", "thickness": 10, "x": 0.5, "xanchor": "center", "len": 0.8}
    below |= {"yref": "container", "y": 0.0, "yanchor": "bottom"}
    narrow = {"height": NARROW_MAP_HEIGHT, "margin": {"l": 40, "r": 8, "t": 80, "b": 112}}
    return theme.figure(
        [shade, jobs, *letters],
        x={"title": TEXTS("layer_axis"), "range": [-0.5, layers - 0.5], "dtick": 3, "showgrid": False}
        | {"showspikes": False},
        y={"title": TEXTS("head_axis"), "range": [count - 0.5, -0.5], "dtick": 1, "showgrid": False},
        height=REAL_MAP_HEIGHT,
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


def describe(head: MeasuredHead, names: Mapping[str, str] = JOB_NAMES) -> str:
    """Return the hover text of one head: its scores, and the share of sequences in which a job holds."""
    entries = TEXTS.entries
    lines = [f"L{head.layer}H{head.head}"]
    for job in JOBS:
        form = entries["hovers.job" if job in head.jobs else "hovers.no_job"]
        lines.append(form.format(job=names[job], score=head.scores[job], share=head.shares.get(job, 0.0)))
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
        "hovertemplate": TEXTS("hovers.pair"),
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
    panels = [Heatmap(title, [], np.where(hidden, np.nan, values)) for title, values in maps]
    bar = {"title": {"text": TEXTS("attention_bar"), "side": "top"}}
    return draw_panels(panels, labels, ends=(0.0, 1.0), scale=theme.SEQUENTIAL, bar=bar, narrow_height=420)


def number_repeated(words: Sequence[str]) -> list[str]:
    """Return unique labels: a repeated word has its number as a subscript."""
    return [
        word + (subscript(1 + list(words[:index]).count(word)) if list(words).count(word) > 1 else "")
        for index, word in enumerate(words)
    ]
