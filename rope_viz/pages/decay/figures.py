"""Figures over the distance: exact scores, bounds, random vectors and the entropy of attention."""

from __future__ import annotations

import functools
import math
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import plotly.graph_objects as go

from rope_viz.embedding.spec import FloatArray, RopeSpec
from rope_viz.embedding.spectrum import bin_mean
from rope_viz.figures import cell_text, theme
from rope_viz.figures.compared import LEAST_MARGIN, Compared, label_margin, plain
from rope_viz.figures.line_styles import length_rules
from rope_viz.models.query_temperature import Temperature
from rope_viz.studies import decay, scores
from rope_viz.studies.scores import WORK, Parts, Thinning, column_edges, envelope
from rope_viz.studies.vectors import Kind
from rope_viz.texts import Texts
from rope_viz.texts.texts import join_items

TEXTS = Texts("decay")
KINDS = cast(dict[Kind, str], TEXTS.group("kinds"))
VIEWS = TEXTS.group("views")
LONGEST = 10_000_000
BOUND_LONGEST = 1 << 16
# Most pairs × distances of the bound and the entropy, whose sums need every smaller distance and so cannot be thinned,
# and of random vectors.
BOUND_WORK, ENTROPY_WORK, RANDOM_WORK = 1 << 24, 1 << 28, 1 << 28
COLUMNS, QUICK_COLUMNS = 1000, 400
# Pairs × distances while a knob moves. With two curves, only one in three distances beyond 262,144 is computed.
QUICK_WORK = 1 << 26
SAMPLES = 2000
FLAT = 1e-300
"""Scores up to this size are drawn as zeros: their axis would have no length."""
# Curves of a comparison run in parallel threads: NumPy's matrix products release the GIL.
WORKERS = ThreadPoolExecutor(min(4, os.cpu_count() or 1), thread_name_prefix="curves")
BAND_TINT = 0.14
MARGIN = {"l": 68, "r": LEAST_MARGIN, "t": 26, "b": 48}


@dataclass(frozen=True)
class Range:
    """The distances to draw: [start, stop) within 0 … length − 1, linear or log axis, number of columns."""

    length: int
    start: int
    stop: int
    log: bool
    columns: int
    backend: str = "numpy"
    quick: bool = False

    @staticmethod
    def from_length(
        length: int, view: tuple[float, float] | None, *, log: bool, quick: bool = False, backend: str = "numpy"
    ) -> Range:
        """Return the range of 0 … length − 1 that the user zoomed to; `view` is in powers of ten on a log axis."""
        first = 1 if log else 0
        ends = (first, length)
        if view is not None:
            low, high = (10.0 ** view[0], 10.0 ** view[1]) if log else view
            ends = (max(first, math.floor(low)), min(length, math.ceil(high) + 1))
        start, stop = (ends[0], max(ends[1], ends[0] + 2)) if ends[0] < length - 1 else (max(first, length - 2), length)
        return Range(length, start, stop, log, QUICK_COLUMNS if quick else COLUMNS, backend, quick)

    def thinning(self, pairs: int, *, shares: int = 1) -> Thinning:
        """Return which distances are computed for curves with this many pairs that share the work."""
        work = QUICK_WORK if self.quick else WORK
        return Thinning.for_curve(self.start, self.stop, pairs, shares=shares, work=work)

    @property
    def whole(self) -> tuple[float, float]:
        """Return the axis range of all distances."""
        return whole(self.length, self.log)

    def axis(self) -> dict[str, Any]:
        axis: dict[str, Any] = {"title": theme.TEXTS("axes.distance"), "range": list(self.whole)}
        axis["unifiedhovertitle"] = {"text": theme.TEXTS("hovers.whole_distance")}
        ticks = theme.length_ticks(1 if self.log else 0, self.length, log=self.log)
        return axis | ticks | ({"type": "log"} if self.log else {})


BACKENDS = {"numpy": "NumPy"} | {f"torch-{device}": f"torch ({device})" for device in ("cpu", "cuda", "mps")}
"""Backends that some machine may offer, name -> label."""


def backends() -> dict[str, str]:
    """Return the backends of this machine, name -> label, NumPy first; torch devices only once torch is imported."""
    found = {f"{kind}-{device}" for kind, device in scores.available_backends(devices="torch" in sys.modules)}
    return {name: label for name, label in BACKENDS.items() if name == "numpy" or name in found}


def loaded_backend(name: str) -> str:
    """Return the backend if it is loaded, else "numpy": no picture loads torch, which takes 190 MB of the server."""
    return name if "torch" in sys.modules else "numpy"


def score_and_bound(spec: RopeSpec, distance: int, own: Parts) -> tuple[float, float]:
    """Return the score of a given q and k at one distance, and RoFormer's bound on it (eq. 37).

    The bound covers the rotated dimensions; the absolute score of the unrotated ones is added to it.
    """
    inv_freq, (a, b, unrotated) = spec.inv_freq(spec.target), own
    s = decay.s_curve(inv_freq, start=distance, stop=distance + 1)
    most = float(decay.score_bound(a, b, s)[0]) + abs(unrotated)
    return float(scores.scores_at(inv_freq, a, b, [distance])[0]) + unrotated, most


def whole(length: int, log: bool) -> tuple[float, float]:
    """Return the axis range of the distances 0 … length − 1, in powers of ten on a log axis."""
    return (0.0, math.log10(length)) if log else (0.0, float(length))


def main(
    shown: str,
    compared: Sequence[Compared],
    where: Range,
    own: Parts,
    kind: Kind,
    sequence: tuple[FloatArray, FloatArray] | None = None,
) -> tuple[go.Figure, str]:
    """Draw one of `VIEWS` and return it with its accessible name. `own` are the score parts of a given q and k.

    `sequence` holds q and k of the sequence they were taken from, (tokens, head_dim) each; it adds their mean score.
    """
    spec = compared[0].spec
    if shown == "random":
        return random_scores(spec, where, kind), TEXTS("main_titles.random")
    if shown == "bound":
        return bound(spec, where), TEXTS("main_titles.bound")
    if shown == "softmax":
        return entropy(spec, where, *own), TEXTS("main_titles.softmax")
    if shown == "own":
        fig = curves(compared, where, [own] * len(compared), mean=False)
        if sequence is not None:
            _add_sequence(fig, spec, *sequence, where)
        return fig, TEXTS("main_titles.own")
    even = [scores.even_parts(c.spec) for c in compared]
    return curves(compared, where, even, mean=True), TEXTS(
        "main_titles.mean", curves=join_items([c.label for c in compared])
    )


def with_plain(compared: Sequence[Compared]) -> list[Compared]:
    """Return the compared curves plus the unscaled model, unless the current model is unscaled."""
    spec = compared[0].spec
    if np.array_equal(spec.plain().inv_freq(), compared[0].inv_freq):
        return list(compared)
    return [*compared, plain(compared[0])]


def curves(
    compared: Sequence[Compared], where: Range, coefficients: Sequence[Parts], *, mean: bool
) -> theme.DataFigure:
    """Draw the exact score by distance for every spec: each pixel column's mean, its range as a faint band."""
    spec = compared[0].spec
    bands, lines, ends, marks = [], [], [], []
    thinning = where.thinning(max(c.spec.pairs for c in compared), shares=len(compared))

    def drawn(c: Compared, parts: Parts) -> tuple[Columns, int | None]:
        columns = _columns(c.inv_freq, parts, where, thinning)
        marked = mean and where.start <= 1 and c.colour in (theme.CURRENT, theme.PLAIN) and np.any(columns.low < 0)
        return columns, first_negative(c.spec, where.length) if marked else None

    order = [*compared[1:], compared[0]]
    parts_of = [*coefficients[1:], coefficients[0]]
    for c, (columns, negative) in zip(order, WORKERS.map(drawn, order, parts_of), strict=True):
        bands.extend(columns.band(c))
        lines.append(columns.line(c))
        ends.append((float(columns.x[-1]), float(columns.mean[-1]), c.label, c.colour))
        marks += [] if negative is None else [_mark_first_negative(c, negative, where)]
    top = max(float(np.hypot(a, b).sum()) + abs(unrotated) for a, b, unrotated in coefficients)
    if top < FLAT:
        top = 1.0  # a masked head: the score is 0 at every distance
    span = [-0.55, 1.05] if mean else [-1.05 * top, 1.05 * top]
    title = TEXTS("axes.mean" if mean else "axes.score")
    x_of = math.log10 if where.log else float
    fig = theme.figure(
        [*bands, *lines],  # no band covers a line
        x=where.axis(),
        y={"title": title, "range": span, "zeroline": True, "zerolinecolor": theme.RULE},
        shapes=[*length_rules(spec, axis="x", stop=where.length)],
        notes=[
            *theme.spread_labels([(x_of(x), y, t, k) for x, y, t, k in ends], span, log=False),
            *marks,
            *note_above("" if where.quick else thinning.sentence()),
        ],
        margin=MARGIN | {"r": label_margin(compared)},
    )
    rows = [(c.label, c.inv_freq, parts) for c, parts in zip(compared, coefficients, strict=True)]
    fig.table = lambda: cell_text.score_table(rows, thinning, columns=COLUMNS, log=where.log)
    return fig


def _add_sequence(fig: theme.DataFigure, spec: RopeSpec, q: FloatArray, k: FloatArray, where: Range) -> None:
    """Add the mean score of a whole sequence by distance; no-op if none of its distances is in view."""
    mean = scores.mean_score(q, k, spec.inv_freq(spec.target), pairing=spec.pairing)
    stop = min(where.stop, len(mean))
    if stop <= where.start:
        return
    every = np.arange(where.start, stop)
    x, y = thin_curve(every, mean[where.start : stop], where.columns, start=where.start, log=where.log)
    name = TEXTS("lines.sequence", tokens=len(mean))
    hover = f"{name} %{{y:.4f}}<extra></extra>"
    fig.add_traces([theme.line(x, y, name, theme.TEXT, dash="dash", hovertemplate=hover)])
    table = fig.table
    # The sequence is shorter than the curves: give it its own distance column.
    own = {f"{cell_text.DISTANCE}, sequence": every, name: mean[where.start : stop]}
    fig.table = lambda: {**(table() if table else {}), **own}


def random_scores(spec: RopeSpec, where: Range, kind: Kind) -> go.Figure:
    """Draw percentiles over random q and k by distance, with the mean expected from theory."""
    distribution = _distribution(spec, where, kind)
    x = distribution.distances
    names = [f"{level:g} %" for level in distribution.levels]
    traces = []
    half = len(names) // 2
    for index in range(half):
        band = theme.tint(theme.CURRENT, 0.10 + 0.10 * index)
        low, high = distribution.percentiles[index], distribution.percentiles[-1 - index]
        flat = {"mode": "lines", "line": {"width": 0}, "type": "scatter", "x": x}
        for y, name, fill in ((low, names[index], None), (high, names[-1 - index], "tonexty")):
            hover = {"hovertemplate": f"{name} %{{y:.3~g}}<extra></extra>", "fill": fill, "fillcolor": band}
            traces.append(flat | {"y": y, "name": name} | hover)
    median, expected = TEXTS("lines.median"), TEXTS("lines.expected")
    traces.append(theme.line(x, distribution.percentiles[half], median, theme.CURRENT))
    traces.append(theme.line(x, distribution.expected, expected, theme.DIVIDED, dash="dash"))
    top = 1.1 * float(np.abs(distribution.percentiles).max())
    x_of = math.log10 if where.log else float
    ends = [
        (x_of(float(x[-1])), float(distribution.percentiles[half][-1]), median, theme.CURRENT),
        (x_of(float(x[-1])), float(distribution.expected[-1]), expected, theme.DIVIDED),
        (x_of(float(x[-1])), float(distribution.percentiles[0][-1]), names[0], theme.PLAIN),
        (x_of(float(x[-1])), float(distribution.percentiles[-1][-1]), names[-1], theme.PLAIN),
    ]
    return theme.figure(
        traces,
        x=where.axis(),
        y={"title": TEXTS("axes.score"), "range": [-top, top], "zeroline": True, "zerolinecolor": theme.RULE},
        shapes=length_rules(spec, axis="x", stop=where.length),
        notes=theme.spread_labels(ends, [-top, top], log=False),
        margin=MARGIN,
    )


def bound(spec: RopeSpec, where: Range) -> go.Figure:
    """Draw RoFormer's mean |S_j| by distance, plain and scaled; it falls, but not monotonically."""
    stop = min(where.stop, where.start + min(BOUND_LONGEST, BOUND_WORK // spec.pairs))
    x = np.arange(where.start, stop)
    traces, ends = [], []
    table: dict[str, Any] = {cell_text.DISTANCE: x}
    lines = [
        (theme.TEXTS("lines.plain"), spec.plain().inv_freq(), theme.PLAIN, "dot"),
        (theme.TEXTS("lines.scaled"), spec.inv_freq(spec.target), theme.CURRENT, "solid"),
    ]
    if np.array_equal(lines[0][1], lines[1][1]):
        lines = [(TEXTS("lines.bound"), lines[0][1], theme.CURRENT, "solid")]
    x_of = math.log10 if where.log else float
    for name, inv_freq, colour, dash in lines:
        values = decay.s_curve(inv_freq, start=where.start, stop=stop)
        table[name] = values
        at, y = thin_curve(x, values, where.columns, start=where.start, log=where.log)
        traces.append(theme.line(at, y, name, colour, dash=dash))
        ends.append((x_of(float(x[-1])), float(values[-1]), name, colour))
    top = 1.08 * (spec.pairs + 1) / 2
    axis = where.axis()
    if stop < where.length and where.start == 0:
        axis["range"] = [0, math.log10(stop)] if where.log else [0, stop]
    fig = theme.figure(
        traces,
        x=axis,
        y={"title": TEXTS("axes.bound"), "range": [0, top]},
        shapes=length_rules(spec, axis="x", stop=stop),
        notes=[
            *theme.spread_labels(ends, [0, top], log=False),
            *note_above(TEXTS("lines.computed", last=stop - 1) if stop < where.stop else ""),
        ],
        margin=MARGIN,
    )
    fig.table = lambda: table
    return fig


def entropy(spec: RopeSpec, where: Range, a: FloatArray, b: FloatArray, unrotated: float) -> go.Figure:
    """Draw the entropy of attention by context length, with and without the attention factor."""
    stop = min(where.length, 1 << 20, max(1024, ENTROPY_WORK // spec.pairs))
    inv_freq, factor = spec.inv_freq(spec.target), spec.attention_factor(spec.target)
    score = scores.curve(inv_freq, a, b, stop=stop)
    length = np.arange(1, stop + 1)
    lines = [("uniform", np.log(length), theme.PLAIN, "dot")]
    for name, gain, colour, dash in (("scaled", factor, theme.CURRENT, "solid"), ("unscaled", 1.0, theme.TEXT, "dash")):
        if name == "scaled" or abs(factor - 1) > 1e-12:
            logits = decay.attention_logits(score, head_dim=spec.head_dim, attention_factor=gain, unrotated=unrotated)
            lines.append((name, decay.attention_entropy(logits), colour, dash))
    pick = np.unique(np.geomspace(1, stop, 600).astype(int)) - 1
    top = 1.08 * math.log(stop)
    traces = [
        theme.line(length[pick], y[pick], TEXTS(f"entropy_lines.{name}"), colour, dash=dash)
        for name, y, colour, dash in lines
    ]
    ends = [(math.log10(stop), float(y[-1]), TEXTS(f"entropy_ends.{name}"), colour) for name, y, colour, _ in lines]
    return theme.figure(
        traces,
        x={
            "title": TEXTS("axes.context"),
            "type": "log",
            "range": [0, math.log10(stop)],
            **theme.length_ticks(1, stop),
        },
        y={"title": TEXTS("axes.entropy"), "range": [0, top]},
        shapes=length_rules(spec, axis="x", stop=stop),
        notes=theme.spread_labels(ends, [0, top], log=False),
        margin=MARGIN,
    )


def first_negative(spec: RopeSpec, limit: int) -> int | None:
    """Return the first distance below `limit` where the mean cosine at the target length is negative, else None.

    Cached by frequencies, because many redraws share them.
    """
    return _first_negative(spec.inv_freq(spec.target).tobytes(), limit, scores.unrotated_share(spec))


@functools.lru_cache(maxsize=64)
def _first_negative(raw: bytes, limit: int, unrotated: float) -> int | None:
    inv_freq = np.frombuffer(raw)
    return decay.first_negative(
        inv_freq, limit, unrotated=unrotated, thinning=Thinning.for_curve(0, limit, len(inv_freq), shares=2)
    )


@functools.lru_cache(maxsize=8)
def _distribution(spec: RopeSpec, where: Range, kind: Kind) -> decay.Distribution:
    count = 160
    spread = np.geomspace if where.log else np.linspace
    at = np.unique(spread(max(where.start, 1 if where.log else 0), where.stop - 1, count).astype(np.int64))
    levels = (5, 25, 50, 75, 95)
    return decay.distribution(
        spec.inv_freq(spec.target),
        at,
        kind=kind,
        samples=max(64, min(SAMPLES, RANDOM_WORK // (len(at) * spec.pairs))),
        levels=levels,
        unrotated=spec.head_dim - 2 * spec.pairs,
    )


@dataclass(frozen=True, eq=False)
class Columns:
    """The scores of one curve by pixel column: the middle distance, the smallest, the largest and the mean score."""

    x: FloatArray
    low: FloatArray
    high: FloatArray
    mean: FloatArray

    def band(self, c: Compared) -> list[dict[str, Any]]:
        """Return the range of every column as a faint area without borders; [] if each column has one distance."""
        if np.array_equal(self.low, self.high):
            return []
        hidden = {"color": c.colour, "width": 0}
        look: dict[str, Any] = {"line": hidden, "hoverinfo": "skip", "hovertemplate": None}
        look["meta"] = {"csv": False, "band": c.label}
        area: dict[str, Any] = {"fill": "tonexty", "fillcolor": theme.tint(c.colour, BAND_TINT)}
        return [
            theme.line(self.x, self.low, f"{c.label} min", c.colour, **look),
            theme.line(self.x, self.high, f"{c.label} max", c.colour, **look, **area),
        ]

    def line(self, c: Compared) -> dict[str, Any]:
        """Return the mean of every column as a line in the curve's dash, which tells curves apart without colour."""
        width = 2.5 if c.colour == theme.CURRENT else 1.8
        look: dict[str, Any] = {"dash": c.dash, "width": width, "hovertemplate": f"{c.label} %{{y:.4f}}<extra></extra>"}
        if not np.array_equal(self.low, self.high):
            look["customdata"] = np.stack([self.low, self.high], axis=1).astype(np.float32)
            look["hovertemplate"] = TEXTS("hovers.range", name=c.label)
        return theme.line(self.x, self.mean, c.label, c.colour, **look)


def _columns(inv_freq: FloatArray, parts: Parts, where: Range, thinning: Thinning) -> Columns:
    """Return the scores of each pixel column; the ends are computed on the chosen backend, the mean is exact."""
    a, b, unrotated = parts
    if where.backend == "numpy":
        x, low, high = scores.curve_envelope(
            inv_freq, a, b, start=where.start, stop=where.stop, columns=where.columns, log=where.log, thinning=thinning
        )
    else:
        device = where.backend.removeprefix("torch-")
        values = scores.curve(inv_freq, a, b, start=where.start, stop=where.stop, backend="torch", device=device)
        x, low, high = envelope(values, where.columns, start=where.start, log=where.log)
    turns = bin_mean(inv_freq, column_edges(where.start, where.stop, where.columns, log=where.log))
    mean = a @ turns.real + b @ turns.imag
    return Columns(x, low + unrotated, high + unrotated, mean + unrotated)


def _mark_first_negative(c: Compared, at: int, where: Range) -> dict[str, Any]:
    """Return the label of the first negative mean cosine."""
    text = TEXTS("lines.negative", name=c.label, at=at)
    where_x = math.log10(at) if where.log else at
    place = {"x": where_x, "y": 0, "ax": 0, "ay": 46 if c.colour == theme.CURRENT else 74, "arrowcolor": c.colour}
    side = "left" if where_x < 0.66 * where.whole[1] else "right"
    font = {"size": 12, "color": c.colour}
    back = theme.tint(theme.BACKGROUND, 0.85)
    return place | {"text": text, "showarrow": True, "arrowwidth": 1, "xanchor": side, "font": font, "bgcolor": back}


def note_above(text: str) -> list[dict[str, Any]]:
    """Return an annotation above the plot that names what was left out; empty if the text is empty."""
    place = {"x": 0, "y": 1, "xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom", "yshift": 2}
    return [place | {"text": text, "showarrow": False, "font": {"size": 12}, "name": "left out"}] if text else []


def thin_curve(x: Any, y: FloatArray, columns: int, *, start: int, log: bool) -> tuple[Any, FloatArray]:
    """Return the curve y at start, start + 1, … as a zigzag through each column's extremes; unchanged if it fits."""
    if len(x) <= columns:
        return x, y
    at, low, high = envelope(y, columns, start=start, log=log)
    zigzag = np.empty(2 * len(at))
    zigzag[0::2], zigzag[1::2] = low, high
    return np.repeat(at, 2), zigzag


HEIGHT = 300

STEPS, POINTS = 256, 400
"""Steps that are drawn exactly, and points of a smooth curve."""


def curve(temperature: Temperature, spec: RopeSpec, stop: int) -> theme.DataFigure:
    """Draw the factor on the query at the positions 1 … stop − 1."""
    first = max(1, min(temperature.length // 8, stop // 8))
    x = np.geomspace(first, stop - 1, POINTS)
    if temperature.rule.formula == "steps":
        edges = temperature.length * np.arange(1.0, STEPS + 1) - temperature.rule.first
        x = np.sort(np.concatenate([x, edges[(edges > first) & (edges < stop)]]))
    at = np.unique(np.floor(x).astype(np.int64))
    factor = temperature.factor(at.astype(np.float64))
    name = TEXTS("temperature.factor")
    hover = f"{name} ×%{{y:.4~g}}<extra></extra>"
    shape = {"color": theme.CURRENT, "width": 2, "shape": "hv" if temperature.rule.formula == "steps" else "linear"}
    span = [0.95, max(1.2, 1.05 * float(factor[-1]))]
    fig = theme.figure(
        [theme.line(at, factor, name, theme.CURRENT, line=shape, hovertemplate=hover)],
        x={
            "title": TEXTS("temperature.axis"),
            "type": "log",
            "range": theme.log_range(first, stop),
            "unifiedhovertitle": {"text": TEXTS("temperature.hover")},
            **theme.length_ticks(first, stop),
        },
        y={"title": name, "range": span},
        height=HEIGHT,
        shapes=[rule for rule in length_rules(spec, axis="x", stop=stop) if rule["x0"] > first],
        notes=[theme.end_label(float(np.log10(at[-1])), float(factor[-1]), f"×{factor[-1]:.3g}", theme.CURRENT)],
        margin=theme.MARGIN | {"r": 70},
    )
    fig.table = lambda: {TEXTS("temperature.position"): at, name: factor}
    return fig
