"""Label placement: no overlap with labels, inside the sheet, and as little as possible over the data."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from rope_viz.figures.files.canvas import Box

CELL = 2.0
TOUCHED = 0.02


class Ink:
    """A coarse bitmap of the drawn cells."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.cells = np.zeros(shape, dtype=bool)
        self._sums: np.ndarray | None = None

    def mark(self, where: Any) -> None:
        self.cells[where] = True
        self._sums = None

    def count_within(self, left: int, top: int, right: int, bottom: int) -> int:
        if self._sums is None:
            self._sums = np.pad(self.cells.astype(np.int64).cumsum(0).cumsum(1), ((1, 0), (1, 0)))
        sums = self._sums
        return int(sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left])


class Places:
    """The occupied parts of a sheet: coarse bitmaps of data and of rules, and the boxes of labels."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self.ink, self.rules = (Ink((int(height / CELL) + 2, int(width / CELL) + 2)) for _ in range(2))
        self.boxes: list[Box] = []

    def draw(self, x: object, y: object, clip: Box, *, rule: bool = False) -> None:
        ink = self.rules if rule else self.ink
        px, py = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        if px.size < 2:
            self._dots(ink, px, py, clip)
            return
        steps = np.hypot(np.diff(px), np.diff(py))
        steps = np.where(np.isfinite(steps), np.minimum(steps / CELL, 4000), 0).astype(int) + 1
        which = np.repeat(np.arange(len(steps)), steps)
        share = (np.arange(len(which)) - np.repeat(np.cumsum(steps) - steps, steps)) / np.repeat(steps, steps)
        self._dots(
            ink,
            np.append(px[which] + share * (px[which + 1] - px[which]), px[-1]),
            np.append(py[which] + share * (py[which + 1] - py[which]), py[-1]),
            clip,
        )

    def fill(self, box: Box) -> None:
        left, top, right, bottom = self._cells(box)
        self.ink.mark((slice(top, bottom), slice(left, right)))

    def reserve(self, box: Box) -> Box:
        self.boxes.append(box)
        return box

    def pick_best(self, boxes: Sequence[Box], extra_costs: Sequence[float], *, inside: Box | None = None) -> int:
        """Return the index of the cheapest box, with these extra costs."""
        found, least = 0, float("inf")
        for place in sorted(range(len(boxes)), key=lambda place: extra_costs[place]):
            if extra_costs[place] >= least:
                break  # all remaining boxes cost more
            cost = self.cost(boxes[place], inside) + extra_costs[place]
            if cost < least or (cost == least and place < found):
                found, least = place, cost
        return found

    def cost(self, box: Box, inside: Box | None = None) -> float:
        """Return the cost of a box: overlap with labels, parts outside the sheet or `inside`, ink and rules in it."""
        left, top, right, bottom = box
        area = max((right - left) * (bottom - top), 1.0)
        total = 0.0
        for other in self.boxes:
            across = min(right, other[2]) - max(left, other[0])
            down = min(bottom, other[3]) - max(top, other[1])
            if across > 0 and down > 0:
                total += 3.0 + 20.0 * across * down / area
        for frame, weight in (((0.0, 0.0, self.width, self.height), 60.0), (inside, 6.0)):
            if frame is not None:
                kept_x = max(0.0, min(right, frame[2]) - max(left, frame[0]))
                kept_y = max(0.0, min(bottom, frame[3]) - max(top, frame[1]))
                total += weight * (1.0 - kept_x * kept_y / area)
        inked = self.ink_share(box)
        # A label that only touches a line is legible; with a line through its middle it is not.
        return total + 10.0 * inked + (0.8 if inked > TOUCHED else 0.0) + 3.0 * self.rule_share(box)

    def ink_share(self, box: Box) -> float:
        return self._share(self.ink, box)

    def rule_share(self, box: Box) -> float:
        return self._share(self.rules, box)

    def _share(self, ink: Ink, box: Box) -> float:
        left, top, right, bottom = self._cells(box)
        count = ink.count_within(left, top, right, bottom)
        return count / max((right - left) * (bottom - top), 1)

    def _cells(self, box: Box) -> tuple[int, int, int, int]:
        high, wide = self.ink.cells.shape
        left, top = int(max(box[0] / CELL, 0)), int(max(box[1] / CELL, 0))
        right, bottom = int(np.ceil(box[2] / CELL)), int(np.ceil(box[3] / CELL))
        left, top = min(left, wide), min(top, high)
        return left, top, max(min(right, wide), left), max(min(bottom, high), top)

    def _dots(self, ink: Ink, x: object, y: object, clip: Box) -> None:
        px, py = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        with np.errstate(invalid="ignore"):
            seen = (px >= clip[0]) & (px <= clip[2]) & (py >= clip[1]) & (py <= clip[3])
        columns = np.clip((px[seen] / CELL).astype(int), 0, ink.cells.shape[1] - 1)
        rows = np.clip((py[seen] / CELL).astype(int), 0, ink.cells.shape[0] - 1)
        ink.mark((rows, columns))


def spread_labels(targets: Sequence[float], heights: Sequence[float], top: float, bottom: float) -> list[float]:
    """Return centres near their targets, in order, without overlap, within top and bottom if all fit."""
    blocks: list[list[float]] = []  # [centre of the first item, its index, index after the last item]
    offsets = np.concatenate([[0.0], np.cumsum([(a + b) / 2 for a, b in itertools.pairwise(heights)])])
    low, high = top + heights[0] / 2, bottom - heights[-1] / 2
    for i, at in enumerate(targets):
        blocks.append([at - offsets[i], i, i + 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (a, first, _), (b, middle, last) = blocks[-2:]
            left, right = middle - first, last - middle
            blocks[-2:] = [[(a * left + b * right) / (left + right), first, last]]
    out = [0.0] * len(targets)
    for start, first, last in blocks:
        for i in range(int(first), int(last)):
            out[i] = start + float(offsets[i])
    # Keep inside the plot as far as possible.
    for i in range(len(out)):
        out[i] = max(out[i], low + float(offsets[i]))
    for i in reversed(range(len(out))):
        out[i] = min(out[i], max(high - float(offsets[-1] - offsets[i]), low + float(offsets[i])))
    return out
