"""Figures of rounding: the angle error by pair and position, and the score as both positions move."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import plotly.graph_objects as go

from rope_viz.embedding.spec import FloatArray, RopeSpec
from rope_viz.figures import cell_text, line_styles, theme
from rope_viz.figures.line_styles import length_rules, pin_rule
from rope_viz.studies import precision
from rope_viz.studies.precision import ROUNDINGS
from rope_viz.studies.scores import scale_samples
from rope_viz.texts import Texts, cache_by_language
from rope_viz.texts.numbers import format_exponent

TEXTS = Texts("precision")
FIRST = "bf16-inv-freq"
PLACES = TEXTS.group("roundings", only=tuple(dict.fromkeys((FIRST, *ROUNDINGS))))
SHORT = TEXTS.group("short")
OTHERS = ("bf16-positions", "float32-angles", "bf16-table", "phase64")
VIEWS = TEXTS.group("views")
DISTANCE = 10
FLOOR = 1e-8
TENTH = 0.1
EXACT = ("bf16-positions", "bf16-inv-freq")


@functools.lru_cache(maxsize=32)
def worst(spec: RopeSpec, where: str, bins: int, samples: int) -> tuple[FloatArray, FloatArray]:
    """Return bin edges, log-spaced from 1 to 10M, and the worst error found in each bin, shape (bins, pairs)."""
    edges = np.unique(np.geomspace(1, precision.MAX_POSITION + 1, bins + 1).astype(np.int64))
    errors = precision.worst_error(spec, edges, where, samples=samples, length=spec.target)
    return edges.astype(np.float64), errors


@functools.lru_cache(maxsize=64)
def passes(spec: RopeSpec, where: str) -> FloatArray:
    """Return where each pair's error first exceeds 0.1 turn, NaN if not up to 10M or if it does not grow."""
    if ROUNDINGS[where].stage != "angle":
        return np.full(spec.pairs, np.nan)
    return precision.first_position_beyond(spec, where, turns=TENTH, limit=precision.MAX_POSITION, length=spec.target)


def heatmap(spec: RopeSpec, where: str, *, position: int, live: bool = False, pin: int | None = None) -> go.Figure:
    """Draw the angle error in radians of every pair over positions 1 to 10M, with a line where it passes 0.1 turn."""
    samples = scale_samples(3 if live else 12, spec.pairs, least=2, usual=256)
    edges, errors = worst(spec, where, scale_samples(80 if live else 220, spec.pairs, least=80, usual=512), samples)
    middle = np.sqrt(edges[:-1] * np.maximum(edges[1:] - 1.0, edges[:-1]))
    with np.errstate(divide="ignore"):
        error = np.where(errors > 0.0, np.log10(np.maximum(errors, FLOOR)), np.nan).T
    powers = range(round(math.log10(FLOOR)), 1)
    trace: dict[str, Any] = {
        "type": "heatmap",
        "x": middle,
        "y": np.arange(spec.pairs),
        "z": error.astype(np.float32),
        "zmin": math.log10(FLOOR),
        "zmax": math.log10(2 * math.pi),
        "colorscale": theme.ERROR,
        "zsmooth": False,
        "hoverongaps": False,
        "colorbar": {
            "thickness": 12,
            "outlinewidth": 0,
            "len": 1.0,
            "x": 1.01,
            "xpad": 4,
            "title": {"text": TEXTS("map.bar"), "side": "top"},
            "tickvals": [*powers[::2], math.log10(2 * math.pi)],
            "ticktext": [*(_power(e) for e in powers[::2]), TEXTS("map.turn")],
        },
        "hovertemplate": TEXTS("map.quick_hover"),
    }
    if not live:
        trace["customdata"] = errors.T.astype(np.float32)
        trace["hovertemplate"] = TEXTS("map.hover")
    first = np.full(spec.pairs, np.nan) if live and where not in EXACT else passes(spec, where)
    if where not in EXACT:
        # Both are sampled: take the first position found by either.
        beyond = errors > TENTH * 2 * math.pi
        first = np.fmin(first, np.where(beyond.any(axis=0), middle[beyond.argmax(axis=0)], np.nan))
    line = theme.line(
        theme.finite(first),
        np.arange(spec.pairs),
        TEXTS("map.passes"),
        theme.TEXT,
        hovertemplate=TEXTS("map.passes_hover"),
        meta={"csv": False},
        mode="lines+markers",
        marker={"size": 4, "color": theme.TEXT},
    )
    # A wider line in the background colour below keeps the line visible on dark cells.
    seam = line | {"line": {"color": theme.BACKGROUND, "width": 5}, "mode": "lines", "hoverinfo": "skip"}
    seam |= {"hovertemplate": None, "name": "seam"}
    low, high = 1.0, float(precision.MAX_POSITION)
    rules = [each for each in length_rules(spec, axis="x", stop=high) if abs(math.log(each["x0"] / position)) > 0.4]
    position_rule = theme.rule(position, TEXTS("map.position", position=position), axis="x", dash="dot")
    position_rule["label"] |= {"textposition": "start", "yanchor": "bottom"}
    fig = theme.figure(
        [trace, seam, line],
        x={
            "title": TEXTS("map.axis"),
            "type": "log",
            "range": theme.log_range(low, high),
            "showspikes": False,
            "showgrid": False,
            **theme.length_ticks(low, high),
        },
        y={
            "title": theme.TEXTS("axes.pair"),
            "range": [spec.pairs - 0.5, -0.5],
            "tickvals": theme.thin_ticks(spec.pairs),
            "showgrid": False,
        },
        shapes=[*pin_rule(pin, spec), *rules, position_rule],
        notes=_line_label(first),
        hovermode="closest",
        margin={"l": 68, "r": 84, "t": 26, "b": 48},
    )
    fig.table = lambda: {
        **cell_text.binned_table(edges, errors, "largest error found (rad)"),
        **cell_text.binned_table(edges, error.T.astype(np.float32), "its power of ten"),
    }
    return fig


@functools.lru_cache(maxsize=128)
def score_curve(spec: RopeSpec, where: str, *, live: bool = False) -> tuple[FloatArray, dict[str, FloatArray]]:
    """Return positions up to 10M, and the score's error and its shift since 0, the worst of 12 positions each.

    Heads of more than 256 dimensions get fewer positions.
    """
    count = 40 if live else scale_samples(160, spec.pairs, least=40, usual=128)
    starts = np.unique(np.geomspace(16, precision.MAX_POSITION, count).astype(np.int64))
    rows = np.maximum(starts[:, None] - np.arange(scale_samples(12, spec.pairs, least=2, usual=128)), 0)
    test = precision.shift_test(spec, np.append(rows.ravel(), 0), where, distance=DISTANCE, length=spec.target)
    references = {"error": test.exact, "shift": float(test.scores[-1])}
    moved = test.scores[:-1].reshape(rows.shape)
    return starts.astype(np.float64), {name: np.abs(moved - at).max(axis=1) for name, at in references.items()}


def scores(spec: RopeSpec, where: str, *, shown: str, names: list[str], live: bool = False) -> go.Figure:
    """Draw the score of one q and k at a distance of 10 as both move up to 10M: its error, or its shift."""
    drawn = [name for name in dict.fromkeys([*names, where]) if name in ROUNDINGS]
    # The chosen rounding is drawn last, on top.
    drawn.sort(key=lambda name: name == where)
    traces, ends = [], []
    for name in drawn:
        colour, dash = line_styles.CURRENT if name == where else line_styles.SLOTS[list(PLACES).index(name)]
        x, off = score_curve(spec, name, live=live)
        y = np.maximum(off[shown], 1e-16)
        label = SHORT[name]
        traces.append(
            theme.line(
                x,
                y,
                label,
                colour,
                dash=dash,
                width=3 if name == where else 2,
                hovertemplate=f"{label} %{{y:.2~g}}<extra></extra>",
            )
        )
        ends.append((math.log10(x[-1]), float(y[-1]), label, colour))
    low, high = 16.0, float(precision.MAX_POSITION)
    span = [-16.5, 1.5]
    title = TEXTS(f"score_axes.{shown}")
    return theme.figure(
        traces,
        x={
            "title": TEXTS("score_axes.position", distance=DISTANCE),
            "type": "log",
            "range": theme.log_range(low, high),
            **theme.length_ticks(low, high),
        },
        y={
            "title": title,
            "type": "log",
            "range": span,
            "tickvals": [10.0**e for e in range(-16, 2, 2)],
            "ticktext": [_power(e) for e in range(-16, 2, 2)],
        },
        height=400,
        notes=theme.spread_labels(ends, span, log=True, height=400),
        shapes=[each for each in length_rules(spec, axis="x", stop=high) if each["x0"] > low],
        margin={"l": 68, "r": 158, "t": 26, "b": 48},
    )


@cache_by_language(8)
def summary(spec: RopeSpec) -> tuple[dict[str, Any], ...]:
    """Return a row per rounding, up to the target length: worst angle, pairs past 0.1 turn, vector length and score."""
    end = min(spec.target, precision.MAX_POSITION)
    starts = np.unique(np.geomspace(1, end, scale_samples(60, spec.pairs, least=20, usual=256)).astype(np.int64))
    near = np.arange(scale_samples(8, spec.pairs, least=2, usual=256))
    places = np.unique(np.append(np.maximum(starts[:, None] - near, 0), end))
    rows: list[dict[str, Any]] = []
    for name, label in PLACES.items():
        first = passes(spec, name)
        beyond = first[first <= end]
        test = precision.shift_test(spec, places, name, distance=DISTANCE, length=spec.target)
        rows.append(
            {
                TEXTS("columns.rounded"): label,
                TEXTS("columns.angle"): float(
                    np.abs(precision.angle_error(spec, places, name, length=spec.target)).max()
                ),
                TEXTS("columns.length"): 100.0
                * float(np.abs(precision.norm_error(spec, places, name, length=spec.target)).max()),
                TEXTS("columns.past"): int(beyond.size),
                TEXTS("columns.first"): float(beyond.min()) if beyond.size else math.nan,
                TEXTS("columns.error"): float(np.abs(test.scores - test.exact).max()),
                TEXTS("columns.drift"): test.drift,
            }
        )
    return tuple(rows)


def _line_label(first: FloatArray) -> list[dict[str, Any]]:
    if not np.isfinite(first).any():
        return []
    pair = int(np.nanargmin(first))
    where = {"x": math.log10(first[pair]), "y": pair, "xanchor": "right", "xshift": -5, "showarrow": False}
    look = {"font": {"size": 12, "color": theme.TEXT}, "bgcolor": theme.tint(theme.BACKGROUND, 0.75), "borderpad": 1}
    return [where | look | {"text": TEXTS("map.tenth"), "yanchor": "top" if pair < 2 else "middle"}]


def _power(exponent: int) -> str:
    return "1" if exponent == 0 else f"10{format_exponent(exponent)}"
