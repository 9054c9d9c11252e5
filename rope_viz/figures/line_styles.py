"""Colour and dash of every line of a comparison, by its slot in the figure; lines at lengths and at the pinned pair.

The current spec is blue and solid, its unscaled version grey and dotted. Neither style has another use. A scaling
method has one slot in all figures. Other lines take the remaining slots in order, so no two lines share a colour.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any, NamedTuple

from rope_viz.embedding import scaling
from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures import theme
from rope_viz.figures.theme import TEXTS


class LineStyle(NamedTuple):
    """The style of a line: colour and dash, a name or a list of strokes and gaps, as Plotly expects them."""

    colour: str
    dash: str


CURRENT, PLAIN = LineStyle(theme.CURRENT, "solid"), LineStyle(theme.PLAIN, "dot")

DASHES = tuple(
    """
    dash dashdot longdash longdashdot 2px,2px 12px,3px,3px,3px,3px,3px 16px,4px 5px,2px 8px,2px,8px,6px 3px,6px
    14px,3px,6px,3px 2px,2px,2px,6px 10px,2px,2px,2px,2px,2px,2px,2px 20px,3px,3px,3px 6px,2px,2px,2px,6px,6px
    18px,2px,8px,2px,2px,2px
    """.split()
)
SLOTS = tuple(LineStyle(colour, dash) for colour, dash in zip(theme.FURTHER, DASHES, strict=True))
"""The styles of lines next to the current one, the most distinct first."""

_RANKED = sorted(scaling.METHODS, key=lambda name: scaling.METHODS[name].line_rank)
METHODS: dict[str, LineStyle] = dict(zip([name for name in _RANKED if name != "none"], SLOTS, strict=False))
METHODS["none"] = PLAIN
"""{method: its style next to the current spec}."""


STROKES = {
    "dash": "6,4",
    "dashdot": "7,3,2,3",
    "longdash": "11,4",
    "longdashdot": "11,3,2,3",
    "dot": "2,3",
    "solid": "",
}


def strokes(dash: str) -> list[float]:
    """Return a dash as the lengths of its strokes and gaps in pixels, [] for a solid line."""
    return [float(each.removesuffix("px")) for each in STROKES.get(dash, dash).split(",") if each]


def take_slots(count: int, taken: Collection[LineStyle] = ()) -> list[LineStyle]:
    """Return the styles of this many lines: the first slots that no other line of the figure has taken.

    Raise `ValueError` if the figure has more lines than there are slots.
    """
    free = [look for look in SLOTS if look not in taken]
    if count > len(free):
        raise ValueError(TEXTS("errors.too_many_lines", most=len(SLOTS), count=count + len(SLOTS) - len(free)))
    return free[:count]


def length_rules(spec: RopeSpec, *, axis: str, stop: float = math.inf) -> list[dict[str, Any]]:
    """Return a solid rule at the trained length and a dashed one at the target, or one rule if they are equal."""
    if spec.target == spec.context:
        rules = [(spec.context, TEXTS(f"rules.{spec.length_name}_length", length=spec.context), "solid")]
    else:
        rules = [
            (spec.context, TEXTS(f"rules.{spec.length_name}", length=spec.context), "solid"),
            (spec.target, TEXTS("rules.target", length=spec.target), "dash"),
        ]
    return [theme.rule(at, text, axis=axis, dash=dash) for at, text, dash in rules if at < stop]


def pin_marker(pair: int, value: float) -> dict[str, Any]:
    """Return a ring around the pinned pair's point on a curve over the pairs."""
    marker = {"size": 13, "color": theme.tint(theme.CURRENT, 0.2), "line": {"color": theme.CURRENT, "width": 2}}
    where = {"type": "scatter", "x": [pair], "y": [value], "mode": "markers", "marker": marker, "hoverinfo": "skip"}
    return where | {"name": TEXTS("rules.pinned", pair=pair), "meta": {"csv": False}}


def pin_rule_x(pin: int | None, spec: RopeSpec) -> list[dict[str, Any]]:
    """Return a vertical line at the pinned pair in a figure over the pairs."""
    return (
        [theme.rule(pin, TEXTS("rules.pair", pair=pin), axis="x", dash="dot")]
        if pin is not None and pin < spec.pairs
        else []
    )


def pin_in_plot(pin: int | None, spec: RopeSpec) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the same line without its name, and the name at its lower end: bars leave no room for it above."""
    rules = pin_rule_x(pin, spec)
    if not rules or pin is None:
        return [], []
    side, shift = ("left", 4) if 2 * pin < spec.pairs else ("right", -4)
    place = {"x": pin, "y": 0, "yref": "paper", "xanchor": side, "yanchor": "bottom", "xshift": shift}
    label = rules[0].pop("label")
    return rules, [place | {"text": label["text"], "font": label["font"], "showarrow": False}]


def pin_rule(pin: int | None, spec: RopeSpec) -> list[dict[str, Any]]:
    """Return a frame around the pinned pair's row in a heatmap of pairs."""
    if pin is None or pin >= spec.pairs:
        return []
    frame = {"type": "rect", "xref": "paper", "x0": 0, "x1": 1, "y0": pin - 0.5, "y1": pin + 0.5}
    return [frame | {"line": {"color": theme.TEXT, "width": 1.5}}]
