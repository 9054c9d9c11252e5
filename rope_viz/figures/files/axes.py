"""The axes of a figure: from values to pixels, and the ticks that have room."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rope_viz.embedding.spec import shorten
from rope_viz.figures import theme
from rope_viz.figures.files.rich_text import Lines, parse

STRIDES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 100, 128, 256, 512, 1024)


@dataclass
class Axis:
    """One axis: what Plotly says of it, its names where it has names, and the pixels it lies on.

    Positions on it are "coordinates": powers of ten on a log axis, places of the names on one of names, else values.
    """

    name: str
    given: Mapping[str, Any]
    names: list[str] = field(default_factory=list)
    low: float = 0.0
    high: float = 1.0
    start: float = 0.0
    stop: float = 1.0
    ticks: list[tuple[float, Lines]] = field(default_factory=list)

    @property
    def log(self) -> bool:
        """Whether it is logarithmic."""
        return self.given.get("type") == "log"

    @property
    def upright(self) -> bool:
        """Whether it is a y axis."""
        return self.name.startswith("y")

    @property
    def shown(self) -> bool:
        """Whether anything of it is drawn."""
        return self.given.get("visible") is not False

    @property
    def title(self) -> str:
        """Its title, with its marks."""
        return str((self.given.get("title") or {}).get("text") or "")

    @property
    def opposite(self) -> bool:
        """Whether it stands on the right or on top."""
        return self.given.get("side") in ("right", "top")

    @property
    def angle(self) -> float:
        """By how much tick labels are turned, clockwise, in degrees."""
        return float(self.given.get("tickangle") or 0.0)

    def coordinates(self, values: Any) -> Any:
        """Values as coordinates, shape kept; what has none (0 on a log axis, an unknown name) is NaN."""
        if self.names and not numeric(values):
            places = {name: float(place) for place, name in enumerate(self.names)}
            return np.array([places.get(str(value), math.nan) for value in np.ravel(np.asarray(values, dtype=object))])
        array = np.asarray(values, dtype=np.float64)
        if not self.log:
            return array
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(array > 0, np.log10(np.where(array > 0, array, 1.0)), np.nan)

    def pixel(self, coordinates: Any) -> Any:
        """Coordinates as pixels of the sheet."""
        share = (np.asarray(coordinates, dtype=np.float64) - self.low) / (self.high - self.low)
        return self.start + share * (self.stop - self.start)

    def of(self, values: Any) -> Any:
        """Values as pixels of the sheet."""
        return self.pixel(self.coordinates(values))

    def holds(self, coordinate: float, slack: float = 1e-9) -> bool:
        """Whether a coordinate lies between the ends."""
        low, high = sorted((self.low, self.high))
        return low - slack * (high - low) <= coordinate <= high + slack * (high - low)

    def place(self, start: float, stop: float, size: float, extent: Callable[[Lines], tuple[float, float]]) -> None:
        """Lay it between two pixels and choose the ticks that have room for type of `size` pixels."""
        self.start, self.stop = start, stop
        every = [(at, parse(text)) for at, text in self._wanted(size) if self.holds(at)]
        if self.given.get("showticklabels") is False:
            self.ticks = [(at, [[]]) for at, _ in every]
            return
        along = [self._along(extent(lines)) for _, lines in every]
        gap = 0.0 if self.upright or self.angle else 0.75 * size
        for stride in STRIDES:
            kept = list(range(0, len(every), stride))
            pixels = [float(self.pixel(every[i][0])) for i in kept]
            apart = (
                abs(b - a) >= (along[i] + along[j]) / 2 + gap
                for a, b, i, j in zip(pixels, pixels[1:], kept, kept[1:], strict=False)
            )
            if all(apart):
                break
        self.ticks = [every[i] for i in kept] if every else []

    def _along(self, size: tuple[float, float]) -> float:
        turned = abs(self.angle) > 45
        return size[0] if self.upright == turned else size[1]

    def _wanted(self, size: float) -> list[tuple[float, str]]:
        """(coordinate, label) of every tick before any is left out."""
        values = self.given.get("tickvals")
        if values is not None:
            values = list(np.ravel(array_of(values)))
            texts = self.given.get("ticktext")
            texts = [str(text) for text in array_of(texts)] if texts is not None else [said(value) for value in values]
            places = (
                self.coordinates(values) if self.log or not numeric(values) else np.asarray(values, dtype=np.float64)
            )
            return [(float(at), text) for at, text in zip(places, texts, strict=False)]
        if self.names:
            return [(float(place), theme.plain_text(name)) for place, name in enumerate(self.names)]
        room = abs(self.stop - self.start) / (size * (3.2 if self.upright else 6.5))
        low, high = sorted((self.low, self.high))
        if self.log:
            return log_ticks(low, high, max(2.0, room))
        tokens = "tokens" in self.title.lower() or "position" in self.title.lower()
        return linear_ticks(low, high, max(2.0, room), binary=tokens)


def linear_ticks(low: float, high: float, room: float, *, binary: bool = False) -> list[tuple[float, str]]:
    """Round values between two ends, at most about `room`; of many tokens, multiples of powers of two."""
    least = (high - low) / room
    if binary and high - low >= 4096:
        step = max(2.0 ** math.ceil(math.log2(least)), 1024.0)
    else:
        power = 10.0 ** math.floor(math.log10(least))
        step = power * next(each for each in (1, 2, 5, 10) if each * power >= least * (1 - 1e-9))
    values = step * np.arange(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    if binary and high - low >= 4096:
        return [(float(value), theme.tokens(float(value)) if value > 0 else f"{value:,.0f}") for value in values]
    if decimals > 5 or max(abs(low), abs(high)) >= 1e7:
        words = [said(float(value)) for value in values]
        if len(set(words)) == len(words):
            return list(zip(map(float, values), words, strict=True))
    return [(float(value), f"{value + 0.0:,.{decimals}f}".replace("-", "−")) for value in values]


def log_ticks(low: float, high: float, room: float) -> list[tuple[float, str]]:
    """Powers of ten between two powers, with 2 and 5 between them where there is room; (power, label)."""
    first, last = math.ceil(low - 1e-9), math.floor(high + 1e-9)
    if high - low <= 2.5 and (room >= 4 or last <= first):
        parts = [
            (power + math.log10(digit), digit * 10.0**power)
            for power in range(first - 1, last + 1)
            for digit in (1, 2, 5)
        ]
        kept = [(at, said(value)) for at, value in parts if low - 1e-9 <= at <= high + 1e-9]
        if len(kept) > 1:
            return kept
        # Between two of them stand round values as on a linear axis.
        return [(math.log10(at), words) for at, words in linear_ticks(10.0**low, 10.0**high, room)]
    step = max(1, math.ceil((last - first) / room))
    powers = range(first + (-first) % step, last + 1, step)
    return [(float(power), "1" if power == 0 else f"10{theme.exponent_text(power)}") for power in powers]


def said(value: Any) -> str:
    """A tick's value: four significant digits, a real minus sign."""
    if isinstance(value, str):
        return value
    return theme.digits(float(value)).replace("-", "−")


def read_axes(layout: Mapping[str, Any], data: Sequence[Mapping[str, Any]]) -> dict[str, Axis]:
    """{short name ("x", "y2"): axis} of all axes that traces lie on, with their names and ranges."""
    used = list(dict.fromkeys(trace.get(f"{letter}axis") or letter for trace in data for letter in "xy"))
    used = used or ["x", "y"]
    axes = {}
    for short in used:
        axis = Axis(short, layout.get(f"{short[0]}axis{short[1:]}") or {})
        mine = [trace for trace in data if (trace.get(f"{short[0]}axis") or short[0]) == short]
        values = [array_of(trace[short[0]]) for trace in mine if trace.get(short[0]) is not None]
        if axis.given.get("type") == "category" or any(not numeric(each) for each in values):
            axis.names = list(dict.fromkeys(str(name) for each in values for name in np.ravel(each)))
        axis.low, axis.high = _ends(axis, mine, values)
        axes[short] = axis
    return axes


def _ends(axis: Axis, traces: Sequence[Mapping[str, Any]], values: Sequence[Any]) -> tuple[float, float]:
    given = axis.given.get("range")
    if given is not None:
        try:
            return float(given[0]), float(given[1])
        except (TypeError, ValueError, IndexError):
            said = f"the range of {axis.name[0]}axis{axis.name[1:]}"
            raise ValueError(f"{said} must be two numbers, not {shorten(given)}") from None
    if not values and any(trace.get("z") is not None for trace in traces):
        size = max(
            array_of(trace["z"]).shape[0 if axis.upright else 1] for trace in traces if trace.get("z") is not None
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
    return (high, low) if axis.given.get("autorange") == "reversed" else (low, high)


def array_of(values: Any) -> Any:
    """The values of a trace as an array; Plotly's JSON holds them as bytes."""
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


def numeric(values: Any) -> bool:
    """Whether these are numbers."""
    return array_of(values).dtype.kind in "iufb"
