"""Figures over the pairs: wavelengths against the lengths, and the heatmap of the θᵢ bands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from rope_viz.embedding import spectrum
from rope_viz.embedding.single_axis import AlongAxis
from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures import cell_text, theme
from rope_viz.figures.compared import Compared, label_margin
from rope_viz.figures.line_names import Named, name_lines
from rope_viz.texts import Texts
from rope_viz.texts.numbers import format_number, format_tokens

TEXTS = Texts("frequencies")
QUANTITIES = TEXTS.group("quantities")
MAX_POSITION = 10_000_000


def wavelengths(spec: RopeSpec, *, pin: int | None = None, curves: Sequence[Compared] = ()) -> go.Figure:
    """Draw tokens per turn for every pair, before and after scaling, against the trained and the target length.

    `curves` are the current spec and pinned variants, if there are any.
    """
    pair = np.arange(spec.pairs)
    plain = spec.plain_inv_freq
    scaled = spec.inv_freq(spec.target)
    is_scaled = bool(np.any(np.abs(scaled - plain) > 1e-12 * plain))
    last = spec.pairs - 1
    rows = _hover(spec, scaled)
    # One axis of several may own pairs that are not adjacent: draw markers, because a line would skip them.
    single = isinstance(spec, AlongAxis)
    names = ("all pairs", "of this axis") if single else ("plain", curves[0].label if curves else "scaled")
    dots: dict[str, Any] = {"mode": "lines+markers", "marker": {"size": 7, "color": theme.CURRENT}} if single else {}
    traces = []
    if is_scaled or not curves:
        traces.append(
            theme.line(
                pair,
                spectrum.wavelength(plain),
                names[0],
                theme.PLAIN,
                dash="dot" if is_scaled else "solid",
                hovertemplate=f"{names[0]} %{{y:,.4~g}} tokens<extra></extra>"
                if is_scaled
                else "%{customdata}<extra></extra>",
                customdata=None if is_scaled else rows,
            )
        )
    notes = []
    for c in curves[1:]:
        hover = f"{c.label} %{{y:,.4~g}} tokens<extra></extra>"
        wave = theme.finite(spectrum.wavelength(c.inv_freq))
        traces.append(theme.line(np.arange(c.spec.pairs), wave, c.label, c.colour, dash=c.dash, hovertemplate=hover))
    if is_scaled or curves:
        traces.append(
            theme.line(
                pair,
                theme.finite(spectrum.wavelength(scaled)),
                names[1],
                theme.CURRENT,
                width=2.5,
                customdata=rows,
                hovertemplate="%{customdata}<extra></extra>",
                **dots,
            )
        )
    low, high = _floor_and_ceiling([spec, *(c.spec for c in curves[1:])])
    # The lowest of several bars has a piece of its curve where the label of a tick at the top would be.
    high *= 2 if len(curves) > 1 else 1
    height = theme.height_of_bars(max(1, len(curves)))
    if curves:
        lines = [Named(theme.finite(spectrum.wavelength(c.inv_freq)), c.label, c.colour) for c in curves]
        lines += [Named(spectrum.wavelength(plain), names[0], theme.PLAIN)] if is_scaled else []
        room = height - theme.bar_room(len(curves)) - theme.MARGIN["b"]
        notes += name_lines(lines, theme.log_range(low, high), log=True, plot=room)
    elif is_scaled:
        drawn = np.flatnonzero(scaled > 0)
        if drawn.size:
            end = int(drawn[-1])
            notes.append(_end(end, 2 * math.pi / scaled[end], names[1], theme.CURRENT, yshift=7))
        notes.append(_end(last, 2 * math.pi / plain[last], names[0], theme.PLAIN, yshift=-7))
    if pin is not None and pin < spec.pairs:
        traces.append(pin_marker(pin, 2 * math.pi / (scaled[pin] or plain[pin])))
    rules = length_rules(spec, axis="y")
    bars = [theme.BandBar(spectrum.bands(c.spec, length=c.spec.target), c.colour, c.dash) for c in curves]
    return theme.figure(
        traces,
        x=theme.pair_axis(max([spec.pairs, *(c.spec.pairs for c in curves)])),
        y={
            "title": "wavelength (tokens per turn, log)",
            "type": "log",
            "range": theme.log_range(low, high),
            **theme.length_ticks(low, high),
        },
        height=height,
        bars=bars or [theme.BandBar(spectrum.bands(spec, length=spec.target))],
        shapes=[*unturned_shapes(spec, high), *rules],
        notes=notes,
        margin=theme.MARGIN | ({"r": label_margin(curves)} if curves else {}),
        meta={"narrow": {"shapes": [*unturned_shapes(spec, high, low), *rules]}},
    )


def unturned_shapes(spec: RopeSpec, top: float, bottom: float | None = None) -> list[dict[str, Any]]:
    """Return shapes that shade, up to `top`, the pairs with a wavelength above the trained length.

    With `bottom`, the lower end of the axis, the label moves below the shading in two lines: on a narrow screen it
    would cover the curves, which are all above.
    """
    turns = spec.context * spectrum.trained_inv_freq(spec) / spectrum.TAU
    slow = np.flatnonzero((turns > 0.0) & (turns < 1.0))
    runs = [run for run in np.split(slow, np.flatnonzero(np.diff(slow) > 1) + 1) if run.size]
    longest = max(runs, key=len, default=slow)
    # Put the label in free space: the top is free of curves when unscaled, else it holds band names and two curves.
    plain = np.array_equal(spec.plain_inv_freq, spec.inv_freq(spec.target))
    label = {
        "text": f"never a whole turn in training: {slow.size}",
        "textposition": "top right" if plain else "bottom right",
        "padding": 24 if plain else 6,
        "font": {"size": 12, "color": theme.TEXT},
    }
    shapes = []
    for run in runs:
        across = {"type": "rect", "x0": float(run[0]) - 0.5, "x1": float(run[-1]) + 0.5, "line": {"width": 0}}
        area = across | {"y0": spec.context, "y1": top, "fillcolor": theme.tint(theme.PLAIN, 0.22)}
        named = run is longest
        shapes += theme.label_above(area, label)[: 2 if named and bottom is None else 1]
        if named and bottom is not None:
            below = {"text": f"↑ never a whole turn<br>in training: {slow.size}", "textposition": "bottom right"}
            empty = {"y0": bottom, "y1": spec.context, "fillcolor": "rgba(0, 0, 0, 0)"}
            shapes.append(across | empty | {"label": label | below | {"padding": 6}})
    return shapes


def pairs(spec: RopeSpec) -> dict[str, Any]:
    """Return every pair's dimensions, frequencies, wavelengths, turns and band as table columns."""
    scaled = spec.inv_freq(spec.target)
    first = np.arange(spec.pairs)
    both = (first, first + spec.pairs) if spec.pairing == "half" else (2 * first, 2 * first + 1)
    return {
        "pair": first,
        "dimensions": [f"{a}, {b}" for a, b in zip(*both, strict=True)],
        "θ plain (rad/token)": spec.plain_inv_freq,
        "θ scaled (rad/token)": scaled,
        "scaled / plain": spectrum.ratio(spec, length=spec.target),
        "wavelength plain (tokens)": spectrum.wavelength(spec.plain_inv_freq),
        "wavelength scaled (tokens)": spectrum.wavelength(scaled),
        "turns in training": spec.context * spectrum.trained_inv_freq(spec) / spectrum.TAU,
        "band": [spectrum.BAND_NAMES[kind] for kind in spectrum.bands(spec, length=spec.target).kind],
    }


def heatmap(
    spec: RopeSpec,
    *,
    stop: int,
    view: tuple[float, float] | None = None,
    quantity: str = "cos",
    bins: int = 800,
    pin: int | None = None,
) -> go.Figure:
    """Draw cos, sin or angle of every pair over the positions 0 … stop − 1: the exact mean of each bin, not a sample.

    `view` is the visible range of positions. Only that range is computed, so that a zoom resolves single positions.
    """
    first, end = (0, stop) if view is None else _clipped(view, stop)
    edges = spectrum.bin_edges(first, end, bins)
    mean = spectrum.bin_mean(spec.inv_freq(stop), edges)
    middle = (edges[:-1] + edges[1:] - 1) / 2.0
    trace: dict[str, Any] = {
        "type": "heatmap",
        "x": middle,
        "y": np.arange(spec.pairs),
        "zsmooth": False,
        "hoverongaps": False,
        "colorbar": {"thickness": 12, "outlinewidth": 0, "len": 1.0, "x": 1.01, "xpad": 4},
    }
    hover = "position %{x:,.0f}<br>pair %{y}<br>"
    if quantity == "angle":
        # A bin that spans more than about a third of a turn has no meaningful angle: leave it blank.
        share = np.where(np.abs(mean) > 0.8, np.angle(mean) / (2 * math.pi) % 1.0, np.nan)
        shown = share
        trace |= {"z": share.astype(np.float32), "zmin": 0, "zmax": 1, "colorscale": theme.CYCLIC}
        trace["colorbar"] |= {"tickvals": [0, 0.25, 0.5, 0.75, 1], "title": {"text": "turn", "side": "top"}}
        trace["hovertemplate"] = hover + "angle %{z:.3f} turn<extra></extra>"
    else:
        shown = mean.real if quantity == "cos" else mean.imag
        trace |= {"z": shown.astype(np.float32), "zmin": -1, "zmax": 1, "colorscale": theme.DIVERGING}
        trace["colorbar"] |= {"tickvals": [-1, 0, 1], "title": {"text": quantity, "side": "top"}}
        each = "" if end - first <= bins else f" (mean of {(end - first) / (len(edges) - 1):,.0f} positions)"
        trace["hovertemplate"] = hover + f"{quantity} %{{z:.3f}}{each}<extra></extra>"
    fig = theme.figure(
        [trace],
        x={
            "title": "position (tokens)",
            "range": [-0.5, stop - 0.5],
            **theme.length_ticks(0, stop, log=False),
            "showspikes": False,
            "showgrid": False,
            "minallowed": -0.5,
            "maxallowed": stop,
        },
        y={
            "title": "pair i",
            "range": [spec.pairs - 0.5, -0.5],
            "tickvals": theme.thin_ticks(spec.pairs),
            "showgrid": False,
            "fixedrange": True,
        },
        height=theme.SIDE_HEIGHT + 40,
        shapes=[*pin_rule(pin, spec), *length_rules(spec, axis="x", stop=stop)],
        hovermode="closest",
        margin={"l": 68, "r": 76, "t": 26, "b": 48},
    )
    kind = "angle (turn)" if quantity == "angle" else f"{quantity} of the angle"
    each = kind if np.all(np.diff(edges) == 1) else f"mean of {kind}"
    fig.table = lambda: cell_text.binned_table(edges, shown.T.astype(np.float32), each)
    return fig


def length_rules(spec: RopeSpec, *, axis: str, stop: float = math.inf) -> list[dict[str, Any]]:
    """Return a solid rule at the trained length and a dashed one at the target, or one rule if they are equal."""
    if spec.target == spec.context:
        rules = [(spec.context, f"{spec.length_name} length {format_tokens(spec.context)}", "solid")]
    else:
        rules = [
            (spec.context, f"{spec.length_name} {format_tokens(spec.context)}", "solid"),
            (spec.target, f"target {format_tokens(spec.target)}", "dash"),
        ]
    return [theme.rule(at, text, axis=axis, dash=dash) for at, text, dash in rules if at < stop]


def pin_marker(pair: int, value: float) -> dict[str, Any]:
    """Return a ring around the pinned pair's point on a curve over the pairs."""
    marker = {"size": 13, "color": theme.tint(theme.CURRENT, 0.2), "line": {"color": theme.CURRENT, "width": 2}}
    where = {"type": "scatter", "x": [pair], "y": [value], "mode": "markers", "marker": marker, "hoverinfo": "skip"}
    return where | {"name": f"pinned pair {pair}", "meta": {"csv": False}}


def pin_rule_x(pin: int | None, spec: RopeSpec) -> list[dict[str, Any]]:
    """Return a vertical line at the pinned pair in a figure over the pairs."""
    return [theme.rule(pin, f"pair {pin}", axis="x", dash="dot")] if pin is not None and pin < spec.pairs else []


def pin_rule(pin: int | None, spec: RopeSpec) -> list[dict[str, Any]]:
    """Return a frame around the pinned pair's row in a heatmap of pairs."""
    if pin is None or pin >= spec.pairs:
        return []
    frame = {"type": "rect", "xref": "paper", "x0": 0, "x1": 1, "y0": pin - 0.5, "y1": pin + 0.5}
    return [frame | {"line": {"color": theme.TEXT, "width": 1.5}}]


def _hover(spec: RopeSpec, scaled: Any) -> list[str]:
    turns = spec.context * scaled / (2 * math.pi)
    return [
        f"θ {format_number(f)} rad/pos · wavelength {format_tokens(w) if f else '∞'} · {format_number(r)} turns in "
        f"{format_tokens(spec.context)}"
        for f, w, r in zip(scaled, spectrum.wavelength(scaled), turns, strict=True)
    ]


def _end(pair: int, value: float, text: str, colour: str, **more: Any) -> dict[str, Any]:
    return theme.end_label(pair, math.log10(value), text, colour, **more)


def _floor_and_ceiling(specs: Sequence[RopeSpec]) -> tuple[float, float]:
    """Return the ends of the wavelength axis; the top is a power of 16, so that a knob rarely changes it."""
    low, top = math.inf, 4096.0
    for spec in specs:
        scaled = spec.inv_freq(spec.target)
        slowest = float(np.min(scaled[scaled > 0], initial=float(spec.plain_inv_freq[-1])))
        low = min(low, 4.0 / float(np.max(scaled, initial=1.0)))
        top = max(top, 2 * math.pi / slowest, spec.context, spec.target)
    return low, float(16.0 ** math.ceil(math.log(top * 1.3, 16)))


def _clipped(view: tuple[float, float], stop: int) -> tuple[int, int]:
    first = max(0, min(math.floor(view[0] + 0.5), stop - 1))
    return first, max(first + 1, min(math.ceil(view[1] + 0.5), stop))
