"""Curves over the pairs for any number of methods at once, and the share of the frequency that each leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from rope_viz.embedding import spectrum
from rope_viz.embedding.spec import FloatArray
from rope_viz.figures import theme
from rope_viz.figures.compared import Compared, label_margin, plain
from rope_viz.figures.line_styles import pin_in_plot
from rope_viz.figures.words import PAIRS
from rope_viz.texts import Sentence
from rope_viz.texts.line_breaks import count_letters
from rope_viz.texts.texts import join_items

TOGETHER = 12.0  # pixels between ends that are too near to name

CLEAR = 7.0  # pixels that a name inside needs from every other line

CLEAREST = 30.0

WIDTH = 820.0  # of a usual plot

LETTER, HIGH, OWN = 7.4, 16.0, 4.0  # pixels: a letter's width, a name's height, its distance from its line

STEPS = 32


class Named(NamedTuple):
    """A line with a value for every pair, NaN where it has none; its name and its colour."""

    y: FloatArray
    name: str
    colour: str


def name_lines(lines: Sequence[Named], span: Sequence[float], *, log: bool, plot: float) -> list[dict[str, Any]]:
    """Return the names of lines over the pairs, in a plot of `plot` pixels that shows the range `span`.

    Lines whose ends are together are named where they are apart. `span` is in powers of ten on a log axis.
    """
    pixels = [(np.log10(line.y) if log else line.y) * (plot / (span[1] - span[0])) for line in lines]
    ends = [(int(drawn[-1]), float(at[drawn[-1]])) for at in pixels if (drawn := np.flatnonzero(np.isfinite(at))).size]
    if len(ends) < len(lines):
        known = [index for index, at in enumerate(pixels) if np.isfinite(at).any()]
        return name_lines([lines[index] for index in known], span, log=log, plot=plot) if known else []
    meets = [
        any(abs(y - other) < TOGETHER for j, (_, other) in enumerate(ends) if j != i) for i, (_, y) in enumerate(ends)
    ]
    low, high = (edge * plot / (span[1] - span[0]) for edge in span)
    notes: list[dict[str, Any]] = []
    taken: list[FloatArray] = []
    at_end: list[tuple[float, float, str, str]] = []
    for index, line in enumerate(lines):
        found = (
            _find_place(pixels, index, count_letters(line.name) * LETTER, (low, high), taken) if meets[index] else None
        )
        if found is None:
            at, _ = ends[index]
            at_end.append((at, float(line.y[at]), line.name, line.colour))
            continue
        at, side, box = found
        taken.append(box)
        xanchor, yanchor = side
        value = float(np.log10(line.y[at]) if log else line.y[at])
        place = {
            "xanchor": xanchor,
            "xshift": OWN if xanchor == "left" else -OWN,
            "yanchor": yanchor,
            "yshift": 2 if yanchor == "bottom" else -2,
        }
        notes.append(theme.end_label(at, value, line.name, line.colour, **place))
    # A name in the middle of the plot does not meet those at its right edge.
    edge = 0.8 * max(at for at, _ in ends)
    for together in ([end for end in at_end if (end[0] < edge) is early] for early in (True, False)):
        notes += theme.spread_labels(together, span, log=log, height=round(plot) + 74)
    return notes


def _find_place(
    pixels: Sequence[FloatArray], index: int, wide: float, inside: tuple[float, float], taken: Sequence[FloatArray]
) -> tuple[int, tuple[str, str], FloatArray] | None:
    """Return the pair at which a line's name is clear of all others, its anchors and its box; None if there is none.

    All pairs and all four corners are tried at once, as this runs for every picture of a moving knob.
    """
    own, count = pixels[index], len(pixels[index])
    longest = max(len(line) for line in pixels)  # models may have other numbers of pairs
    step = WIDTH / max(longest - 1, 1)
    tried = np.arange(1, count - 1, max(1, count // STEPS))
    at, right, up = (each.ravel() for each in np.meshgrid(tried, (True, False), (True, False), indexing="ij"))
    left = at * step + np.where(right, OWN, -OWN - wide)
    bottom = own[at] + np.where(up, 2.0, -2.0 - HIGH)
    boxes = np.stack([left, bottom, left + wide, bottom + HIGH], axis=1)
    # The points of a line that are below or above each box.
    first, last = (np.clip(x / step, 0, longest).astype(int) for x in (left, left + wide))
    under = first[:, None] + np.arange(int(wide / step) + 3)
    under = np.where(under < np.minimum(last + 2, longest)[:, None], under, -1)
    fits = (left >= 0) & (boxes[:, 2] <= WIDTH) & (bottom >= inside[0]) & (boxes[:, 3] <= inside[1])
    fits &= _gaps(own, under, boxes) > 0.0
    for box in taken:
        fits &= (box[0] >= boxes[:, 2]) | (left >= box[2]) | (box[1] >= boxes[:, 3]) | (bottom >= box[3])
    # A name near its own line, where the others are away from it and from that line.
    clear = np.full(len(at), CLEAREST)
    for line in (line for j, line in enumerate(pixels) if j != index):
        padded = np.append(line[:count], np.full(max(0, count - len(line)), np.nan))
        clear = np.fmin(clear, np.fmin(_gaps(line, under, boxes), np.abs(padded[at] - own[at])))
    if not (fits & (clear > CLEAR)).any():
        return None
    best = int(np.argmax(np.where(fits, clear, -np.inf)))
    anchors = "left" if right[best] else "right", "bottom" if up[best] else "top"
    return int(at[best]), anchors, boxes[best]


def _gaps(line: FloatArray, under: NDArray[np.intp], boxes: FloatArray) -> FloatArray:
    """Return for each box (left, bottom, right, top) the height in pixels to the points `under` it, 0 if they touch.

    The point −1 is none.
    """
    beyond = np.full(max(1, int(under.max(initial=0)) + 2 - len(line)), np.nan)
    points = np.append(line, beyond)[under]
    known = np.isfinite(points)
    above = boxes[:, 1] - np.where(known, points, -np.inf).max(axis=1, initial=-np.inf)
    below = np.where(known, points, np.inf).min(axis=1, initial=np.inf) - boxes[:, 3]
    return np.where(known.any(axis=1), np.maximum(np.maximum(above, below), 0.0), CLEAREST)


HOVER = "θ′/θ {0} %{{y:.4~g}}<extra></extra>"


def title_ratios(curves: Sequence[Compared]) -> Sentence:
    """Return the accessible name of `ratios`."""
    return PAIRS("ratios_title", curves=join_items([curve.label for curve in curves]))


def ratios(curves: Sequence[Compared], *, pin: int | None = None) -> go.Figure:
    """Draw θ′/θ per pair: 1 = unchanged, 1/s = divided by the factor s. A bar above shows the bands of each."""
    drawn = [spectrum.ratio(c.spec, length=c.spec.target) for c in curves]
    floor = max(min(0.5, *(float(share.min()) for share in drawn)), 1e-3)
    top = min(max(1.0, *(float(share.max()) for share in drawn)), 1e3)
    return draw_per_pair(
        curves,
        lambda c: theme.finite(np.where(c.inv_freq > 0, spectrum.ratio(c.spec, length=c.spec.target), np.nan)),
        {
            "title": theme.TEXTS("axes.ratio"),
            "type": "log",
            "range": theme.log_range(floor / 1.35, top * 1.35),
            **_ratio_ticks(floor, top),
        },
        log=True,
        pin=pin,
        hover=theme.TEXTS("hovers.ratio"),
    )


def draw_per_pair(
    curves: Sequence[Compared],
    values: Callable[[Compared], Any],
    y: dict[str, Any],
    *,
    log: bool,
    pin: int | None,
    hover: str,
    before: bool = False,
) -> go.Figure:
    """Draw values over the pairs, a line per method, with its bands above; `before` adds the unscaled line."""
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
    names = name_lines(lines, y["range"], log=log, plot=height - margin["t"] - margin["b"])
    rules, pinned = pin_in_plot(pin, spec)
    return theme.figure(
        traces,
        x=theme.pair_axis(pairs),
        y=y,
        height=height,
        bars=[theme.BandBar(spectrum.bands(c.spec, length=c.spec.target), c.colour, c.dash) for c in curves],
        shapes=rules,
        notes=[*names, *pinned],
        margin=margin,
    )


def _ratio_ticks(floor: float, top: float) -> dict[str, Any]:
    values = [2.0**n for n in range(-9, 10) if floor / 1.35 <= 2.0**n <= top * 1.35]
    return {"tickvals": values, "ticktext": [f"{v:.0f}" if v >= 1 else f"1/{round(1 / v)}" for v in values]}
