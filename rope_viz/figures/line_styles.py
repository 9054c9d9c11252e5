"""Colour and dash of every line of a comparison, by its slot in the figure.

The current spec is blue and solid, its unscaled version grey and dotted. Neither style has another use. A scaling
method has one slot in all figures. Other lines take the remaining slots in order, so no two lines share a colour.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from rope_viz.figures import theme


class LineStyle(NamedTuple):
    """The style of a line: colour and dash, a name or a list of strokes and gaps, as Plotly expects them."""

    colour: str
    dash: str


CURRENT, PLAIN = LineStyle(theme.CURRENT, "solid"), LineStyle(theme.PLAIN, "dot")

DASHES = (
    *("dash", "dashdot", "longdash", "longdashdot", "2px,2px", "12px,3px,3px,3px,3px,3px", "16px,4px", "5px,2px"),
    *("8px,2px,8px,6px", "3px,6px", "14px,3px,6px,3px", "2px,2px,2px,6px", "10px,2px,2px,2px,2px,2px,2px,2px"),
    *("20px,3px,3px,3px", "6px,2px,2px,2px,6px,6px", "18px,2px,8px,2px,2px,2px"),
)
SLOTS = tuple(LineStyle(colour, dash) for colour, dash in zip(theme.FURTHER, DASHES, strict=True))
"""The styles of lines next to the current one, the most distinct first."""

BY_SLOT = (
    "yarn",
    "ntk",
    "linear",
    "llama3",
    "longrope",
    "dynamic",
    "yarn-paper",
    "ntk-by-parts",
    "proportional",
    "cope",
)
METHODS: dict[str, LineStyle] = {"none": PLAIN, **dict(zip(BY_SLOT, SLOTS, strict=False))}
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
        raise ValueError(f"one figure compares at most {len(SLOTS)} lines, got {count + len(SLOTS) - len(free)}")
    return free[:count]
