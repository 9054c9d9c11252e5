"""Figures of tiny_lm's recall: over length, by depth and training step; its two heads; its loss."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from rope_viz.embedding.scaling import build_method
from rope_viz.embedding.spec import FloatArray, RopeSpec
from rope_viz.embedding.spectrum import Bands
from rope_viz.evaluation.search_results import SearchResult
from rope_viz.figures import line_styles, method_curves, theme
from rope_viz.figures.band_words import TEXTS as BAND_TEXTS
from rope_viz.figures.compared import Compared, short_label
from rope_viz.figures.intervals import Points, draw_points, tabulate_points
from rope_viz.figures.line_styles import METHODS
from rope_viz.studies.real_model import BIN
from rope_viz.texts import Sentence, Texts
from rope_viz.texts.numbers import format_tokens

TEXTS = Texts("recall")
GAP = 0.06


@dataclass(frozen=True, eq=False)
class RecallCurve:
    """Recall over length or steps with its interval, each (n,): `x` ascending, NaN for values not known yet."""

    label: str
    colour: str
    dash: str
    x: FloatArray
    mean: FloatArray
    low: FloatArray
    high: FloatArray


def share_axis() -> dict[str, Any]:
    """Return the y axis of recall."""
    return {"title": TEXTS("axes.share"), "range": [-0.03, 1.05], "tickvals": [0, 0.25, 0.5, 0.75, 1]}


def over_lengths(
    lines: Sequence[RecallCurve], *, ends: tuple[int, int], trained: int | None = None, target: int = 0
) -> go.Figure:
    """Draw recall by length, a line with its 95 % band per method, with the trained and the target length if known."""
    shapes = [] if trained is None else [theme.rule(trained, theme.TEXTS("rules.trained", length=trained), axis="x")]
    if trained is not None and trained < target <= ends[1]:
        shapes.append(theme.rule(target, theme.TEXTS("rules.target", length=target), axis="x", dash="dash"))
    low, high = ends[0] / 1.15, ends[1] * 1.15
    return theme.figure(
        [trace for line in lines for trace in with_band(line)],
        x={
            "title": TEXTS("axes.length"),
            "type": "log",
            "range": theme.log_range(low, high),
            "unifiedhovertitle": {"text": TEXTS("hovers.tokens")},
            **theme.length_ticks(low, high, most=10),
        },
        y=share_axis(),
        shapes=[*shapes, half()],
        notes=labels(lines, log_x=True),
        margin={"l": 68, "r": 112, "t": 26, "b": 48},
    )


def recover(lines: Sequence[tuple[RecallCurve, RecallCurve]], *, target: int, trained: int) -> go.Figure:
    """Draw recall over fine-tuning steps: at the target length in the method's dash, at the trained length dotted."""
    steps = sorted({float(step) for line, _ in lines for step in line.x}) or [0.0, 1.0]
    traces = []
    for at_target, at_trained in lines:
        traces += with_band(at_target)
        name = TEXTS("lines.at_length", name=at_trained.label, length=trained)
        traces.append(
            theme.line(
                at_trained.x,
                at_trained.mean,
                name,
                at_trained.colour,
                dash="dot",
                width=1.2,
                hovertemplate=f"{name}: %{{y:.2f}}<extra></extra>",
            )
        )
    shown = [step for step in steps if step == 0 or step >= 25]
    return theme.figure(
        traces,
        x={
            "title": TEXTS("axes.steps", length=target),
            "range": [-0.02 * steps[-1], 1.02 * steps[-1]],
            "tickvals": shown,
            "ticktext": [f"{step:,.0f}" for step in shown],
            "unifiedhovertitle": {"text": TEXTS("hovers.steps")},
        },
        y=share_axis(),
        shapes=[half()],
        notes=labels([line for line, _ in lines], log_x=False),
        margin={"l": 68, "r": 112, "t": 26, "b": 48},
    )


def needle_maps(maps: Sequence[tuple[str, FloatArray]], lengths: Sequence[int]) -> go.Figure:
    """Draw maps of recall by depth and length in a row: white = nothing found, blue = everything.

    Each map is (depths, lengths), row 0 the start of the text; NaN marks cells without answers yet.
    """
    count = len(maps)
    width = (1.0 - GAP * (count - 1)) / count
    rows = maps[0][1].shape[0]
    depth = (np.arange(rows) + 0.5) / rows
    columns = np.arange(len(lengths))
    marked = [index for index, length in enumerate(lengths) if not length & (length - 1)]
    ticks = {"tickvals": marked, "ticktext": [format_tokens(lengths[index]) for index in marked]}
    traces: list[dict[str, Any]] = []
    notes, axes = [], {}
    narrow: dict[str, Any] = {"height": 620, "margin": {"l": 60, "b": 100}}
    for index, (title, values) in enumerate(maps):
        mark = "" if index == 0 else str(index + 1)
        at = {"xaxis": f"x{mark}", "yaxis": f"y{mark}"}
        traces.append(
            {
                "type": "heatmap",
                "name": title,
                "x": columns,
                "y": depth,
                "z": values.astype(np.float32),
                "customdata": np.broadcast_to([format_tokens(length) for length in lengths], values.shape),
                "coloraxis": "coloraxis",
                "hoverongaps": False,
                "xgap": 1,
                "ygap": 1,
                "hovertemplate": TEXTS("hovers.map", title=title),
                **at,
            }
        )
        where = {"xref": f"x{mark} domain", "yref": f"y{mark} domain", "x": 0, "y": 1, "xanchor": "left"}
        notes.append(
            where
            | {"yanchor": "bottom", "showarrow": False, "text": f"<b>{title}</b>", "name": "panel"}
            | {"font": {"size": 13, "color": theme.TEXT}}
        )
        start = index * (width + GAP)
        axes[f"xaxis{mark}"] = theme.merge_dicts(
            theme.AXIS,
            ticks,
            {
                "domain": [start, start + width],
                "anchor": f"y{mark}",
                "title": TEXTS("axes.map_length"),
                "showgrid": False,
            },
            {"range": [-0.5, len(lengths) - 0.5], "showspikes": False},
            {"matches": "x"} if index else {},
        )
        axes[f"yaxis{mark}"] = theme.merge_dicts(
            theme.AXIS,
            {"anchor": f"x{mark}", "range": [1.0, 0.0], "showgrid": False, "showticklabels": index == 0},
            {
                "tickvals": [0, 0.25, 0.5, 0.75, 1],
                "ticktext": [TEXTS("maps.start"), "25 %", "50 %", "75 %", TEXTS("maps.end")],
            },
            {"matches": "y"} if index else {},
        )
        if count > 1:
            tall = (1.0 - 0.16 * (count - 1)) / count
            bottom = (count - 1 - index) * (tall + 0.16)
            last = index == count - 1
            narrow[f"xaxis{mark}"] = {"domain": [0, 1], **({} if last else {"title": {"text": ""}})}
            narrow[f"yaxis{mark}"] = {"domain": [bottom, bottom + tall], "showticklabels": True}
    axes["yaxis"]["title"] = {"text": TEXTS("axes.depth"), "standoff": 6, "font": {"size": 13}}
    bar = {"thickness": 12, "outlinewidth": 0, "x": 1.01, "xpad": 4, "tickvals": [0, 0.5, 1], "tickformat": ".0%"}
    below = {"orientation": "h", "thickness": 10, "x": 0.5, "xanchor": "center", "len": 0.8, "yref": "container"}
    narrow["coloraxis"] = {"colorbar": bar | below | {"y": 0.0, "yanchor": "bottom"}}
    return theme.figure(
        traces,
        x=axes.pop("xaxis"),
        y=axes.pop("yaxis"),
        notes=notes,
        hovermode="closest",
        coloraxis={"cmin": 0.0, "cmax": 1.0, "colorscale": theme.SEQUENTIAL, "colorbar": bar},
        margin={"l": 76, "r": 76, "t": 34, "b": 52},
        meta={"narrow": narrow, "linked": count > 1},
        **axes,  # type: ignore[arg-type]
    )


def attention_on_target(works: Sequence[tuple[str, str, Any]], *, title: str) -> go.Figure:
    """Draw the attention from each query to its correct token, by distance.

    `works` are (label, colour, work) with the distances and hits of a head under an embedding.
    """
    traces = []
    longest = max(1.05 * max(float(work.distance.max()) for _, _, work in works), 2.0)
    for index, (label, colour, work) in enumerate(works):
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": label,
                "x": work.distance,
                "y": work.hits.astype(np.float32),
                "marker": {"color": colour, "size": 9, "symbol": ("circle", "diamond-open")[index % 2]},
                "hovertemplate": TEXTS("hovers.target", name=label),
            }
        )
    return theme.figure(
        traces,
        x={
            "title": TEXTS("axes.target_distance"),
            "range": [0, longest],
            **theme.length_ticks(0, longest, log=False),
        },
        y={"title": title, "range": [-0.03, 1.05], "tickformat": ".0%"},
        height=theme.SIDE_HEIGHT,
        hovermode="closest",
        showlegend=len(works) > 1,
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
    )


def carried(values: FloatArray, before: float, bands: Bands) -> go.Figure:
    """Draw recall with each pair alone switched, (pairs,), in band colours, with a line at recall without a switch."""
    pairs = np.arange(len(values))
    bar = {
        "type": "bar",
        "x": pairs,
        "y": values.astype(np.float32),
        "name": TEXTS("lines.one_switched"),
        "marker": {"color": [theme.BAND_COLOURS[min(kind, 2)] for kind in bands.kind]},
        "hovertemplate": TEXTS("hovers.one_switched"),
    }
    level = {"type": "line", "x0": 0, "x1": 1, "xref": "paper", "y0": before, "y1": before}
    level |= {"line": {"color": theme.TEXT, "width": 1.5, "dash": "dash"}}
    return theme.figure(
        [bar],
        x=theme.pair_axis(len(values)),
        y=share_axis() | {"range": [-0.03, 1.22]},
        height=theme.SIDE_HEIGHT,
        bars=[theme.BandBar(bands)],
        shapes=[level],
        bargap=0.2,
    )


def losses(
    lines: Sequence[tuple[str, str, str, FloatArray, FloatArray]], best: FloatArray, *, trained: int
) -> go.Figure:
    """Draw loss by position on Markov chains, (label, colour, dash, position, loss) per embedding, and its minimum.

    `best` is (2, n): position and the Bayes-optimal loss.
    """
    traces = [
        theme.line(x, y, label, colour, dash=dash, hovertemplate=TEXTS("hovers.loss", name=label))
        for label, colour, dash, x, y in lines
    ]
    least = TEXTS("lines.best")
    floor = theme.line(best[0], best[1], least, theme.TEXT, dash="dash", width=1.5)
    floor["hovertemplate"] = TEXTS("hovers.loss", name=least)
    last = float(best[0][-1])
    low = float(best[1].min())
    high = min(max(float(np.nanmax(y)) for *_, y in lines), math.log(8) * 1.6)
    ends = [(last, min(float(y[-1]), high), label, colour) for label, colour, _, _, y in lines]
    ends.append((last, float(best[1][-1]), least, theme.TEXT))
    span = (low - 0.06, max(high, math.log(8)) + 0.1)
    return theme.figure(
        [*traces, floor],
        x={
            "title": TEXTS("axes.position"),
            "type": "log",
            "range": theme.log_range(1, last * 1.1),
            "unifiedhovertitle": {"text": TEXTS("hovers.position")},
            **theme.length_ticks(1, last * 1.1),
        },
        y={"title": TEXTS("real.loss_axis"), "range": list(span)},
        shapes=[theme.rule(trained, theme.TEXTS("rules.trained", length=trained), axis="x")],
        notes=[{**note, "x": math.log10(last)} for note in theme.spread_labels(ends, span, log=False)],
        margin={"l": 68, "r": 124, "t": 26, "b": 48},
    )


def with_band(line: RecallCurve, digits: int = 2) -> list[dict[str, Any]]:
    """Return a line and its interval as a band, at the known values; its hover text has `digits` decimals."""
    known = np.isfinite(line.mean)
    at, low, high = (part[known] for part in (line.x, line.low, line.high))
    band = {
        "type": "scatter",
        "mode": "lines",
        "x": np.concatenate([at, at[::-1]]),
        "y": np.concatenate([high, low[::-1]]),
        "fill": "toself",
        "fillcolor": theme.tint(line.colour, 0.12),
        "line": {"width": 0, "color": line.colour},
        "hoverinfo": "skip",
        "name": TEXTS("lines.interval", name=line.label),
        "showlegend": False,
    }
    spread = np.stack([low, high], axis=1)
    drawn = theme.line(at, line.mean[known], line.label, line.colour, dash=line.dash, mode="lines+markers")
    drawn |= {"marker": {"size": 5, "color": line.colour}, "customdata": spread}
    value, low_end, high_end = (f"%{{{name}:.{digits}f}}" for name in ("y", "customdata[0]", "customdata[1]"))
    drawn["hovertemplate"] = TEXTS("hovers.interval", name=line.label, value=value, low=low_end, high=high_end)
    return [band, drawn]


def labels(lines: Sequence[RecallCurve], *, log_x: bool) -> list[dict[str, Any]]:
    """Return the names of the lines at their ends, without overlap."""
    ends = []
    for line in lines:
        known = np.flatnonzero(np.isfinite(line.mean))
        if len(known):
            x, y = float(line.x[known[-1]]), float(line.mean[known[-1]])
            ends.append((math.log10(x) if log_x else x, y, line.label, line.colour))
    return theme.spread_labels(ends, (-0.03, 1.05), log=False)


def half() -> dict[str, Any]:
    """Return a thin line at a recall of one half."""
    return {"type": "line", "x0": 0, "x1": 1, "xref": "paper", "y0": 0.5, "y1": 0.5} | {
        "line": {"color": theme.GRID, "width": 1, "dash": "dot"},
        "layer": "below",
    }


def make_title(found: SearchResult) -> Sentence:
    """Return the figure's title."""
    return TEXTS("search.title", length=found.length)


def compare_with_yarn(found: RopeSpec) -> go.Figure:
    """Draw θ′/θ per pair of a found embedding, and of YaRN with the factor that just reaches its target."""
    yarn = dataclasses.replace(found, scaling=build_method("yarn", found.target / found.context))
    curves = [
        Compared(TEXTS("search.found"), found, *line_styles.CURRENT),
        Compared(short_label("yarn"), yarn, *line_styles.METHODS["yarn"]),
    ]
    return method_curves.ratios(curves)


def loss_by_position(losses: Mapping[str, FloatArray], trained: int, size: int = BIN) -> go.Figure:
    """Draw the mean over texts of (texts, bins of `size` tokens) per method, by the middle of each bin."""
    bins = next(iter(losses.values())).shape[1]
    x = (np.arange(bins) + 0.5) * size
    traces, ends = [], []
    for method, values in losses.items():
        (colour, dash), label, y = METHODS[method], short_label(method), values.mean(axis=0)
        template = TEXTS("hovers.brief_loss", name=label)
        traces.append(theme.line(x, y, label, colour, dash=dash, hovertemplate=template))
        ends.append((float(x[-1]), float(y[-1]), label, colour))
    every = np.concatenate([values.mean(axis=0) for values in losses.values()])
    span = (float(every.min()) - 0.2, float(every.max()) + 0.2)
    return theme.figure(
        traces,
        x={"title": TEXTS("real.position"), "range": [0, bins * size], **theme.length_ticks(0, bins * size, log=False)}
        | {"unifiedhovertitle": {"text": TEXTS("hovers.token")}},
        y={"title": TEXTS("real.loss_axis"), "range": list(span)},
        shapes=[theme.rule(trained, theme.TEXTS("rules.trained", length=trained), axis="x")]
        if trained <= bins * size
        else [],
        notes=theme.spread_labels(ends, span, log=False),
        margin={"l": 68, "r": 120, "t": 26, "b": 48},
    )


def cost_of_short_texts(lines: Sequence[RecallCurve], plain: FloatArray) -> go.Figure:
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
        | {"unifiedhovertitle": {"text": TEXTS("hovers.tokens")}, **theme.length_ticks(low, high)},
        y={"title": TEXTS("real.short_axis"), "range": list(span)},
        notes=theme.spread_labels(ends, span, log=False),
        height=theme.SIDE_HEIGHT,
        margin={"l": 68, "r": 112, "t": 26, "b": 48},
    )


def added_losses(lines: Sequence[RecallCurve], plain: FloatArray, tokens: int) -> go.Figure:
    """Draw what changes of some pairs add to the loss, by position, with intervals.

    `plain` is the loss of the model as it is, which is drawn as 0.
    """
    every = np.concatenate([part for line in lines for part in (line.low, line.high)])
    room = 0.08 * float(np.ptp([*every, 0.0]))
    span = (min(float(every.min()), 0.0) - room, max(float(every.max()), 0.0) + room)
    unchanged, x = BAND_TEXTS("unchanged"), lines[0].x
    zero = theme.line(x, np.zeros(len(plain)), unchanged, theme.PLAIN, dash="dot")
    zero |= {"customdata": plain, "hovertemplate": BAND_TEXTS("loss.hover")}
    ends = [(float(x[-1]), float(line.mean[-1]), line.label, line.colour) for line in lines]
    ends.append((float(x[-1]), 0.0, unchanged, theme.PLAIN))
    return theme.figure(
        [zero, *(trace for line in lines for trace in with_band(line, digits=3))],
        x={"title": BAND_TEXTS("loss.position"), "range": [0, tokens], **theme.length_ticks(0, tokens, log=False)}
        | {"unifiedhovertitle": {"text": BAND_TEXTS("loss.place")}},
        y={"title": BAND_TEXTS("loss.axis"), "range": list(span)},
        notes=theme.spread_labels(ends, span, log=False),
        margin={"l": 68, "r": 140, "t": 26, "b": 48},
    )


def found_by_depth(sets: Sequence[Points], depths: FloatArray) -> go.Figure:
    """Draw the share of needles found at each depth, with intervals."""
    fig = theme.figure(
        draw_points(sets, depths, 0.016, BAND_TEXTS("needle.hover"), lines=True),
        x={"title": BAND_TEXTS("needle.depth"), "range": [0, 1], "tickformat": ".0%"},
        y={"title": BAND_TEXTS("needle.axis"), "range": [-0.03, 1.05], "tickformat": ".0%"},
        height=theme.SIDE_HEIGHT,
        hovermode="closest",
        showlegend=True,
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        margin={"l": 68, "r": 24, "t": 26, "b": 48},
    )
    fig.table = lambda: tabulate_points(str(BAND_TEXTS("needle.depth")), depths.tolist(), sets)
    return fig
