"""Figures of what scaling methods do to every pair, for any number of methods at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from rope_viz.embedding import spectrum
from rope_viz.embedding.scaling import LABELS, build_method, turns
from rope_viz.embedding.spec import FloatArray, RopeSpec
from rope_viz.figures import line_styles, theme
from rope_viz.figures.compared import (
    Compared,
    compare_factor,
    without_zeros,
)
from rope_viz.figures.heatmap_grid import Heatmap, draw_panels
from rope_viz.figures.line_styles import length_rules
from rope_viz.figures.method_curves import HOVER, draw_per_pair, ratios, title_ratios
from rope_viz.figures.words import BANDS, name_band
from rope_viz.studies.distance_maps import Chunks, Groups
from rope_viz.texts import Texts
from rope_viz.texts.numbers import format_number, format_tokens
from rope_viz.texts.texts import join_items

TEXTS = Texts("scaling")
VIEWS = TEXTS.group("views")


def view(name: str, curves: Sequence[Compared], *, pin: int | None = None) -> tuple[go.Figure, str]:
    """Draw one of `VIEWS` and return it with its accessible name."""
    if name == "ratio":
        return ratios(curves, pin=pin), title_ratios(curves)
    title = TEXTS(f"view_titles.{name}", curves=join_items([curve.label for curve in curves]))
    if name == "wavelength":
        return wavelengths(curves, pin=pin), title
    if name == "ramp":
        return ramps(curves), title
    return paper_and_released(curves[0].spec), title


def wavelengths(curves: Sequence[Compared], *, pin: int | None = None) -> go.Figure:
    """Draw tokens per turn per pair for every method, with the trained and the target length."""
    spec = curves[0].spec
    slowest = max(float(np.max(spectrum.wavelength(c.inv_freq[c.inv_freq > 0]), initial=1.0)) for c in curves)
    low = 4.0 / max(float(np.max(c.inv_freq, initial=1.0)) for c in curves)
    top = 16.0 ** np.ceil(np.log(max(slowest, spec.target, 4096) * 1.3) / np.log(16))
    fig = draw_per_pair(
        curves,
        lambda c: theme.finite(spectrum.wavelength(c.inv_freq)),
        {
            "title": theme.TEXTS("axes.wavelength"),
            "type": "log",
            "range": theme.log_range(low, top),
            **theme.length_ticks(low, top),
        },
        log=True,
        pin=pin,
        hover=TEXTS("lines.wavelength"),
        before=True,
    )
    for shape in length_rules(spec, axis="y"):
        fig.add_shape(shape)
    return fig


def ramps(curves: Sequence[Compared]) -> go.Figure:
    """Draw the ramp γ over turns in training: 1 = unchanged frequency, 0 = divided by s; thresholds are marked."""
    spec = curves[0].spec
    with_ramp = [c for c in curves if c.spec.scaling.has_ramp]
    r = turns(spec)
    traces, notes, shapes = [], [], []
    for index, c in enumerate(with_ramp):
        share = c.spec.scaling.kept_share(c.spec)
        at = turns(c.spec)
        traces.append(
            theme.line(
                at,
                share,
                c.label,
                c.colour,
                dash=c.dash,
                mode="lines+markers",
                marker={"size": 5, "color": c.colour},
                customdata=np.arange(c.spec.pairs),
                hovertemplate=TEXTS("lines.ramp", name=c.label),
            )
        )
        notes.append(_ramp_label(c, at, share, index))
    if with_ramp:
        for value, text in sorted(_thresholds(with_ramp[0].spec)):
            shapes.append(theme.rule(value, text, axis="x", dash="dot"))
    high = float(max(r[0] * 1.5, 64.0))
    low = float(max(min(r[-1], 0.5), 1e-3) / 1.5)
    return theme.figure(
        traces,
        x={
            "title": TEXTS("axes.turns"),
            "type": "log",
            "range": theme.log_range(high, low),
            "tickvals": [0.01, 0.1, 1, 4, 32, 100, 1000],
            "ticktext": ["0.01", "0.1", "1", "4", "32", "100", "1,000"],
        },
        y={"title": TEXTS("axes.ramp"), "range": [-0.05, 1.08]},
        notes=notes,
        shapes=shapes,
        hovermode="closest",
    )


def paper_and_released(spec: RopeSpec) -> go.Figure:
    """Draw YaRN's two ramps for this model as θ′/θ, and released over paper to show where they differ."""
    released, paper = yarn_pair(spec)
    pair = np.arange(spec.pairs)
    quotient = released.inv_freq() / paper.inv_freq()
    worst = spectrum.find_peak(np.abs(np.log(quotient)))
    specs = {"released": released, "paper": paper}
    styles = {
        name: line_styles.CURRENT if each.scaling.name == spec.scaling.name else line_styles.METHODS[each.scaling.name]
        for name, each in specs.items()
    }
    curves = {name: spectrum.ratio(each) for name, each in specs.items()}
    labels = {name: TEXTS(f"lines.{name}") for name in specs}
    traces = [
        theme.line(pair, y, label, styles[name].colour, dash=styles[name].dash, hovertemplate=HOVER.format(label))
        for (name, y), label in zip(curves.items(), labels.values(), strict=True)
    ]
    traces.append(theme.line(pair, quotient, TEXTS("lines.quotient"), theme.TEXT, dash="dot", yaxis="y2"))
    fastest = max(float(curve.max()) for curve in curves.values())
    top = max(1.2, float(np.max(quotient)) * 1.3)  # leaves room for the label below the names of the bands
    marker = {
        "x": worst,
        "y": float(quotient[worst]),
        "yref": "y2",
        "text": TEXTS("lines.largest", factor=quotient[worst], pair=worst),
        "showarrow": True,
        "arrowcolor": theme.TEXT,
        "ax": 0,
        "ay": -28,
        "font": {"color": theme.TEXT, "size": 13},
    }
    fig = theme.figure(
        traces,
        x=theme.pair_axis(spec.pairs),
        y={"title": "θ′ᵢ / θᵢ", "range": [0, 1.08 * max(fastest, 1.0)]},
        notes=[
            marker,
            _text_at(pair, curves["released"], 0.7, labels["released"], styles["released"].colour, "left"),
            _text_at(pair, curves["paper"], 0.7, labels["paper"], styles["paper"].colour, "right"),
        ],
        bars=[
            theme.BandBar(spectrum.bands(each), styles[name].colour, styles[name].dash) for name, each in specs.items()
        ],
        margin={"l": 68, "r": 72, "t": 26, "b": 48},
    )
    axis = {"overlaying": "y", "side": "right", "range": [0, top], "showgrid": False, "tickmode": "auto"}
    title = {"text": TEXTS("axes.quotient"), "standoff": 8, "font": {"size": 13}}
    fig.update_layout(yaxis2=axis | {"title": title, "fixedrange": True})
    return fig


def yarn_pair(spec: RopeSpec) -> tuple[RopeSpec, RopeSpec]:
    """Return this model with YaRN as released, and with the paper's ramp at the same factor and thresholds."""
    released = spec.scaling if spec.scaling.as_in_paper else build_method("yarn", compare_factor(spec))
    paper = released.as_in_paper or released
    return dataclasses.replace(spec, scaling=released), dataclasses.replace(spec, scaling=paper)


def usual(spec: RopeSpec) -> list[str]:
    """Return the methods a comparison starts with."""
    return [name for name in ("yarn", "ntk", "linear") if name != spec.scaling.name]


def summary(curves: Sequence[Compared]) -> list[dict[str, Any]]:
    """Return a row per method: factor, bands, attention factor, logit factor, longest finite wavelength.

    Like the frequencies, the factor is that at the target length.
    """
    rows = []
    for c in curves:
        found = spectrum.bands(c.spec, length=c.spec.target)
        attention = c.spec.attention_factor(c.spec.target)
        turning = c.inv_freq[c.inv_freq > 0]
        rows.append(
            {
                TEXTS("columns.method"): LABELS[c.spec.scaling.name],
                TEXTS("columns.factor"): spectrum.whole_factor(c.spec, length=c.spec.target),
                **{name_band(band): found.count(band) for band in BANDS},
                TEXTS("columns.attention"): attention,
                TEXTS("columns.logits"): attention**2,
                TEXTS("columns.longest"): float(spectrum.wavelength(turning).max()) if turning.size else np.inf,
            }
        )
    return without_zeros(rows)


def _thresholds(spec: RopeSpec) -> list[tuple[float, str]]:
    bounds = [getattr(spec.scaling, name) for name in spec.scaling.bounds]
    return [(bound, f"r = {format_number(bound)}") for bound in bounds]


def _ramp_label(c: Compared, r: FloatArray, share: FloatArray, index: int) -> dict[str, Any]:
    at = int(np.argmin(np.abs(share - (0.62 - 0.12 * (index % 4)))))
    where = {"x": float(np.log10(r[at])), "y": float(share[at]), "text": c.label, "showarrow": False, "name": "line"}
    return where | {
        "xanchor": "left",
        "xshift": 9,
        "font": {"color": c.colour, "size": 13},
        "bgcolor": theme.tint(theme.BACKGROUND, 0.8),
    }


def _text_at(x: Any, y: FloatArray, height: float, text: str, colour: str, side: str) -> dict[str, Any]:
    at = int(np.argmin(np.abs(y - height)))
    shift = 8 if side == "left" else -8
    font = {"color": colour, "size": 13}
    return {
        "x": int(x[at]),
        "y": float(y[at]),
        "name": "line",
        "text": text,
        "showarrow": False,
        "xanchor": side,
        "xshift": shift,
        "font": font,
    }


CELLS = 64

HEIGHT, NARROW_HEIGHT = 400, 620


def maps(trained: int, target: int, chunks: Chunks, groups: Groups) -> Any:
    """Draw three maps of query and key: the distance of plain RoPE, and of the two methods, over the trained length."""
    at = (np.arange(CELLS) * target / CELLS).astype(np.int64)
    query, key = at[:, None], at[None, :]
    first, last = np.array([0], dtype=np.int64), np.array([target - 1], dtype=np.int64)
    drawn = []
    for name, distance, largest in (
        ("plain", (query - key).astype(np.float64), target - 1.0),
        ("chunks", chunks.distance(query, key), float(min(chunks.size, target - 1))),
        ("groups", groups.distance(query, key), float(groups.distance(last, first)[0])),
    ):
        seen = np.where(key <= query, distance / trained, np.nan)
        line = TEXTS("maps.largest", largest=round(largest))
        hover = TEXTS("maps.hover")
        drawn.append(Heatmap(TEXTS(f"maps.{name}"), [line], seen, {"hovertemplate": hover, "hoverongaps": False}))
    most = target / trained
    share = 1.0 / most
    scale: list[list[Any]] = [[0.0, "#FEFEFE"], [share / 2, "#8DB4E2"], [share, theme.POSITIVE]]
    ends = [0.0, 1.0]
    if target > trained:
        scale += [[share, theme.DIVIDED], [1.0, theme.DIVIDED]]
        ends.append(most)
    ticks = {"tickvals": ends, "ticktext": [format_tokens(round(end * trained)) for end in ends]}
    return draw_panels(
        drawn,
        [format_tokens(int(position)) for position in at],
        ends=(0.0, most),
        scale=scale,
        bar=ticks | {"title": {"text": TEXTS("maps.bar"), "side": "top"}},
        height=HEIGHT,
        narrow_height=NARROW_HEIGHT,
    )
