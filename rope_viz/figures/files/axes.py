"""Axes of a figure: from values to pixels, and the ticks that fit."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rope_viz.embedding.spec import short_repr
from rope_viz.figures import theme
from rope_viz.figures.files.rich_text import Lines, parse
from rope_viz.figures.files.style import ERRORS
from rope_viz.texts.numbers import format_exponent, format_number

STRIDES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 100, 128, 256, 512, 1024)


@dataclass
class Axis:
    """One axis: its Plotly properties, its category names if any, and its extent in pixels.

    A "coordinate" is a power of ten on a log axis, an index on a category axis, else the value.
    """

    name: str
    properties: Mapping[str, Any]
    names: list[str] = field(default_factory=list)
    low: float = 0.0
    high: float = 1.0
    start: float = 0.0
    stop: float = 1.0
    ticks: list[tuple[float, Lines]] = field(default_factory=list)

    @property
    def log(self) -> bool:
        return self.properties.get("type") == "log"

    @property
    def is_vertical(self) -> bool:
        return self.name.startswith("y")

    @property
    def is_visible(self) -> bool:
        return self.properties.get("visible") is not False

    @property
    def title(self) -> str:
        """Return the title, with its markup."""
        return str((self.properties.get("title") or {}).get("text") or "")

    @property
    def is_opposite(self) -> bool:
        return self.properties.get("side") in ("right", "top")

    @property
    def angle(self) -> float:
        """Return the rotation of tick labels, clockwise in degrees."""
        return float(self.properties.get("tickangle") or 0.0)

    def coordinates(self, values: Any) -> Any:
        """Convert values to coordinates of the same shape; NaN for 0 on a log axis and for unknown names."""
        if self.names and not is_numeric(values):
            places = {name: float(place) for place, name in enumerate(self.names)}
            return np.array([places.get(str(value), math.nan) for value in np.ravel(np.asarray(values, dtype=object))])
        array = np.asarray(values, dtype=np.float64)
        if not self.log:
            return array
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(array > 0, np.log10(np.where(array > 0, array, 1.0)), np.nan)

    def pixel(self, coordinates: Any) -> Any:
        share = (np.asarray(coordinates, dtype=np.float64) - self.low) / (self.high - self.low)
        return self.start + share * (self.stop - self.start)

    def to_pixels(self, values: Any) -> Any:
        return self.pixel(self.coordinates(values))

    def contains(self, coordinate: float, slack: float = 1e-9) -> bool:
        low, high = sorted((self.low, self.high))
        return low - slack * (high - low) <= coordinate <= high + slack * (high - low)

    def place(self, start: float, stop: float, size: float, extent: Callable[[Lines], tuple[float, float]]) -> None:
        """Set the extent in pixels, and choose the ticks that fit with a font of `size` pixels."""
        self.start, self.stop = start, stop
        every = [(at, parse(text)) for at, text in self._all_ticks(size) if self.contains(at)]
        if self.properties.get("showticklabels") is False:
            self.ticks = [(at, [[]]) for at, _ in every]
            return
        along = [self._length_along(extent(lines)) for _, lines in every]
        gap = 0.0 if self.is_vertical or self.angle else 0.75 * size
        for stride in STRIDES:
            picked = list(range(0, len(every), stride))
            pixels = [float(self.pixel(every[i][0])) for i in picked]
            fits = (
                abs(b - a) >= (along[i] + along[j]) / 2 + gap
                for a, b, i, j in zip(pixels, pixels[1:], picked, picked[1:], strict=False)
            )
            if all(fits):
                break
        self.ticks = [every[i] for i in picked] if every else []

    def _length_along(self, size: tuple[float, float]) -> float:
        turned = abs(self.angle) > 45
        return size[0] if self.is_vertical == turned else size[1]

    def _all_ticks(self, size: float) -> list[tuple[float, str]]:
        """Return (coordinate, label) of all ticks, before any are dropped."""
        values = self.properties.get("tickvals")
        if values is not None:
            values = list(np.ravel(array_of(values)))
            texts = self.properties.get("ticktext")
            texts = (
                [str(text) for text in array_of(texts)]
                if texts is not None
                else [format_tick(value) for value in values]
            )
            places = (
                self.coordinates(values) if self.log or not is_numeric(values) else np.asarray(values, dtype=np.float64)
            )
            return [(float(at), text) for at, text in zip(places, texts, strict=False)]
        if self.names:
            return [(float(place), theme.plain_text(name)) for place, name in enumerate(self.names)]
        room = abs(self.stop - self.start) / (size * (3.2 if self.is_vertical else 6.5))
        low, high = sorted((self.low, self.high))
        if is_length(self.title):
            ends = (10.0**low, 10.0**high) if self.log else (low, high)
            ticks = theme.length_ticks(ends[0], ends[1], max(2, int(room)), log=self.log)
            return list(zip(map(float, self.coordinates(ticks["tickvals"])), ticks["ticktext"], strict=True))
        return (log_ticks if self.log else linear_ticks)(low, high, max(2.0, room))


def is_length(title: str) -> bool:
    """Return True if an axis with this title counts tokens or positions, so that its ticks are powers of two."""
    return re.search(theme.TEXTS.entries["scale.lengths"], title) is not None


def linear_ticks(low: float, high: float, room: float) -> list[tuple[float, str]]:
    """Return round values in a range, at most about `room`."""
    least = (high - low) / room
    power = 10.0 ** math.floor(math.log10(least))
    step = power * next(each for each in (1, 2, 5, 10) if each * power >= least * (1 - 1e-9))
    values = step * np.arange(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    if decimals > 5 or max(abs(low), abs(high)) >= 1e7:
        words = [format_tick(float(value)) for value in values]
        if len(set(words)) == len(words):
            return list(zip(map(float, values), words, strict=True))
    return [(float(value), f"{value + 0.0:,.{decimals}f}".replace("-", "−")) for value in values]


def log_ticks(low: float, high: float, room: float) -> list[tuple[float, str]]:
    """Return (exponent, label) for powers of ten in a range, with 2 and 5 in between if there is room."""
    first, last = math.ceil(low - 1e-9), math.floor(high + 1e-9)
    if high - low <= 2.5 and (room >= 4 or last <= first):
        parts = [
            (power + math.log10(digit), digit * 10.0**power)
            for power in range(first - 1, last + 1)
            for digit in (1, 2, 5)
        ]
        ticks = [(at, format_tick(value)) for at, value in parts if low - 1e-9 <= at <= high + 1e-9]
        if len(ticks) > 1:
            return ticks
        # A range between two of these values gets linear ticks.
        return [(math.log10(at), words) for at, words in linear_ticks(10.0**low, 10.0**high, room)]
    step = max(1, math.ceil((last - first) / room))
    powers = range(first + (-first) % step, last + 1, step)
    return [(float(power), "1" if power == 0 else f"10{format_exponent(power)}") for power in powers]


def format_tick(value: Any) -> str:
    """Format a tick value with four significant digits and a minus sign (U+2212)."""
    if isinstance(value, str):
        return value
    return format_number(float(value)).replace("-", "−")


def read_axes(layout: Mapping[str, Any], data: Sequence[Mapping[str, Any]]) -> dict[str, Axis]:
    """Return {short name ("x", "y2"): axis} of all axes used by traces, with their names and ranges."""
    used = list(dict.fromkeys(trace.get(f"{letter}axis") or letter for trace in data for letter in "xy"))
    used = used or ["x", "y"]
    axes = {}
    for short in used:
        axis = Axis(short, layout.get(f"{short[0]}axis{short[1:]}") or {})
        own_traces = [trace for trace in data if (trace.get(f"{short[0]}axis") or short[0]) == short]
        values = [array_of(trace[short[0]]) for trace in own_traces if trace.get(short[0]) is not None]
        if axis.properties.get("type") == "category" or any(not is_numeric(each) for each in values):
            axis.names = list(dict.fromkeys(str(name) for each in values for name in np.ravel(each)))
        axis.low, axis.high = _ends(axis, own_traces, values)
        axes[short] = axis
    return axes


def _ends(axis: Axis, traces: Sequence[Mapping[str, Any]], values: Sequence[Any]) -> tuple[float, float]:
    given = axis.properties.get("range")
    if given is not None:
        try:
            return float(given[0]), float(given[1])
        except (TypeError, ValueError, IndexError):
            name = f"{axis.name[0]}axis{axis.name[1:]}"
            raise ValueError(ERRORS("axis_range", axis=name, given=short_repr(given))) from None
    if not values and any(trace.get("z") is not None for trace in traces):
        size = max(
            array_of(trace["z"]).shape[0 if axis.is_vertical else 1] for trace in traces if trace.get("z") is not None
        )
        low, high = -0.5, size - 0.5
    elif axis.names:
        low, high = -0.5, len(axis.names) - 0.5
    else:
        known = np.concatenate([axis.coordinates(each).ravel() for each in values] or [np.zeros(1)])
        known = known[np.isfinite(known)]
        low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
        room = 0.05 * (high - low) or 0.5
        low, high = low - room, high + room
    return (high, low) if axis.properties.get("autorange") == "reversed" else (low, high)


def array_of(values: Any) -> Any:
    """Return the values of a trace as an array; Plotly's JSON may hold them as base64 bytes."""
    if isinstance(values, Mapping):
        import base64

        flat = np.frombuffer(base64.b64decode(values["bdata"]), dtype=values["dtype"])
        shape = str(values.get("shape", flat.size)).split(",")
        return flat.reshape([int(size) for size in shape])
    array = np.asarray(values)
    # Gaps in lists are None.
    if array.dtype == object and all(value is None or isinstance(value, (int, float)) for value in array.ravel()):
        return array.astype(np.float64)
    return array


def is_numeric(values: Any) -> bool:
    """Return True for numeric values."""
    return array_of(values).dtype.kind in "iufb"
