"""Figures by distance: the pairs at one distance, the attention map, and the bases that hold a length."""

from __future__ import annotations

import functools

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from rope_viz.embedding.spec import FloatArray, RopeSpec
from rope_viz.figures import theme
from rope_viz.figures.line_styles import pin_rule_x
from rope_viz.pages.decay.figures import MARGIN, TEXTS, WORKERS, note_above
from rope_viz.studies import decay, scores
from rope_viz.studies.scores import WORK, Parts, Thinning
from rope_viz.texts.numbers import format_number

WINDOW = 96
BASES_LONGEST = 1 << 17


def contributions(spec: RopeSpec, distance: int, qk_parts: Parts, *, pin: int | None) -> go.Figure:
    """Draw what each pair adds to the score at one distance, and the running total.

    The total starts at the contribution of the unrotated dimensions and ends at the score.
    """
    a, b, unrotated = qk_parts
    parts = scores.contributions(spec.inv_freq(spec.target), a, b, distance)
    total = unrotated + np.cumsum(parts)
    pair = np.arange(spec.pairs)
    bars = {
        "type": "bar",
        "x": pair,
        "y": parts,
        "name": TEXTS("pair_lines.pair"),
        "marker": {"color": np.where(parts >= 0, theme.KEPT, theme.DIVIDED).tolist()},
        "hovertemplate": TEXTS("pair_lines.hover"),
    }
    running = theme.line(pair, total, TEXTS("pair_lines.total"), theme.CURRENT, yaxis="y2")
    most = 1.1 * max(float(np.abs(np.hypot(a, b)).max()), 1e-12)
    span = 1.1 * max(float(np.abs(total).max()), abs(unrotated), float(np.hypot(a, b).sum()) * 0.25, 1e-12)
    start = {"x": 0, "y": unrotated, "yref": "y2", "xanchor": "left", "yanchor": "bottom", "showarrow": False}
    offset = start | {
        "text": TEXTS("pair_lines.unrotated", score=unrotated),
        "font": {"color": theme.CURRENT, "size": 12},
    }
    fig = theme.figure(
        [bars, running],
        x=theme.pair_axis(spec.pairs),
        y={
            "title": TEXTS("pair_lines.pair_axis"),
            "range": [-most, most],
            "zeroline": True,
            "zerolinecolor": theme.RULE,
        },
        height=theme.SIDE_HEIGHT,
        shapes=pin_rule_x(pin, spec),
        notes=[
            theme.end_label(
                spec.pairs - 1, float(total[-1]), format_number(total[-1]), theme.CURRENT, yref="y2", xshift=10
            ),
            *([offset] if spec.head_dim > 2 * spec.pairs else []),
        ],
        margin=MARGIN,
        bargap=0.15,
    )
    axis = {
        "overlaying": "y",
        "side": "right",
        "range": [-span, span],
        "showgrid": False,
        "fixedrange": True,
        "tickmode": "auto",
    }
    fig.update_layout(
        yaxis2=axis
        | {"tickmode": "auto", "title": {"text": TEXTS("pair_lines.total_axis"), "standoff": 4, "font": {"size": 13}}}
    )
    return fig


def total(spec: RopeSpec, distance: int, qk_parts: Parts) -> float:
    """Return the score at one distance."""
    a, b, unrotated = qk_parts
    return float(scores.scores_at(spec.inv_freq(spec.target), a, b, [distance])[0]) + unrotated


def attention_map(spec: RopeSpec, first: int, qk_parts: Parts, weights: bool) -> go.Figure:
    """Draw causal scores or softmax weights of a window of queries and keys, equal along every diagonal."""
    inv_freq, factor = spec.inv_freq(spec.target), spec.attention_factor(spec.target)
    a, b, unrotated = qk_parts
    window = WINDOW
    by_distance = scores.curve(inv_freq, a, b, stop=window)
    query, key = np.indices((window, window))
    logits = decay.attention_logits(by_distance, head_dim=spec.head_dim, attention_factor=factor, unrotated=unrotated)
    grid = np.where(key <= query, logits[np.maximum(query - key, 0)], -np.inf)
    if weights:
        raised = np.exp(grid - grid.max(axis=1, keepdims=True))
        values = np.where(key <= query, raised / raised.sum(axis=1, keepdims=True), np.nan)
        ends, scale, name = (0.0, float(np.nanmax(values[window // 8 :]))), theme.SEQUENTIAL, "weight"
    else:
        values = np.where(key <= query, grid, np.nan)
        top = float(np.abs(logits).max()) or 1.0
        ends, scale, name = (-top, top), theme.DIVERGING, "logit"
    at = first + np.arange(window)
    trace = {
        "type": "heatmap",
        "x": at,
        "y": at,
        "z": values.astype(np.float32),
        "zmin": ends[0],
        "zmax": ends[1],
        "colorscale": scale,
        "hoverongaps": False,
        "colorbar": {
            "thickness": 12,
            "outlinewidth": 0,
            "title": {"text": TEXTS(f"map.{name}"), "side": "top"},
            "x": 1.01,
            "xpad": 4,
        },
        "hovertemplate": TEXTS(f"map.{name}_hover"),
    }
    bare = {"showgrid": False, **theme.length_ticks(first, first + window, log=False)}
    return theme.figure(
        [trace],
        x=bare | {"title": TEXTS("map.key"), "showspikes": False, "range": [at[0] - 0.5, at[-1] + 0.5]},
        y=bare | {"title": TEXTS("map.query"), "range": [at[-1] + 0.5, at[0] - 0.5]},
        height=theme.MAIN_HEIGHT,
        hovermode="closest",
        margin={"l": 82, "r": 76, "t": 26, "b": 48},
    )


def bases(spec: RopeSpec, length: int, *, quick: bool = False) -> go.Figure:
    """Draw which bases keep the mean cosine at or above 0 up to a length: a set with gaps, not one threshold."""
    candidates = choose_bases(spec, length, quick=quick)
    holds = find_feasible(spec, length, quick=quick)
    verdicts = TEXTS("bases.turns_negative"), TEXTS("bases.keeps")
    strip = {
        "type": "heatmap",
        "x": candidates,
        "y": [""],
        "z": np.array([holds], dtype=np.float32),
        "zmin": 0,
        "zmax": 1,
        "colorscale": [
            [0, theme.tint(theme.DIVIDED, 0.55)],
            [0.5, theme.tint(theme.DIVIDED, 0.55)],
            [0.5, theme.tint(theme.KEPT, 0.6)],
            [1, theme.tint(theme.KEPT, 0.6)],
        ],
        "showscale": False,
        "customdata": [[verdicts[ok] for ok in holds.tolist()]],
        "hovertemplate": TEXTS("bases.hover", length=length),
    }
    fig = theme.figure(
        [strip],
        x={
            "title": TEXTS("reach.base_axis"),
            "type": "log",
            "range": [3, 9],
            "dtick": 1,
            "showspikes": False,
            "showgrid": False,
        },
        y={"showgrid": False, "fixedrange": True, "showline": False, "ticks": ""},
        height=170,
        shapes=[theme.rule(spec.base, TEXTS("bases.this"), axis="x")],
        hovermode="closest",
        notes=note_above(thin_distances(spec.rotary_dim, length, len(candidates)).sentence()),
        margin={"l": 24, "r": 24, "t": 34, "b": 48},
    )
    fig.table = lambda: {"base": candidates, f"1: mean cosine at or above 0 up to {length} tokens": holds * 1.0}
    return fig


def choose_bases(spec: RopeSpec, length: int, *, quick: bool = False) -> FloatArray:
    """Return the bases that `bases` draws: fewer while a knob moves, and when each takes long."""
    return np.geomspace(1e3, 1e9, 61 if quick else min(361, max(121, int(3 * WORK / (spec.pairs * length)))))


def find_feasible(spec: RopeSpec, length: int, *, quick: bool = False) -> NDArray[np.bool_]:
    """Return which drawn bases keep the mean cosine of such a head at or above 0 below a length; cached."""
    return _find_feasible(spec.head_dim, spec.rotary_dim, length, tuple(choose_bases(spec, length, quick=quick)))


@functools.lru_cache(maxsize=16)
def _find_feasible(head_dim: int, rotary_dim: int, length: int, candidates: tuple[float, ...]) -> NDArray[np.bool_]:
    def is_feasible(part: FloatArray) -> NDArray[np.bool_]:
        return decay.feasible_bases(head_dim, length, part, rotary_dim=rotary_dim, thinning=thinning)

    thinning = thin_distances(rotary_dim, length, len(candidates))

    # Large bases take long and small ones fail early: small chunks keep all workers busy.
    return np.concatenate(list(WORKERS.map(is_feasible, np.array_split(np.array(candidates), 32))))


def thin_distances(rotary_dim: int, length: int, bases: int) -> Thinning:
    """Return which distances are computed for each of this many bases."""
    return Thinning.for_curve(0, length, rotary_dim // 2, shares=bases, work=3 * WORK * min(1.0, 128 / rotary_dim))
