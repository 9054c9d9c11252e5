"""Figure of an image or video longer than in training: the angles along one axis, and the score with false peaks."""

from __future__ import annotations

from typing import Any

import numpy as np

from rope_viz.embedding import spectrum
from rope_viz.embedding.spec import FloatArray, Knob
from rope_viz.figures import theme
from rope_viz.pages.axes.figures import TEXTS
from rope_viz.studies.axis_extrapolation import ExtendedAxis, Peak, false_peaks

GROWTH = Knob(TEXTS("choices.growth"), 1.0, 8.0, TEXTS("choices.growth_help"))
HEIGHT = 520
BINS = 640
POINTS = 2048
SPLIT = (0.40, 0.54)  # top of the score panel, bottom of the angle panel (fractions of the height)
NAMED = 4  # number of false peaks that get a label


def heights(done: ExtendedAxis, unit: str, *, coarse: bool = False) -> theme.DataFigure:
    """Draw cos of every pair over the positions of one axis and, below it, the mean over these pairs.

    A solid vertical line marks the trained side; false peaks of the score get a ring and a label.
    """
    stop, one, trained = done.target + 1, TEXTS(f"unit.{done.role}"), theme.TEXTS("lines.trained")
    edges = spectrum.bin_edges(0, stop, BINS // 3 if coarse else BINS)
    middle = (edges[:-1] + edges[1:] - 1) / 2.0
    mean = spectrum.bin_mean(done.extended, edges).real
    labels = [str(int(pair)) for pair in done.pair]
    angles: dict[str, Any] = {
        "type": "heatmap",
        "x": middle,
        "y": np.arange(len(labels)),
        "z": mean.astype(np.float32),
        "customdata": None,
        "zmin": -1,
        "zmax": 1,
        "zsmooth": False,
        "colorscale": theme.DIVERGING,
        "yaxis": "y2",
        "colorbar": {
            "thickness": 12,
            "outlinewidth": 0,
            "len": 1.0 - SPLIT[1],
            "y": (1.0 + SPLIT[1]) / 2,
            "x": 1.01,
            "xpad": 4,
            "tickvals": [-1, 0, 1],
            "title": {"text": "cos", "side": "top"},
        },
        "hovertemplate": TEXTS("further.pair_hover", unit=one),
        "text": [[label] * len(middle) for label in labels] if len(labels) * len(middle) < 1 << 15 else None,
    }
    if angles["text"] is None:
        angles["hovertemplate"] = TEXTS("further.hover", unit=one)
    places = np.unique(np.linspace(0, done.target, min(stop, POINTS)).astype(np.int64))
    plain, request = (curve[places] for curve in done.curves)
    traces = [{key: value for key, value in angles.items() if value is not None}]
    notes = []
    label = TEXTS(f"methods.{done.method}")
    if done.changed.size:
        traces.append(theme.line(places, plain, trained, theme.PLAIN, dash="dot", hovertemplate=hover(trained)))
        notes.append(
            label_end(done.target, float(plain[-1]), trained, theme.PLAIN, -8 if plain[-1] < request[-1] else 8)
        )
    traces.append(theme.line(places, request, label, theme.CURRENT, width=2.5, hovertemplate=hover(label)))
    shift = 0 if not done.changed.size else 8 if plain[-1] < request[-1] else -8
    notes.append(label_end(done.target, float(request[-1]), label, theme.CURRENT, shift))
    if len(places) == stop:
        marks, named = ring_peaks(false_peaks(request, max(2, done.trained // 4))[:NAMED])
        traces += marks
        notes += named
    end = theme.rule(done.trained, TEXTS("further.trained", trained=done.trained, unit=unit), axis="x")
    few = theme.thin_ticks(len(labels), 9)
    frame = {"anchor": "x", "domain": [SPLIT[1], 1.0], "range": [len(labels) - 0.5, -0.5], "showgrid": False}
    fig = theme.figure(
        traces,
        x={
            "title": unit,
            "range": [-0.5, done.target + 0.5],
            "anchor": "y",
            "showgrid": False,
            "minallowed": -0.5,
            "maxallowed": done.target + 0.5,
        },
        y={"title": TEXTS("further.score"), "domain": [0.0, SPLIT[0]], "range": [lowest(plain, request), 1.08]},
        yaxis2=theme.merge_dicts(
            theme.AXIS,
            frame,
            {"title": TEXTS("further.pair"), "tickvals": few, "ticktext": [labels[k] for k in few], "fixedrange": True},
        ),
        height=HEIGHT,
        shapes=[end],
        notes=notes,
        hovermode="closest",
        margin={"l": 68, "r": 92, "t": 30, "b": 48},
    )
    scores = {"score as trained": plain} | ({f"score, {label}": request} if done.changed.size else {})
    bins = {"from": edges[:-1], "to": edges[1:] - 1}
    angle = {f"pair {name}: mean of cos": row for name, row in zip(labels, mean.astype(np.float32), strict=True)}
    fig.table = lambda: {one: places} | scores | bins | angle
    return fig


def hover(name: str) -> str:
    """Return the hover template of a curve."""
    return f"%{{x:,}}: {name} %{{y:.4f}}<extra></extra>"


def label_end(x: float, y: float, text: str, colour: str, shift: float) -> dict[str, Any]:
    """Return a label at a curve's right end, shifted in pixels away from the other label."""
    return theme.end_label(x, y, text, colour, yshift=shift)


def lowest(*curves: FloatArray) -> float:
    """Return the lower end of the score axis: 0, or just below the smallest score."""
    low = min(float(curve.min()) for curve in curves)
    return min(0.0, low - 0.05)


def ring_peaks(peaks: list[Peak]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the traces and labels that ring each false peak with its position and score."""
    if not peaks:
        return [], []
    marker = {"size": 11, "color": theme.tint(theme.DIVIDED, 0.15), "line": {"color": theme.DIVIDED, "width": 2}}
    points: dict[str, Any] = {
        "type": "scatter",
        "mode": "markers",
        "marker": marker,
        "name": TEXTS("further.false_peak"),
    }
    points |= {"x": [peak.at for peak in peaks], "y": [peak.score for peak in peaks]}
    points |= {"hovertemplate": TEXTS("further.peak_hover")}
    notes = []
    for peak in peaks:
        where = {"x": peak.at, "y": peak.score, "showarrow": False, "yanchor": "bottom", "yshift": 7}
        text = {"text": f"{peak.at:,}: {peak.score:.2f}", "font": {"size": 12, "color": theme.DIVIDED}}
        notes.append(where | text | {"bgcolor": theme.tint(theme.BACKGROUND, 0.75), "borderpad": 0})
    return [points], notes
