"""Colours with one meaning each, the layout shared by all figures, and number formats."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np
import plotly.colors
import plotly.graph_objects as go
import plotly.io

from rope_viz.embedding.spectrum import Bands
from rope_viz.figures.words import name_band
from rope_viz.texts import Texts
from rope_viz.texts.numbers import format_tokens

TEXTS = Texts("figures")

# Light colour -> dark colour is in DARK. Figures are built with the light palette; the browser swaps it.
PLAIN, CURRENT = "#5B6470", "#0B62C4"
KEPT, BLENDED, DIVIDED, SPED = "#00795A", "#986000", "#C2410C", "#5B3FA8"
# Lines next to the current one, by slot. All pairs differ by a CIEDE2000 of 6 or more in each theme, also for
# deuteranopes. The first four also name axes.
FURTHER = tuple(
    """
    #8E4A9E #0E7C86 #B0306A #5A6B00 #581D10 #3B068D #1E4C3E #463855 #A65A54 #6A4C37 #DB1A31 #3C487F #8C0A01 #2D5F75
    #4E1560 #72464D
    """.split()
)
FURTHER_DARK = tuple(
    """
    #C99BD8 #7FE3DC #F07FB0 #B5C34A #AA9457 #736CF7 #2B9052 #A0727F #EBBCAF #F7DD9D #DB5109 #91A482 #F0E437 #4D8794
    #D74BCD #7EC779
    """.split()
)
QUERY, KEY = CURRENT, DIVIDED
BACKGROUND, PANEL, TEXT, GRID, RULE = "#FFFFFF", "#F6F7F9", "#1B1F24", "#E4E7EB", "#7A8490"
BAND_COLOURS = (KEPT, BLENDED, DIVIDED, SPED, PLAIN)  # in the order of spectrum.BAND_NAMES

# Diverging scale with the background at 0; both ends contrast with it in either theme.
NEGATIVE, POSITIVE = "#B4460F", "#1259B0"
DIVERGING = [[0.0, NEGATIVE], [0.25, "#E3A17F"], [0.5, "#FEFEFE"], [0.75, "#8DB4E2"], [1.0, POSITIVE]]
SEQUENTIAL = [[0.0, "#FEFEFE"], [0.5, "#8DB4E2"], [1.0, POSITIVE]]
# Errors: from the background to orange.
ERROR = [[0.0, "#FEFEFE"], [0.5, "#E3A17F"], [0.85, NEGATIVE], [1.0, "#6E2A08"]]
CYCLIC = plotly.colors.get_colorscale("Phase")

DARK = {
    PLAIN: "#9AA4B2",
    CURRENT: "#6CB2FF",
    KEPT: "#35C79A",
    BLENDED: "#F0B429",
    DIVIDED: "#FF8A5B",
    SPED: "#B7A3F2",
    **dict(zip(FURTHER, FURTHER_DARK, strict=True)),
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
MARGIN = {"l": 68, "r": 96, "t": 26, "b": 48}
DASHES = ("solid", "dash", "dot", "dashdot")


def tint(colour: str, alpha: float) -> str:
    """Return the colour with alpha as #RRGGBBAA; its first seven characters remain a key of DARK."""
    return f"{colour}{round(alpha * 255):02X}"


def figure(
    traces: Sequence[dict[str, Any]],
    *,
    x: dict[str, Any],
    y: dict[str, Any],
    height: int = MAIN_HEIGHT,
    shapes: Iterable[dict[str, Any]] = (),
    notes: Iterable[dict[str, Any]] = (),
    bars: Sequence[BandBar] = (),
    **layout: Any,
) -> DataFigure:
    """Return a figure in the shared style; traces and axes are plain dicts. `bars` are drawn above the plot."""
    margin = layout.pop("margin", MARGIN)
    shapes = list(shapes)
    if bars:
        margin = margin | {"t": max(margin["t"], bar_room(len(bars)))}
        drawn = band_shapes(bars, height - margin["t"] - margin["b"])
        shapes = [*drawn, *shapes]
        narrow = layout.get("meta", {}).get("narrow", {})
        if "shapes" in narrow:
            narrow["shapes"] = [*drawn, *narrow["shapes"]]
    base = {
        # Plotly's default template would add 7 kB to every redraw, and colours without a dark variant.
        "template": go.layout.Template(),
        "height": height,
        "margin": margin,
        "font": {"size": 13, "color": TEXT},
        "paper_bgcolor": BACKGROUND,
        "plot_bgcolor": BACKGROUND,
        "showlegend": False,
        "hovermode": "x unified",
        "hoverlabel": {"bgcolor": PANEL, "bordercolor": RULE, "font": {"color": TEXT, "size": 13}, "align": "left"},
        "dragmode": "zoom",
        "xaxis": merge_dicts(AXIS, {"showspikes": True, **SPIKE}, x),
        "yaxis": merge_dicts(AXIS, y),
        "shapes": shapes,
        "annotations": list(notes),
    }
    return DataFigure(data=list(traces), layout=base | layout)


CHECKED: ContextVar[bool] = ContextVar("checked", default=True)


@contextlib.contextmanager
def skip_validation() -> Iterator[None]:
    """Skip Plotly's property validation inside this context.

    Validation takes up to three quarters of the time to build a figure. The tests validate every figure of the app, and
    check that the result is the same without.
    """
    before = CHECKED.set(False)
    try:
        yield
    finally:
        CHECKED.reset(before)


class DataFigure(go.Figure):  # type: ignore[misc]
    """A Plotly figure with the data it was drawn from.

    `table`, if set, returns the columns of a CSV, name -> values of equal length, without the figure's binning.
    `at_size`, if set, redraws the figure for a width and an optional height in pixels at the usual font size.
    """

    table: Callable[[], Mapping[str, Any]] | None = None
    at_size: Callable[[float, float | None], DataFigure] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, _validate=CHECKED.get(), **kwargs)


# Defaults of every axis; figures with subplots merge them into each of their axes.
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


def pair_axis(pairs: int) -> dict[str, Any]:
    """Return the x axis of figures over the pairs."""
    hover = {"unifiedhovertitle": {"text": TEXTS("hovers.pair")}}
    return {"title": TEXTS("axes.pair")} | hover | {"range": [-0.5, pairs - 0.5], "tickvals": thin_ticks(pairs)}


def merge_dicts(*parts: dict[str, Any]) -> dict[str, Any]:
    """Merge dicts recursively, later ones first; a title may be given as text."""
    out: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            if key == "title" and isinstance(value, str):
                value = {"text": value}
            out[key] = (
                merge_dicts(out[key], value) if isinstance(value, dict) and isinstance(out.get(key), dict) else value
            )
    return out


def line(
    x: Any, y: Any, name: str, colour: str, *, dash: str = "solid", width: float = 2, **more: Any
) -> dict[str, Any]:
    """Return a curve; by default its hover shows the name and four significant digits."""
    style = {"color": colour, "dash": dash, "width": width}
    hover = {"hovertemplate": f"{name} %{{y:.4~g}}<extra></extra>"}
    return {"type": "scatter", "mode": "lines", "x": x, "y": y, "name": name, "line": style} | hover | more


def end_label(x: float, y: float, text: str, colour: str, **more: Any) -> dict[str, Any]:
    """Return a label at a line's right end; on a narrow screen the browser moves it inside the plot."""
    where = {"x": x, "y": y, "xanchor": "left", "yanchor": "middle", "xshift": 6, "showarrow": False}
    return where | {"name": "end", "text": text, "font": {"color": colour, "size": 13}} | more


def spread_labels(
    ends: Sequence[tuple[float, float, str, str]], span: Sequence[float], *, log: bool, height: int = MAIN_HEIGHT
) -> list[dict[str, Any]]:
    """Return labels (x, y, text, colour) at line ends, shifted apart where they would overlap."""
    pixels = (height - 74) / (span[1] - span[0])
    placed = sorted(((math.log10(y) if log else y) * pixels, x, y, text, colour) for x, y, text, colour in ends)
    notes, below = [], -math.inf
    for at, x, y, text, colour in placed:
        where = max(at, below + 16)
        below = where
        notes.append(end_label(x, math.log10(y) if log else y, text, colour, yshift=where - at))
    return notes


def rule(value: float, text: str, *, axis: str = "y", dash: str = "solid", log: bool = False) -> dict[str, Any]:
    """Return a thin labelled line across the figure at a value of one axis."""
    across = "x" if axis == "y" else "y"
    place = {f"{axis}0": value, f"{axis}1": value, f"{across}0": 0, f"{across}1": 1, f"{across}ref": "paper"}
    side = {"textposition": "start", "yanchor": "bottom"} if axis == "y" else {"textposition": "end", "textangle": 0}
    label = {"text": text, "font": {"size": 12, "color": TEXT}, "padding": 3} | side
    return {"type": "line", "line": {"color": RULE, "width": 1, "dash": dash}, "label": label} | place


class BandBar(NamedTuple):
    """The bands of one curve, and the line that the curve is drawn with."""

    bands: Bands
    colour: str = CURRENT
    dash: str = "solid"


BAR, BAR_ROW = 4, 18  # pixels: the bar, and the bar with its label


def bar_room(rows: int) -> int:
    """Return the height in pixels of so many bars above a plot."""
    return 10 + BAR_ROW * rows


def height_of_bars(rows: int) -> int:
    """Return the height in pixels of a main figure with so many bars: more than four add to it."""
    return MAIN_HEIGHT + BAR_ROW * max(0, rows - 4)


def label_above(area: dict[str, Any], label: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a shaded rectangle below the grid and its label above the grid, which would cross out its letters."""
    place = {key: value for key, value in area.items() if key not in ("layer", "fillcolor")}
    return [area | {"layer": "below"}, place | {"label": label}]


def band_shapes(bars: Sequence[BandBar], plot: float) -> list[dict[str, Any]]:
    """Return the bands of each curve as a thin bar above a plot of this height in pixels, with names and counts.

    If there are several bars, a piece of its curve is to the left of each.
    """
    shapes: list[dict[str, Any]] = []
    for row, bar in enumerate(bars):
        low, high = (1 + (5 + at + BAR_ROW * (len(bars) - 1 - row)) / plot for at in (0, BAR))
        for kind, first, last in bar.bands.runs:
            across = {"type": "rect", "name": "band", "x0": first - 0.5, "x1": last + 0.5, "line": {"width": 0}}
            piece = across | {"yref": "paper", "y0": low, "y1": high, "fillcolor": BAND_COLOURS[kind]}
            count = last - first + 1
            if count >= 3:
                label = {"text": f"{name_band(kind)} {count}", "textposition": "top center", "yanchor": "bottom"}
                piece["label"] = label | {"padding": 0, "font": {"size": 12, "color": BAND_COLOURS[kind]}}
            shapes.append(piece)
        if len(bars) > 1:
            line = {"color": bar.colour, "dash": bar.dash, "width": 2}
            ends = {"xref": "paper", "x0": -0.05, "x1": -0.015, "yref": "paper", "y0": high, "y1": high}
            shapes.append({"type": "line", "name": "band", "line": line} | ends)
    return shapes


def length_ticks(low: float, high: float, most: int = 8, *, log: bool = True) -> dict[str, Any]:
    """Return ticks for an axis of lengths: powers of two on a log axis, else multiples of a power of two.

    A log axis with fewer than three powers of two in its range has multiples, too. `most` is their number at most.
    """
    first, last = math.ceil(math.log2(max(low, 1))), math.floor(math.log2(high))
    if log and last - first >= 2:
        step = next(s for s in (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 64) if (last - first) / s <= most)
        values = [2.0**e for e in range(first + (-first) % step, last + 1, step)]
    else:
        wide = 2.0 ** math.ceil(math.log2((high - low) / most))
        wide = max(wide, 1.0) if high - low >= 2 else wide
        values = [wide * count for count in range(math.ceil(low / wide - 1e-9), math.floor(high / wide + 1e-9) + 1)]
    return {"tickvals": values, "ticktext": [format_tokens(v) for v in values], "tickmode": "array"}


def log_range(low: float, high: float) -> list[float]:
    """Return the range of a log axis, in powers of ten."""
    return [math.log10(low), math.log10(high)]


def plain_text(text: str) -> str:
    """Escape text from the user, so that Plotly does not read it as markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def thin_ticks(count: int, most: int = 9) -> list[int]:
    """Return tick positions within 0 … count − 1 at a round step, no more than `most`."""
    step = next(s for s in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024) if count / s <= most)
    return list(range(0, count, step))


def finite(values: Any) -> Any:
    """Replace infinities by NaN, which Plotly draws as gaps."""
    array = np.asarray(values, dtype=np.float64)
    return np.where(np.isfinite(array), array, np.nan)
