"""Limit on the computation of one request, so that no link and no config blocks the server.

The unit is one pair at one distance; `WORK` of them take about 0.2 seconds on one core. Beyond the limit near distances
are all computed and far ones at equal steps, and the page that shows the result says so.
"""

from __future__ import annotations

from dataclasses import dataclass

WORK = 1_000_000_000


@dataclass(frozen=True)
class Thinning:
    """Every distance below `dense` is computed, every `step`-th from there on."""

    start: int
    dense: int
    stop: int
    step: int

    @staticmethod
    def for_curve(start: int, stop: int, pairs: int, *, shares: int = 1, work: float = WORK) -> Thinning:
        """Thin [start, stop) for a curve of this many pairs that gets one of `shares` equal shares of the work."""
        most = max(1024, int(work / (max(pairs, 1) * max(shares, 1))))
        if stop - start <= most:
            return Thinning(start, stop, stop, 1)
        dense = start + most // 2
        return Thinning(start, dense, stop, -(-(stop - dense) // (most // 2)))

    @property
    def parts(self) -> tuple[range, ...]:
        """Return the distances as one or two ranges."""
        near = range(self.start, self.dense)
        return (near,) if self.step == 1 else (near, range(self.dense, self.stop, self.step))

    def sentence(self) -> str:
        """Return a sentence about the omitted distances; empty if there are none."""
        if self.step == 1:
            return ""
        return f"Of the distances beyond {self.dense:,}, one in {self.step:,} is computed."


def scale_samples(count: int, pairs: int, *, least: int, usual: int = 64) -> int:
    """Return the sample count: `count` for up to `usual` pairs, then fewer in proportion, at least `least`."""
    return max(least, min(count, count * usual // max(pairs, 1)))
