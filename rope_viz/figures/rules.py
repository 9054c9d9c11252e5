"""Rules and marks that several figures share: lengths, and the pinned pair."""

from __future__ import annotations

import math
from typing import Any

from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures import theme
from rope_viz.texts.numbers import format_tokens


def length_rules(spec: RopeSpec, *, axis: str, stop: float = math.inf) -> list[dict[str, Any]]:
    """Return a solid rule at the trained length and a dashed one at the target, or one rule if they are equal."""
    if spec.target == spec.context:
        rules = [(spec.context, f"{spec.length_name} length {format_tokens(spec.context)}", "solid")]
    else:
        rules = [
            (spec.context, f"{spec.length_name} {format_tokens(spec.context)}", "solid"),
            (spec.target, f"target {format_tokens(spec.target)}", "dash"),
        ]
    return [theme.rule(at, text, axis=axis, dash=dash) for at, text, dash in rules if at < stop]


def pin_marker(pair: int, value: float) -> dict[str, Any]:
    """Return a ring around the pinned pair's point on a curve over the pairs."""
    marker = {"size": 13, "color": theme.tint(theme.CURRENT, 0.2), "line": {"color": theme.CURRENT, "width": 2}}
    where = {"type": "scatter", "x": [pair], "y": [value], "mode": "markers", "marker": marker, "hoverinfo": "skip"}
    return where | {"name": f"pinned pair {pair}", "meta": {"csv": False}}


def pin_rule_x(pin: int | None, spec: RopeSpec) -> list[dict[str, Any]]:
    """Return a vertical line at the pinned pair in a figure over the pairs."""
    return [theme.rule(pin, f"pair {pin}", axis="x", dash="dot")] if pin is not None and pin < spec.pairs else []


def pin_rule(pin: int | None, spec: RopeSpec) -> list[dict[str, Any]]:
    """Return a frame around the pinned pair's row in a heatmap of pairs."""
    if pin is None or pin >= spec.pairs:
        return []
    frame = {"type": "rect", "xref": "paper", "x0": 0, "x1": 1, "y0": pin - 0.5, "y1": pin + 0.5}
    return [frame | {"line": {"color": theme.TEXT, "width": 1.5}}]
