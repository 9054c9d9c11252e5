"""The distances that attention sees in packed documents: their figure and sentence."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from rope_viz.embedding.spec import FloatArray, RopeSpec
from rope_viz.figures import theme
from rope_viz.figures.line_styles import length_rules
from rope_viz.figures.words import name_length
from rope_viz.pages.decay.words import TEXTS
from rope_viz.studies.packed_positions import DistanceCounts, Row, count_distances
from rope_viz.texts import join

COLUMNS = 800
DIGITS = 4


# A page asks whether the rows can be counted before it draws them.
@functools.lru_cache(maxsize=8)
def count_both(rows: tuple[Row, ...]) -> tuple[DistanceCounts, DistanceCounts | None]:
    """Return the distances within documents, and those of whole rows where they differ."""
    within, whole = (count_distances(rows, crossing=crossing) for crossing in (False, True))
    return within, None if whole.total == within.total else whole


def draw(rows: Sequence[Row], spec: RopeSpec) -> theme.DataFigure:
    """Draw how many pairs of a query and a key have each distance, on a logarithmic axis."""
    within, whole = count_both(tuple(rows))
    low, high = (whole or within).start, max(within.largest, whole.largest if whole else 0)
    drawn = [(TEXTS("packing.within"), within, theme.CURRENT, "solid")]
    if whole is not None:
        drawn.insert(0, (TEXTS("packing.whole"), whole, theme.PLAIN, "dash"))
    traces = []
    for label, counts, colour, dash in drawn:
        at, mean = thin_counts(counts, low, high)
        hover = f"{label}: %{{y:.{DIGITS}~g}}<extra></extra>"
        line = {"color": colour, "width": 2, "dash": dash}
        traces.append(theme.line(at, mean, label, colour, line=line, hovertemplate=hover))
    top = max(float(counts.values.max()) for _, counts, _, _ in drawn)
    fig = theme.figure(
        traces,
        x={
            "title": TEXTS("packing.axis"),
            "range": [low, high + 1],
            "unifiedhovertitle": {"text": TEXTS("packing.hover")},
        },
        y={"title": TEXTS("packing.pairs"), "type": "log", "range": [-0.3, float(np.log10(top)) + 0.4], "dtick": 1},
        shapes=length_rules(spec, axis="x", stop=high),
        showlegend=whole is not None,
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
    )
    return fig


def thin_counts(counts: DistanceCounts, low: int, high: int) -> tuple[FloatArray, FloatArray]:
    """Return at most `COLUMNS` distances from low to high with the mean count around each; NaN where it is 0."""
    size = high + 1 - low
    values = np.zeros(size)
    own = counts.values[: high + 1 - counts.start]
    values[counts.start - low :][: len(own)] = own
    edges = np.unique(np.linspace(0, size, min(size, COLUMNS) + 1).round().astype(np.int64))
    mean = np.add.reduceat(values, edges[:-1]) / np.diff(edges)
    at = low + (edges[:-1] + edges[1:] - 1) / 2.0
    return at, np.where(mean > 0, mean, np.nan)


def describe(rows: Sequence[Row], spec: RopeSpec) -> str:
    """Return the sentence: the largest distance, where half of the pairs are, and what a missing mask adds."""
    within, whole = count_both(tuple(rows))
    values = {"documents": sum(len(row.documents) for row in rows), "largest": within.largest}
    parts = [TEXTS("packing.sentence", **values, half=within.quantile(0.5))]
    if whole is not None and whole.negative > 0:
        parts.append(TEXTS("packing.negative", share=100.0 * whole.negative))
    elif whole is not None:
        parts.append(TEXTS("packing.crossing", largest=whole.largest))
    if within.largest + 1 < spec.context:
        parts.append(
            TEXTS("packing.untrained", first=within.largest + 1, last=spec.context, length_name=name_length(spec))
        )
    return join(*parts)
