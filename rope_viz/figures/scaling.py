"""Figures of what scaling methods do to every pair, for any number of methods at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from rope_viz.embedding import spectrum
from rope_viz.embedding.scaling import LABELS, METHODS, LongRope, NtkByParts, Yarn, turns
from rope_viz.embedding.spec import FloatArray, RopeSpec
from rope_viz.figures import line_styles, theme
from rope_viz.figures.compared import Compared as Compared
from rope_viz.figures.compared import compared as compared
from rope_viz.figures.compared import label_margin
from rope_viz.figures.compared import plain as plain
from rope_viz.figures.compared import short_label as short_label
from rope_viz.figures.frequencies import length_rules, pin_rule_x
from rope_viz.figures.line_names import Named, name_lines
from rope_viz.texts import Texts
from rope_viz.texts.numbers import format_number

HOVER = "θ′/θ {0} %{{y:.4~g}}<extra></extra>"
TEXTS = Texts("scaling")
VIEWS = TEXTS.group("views")


def view(name: str, curves: Sequence[Compared], *, pin: int | None = None) -> tuple[go.Figure, str]:
    """Draw one of `VIEWS` and return it with its accessible name."""
    title = TEXTS(f"view_titles.{name}", curves=", ".join(curve.label for curve in curves))
    if name == "wavelength":
        return wavelengths(curves, pin=pin), title
    if name == "ramp":
        return ramps(curves), title
    if name == "paper":
        return paper_and_released(curves[0].spec), title
    return ratios(curves, pin=pin), title


def ratios(curves: Sequence[Compared], *, pin: int | None = None) -> go.Figure:
    """Draw θ′/θ per pair: 1 = unchanged, 1/s = divided by the factor s. A bar above shows the bands of each."""
    drawn = [spectrum.ratio(c.spec, length=c.spec.target) for c in curves]
    floor = max(min(0.5, *(float(share.min()) for share in drawn)), 1e-3)
    top = min(max(1.0, *(float(share.max()) for share in drawn)), 1e3)
    return _per_pair(
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


def wavelengths(curves: Sequence[Compared], *, pin: int | None = None) -> go.Figure:
    """Draw tokens per turn per pair for every method, with the trained and the target length."""
    spec = curves[0].spec
    slowest = max(float(np.max(spectrum.wavelength(c.inv_freq[c.inv_freq > 0]), initial=1.0)) for c in curves)
    low = 4.0 / max(float(np.max(c.inv_freq, initial=1.0)) for c in curves)
    top = 16.0 ** np.ceil(np.log(max(slowest, spec.target, 4096) * 1.3) / np.log(16))
    fig = _per_pair(
        curves,
        lambda c: theme.finite(spectrum.wavelength(c.inv_freq)),
        {
            "title": "wavelength (tokens per turn, log)",
            "type": "log",
            "range": theme.log_range(low, top),
            **theme.length_ticks(low, top),
        },
        log=True,
        pin=pin,
        hover="%{y:,.4~g} tokens",
        before=True,
    )
    for shape in length_rules(spec, axis="y"):
        fig.add_shape(shape)
    return fig


def ramps(curves: Sequence[Compared]) -> go.Figure:
    """Draw the ramp γ over turns in training: 1 = unchanged frequency, 0 = divided by s; thresholds are marked."""
    spec = curves[0].spec
    with_ramp = [c for c in curves if hasattr(c.spec.scaling, "kept_share")]
    r = turns(spec)
    traces, notes, shapes = [], [], []
    for index, c in enumerate(with_ramp):
        share = c.spec.scaling.kept_share(c.spec)  # type: ignore[attr-defined]
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
                hovertemplate=c.label + ": γ = %{y:.3f}, pair %{customdata}<extra></extra>",
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
            "title": "turns r in the trained length (log)",
            "type": "log",
            "range": theme.log_range(high, low),
            "tickvals": [0.01, 0.1, 1, 4, 32, 100, 1000],
            "ticktext": ["0.01", "0.1", "1", "4", "32", "100", "1,000"],
        },
        y={"title": "γ, share of the plain frequency kept", "range": [-0.05, 1.08]},
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
    styles = {
        "released": line_styles.CURRENT if spec.scaling.name == "yarn" else line_styles.METHODS["yarn"],
        "paper": line_styles.CURRENT if spec.scaling.name == "yarn-paper" else line_styles.METHODS["yarn-paper"],
    }
    curves = {"released": spectrum.ratio(released), "paper": spectrum.ratio(paper)}
    traces = [
        theme.line(pair, y, name, styles[name].colour, dash=styles[name].dash, hovertemplate=HOVER.format(name))
        for name, y in curves.items()
    ]
    traces.append(theme.line(pair, quotient, "released / paper", theme.TEXT, dash="dot", yaxis="y2"))
    fastest = max(float(curve.max()) for curve in curves.values())
    top = max(1.2, float(np.max(quotient)) * 1.3)  # leaves room for the label below the names of the bands
    marker = {
        "x": worst,
        "y": float(quotient[worst]),
        "yref": "y2",
        "text": f"×{format_number(quotient[worst])} at pair {worst}",
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
            _text_at(pair, curves["released"], 0.7, "released", styles["released"].colour, "left"),
            _text_at(pair, curves["paper"], 0.7, "paper", styles["paper"].colour, "right"),
        ],
        bars=[
            theme.BandBar(spectrum.bands(each), styles[name].colour, styles[name].dash)
            for name, each in (("released", released), ("paper", paper))
        ],
        margin={"l": 68, "r": 72, "t": 26, "b": 48},
    )
    axis = {"overlaying": "y", "side": "right", "range": [0, top], "showgrid": False, "tickmode": "auto"}
    title = {"text": "released ÷ paper (dotted)", "standoff": 8, "font": {"size": 13}}
    fig.update_layout(yaxis2=axis | {"title": title, "fixedrange": True})
    return fig


def yarn_pair(spec: RopeSpec) -> tuple[RopeSpec, RopeSpec]:
    """Return this model with YaRN as released, and with the paper's ramp at the same factor and thresholds."""
    yarn = spec.scaling if isinstance(spec.scaling, Yarn) else Yarn(compare_factor(spec))
    paper = NtkByParts(yarn.factor, yarn.beta_slow, yarn.beta_fast)
    return dataclasses.replace(spec, scaling=yarn), dataclasses.replace(spec, scaling=paper)


def compare_factor(spec: RopeSpec) -> float:
    """Return the factor to compare methods at: the model's own, else target over trained length, else 4."""
    own = spec.scaling.factor_for(spec)
    if own > 1.0 and spec.scaling.name != "none":
        return own
    wanted = spec.target / spec.context
    return wanted if wanted > 1.0 else 4.0


def choices(spec: RopeSpec, *, ramps: bool = False) -> dict[str, str]:
    """Return other methods to compare this model with, name -> label; with `ramps`, only those that have a ramp."""
    found = {name: kind for name, kind in METHODS.items() if name not in ("none", spec.scaling.name)}
    return {name: short_label(name) for name, kind in found.items() if not ramps or hasattr(kind, "kept_share")}


def usual(spec: RopeSpec) -> list[str]:
    """Return the methods a comparison starts with."""
    return [name for name in ("yarn", "ntk", "linear") if name != spec.scaling.name]


def alternatives(spec: RopeSpec, names: Sequence[str]) -> list[RopeSpec]:
    """Return this model under each of these methods at the same factor, without the methods that do not apply."""
    return [other for name in names if (other := alternative(spec, name)) is not None]


def alternative(spec: RopeSpec, method: str) -> RopeSpec | None:
    """Return this model under another method at the same factor, None if the method does not apply."""
    scaling = METHODS[method]()
    if isinstance(scaling, LongRope) or (
        isinstance(getattr(scaling, "factor", None), float) and method != "proportional"
    ):
        scaling = dataclasses.replace(scaling, factor=compare_factor(spec))  # type: ignore[call-arg]
    try:
        return dataclasses.replace(spec, scaling=scaling)
    except ValueError:
        return None


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
                "method": LABELS[c.spec.scaling.name],
                "factor s": spectrum.whole_factor(c.spec, length=c.spec.target),
                "kept": found.count(spectrum.KEPT),
                "blended": found.count(spectrum.BLENDED),
                "divided": found.count(spectrum.DIVIDED),
                "sped up": found.count(spectrum.SPED),
                "still": found.count(spectrum.STILL),
                "attention factor": attention,
                "logits × (λ)": attention**2,
                "longest wavelength": float(spectrum.wavelength(turning).max()) if turning.size else np.inf,
            }
        )
    return without_zeros(rows)


def without_zeros(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Drop the columns of rare bands that are empty in all rows."""
    empty = [name for name in ("sped up", "still") if not any(row[name] for row in rows)]
    return [{name: value for name, value in row.items() if name not in empty} for row in rows]


def _per_pair(
    curves: Sequence[Compared],
    values: Callable[[Compared], Any],
    y: dict[str, Any],
    *,
    log: bool,
    pin: int | None,
    hover: str,
    before: bool = False,
) -> go.Figure:
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


def _thresholds(spec: RopeSpec) -> list[tuple[float, str]]:
    scaling = spec.scaling
    for slow, fast in (("beta_slow", "beta_fast"), ("alpha", "beta"), ("low_freq_factor", "high_freq_factor")):
        if hasattr(scaling, slow):
            low, high = getattr(scaling, slow), getattr(scaling, fast)
            return [(low, f"r = {format_number(low)}"), (high, f"r = {format_number(high)}")]
    return []


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
