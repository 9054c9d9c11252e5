"""Arcs of the angles between q and k: those seen in training and those at the target length, a ring per pair."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rope_viz.embedding import spectrum
from rope_viz.embedding.spec import FloatArray, RopeSpec
from rope_viz.figures import theme
from rope_viz.figures.words import name_band
from rope_viz.pages.rotation.figures import TEXTS
from rope_viz.texts import Sentence, join

HEIGHT, NARROW = 560, 450
INNER = 0.24
"""Radius of the innermost ring; that of the outermost is 1."""
THIN = 0.35
"""Thickness of the ring of a pair with every angle seen, over that of the others."""
STEPS = 60
"""Corners along a whole circle."""
HINT = 1e-9
"""Share of a turn below which an arc counts as no longer than another."""


@dataclass(frozen=True, eq=False)
class Arcs:
    """Shares of a turn, (pairs,): `seen` in training, `reached` at the target length; and the `kind` of each pair."""

    seen: FloatArray
    reached: FloatArray
    kind: NDArray[np.int8]

    @property
    def is_whole(self) -> NDArray[np.bool_]:
        """Whether training has shown every angle of a pair."""
        return np.asarray(self.seen >= 1.0)

    @property
    def new(self) -> FloatArray:
        """Return the share of a turn that the target length enters and training never showed."""
        beyond = np.maximum(self.reached - self.seen, 0.0)
        return np.where(beyond > HINT, beyond, 0.0)


def find_arcs(spec: RopeSpec) -> Arcs:
    """Return the arcs of all pairs: up to the original length as trained, and up to the target length as scaled."""
    seen, reached = (
        np.minimum(1.0, length * frequencies / spectrum.TAU)
        for length, frequencies in (
            (spec.context, spectrum.trained_inv_freq(spec)),
            (spec.target, spec.inv_freq(spec.target)),
        )
    )
    return Arcs(seen, reached, spectrum.bands(spec, length=spec.target).kind)


def find_radii(arcs: Arcs) -> tuple[FloatArray, FloatArray]:
    """Return the inner and the outer radius of every ring, pair 0 innermost, with gaps between them."""
    weights = np.where(arcs.is_whole, THIN, 1.0)
    edges = INNER + (1.0 - INNER) * np.concatenate([[0.0], np.cumsum(weights) / weights.sum()])
    return edges[:-1], edges[1:] - 0.16 * np.diff(edges)


def draw(spec: RopeSpec) -> theme.DataFigure:
    """Draw a ring per pair: grey what training showed, thin what the target reaches, thick what is new."""
    arcs = find_arcs(spec)
    inner, outer = find_radii(arcs)
    low, high = inner + 0.32 * (outer - inner), outer - 0.32 * (outer - inner)
    none = np.zeros(spec.pairs)
    traces = name_arc(TEXTS("arcs.seen"), theme.GRID, 8, none, arcs.seen, inner, outer)
    for kind, colour in enumerate(theme.BAND_COLOURS):
        reached = np.where(arcs.kind == kind, np.minimum(arcs.reached, arcs.seen), 0.0)
        name = TEXTS("arcs.reached", band=name_band(kind))
        traces += name_arc(name, colour, 2, none, reached, low, high)
    for kind, colour in enumerate(theme.BAND_COLOURS):
        new = (arcs.kind == kind) & (arcs.new > 0)
        start, stop = (np.where(new, ends, 0.0) for ends in (arcs.seen, arcs.reached))
        traces += name_arc(TEXTS("arcs.new", band=name_band(kind)), colour, 8, start, stop, inner, outer)
    traces.append(mark_ends(arcs, (inner + outer) / 2))
    hidden = {"visible": False, "fixedrange": True, "showspikes": False}
    fig = theme.figure(
        traces,
        x=hidden | {"range": [-1.06, 1.06]},
        y=hidden | {"range": [-1.06, 1.06], "scaleanchor": "x"},
        height=HEIGHT,
        notes=name_rings(arcs, (inner + outer) / 2),
        hovermode="closest",
        showlegend=True,
        legend={"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom"},
        margin={"l": 8, "r": 8, "t": 64, "b": 8},
        meta={"narrow": {"height": NARROW, "margin": {"t": 96}}},
    )
    fig.table = lambda: tabulate(arcs)
    return fig


def name_arc(
    name: str, colour: str, width: int, start: FloatArray, stop: FloatArray, inner: FloatArray, outer: FloatArray
) -> list[dict[str, Any]]:
    """Return parts of rings, each from and to a share of a turn, and their line in the legend; [] without any part."""
    x, y = [], []
    for one in np.flatnonzero(stop - start > 0):
        steps = max(2, round(STEPS * (stop[one] - start[one])))
        angle = spectrum.TAU * np.linspace(start[one], stop[one], steps + 1)
        radius = np.concatenate([np.full(steps + 1, outer[one]), np.full(steps + 1, inner[one])])
        both = np.concatenate([angle, angle[::-1]])
        x += [radius * np.cos(both), [np.nan]]
        y += [radius * np.sin(both), [np.nan]]
    if not x:
        return []
    scatter = {"type": "scatter", "mode": "lines", "name": name}
    quiet = {"hoverinfo": "skip", "showlegend": False, "meta": {"csv": False}}
    filled = {"fill": "toself", "fillcolor": colour, "line": {"width": 0, "color": colour}}
    sample = {"line": {"width": width, "color": colour}, "hovertemplate": name}
    return [
        scatter | {"x": np.concatenate(x).round(4), "y": np.concatenate(y).round(4)} | filled | quiet,
        scatter | {"x": np.full(1, np.nan), "y": np.full(1, np.nan)} | sample,
    ]


def mark_ends(arcs: Arcs, radius: FloatArray) -> dict[str, Any]:
    """Return a point at the end of each ring's longer arc, with the hover text of the pair."""
    ends = spectrum.TAU * np.maximum(arcs.seen, arcs.reached)
    texts = [
        TEXTS("arcs.hover", pair=pair, seen=float(arcs.seen[pair]), reached=float(arcs.reached[pair]))
        for pair in range(len(radius))
    ]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": (radius * np.cos(ends)).round(4),
        "y": (radius * np.sin(ends)).round(4),
        "customdata": texts,
        "hovertemplate": "%{customdata}<extra></extra>",
        # Whole circles have no end to mark, but their hover.
        "marker": {
            "size": 4,
            "color": [theme.tint(theme.TEXT, float(share < 1)) for share in np.maximum(arcs.seen, arcs.reached)],
        },
        "name": TEXTS("arcs.end"),
        "showlegend": False,
        "meta": {"csv": False},
    }


def name_rings(arcs: Arcs, radius: FloatArray) -> list[dict[str, Any]]:
    """Return the numbers of the innermost ring, of the first that is no whole circle, and of the outermost."""
    whole = int(np.count_nonzero(arcs.is_whole))
    return [
        {
            "x": float(radius[pair]),
            "y": 0.0,
            "yanchor": "top",
            "yshift": -2,
            "showarrow": False,
            "text": f"{pair}",
            "font": {"size": 12, "color": theme.TEXT},
            "bgcolor": theme.BACKGROUND,
            "borderpad": 1,
        }
        for pair in list_named(whole, len(radius))
    ]


def list_named(whole: int, pairs: int) -> Iterable[int]:
    """Return the pairs whose rings have a number."""
    return sorted({0, min(whole, pairs - 1), pairs - 1})


def tabulate(arcs: Arcs) -> dict[str, Any]:
    """Return a row per pair with what is drawn."""
    return {
        TEXTS("arcs.columns.pair"): np.arange(len(arcs.seen)),
        TEXTS("arcs.columns.band"): [name_band(kind) for kind in arcs.kind],
        TEXTS("arcs.columns.seen"): arcs.seen,
        TEXTS("arcs.columns.reached"): arcs.reached,
        TEXTS("arcs.columns.new"): arcs.new,
    }


def describe(spec: RopeSpec) -> Sentence:
    """Count the pairs that have seen every angle, and those that enter new ones at the target length."""
    arcs = find_arcs(spec)
    whole, new = int(np.count_nonzero(arcs.is_whole)), int(np.count_nonzero(arcs.new))
    lengths = {"context": spec.context, "target": spec.target}
    first = TEXTS("arcs.says.whole", whole=whole, pairs=spec.pairs, **lengths)
    if not new:
        return join(first, TEXTS("arcs.says.none", **lengths))
    pair = int(np.argmax(arcs.new))
    return join(first, TEXTS("arcs.says.new", count=new, pair=pair, most=float(arcs.new[pair]), **lengths))
