"""The wavelength of every pair, before and after scaling, against the lengths."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from rope_viz.embedding import spectrum
from rope_viz.embedding.axes_spec import AlongAxis
from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures import theme
from rope_viz.figures.compared import Compared, label_margin
from rope_viz.figures.line_styles import length_rules, pin_marker
from rope_viz.figures.method_curves import Named, name_lines
from rope_viz.figures.theme import TEXTS
from rope_viz.texts.numbers import format_number, format_tokens


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
    names: tuple[str, str] = TEXTS("lines.plain"), curves[0].label if curves else TEXTS("lines.scaled")
    if single:
        names = TEXTS("lines.all_pairs"), TEXTS("lines.axis_pairs")
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
                hovertemplate=TEXTS("hovers.wavelength", name=names[0])
                if is_scaled
                else "%{customdata}<extra></extra>",
                customdata=None if is_scaled else rows,
            )
        )
    notes = []
    for c in curves[1:]:
        hover = TEXTS("hovers.wavelength", name=c.label)
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
            "title": TEXTS("axes.wavelength"),
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
        "text": TEXTS("lines.unturned", count=slow.size),
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
            below = {"text": TEXTS("lines.unturned_below", count=slow.size), "textposition": "bottom right"}
            empty = {"y0": bottom, "y1": spec.context, "fillcolor": "rgba(0, 0, 0, 0)"}
            shapes.append(across | empty | {"label": label | below | {"padding": 6}})
    return shapes


def _hover(spec: RopeSpec, scaled: Any) -> list[str]:
    turns, context = spec.context * scaled / (2 * math.pi), format_tokens(spec.context)
    form = TEXTS.entries["hovers.turns"].format
    return [
        form(
            theta=format_number(f),
            wavelength=format_tokens(w) if f else "∞",
            turns=format_number(r),
            context=context,
        )
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
