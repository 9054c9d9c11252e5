"""Which base a length needs, as a curve over lengths, with the models of the list as points.

Men et al., https://arxiv.org/abs/2405.14591: the mean cosine must stay at or above 0 below the length. The bases that
hold a length are no interval, so the curve of the smallest one goes with how far every base reaches.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rope_viz.embedding.spec import FloatArray, RopeSpec
from rope_viz.figures import theme
from rope_viz.models.catalog import catalog, main_layer, model_specs
from rope_viz.pages.decay.figures import WORKERS
from rope_viz.pages.decay.words import TEXTS
from rope_viz.studies.decay import first_negative
from rope_viz.studies.scores import unrotated_share
from rope_viz.texts import Sentence, join

LEAST, MOST = 1024, 1 << 17
LOWEST, HIGHEST, BASES = 1e3, 1e7, 481
WIDEST = 256
"""Dimensions of the widest head for which all bases are computed at every distance."""
ASYMPTOTE = 0.6165
"""The zero of the cosine integral: for wide heads, base b holds up to about this times b."""
FIT = (0.0424, 1.628)
"""Of Men et al.: base = 0.0424 · length ** 1.628."""


@dataclass(frozen=True)
class ListedBase:
    """A model of the list: the length that its base was trained with, and how far it reaches, at most `MOST`."""

    name: str
    length: int
    base: float
    reach: int

    @property
    def holds(self) -> bool:
        return self.reach >= min(self.length, MOST)


def list_bases() -> FloatArray:
    """Return the bases of the curve."""
    return np.geomspace(LOWEST, HIGHEST, BASES)


@functools.lru_cache(maxsize=2048)
def find_reach(head_dim: int, rotary_dim: int, base: float) -> int:
    """Return the first distance at which the mean cosine of such a head is negative, at most `MOST`."""
    spec = RopeSpec(head_dim=head_dim, rotary_dim=rotary_dim, base=base)
    found = first_negative(spec.inv_freq(), MOST, unrotated=unrotated_share(spec))
    return MOST if found is None else found


@functools.lru_cache(maxsize=4)
def find_reaches(head_dim: int, rotary_dim: int) -> NDArray[np.int64]:
    """Return how far every base of the curve reaches."""
    bases = list_bases().tolist()
    return np.array(list(WORKERS.map(lambda base: find_reach(head_dim, rotary_dim, base), bases)))


def find_smallest(reaches: NDArray[np.int64], lengths: NDArray[np.int64]) -> FloatArray:
    """Return the smallest base of the curve that holds each length; NaN where none does."""
    bases = list_bases()
    holds = reaches[None, :] >= lengths[:, None]
    return np.where(holds.any(axis=1), bases[holds.argmax(axis=1)], np.nan)


@functools.lru_cache(maxsize=4)
def find_models(head_dim: int, rotary_dim: int) -> tuple[ListedBase, ...]:
    """Return the models of the list whose heads have these sizes."""
    found = []
    for model in catalog().values():
        specs = model_specs(model.id)
        spec = specs[main_layer(model, specs)]
        if (spec.head_dim, spec.rotary_dim) == (head_dim, rotary_dim) and spec.context >= LEAST:
            reach = find_reach(head_dim, rotary_dim, spec.base)
            found.append(ListedBase(model.name, spec.context, spec.base, reach))
    return tuple(found)


def draw(spec: RopeSpec) -> theme.DataFigure:
    """Draw how far each base reaches, the smallest base of each length, two bounds, and the models of the list."""
    reaches, models = find_reaches(spec.head_dim, spec.rotary_dim), find_models(spec.head_dim, spec.rotary_dim)
    lengths = np.unique(np.geomspace(LEAST, MOST, 113).round().astype(np.int64))
    smallest = find_smallest(reaches, lengths)
    near = reaches >= LEAST
    traces: list[dict[str, Any]] = [
        make_line(reaches[near], list_bases()[near], TEXTS("reach.each"), theme.CURRENT, "solid", 1)
        | {"mode": "markers", "marker": {"size": 4, "color": theme.CURRENT}},
        make_line(lengths, smallest, TEXTS("reach.smallest"), theme.CURRENT, "solid", 3),
        make_line(lengths, FIT[0] * lengths.astype(float) ** FIT[1], TEXTS("reach.fit"), theme.FURTHER[0], "dash", 2),
        make_line(lengths, lengths / ASYMPTOTE, TEXTS("reach.wide"), theme.PLAIN, "dot", 2),
        *(make_points([one for one in models if one.holds is holds], holds=holds) for holds in (True, False)),
    ]
    top = max([HIGHEST, *(one.base for one in models)])
    fig = theme.figure(
        traces,
        x={
            "title": TEXTS("reach.length_axis"),
            "type": "log",
            "range": theme.log_range(LEAST, 1.1 * MOST),
            **theme.length_ticks(LEAST, MOST),
        },
        y={"title": TEXTS("reach.base_axis"), "type": "log", "range": [2.9, float(np.log10(top)) + 0.2], "dtick": 1},
        hovermode="closest",
        showlegend=True,
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
    )
    return fig


def make_line(x: Any, y: FloatArray, label: str, colour: str, dash: str, width: int) -> dict[str, Any]:
    """Return one curve of bases over lengths."""
    line = {"color": colour, "width": width, "dash": dash}
    hover = f"{label}<br>%{{x:,}}: %{{y:,.4~g}}<extra></extra>"
    return theme.line(x, y, label, colour, line=line, hovertemplate=hover)


def make_points(models: Sequence[ListedBase], *, holds: bool) -> dict[str, Any]:
    """Return the models that hold their length, as filled circles, or those that do not, as crosses."""
    label = TEXTS("reach.hold" if holds else "reach.fail", count=len(models))
    colour, symbol = (theme.KEPT, "circle") if holds else (theme.DIVIDED, "x")
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [min(one.length, MOST) for one in models],
        "y": [one.base for one in models],
        "name": label,
        "marker": {"symbol": symbol, "size": 9, "color": colour},
        "customdata": [describe_model(one) for one in models],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def describe_model(one: ListedBase) -> str:
    """Return the hover text of a model."""
    key = "reach.model" if one.holds else "reach.model_fails"
    return TEXTS(key, name=one.name, base=one.base, length=one.length, reach=one.reach)


def describe(spec: RopeSpec) -> Sentence:
    """Return the smallest base for the original length, how many larger ones fail, and how many models hold theirs."""
    length = min(max(spec.context, LEAST), MOST)
    reaches, models = find_reaches(spec.head_dim, spec.rotary_dim), find_models(spec.head_dim, spec.rotary_dim)
    (smallest,) = find_smallest(reaches, np.array([length]))
    holding = TEXTS("reach.holding", count=sum(one.holds for one in models), models=len(models))
    if np.isnan(smallest):
        return join(TEXTS("reach.no_base", length=length, highest=HIGHEST), holding)
    failing = int((reaches[list_bases() >= smallest] < length).sum())
    gaps = TEXTS("reach.gaps", count=failing) if failing else ""
    return join(TEXTS("reach.sentence", length=length, base=float(smallest)), gaps, holding)


def explain_no_bound(spec: RopeSpec) -> str:
    """Return why there is no curve, "" if there is: with half of the head unrotated, every base holds every length."""
    if spec.head_dim > WIDEST:
        return TEXTS("reach.wide_head", widest=WIDEST)
    return TEXTS("reach.partial") if unrotated_share(spec) >= 0.5 else ""
