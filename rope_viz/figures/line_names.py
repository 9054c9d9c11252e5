"""Names of lines: at their right ends, or inside the plot where lines that end together are apart."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rope_viz.embedding.spec import FloatArray
from rope_viz.figures import theme

TOGETHER = 12.0  # pixels between ends that are too near to name
CLEAR = 7.0  # pixels that a name inside needs from every other line
CLEAREST = 30.0
WIDTH = 820.0  # of a usual plot
LETTER, HIGH, OWN = 7.4, 16.0, 4.0  # pixels: a letter's width, a name's height, its distance from its line
STEPS = 32


class Named(NamedTuple):
    """A line with a value for every pair, NaN where it has none; its name and its colour."""

    y: FloatArray
    name: str
    colour: str


def name_lines(lines: Sequence[Named], span: Sequence[float], *, log: bool, plot: float) -> list[dict[str, Any]]:
    """Return the names of lines over the pairs, in a plot of `plot` pixels that shows the range `span`.

    Lines whose ends are together are named where they are apart. `span` is in powers of ten on a log axis.
    """
    pixels = [(np.log10(line.y) if log else line.y) * (plot / (span[1] - span[0])) for line in lines]
    ends = [(int(drawn[-1]), float(at[drawn[-1]])) for at in pixels if (drawn := np.flatnonzero(np.isfinite(at))).size]
    if len(ends) < len(lines):
        known = [index for index, at in enumerate(pixels) if np.isfinite(at).any()]
        return name_lines([lines[index] for index in known], span, log=log, plot=plot) if known else []
    meets = [
        any(abs(y - other) < TOGETHER for j, (_, other) in enumerate(ends) if j != i) for i, (_, y) in enumerate(ends)
    ]
    low, high = (edge * plot / (span[1] - span[0]) for edge in span)
    notes: list[dict[str, Any]] = []
    taken: list[FloatArray] = []
    at_end: list[tuple[float, float, str, str]] = []
    for index, line in enumerate(lines):
        found = _find_place(pixels, index, len(line.name) * LETTER, (low, high), taken) if meets[index] else None
        if found is None:
            at, _ = ends[index]
            at_end.append((at, float(line.y[at]), line.name, line.colour))
            continue
        at, side, box = found
        taken.append(box)
        xanchor, yanchor = side
        value = float(np.log10(line.y[at]) if log else line.y[at])
        place = {
            "xanchor": xanchor,
            "xshift": OWN if xanchor == "left" else -OWN,
            "yanchor": yanchor,
            "yshift": 2 if yanchor == "bottom" else -2,
        }
        notes.append(theme.end_label(at, value, line.name, line.colour, **place))
    return notes + theme.spread_labels(at_end, span, log=log, height=round(plot) + 74)


def _find_place(
    pixels: Sequence[FloatArray], index: int, wide: float, inside: tuple[float, float], taken: Sequence[FloatArray]
) -> tuple[int, tuple[str, str], FloatArray] | None:
    """Return the pair at which a line's name is clear of all others, its anchors and its box; None if there is none."""
    own, count = pixels[index], len(pixels[index])
    step = WIDTH / max(*(len(line) - 1 for line in pixels), 1)
    # Models may have other numbers of pairs.
    others = [line for j, line in enumerate(pixels) if j != index]
    best, found = CLEAR, None
    for at in range(1, count - 1, max(1, count // STEPS)):
        for right, up in itertools.product((True, False), repeat=2):
            x0 = at * step + (OWN if right else -OWN - wide)
            y0 = own[at] + 2 if up else own[at] - 2 - HIGH
            box = np.array([x0, y0, x0 + wide, y0 + HIGH])
            if not (x0 >= 0 and x0 + wide <= WIDTH and box[1] >= inside[0] and box[3] <= inside[1]):
                continue
            under = slice(max(0, int(x0 / step)), min(count, int((x0 + wide) / step) + 2))
            if _gap(own[under], box) <= 0.0:
                continue
            clear = min((_gap(line[under], box) for line in others), default=CLEAREST)
            # A name near its own line, where the others are away from that line.
            apart = [abs(line[at] - own[at]) for line in others if at < len(line)]
            value = float(np.nanmin([clear, CLEAREST, *apart]))
            if value > best and not any(_overlap(box, other) for other in taken):
                best, found = value, (at, ("left" if right else "right", "bottom" if up else "top"), box)
    return found


def _gap(line: FloatArray, box: FloatArray) -> float:
    """Return the height in pixels between a box and the part of a line above or below it, 0 if they touch."""
    line = line[np.isfinite(line)]
    if not line.size:
        return CLEAREST
    return max(float(box[1] - line.max()), float(line.min() - box[3]), 0.0)


def _overlap(one: FloatArray, other: FloatArray) -> bool:
    return bool(one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3])
