"""Where a label may stand: not on another one, not outside the sheet, and as little as possible on the data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rope_viz.figures.files.canvas import Box

CELL = 2.0


class Places:
    """What of a sheet is taken: a coarse map of ink, and the boxes of labels."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self.ink = np.zeros((int(height / CELL) + 2, int(width / CELL) + 2), dtype=bool)
        self.boxes: list[Box] = []
        self.sums: object = None

    def draw(self, x: object, y: object, clip: Box) -> None:
        """Mark a polyline, as far as it lies inside a box."""
        px, py = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        if px.size < 2:
            self._dots(px, py, clip)
            return
        steps = np.hypot(np.diff(px), np.diff(py))
        steps = np.where(np.isfinite(steps), np.minimum(steps / CELL, 4000), 0).astype(int) + 1
        which = np.repeat(np.arange(len(steps)), steps)
        share = (np.arange(len(which)) - np.repeat(np.cumsum(steps) - steps, steps)) / np.repeat(steps, steps)
        self._dots(
            np.append(px[which] + share * (px[which + 1] - px[which]), px[-1]),
            np.append(py[which] + share * (py[which + 1] - py[which]), py[-1]),
            clip,
        )

    def fill(self, box: Box) -> None:
        """Mark a rectangle."""
        left, top, right, bottom = self._cells(box)
        self.ink[top:bottom, left:right] = True
        self.sums = None

    def take(self, box: Box) -> Box:
        """Note that a label stands here."""
        self.boxes.append(box)
        return box

    def best(self, boxes: Sequence[Box], away: Sequence[float], *, inside: Box | None = None) -> int:
        """Which of these boxes to take; `away` is how much worse each would be if all were free."""
        found, least = 0, float("inf")
        for place in sorted(range(len(boxes)), key=lambda place: away[place]):
            if away[place] >= least:
                break  # no place from here on can be better
            cost = self.cost(boxes[place], inside) + away[place]
            if cost < least or (cost == least and place < found):
                found, least = place, cost
        return found

    def cost(self, box: Box, inside: Box | None = None) -> float:
        """How bad a place is: labels underneath weigh most, then what is outside, then ink."""
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
        return total + 10.0 * self._inked(box)

    def _inked(self, box: Box) -> float:
        if self.sums is None:
            self.sums = np.pad(self.ink.astype(np.int64).cumsum(0).cumsum(1), ((1, 0), (1, 0)))
        sums = self.sums
        assert isinstance(sums, np.ndarray)
        left, top, right, bottom = self._cells(box)
        count = sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left]
        return float(count) / max((right - left) * (bottom - top), 1)

    def _cells(self, box: Box) -> tuple[int, int, int, int]:
        high, wide = self.ink.shape
        left, top = int(max(box[0] / CELL, 0)), int(max(box[1] / CELL, 0))
        right, bottom = int(np.ceil(box[2] / CELL)), int(np.ceil(box[3] / CELL))
        left, top = min(left, wide), min(top, high)
        return left, top, max(min(right, wide), left), max(min(bottom, high), top)

    def _dots(self, x: object, y: object, clip: Box) -> None:
        px, py = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        with np.errstate(invalid="ignore"):
            seen = (px >= clip[0]) & (px <= clip[2]) & (py >= clip[1]) & (py <= clip[3])
        columns = np.clip((px[seen] / CELL).astype(int), 0, self.ink.shape[1] - 1)
        rows = np.clip((py[seen] / CELL).astype(int), 0, self.ink.shape[0] - 1)
        self.ink[rows, columns] = True
        self.sums = None
