"""Colours with one meaning each, the layout all figures share, and numbers as a person reads them."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np
import plotly.colors
import plotly.graph_objects as go
import plotly.io

from rope_viz.embedding.spectrum import BAND_NAMES, Bands

# Light colour -> its twin in the dark theme. Figures are built in the light palette; the browser swaps.
PLAIN, CURRENT = "#5B6470", "#0B62C4"
KEPT, BLENDED, DIVIDED, SPED = "#00795A", "#986000", "#C2410C", "#5B3FA8"
FURTHER = ("#8E4A9E", "#0E7C86", "#B0306A", "#5A6B00")
QUERY, KEY = CURRENT, DIVIDED
BACKGROUND, PANEL, TEXT, GRID, RULE = "#FFFFFF", "#F6F7F9", "#1B1F24", "#E4E7EB", "#7A8490"
BAND_COLOURS = (KEPT, BLENDED, DIVIDED, SPED, PLAIN)  # in the order of spectrum.BAND_NAMES

# A diverging map with the background at 0; both ends read against it in either theme.
NEGATIVE, POSITIVE = "#B4460F", "#1259B0"
DIVERGING = [[0.0, NEGATIVE], [0.25, "#E3A17F"], [0.5, "#FEFEFE"], [0.75, "#8DB4E2"], [1.0, POSITIVE]]
SEQUENTIAL = [[0.0, "#FEFEFE"], [0.5, "#8DB4E2"], [1.0, POSITIVE]]
# From the background to one colour for an error, which is orange.
ERROR = [[0.0, "#FEFEFE"], [0.5, "#E3A17F"], [0.85, NEGATIVE], [1.0, "#6E2A08"]]
CYCLIC = plotly.colors.get_colorscale("Phase")

DARK = {
    PLAIN: "#9AA4B2",
    CURRENT: "#6CB2FF",
    KEPT: "#35C79A",
    BLENDED: "#F0B429",
    DIVIDED: "#FF8A5B",
    SPED: "#B7A3F2",
    "#8E4A9E": "#C99BD8",
    "#0E7C86": "#4CC3CC",
    "#B0306A": "#F07FB0",
    "#5A6B00": "#B5C34A",
    BACKGROUND: "#0F1216",
    PANEL: "#171B21",
    TEXT: "#E6E9EE",
    GRID: "#262C34",
    RULE: "#8A94A2",
    NEGATIVE: "#FF9A66",
    "#E3A17F": "#8A4B2B",
    "#6E2A08": "#FFDCC8",
    "#FEFEFE": "#101317",
    "#8DB4E2": "#2F5F97",
    POSITIVE: "#7DB8FF",
}

MAIN_HEIGHT, SIDE_HEIGHT = 430, 340
DASHES = ("solid", "dash", "dot", "dashdot")


def tint(colour: str, alpha: float) -> str:
    """The colour with an alpha channel, as #RRGGBBAA, so that the dark twin is found by its first seven characters."""
    return f"{colour}{round(alpha * 255):02X}"


def figure(
    traces: Sequence[dict[str, Any]],
    *,
    x: dict[str, Any],
    y: dict[str, Any],
    height: int = MAIN_HEIGHT,
    shapes: Iterable[dict[str, Any]] = (),
    notes: Iterable[dict[str, Any]] = (),
    **layout: Any,
) -> Figure:
    """A figure in the house style from traces and axes given as plain dicts."""
    base = {
        # Plotly's own template would add 7 kB to every redraw and colours that have no dark twin.
        "template": go.layout.Template(),
        "height": height,
        "margin": {"l": 68, "r": 96, "t": 26, "b": 48},
        "font": {"size": 13, "color": TEXT},
        "paper_bgcolor": BACKGROUND,
        "plot_bgcolor": BACKGROUND,
        "showlegend": False,
        "hovermode": "x unified",
        "hoverlabel": {"bgcolor": PANEL, "bordercolor": RULE, "font": {"color": TEXT, "size": 13}, "align": "left"},
        "dragmode": "zoom",
        "xaxis": merged(AXIS, {"showspikes": True, **SPIKE}, x),
        "yaxis": merged(AXIS, y),
        "shapes": list(shapes),
        "annotations": list(notes),
    }
    return Figure(data=list(traces), layout=base | layout)


CHECKED: ContextVar[bool] = ContextVar("checked", default=True)


@contextlib.contextmanager
def unchecked() -> Iterator[None]:
    """Figures that are made within are taken as they are written.

    Plotly asks of every property whether there is one of that name and what it may be, which takes up to three quarters
    of the time of a picture. The tests ask so of all that the app draws, and see that both ways give the same.
    """
    before = CHECKED.set(False)
    try:
        yield
    finally:
        CHECKED.reset(before)


class Figure(go.Figure):  # type: ignore[misc]
    """A Plotly figure that also knows the thing it is a picture of.

    `table`, where it is set, gives the columns of a CSV, name -> values of equal length: what a curve or a map sums up
    for the eye stands there in full. `at_size` makes the figure anew for a width and, if one is wanted, a height, in
    pixels with type of the usual size.
    """

    table: Callable[[], Mapping[str, Any]] | None = None
    at_size: Callable[[float, float | None], Figure] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, _validate=CHECKED.get(), **kwargs)


# What every axis starts from; a figure with several subplots lays it under each of its own.
AXIS: dict[str, Any] = {
    "gridcolor": GRID,
    "linecolor": RULE,
    "zeroline": False,
    "showline": True,
    "ticks": "outside",
    "ticklen": 4,
    "tickcolor": RULE,
    "title": {"standoff": 8, "font": {"size": 13}},
    "automargin": False,
}
SPIKE = {"spikemode": "across", "spikethickness": 1, "spikecolor": RULE, "spikedash": "solid", "spikesnap": "data"}


PAIR_AXIS = {"title": "pair i", "unifiedhovertitle": {"text": "pair %{x}"}}


def pair_axis(pairs: int) -> dict[str, Any]:
    """The x axis of every figure over the pairs."""
    return PAIR_AXIS | {"range": [-0.5, pairs - 0.5], "tickvals": thinned(pairs)}


def merged(*parts: dict[str, Any]) -> dict[str, Any]:
    """Dicts laid over each other; nested ones are merged, a title may be given as text."""
    out: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            if key == "title" and isinstance(value, str):
                value = {"text": value}
            out[key] = merged(out[key], value) if isinstance(value, dict) and isinstance(out.get(key), dict) else value
    return out


def line(
    x: Any, y: Any, name: str, colour: str, *, dash: str = "solid", width: float = 2, **more: Any
) -> dict[str, Any]:
    """A curve; hover shows its name and 4 significant digits unless told otherwise."""
    style = {"color": colour, "dash": dash, "width": width}
    hover = {"hovertemplate": f"{name} %{{y:.4~g}}<extra></extra>"}
    return {"type": "scatter", "mode": "lines", "x": x, "y": y, "name": name, "line": style} | hover | more


def end_label(x: float, y: float, text: str, colour: str, **more: Any) -> dict[str, Any]:
    """A label at a line's right end; on a narrow screen the browser moves it inside the plot."""
    where = {"x": x, "y": y, "xanchor": "left", "yanchor": "middle", "xshift": 6, "showarrow": False}
    return where | {"name": "end", "text": text, "font": {"color": colour, "size": 13}} | more


def spread_labels(
    ends: Sequence[tuple[float, float, str, str]], span: Sequence[float], *, log: bool, height: int = MAIN_HEIGHT
) -> list[dict[str, Any]]:
    """Labels (x, y, text, colour) at line ends, moved apart where they would lie on each other."""
    pixels = (height - 74) / (span[1] - span[0])
    placed = sorted(((math.log10(y) if log else y) * pixels, x, y, text, colour) for x, y, text, colour in ends)
    notes, below = [], -math.inf
    for at, x, y, text, colour in placed:
        where = max(at, below + 16)
        below = where
        notes.append(end_label(x, math.log10(y) if log else y, text, colour, yshift=where - at))
    return notes


def rule(value: float, text: str, *, axis: str = "y", dash: str = "solid", log: bool = False) -> dict[str, Any]:
    """A thin labelled rule across the figure at a value of one axis."""
    across = "x" if axis == "y" else "y"
    place = {f"{axis}0": value, f"{axis}1": value, f"{across}0": 0, f"{across}1": 1, f"{across}ref": "paper"}
    side = {"textposition": "start", "yanchor": "bottom"} if axis == "y" else {"textposition": "end", "textangle": 0}
    label = {"text": text, "font": {"size": 12, "color": TEXT}, "padding": 3} | side
    return {"type": "line", "line": {"color": RULE, "width": 1, "dash": dash}, "label": label} | place


def band_shapes(bands: Bands) -> list[dict[str, Any]]:
    """What becomes of the pairs as shaded columns behind the curves, named and counted at the top."""
    shapes = []
    for kind, first, last in bands.runs:
        count = last - first + 1
        label = {"text": f"{BAND_NAMES[kind]} {count}", "textposition": "top center", "padding": 4}
        label["font"] = {"size": 12, "color": BAND_COLOURS[kind]}
        shapes.append(
            {
                "type": "rect",
                "layer": "below",
                "x0": first - 0.5,
                "x1": last + 0.5,
                "y0": 0,
                "y1": 1,
                "yref": "paper",
                "line": {"width": 0},
                "fillcolor": tint(BAND_COLOURS[kind], 0.10),
                "label": label if count >= 3 else {},
            }
        )
    return shapes


def tokens(value: float) -> str:
    """A number of tokens as a person reads it: 4096 is 4k, 131072 is 128k, 1048576 is 1M."""
    if math.isinf(value):
        return "∞"
    if value >= 1e13:
        return digits(value)
    for unit, size in (("M", 1 << 20), ("k", 1 << 10)):
        if value >= size and value % size == 0:
            return f"{int(value) // size}{unit}"
    if value >= 10_000_000:
        return f"{value / 1e6:.4g} million"
    return f"{value:,.0f}" if value >= 1000 else digits(value)


def digits(value: float) -> str:
    """Four significant digits, without an exponent where a person would not write one."""
    if not math.isfinite(value):
        return "undefined" if math.isnan(value) else "∞" if value > 0 else "−∞"
    if value == 0 or 1e-4 <= abs(value) < 1e6:
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    mantissa, exponent = f"{value:.3e}".split("e")
    return f"{float(mantissa):g}·10{exponent_text(int(exponent))}"


def exponent_text(exponent: int) -> str:
    """A whole number in superscript."""
    return str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def length_ticks(low: float, high: float, most: int = 8) -> dict[str, Any]:
    """Ticks at powers of two for a logarithmic length axis between two positive lengths."""
    first, last = math.ceil(math.log2(max(low, 1))), math.floor(math.log2(high))
    step = next(s for s in (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 64) if (last - first) / s <= most)
    values = [2.0**e for e in range(first + (-first) % step, last + 1, step)]
    return {"tickvals": values, "ticktext": [tokens(v) for v in values], "tickmode": "array"}


def log_range(low: float, high: float) -> list[float]:
    """An axis range for a logarithmic axis, in powers of ten."""
    return [math.log10(low), math.log10(high)]


def plain_text(text: str) -> str:
    """Text that Plotly shows as it stands: a word of the reader's own is no markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def thinned(count: int, most: int = 9) -> list[int]:
    """Whole tick positions 0 … count − 1 at a round step."""
    step = next(s for s in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024) if count / s <= most)
    return list(range(0, count, step))


def finite(values: Any) -> Any:
    """The values with infinities as gaps, which is how Plotly draws them."""
    array = np.asarray(values, dtype=np.float64)
    return np.where(np.isfinite(array), array, np.nan)
