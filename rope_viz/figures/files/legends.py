"""Legend: the positions of its entries, with names wrapped as needed."""

from __future__ import annotations

from typing import Any

from rope_viz.embedding.spec import short_repr
from rope_viz.figures.files import lines as named
from rope_viz.figures.files.canvas import Box
from rope_viz.figures.files.layout import BIGGER, PAD, Plan, text_height
from rope_viz.figures.files.rich_text import Lines, Run, parse, wrap_lines

# Width of a line sample and the gap to its name.
KEY = 34.0


def too_long_message(label: str) -> str:
    """Return the error message for a label that leaves no room."""
    return f"the label {short_repr(label)} is too long for this size: take a shorter one, a larger size or smaller type"


def require_room(plan: Plan) -> None:
    """Raise `ValueError` if a word of the legend is wider than the sheet."""
    for (left, _, _, _), _, words in plan.legend:
        wide, _ = plan.canvas.size(words, plan.size * 12 / 13)
        if left + KEY * plan.scale + wide > plan.canvas.width - 2 and wide > 8 * plan.size:
            raise ValueError(too_long_message(" ".join("".join(run.text for run in line).strip() for line in words)))


def place_entries(plan: Plan, left: float, right: float) -> list[tuple[Box, Any, Lines]]:
    """Return (box, trace, lines of its name) of the legend's entries, in rows from the top."""
    if not plan.sheet.layout.get("showlegend"):
        return []
    s, size = plan.scale, plan.size * 12 / 13
    y = PAD * s + text_height(plan.heading, plan.size * BIGGER)
    out, x, row, seen = [], left, 0.0, set()
    for trace in plan.sheet.data:
        name = named.line_name(trace)
        if not name or name in seen:
            continue
        seen.add(name)
        words = [[Run("".join(run.text for run in line))] for line in parse(name)]
        words = wrap_lines(words, right - left - KEY * s, lambda run: plan.canvas.measure(run, size))
        wide = KEY * s + plan.canvas.size(words, size)[0]
        if x > left and x + wide > right:
            x, y, row = left, y + row, 0.0
        high = plan.size * 1.35 + text_height(words[1:], size)
        out.append(((x, y, x + wide, y + high), trace, words))
        x, row = x + wide + 14 * s, max(row, high)
    return out


def legend_height(plan: Plan) -> float:
    """Return the height of the legend with a gap."""
    return max((box[3] for box, _, _ in plan.legend), default=0.0) - (
        min((box[1] for box, _, _ in plan.legend), default=0.0) - 4 * plan.scale if plan.legend else 0.0
    )
