"""What the layers of a whole model carry in each pair, from sums over tokens: quantities, figures and sentences."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rope_viz.embedding.spec import FloatArray
from rope_viz.figures import theme
from rope_viz.pages.heads.figures import TEXTS
from rope_viz.studies import heads as studies
from rope_viz.studies.capture_file import Captured
from rope_viz.studies.heads import Turning
from rope_viz.studies.pair_sums import PairSums, add_up, energy_share
from rope_viz.studies.sums_file import CapturedSums, SummedLayer
from rope_viz.texts import Sentence, join
from rope_viz.tiny_lm.attention_diagnosis import OwnCapture

CARRIED = TEXTS.group("carried")
"""Quantities of a layer by head and pair. A concentration is R, the length of the mean over the mean length."""
HIGH = 0.9
STEPS = 40
DISTANCES, POINTS = 64, 600
"""Distances at which both curves are compared, and at which that of the centres is drawn: it oscillates."""


@functools.lru_cache(maxsize=2)
def sum_up(capture: Captured | CapturedSums | OwnCapture) -> CapturedSums:
    """Return the sums of all layers of a capture. Raise `ValueError` for values that are not numbers."""
    if isinstance(capture, CapturedSums):
        return capture
    summed = {}
    for number in capture.layers:
        layer, spec = capture.layer(number), capture.spec(number)
        sums = add_up(layer.q, layer.k, spec.pairs, spec.pairing)
        summed[number] = SummedLayer(sums, layer.kind, layer.scale, layer.heads)
    return CapturedSums(capture.name, {}, capture.specs, summed)


def read_quantity(layer: SummedLayer, name: str) -> FloatArray:
    """Return a quantity of `CARRIED` by head and pair; that of k has a row for each key head."""
    sums = layer.sums
    if name.startswith("energy"):
        values = sums.q if name == "energy_q" else sums.k
        return energy_share(values[3])
    if name == "strength":
        return energy_share(studies.statistics_of_sums(sums, layer.scale).strength)
    return sums.concentrations()[name == "concentration_k"]


def average_layers(model: CapturedSums, name: str) -> FloatArray:
    """Return the mean over the heads of each layer, (layers, pairs); NaN for pairs that a layer does not have."""
    rows = [read_quantity(model.layer(number), name).mean(axis=0) for number in model.layers]
    found = np.full((len(rows), max(map(len, rows))), np.nan)
    for row, values in zip(found, rows, strict=True):
        row[: len(values)] = values
    return found


def describe(model: CapturedSums, name: str) -> Sentence:
    """Return the sentence on the whole model: where the energy is, or how concentrated q or k are."""
    tokens = max(layer.sums.tokens for layer in model.summed.values())
    source = TEXTS("whole.source", name=model.name, tokens=tokens)
    if name.startswith("concentration"):
        values = list_concentrations(model, name)
        high = float((values > HIGH).mean())
        return join(TEXTS(f"whole.{name}", median=float(np.median(values)), high=high, least=HIGH), source)
    shares = average_layers(model, name)
    mean = np.nan_to_num(shares).mean(axis=0)
    count = max(1, len(mean) // 8)
    best = np.argmax(np.nan_to_num(shares), axis=1)
    pair = int(np.bincount(best).argmax())
    numbers = {"count": count, "pairs": len(mean), "share": float(np.sort(mean)[::-1][:count].sum())}
    most = {"pair": pair, "layers": int((best == pair).sum()), "of": len(shares)}
    return join(TEXTS("whole.sentence", what=CARRIED[name], **numbers), TEXTS("whole.most", **most), source)


def list_concentrations(model: CapturedSums, name: str) -> FloatArray:
    """Return R of every rotating pair of every head, of q or of k."""
    parts = [read_quantity(model.layer(number), name)[:, : model.spec(number).pairs].ravel() for number in model.layers]
    return np.concatenate(parts)


def draw_concentrations(model: CapturedSums) -> theme.DataFigure:
    """Draw how many pairs of heads have which R, as shares of all of them: for q and for k."""
    edges = np.linspace(0.0, 1.0, STEPS + 1)
    middle = (edges[:-1] + edges[1:]) / 2.0
    traces: list[dict[str, Any]] = []
    columns: dict[str, FloatArray] = {}
    for name, colour, dash in (("concentration_q", theme.QUERY, "solid"), ("concentration_k", theme.KEY, "dash")):
        counts, _ = np.histogram(list_concentrations(model, name), edges)
        share = counts / counts.sum()
        label = TEXTS(f"whole.{name[-1]}")
        line = {"color": colour, "width": 2, "dash": dash, "shape": "hvh"}
        hover = f"{label}: %{{y:.2%}}<extra></extra>"
        traces.append(theme.line(middle, share, label, colour, line=line, hovertemplate=hover))
        columns[label] = share
    fig = theme.figure(
        traces,
        x={"title": TEXTS("whole.r_axis"), "range": [0, 1], "unifiedhovertitle": {"text": "R %{x:.2f}"}},
        y={"title": TEXTS("whole.share_axis"), "rangemode": "tozero", "tickformat": ".0%"},
        showlegend=True,
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        height=theme.SIDE_HEIGHT,
    )
    fig.table = lambda: {"R": middle, **columns}
    return fig


def describe_concentrations(model: CapturedSums) -> Sentence:
    """Return the sentence on the histogram."""
    q, k = (np.median(list_concentrations(model, f"concentration_{name}")) for name in "qk")
    return TEXTS("whole.medians", q=float(q), k=float(k))


@dataclass(frozen=True, eq=False)
class Rebuilt:
    """The mean logit of one head at some distances: exact, and from the means of q and k alone; that one also `drawn`.

    `drawn` is its value at the distances `at`.
    """

    distances: NDArray[np.int64]
    exact: FloatArray
    centres: FloatArray
    at: NDArray[np.int64]
    drawn: FloatArray

    @property
    def correlation(self) -> float:
        """Return the correlation of both over the distances from 1 on, 0 where one of them is constant."""
        rows = np.stack([self.exact, self.centres])[:, self.distances > 0]
        if rows.shape[1] < 2 or not (spread := rows.std(axis=1)).all():
            return 0.0
        return float(np.mean((rows[0] - rows[0].mean()) * (rows[1] - rows[1].mean())) / spread.prod())


def choose_distances(longest: int, count: int = DISTANCES) -> NDArray[np.int64]:
    """Return distance 0 and up to `count` more to the longest, evenly spaced on a logarithmic axis."""
    steps = np.geomspace(1, longest, count) if longest else np.zeros(0)
    found: NDArray[np.int64] = np.unique([0, *steps.round().astype(np.int64)])
    return found


def rebuild(
    sums: PairSums, scale: float, turn: Turning, distances: NDArray[np.int64], exact: FloatArray
) -> list[Rebuilt]:
    """Return both curves of every head. `exact` is (heads, distances)."""
    at = choose_distances(int(distances[-1]), POINTS)
    centres, drawn = (studies.mean_logit_of_centres(sums, scale, turn, each) for each in (distances, at))
    return [Rebuilt(distances, one, two, at, three) for one, two, three in zip(exact, centres, drawn, strict=True)]


def draw_rebuilt(rebuilt: Rebuilt) -> theme.DataFigure:
    """Draw the exact mean logit of a head by distance, and the one from the means of its q and k."""
    at = rebuilt.distances[rebuilt.distances > 0]
    exact, centres = TEXTS("whole.exact"), TEXTS("whole.centres")
    hover = "%{y:.4~g}<extra></extra>"
    line = {"color": theme.CURRENT, "width": 2}
    marker = {"color": theme.PLAIN, "size": 7, "symbol": "circle-open", "line": {"width": 2}}
    traces = [
        theme.line(
            rebuilt.at[1:], rebuilt.drawn[1:], centres, theme.CURRENT, line=line, hovertemplate=f"{centres}: {hover}"
        ),
        theme.line(
            at,
            rebuilt.exact[rebuilt.distances > 0],
            exact,
            theme.PLAIN,
            mode="markers",
            marker=marker,
            hovertemplate=f"{exact}: {hover}",
        ),
    ]
    last = int(rebuilt.distances[-1]) + 1
    fig = theme.figure(
        traces,
        x={
            "title": TEXTS("whole.distance_axis"),
            "type": "log",
            "range": theme.log_range(1, max(last, 2)),
            "unifiedhovertitle": {"text": theme.TEXTS("hovers.whole_distance")},
            **theme.length_ticks(1, max(last, 2)),
        },
        y={"title": TEXTS("whole.logit_axis"), "zeroline": True, "zerolinecolor": theme.RULE},
        showlegend=True,
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        height=theme.SIDE_HEIGHT,
    )
    return fig


def describe_rebuilt(heads: Sequence[Rebuilt], number: int, layer: int, head: int) -> Sentence:
    """Return the correlation of one head, and the median over its layer."""
    found = [one.correlation for one in heads]
    sentence = TEXTS("whole.correlation", layer=layer, head=head, value=found[number])
    return join(sentence, TEXTS("whole.median", median=float(np.median(found)), heads=len(found)))
