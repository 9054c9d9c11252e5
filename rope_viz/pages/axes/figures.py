"""Figures of rotations with several axes: the score around one patch, and which axis owns which frequencies."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from rope_viz.embedding.axes_spec import MIXED, STILL
from rope_viz.embedding.axis_sections import block_means
from rope_viz.embedding.spec import FloatArray, Knob
from rope_viz.figures import theme
from rope_viz.multi_axis.image_layouts import ALL_HEADS, ROLE_OF, Scene
from rope_viz.texts import Texts
from rope_viz.texts.numbers import format_number, format_tokens
from rope_viz.texts.texts import join_items

TEXTS = Texts("axes")
REACH = Knob(TEXTS("choices.reach"), 8, 100_000, TEXTS("choices.reach_help"), log=True, integer=True)
SHADES, WORDS, PARTS = TEXTS.group("shades"), TEXTS.group("axis_words"), TEXTS.group("part_words")
HEIGHT = 480
GAP = 0.13
HEAD = 0.42  # height of a scene's heading, in lanes
HALF = 64  # cells on either side of the centre


@dataclass(frozen=True)
class AxisStyle:
    """The style of an axis in every figure. `name` is its entry in the texts, or the model's own name."""

    name: str
    letter: str
    colour: str
    dash: str

    @property
    def word(self) -> str:
        """Return the name of the axis as a label."""
        return WORDS.get(self.name, self.name)

    @property
    def label(self) -> str:
        """Return the name and the letter of the axis."""
        return f"{self.word} {self.letter}".rstrip()


LOOKS = {
    "time": AxisStyle("time", "t", theme.FURTHER[0], "solid"),
    "row": AxisStyle("row", "h", theme.FURTHER[1], "dash"),
    "column": AxisStyle("column", "w", theme.FURTHER[2], "dot"),
}

MIX = AxisStyle("mixed", "", theme.FURTHER[3], "dashdot")


def look(axis: str) -> AxisStyle:
    """Return the style of an axis, whatever name the model gives it."""
    role = ROLE_OF.get(axis)
    return LOOKS[role] if role else AxisStyle(axis, axis[:1], theme.FURTHER[3], "dashdot")


def sight(shown: Sequence[Scene], reach: int = 32, *, shades: str = "own", coarse: bool = False) -> go.Figure:
    """Draw the mean cosine at every displacement in rows and columns, one map per scene; the patch itself scores 1.

    Beyond 64 patches, a cell is the exact mean over a block of displacements.
    """
    edges, labels = block_edges(reach, HALF // 2 if coarse else HALF)
    maps = [block_means(scene.role_spec, edges, edges, axes=("row", "column")) for scene in shown]
    lows = [float(values.min()) for values in maps]
    wide = len(labels[0]) > 4
    many, few = ticks(labels, 8 if wide else 14), ticks(labels, 4 if wide else 8)
    traces, notes = [], []
    layout: dict[str, Any] = {}
    narrow: dict[str, Any] = {"height": narrow_height(len(shown)), "margin": {"l": 58, "r": 62, "t": 44, "b": 52}}
    for index, (scene, values) in enumerate(zip(shown, maps, strict=True)):
        mark = "" if index == 0 else str(index + 1)
        x, y, colours = f"x{mark}", f"y{mark}", f"coloraxis{mark}"
        low = lows[index] if shades == "own" else min(lows)
        left = index * (1.0 + GAP) / len(shown)
        right = left + (1.0 - GAP * (len(shown) - 1)) / len(shown)
        bottom = (len(shown) - 1 - index) * (1.0 + 0.26) / len(shown)
        top = bottom + (1.0 - 0.26 * (len(shown) - 1)) / len(shown)
        traces.append(
            {
                "type": "heatmap",
                "name": title(scene),
                "x": labels,
                "y": labels,
                "z": values.astype("float32"),
                "coloraxis": colours,
                "xaxis": x,
                "yaxis": y,
                "hovertemplate": TEXTS("map.hover"),
            }
        )
        bar = {"thickness": 12, "outlinewidth": 0, "len": 1.0, "x": right, "xpad": 6, "tickformat": ".4~g", "nticks": 7}
        if len(shown) > 1 and shades == "own":
            bar["title"] = {"text": TEXTS(("map.left", "map.right")[index]), "side": "top", "font": {"size": 11}}
        layout[colours] = {"cmin": shaded_from(low), "cmax": 1.0, "colorscale": scale(low), "colorbar": bar}
        narrow_bar = {key: value for key, value in bar.items() if key != "title"} | {
            "x": 1.0,
            "y": (bottom + top) / 2,
            "len": top - bottom,
            "nticks": 5,
        }
        both = {"type": "category", "showgrid": False, "showspikes": False, "ticklen": 2, "tickangle": 0}
        first = {} if index == 0 else {"matches": "x"}
        layout[f"xaxis{mark}"] = theme.merge_dicts(
            theme.AXIS,
            both
            | many
            | {"domain": [left, right], "anchor": y, "title": {"text": TEXTS("map.columns_away"), "standoff": 4}},
            first,
        )
        layout[f"yaxis{mark}"] = theme.merge_dicts(
            theme.AXIS,
            both | many | {"anchor": x, "autorange": False, "range": [len(labels) - 0.5, -0.5], "domain": [0.0, 1.0]},
            first and {"matches": "y"},
        )
        last = index == len(shown) - 1
        narrow[f"xaxis{mark}"] = {"domain": [0.0, 1.0], **few, **({} if last else {"title": {"text": ""}})}
        narrow[f"yaxis{mark}"] = {"domain": [bottom, top], **few}
        narrow[colours] = {"colorbar": narrow_bar}
        notes.append(panel_title(x, y, f"<b>{theme.plain_text(title(scene))}</b><br>{count_pairs(scene)}"))
    layout["yaxis"]["title"] = {"text": TEXTS("map.rows_away"), "standoff": 6, "font": {"size": 13}}
    return theme.figure(
        traces,
        x=layout.pop("xaxis"),
        y=layout.pop("yaxis"),
        height=HEIGHT,
        notes=notes,
        hovermode="closest",
        margin={"l": 88 if wide else 68, "r": 76, "t": 46, "b": 48},
        meta={"narrow": narrow, "linked": len(shown) > 1},
        **layout,
    )


def narrow_height(maps: int) -> int:
    """Return the height of `sight` in pixels on a narrow screen, where the maps are stacked."""
    return 80 + 210 * maps


def join_titles(shown: Sequence[Scene]) -> str:
    """Join the titles of one or two scenes for use in a heading."""
    first, *others = map(title, shown)
    return TEXTS("scenes.two", first=first, second=others[0]) if others else first


def panel_title(x: str, y: str, text: str) -> dict[str, Any]:
    """Return the annotation that titles one of several maps."""
    where = {"x": 0, "y": 1, "xref": f"{x} domain", "yref": f"{y} domain", "xanchor": "left", "yanchor": "bottom"}
    style = {"align": "left", "showarrow": False, "name": "panel", "font": {"size": 12, "color": theme.TEXT}}
    return where | style | {"text": text}


def ticks(labels: Sequence[str], most: int) -> dict[str, Any]:
    """Return ticks at a round step that include the centre."""
    middle = len(labels) // 2
    every = theme.thin_ticks(middle + 1, max(2, most // 2))
    places = sorted({middle + k for k in every} | {middle - k for k in every})
    # Labels, not indices: Plotly would take an index for the category of that name.
    return {"tickvals": [labels[place] for place in places], "ticktext": [labels[place] for place in places]}


def block_edges(reach: int, half: int = HALF) -> tuple[FloatArray, list[str]]:
    """Return the edges of blocks that cover −reach … reach, one centred on 0, and each block's centre as text.

    >>> block_edges(2)[1]
    ['−2', '−1', '0', '1', '2']
    """
    size = math.ceil(reach / half)
    size += 1 - size % 2
    count = math.ceil(reach / size)
    edges = np.arange(-count, count + 2) * size - (size - 1) // 2
    return edges.astype(np.float64), [f"{k * size:,}".replace("-", "−") for k in range(-count, count + 1)]


def shaded_from(low: float) -> float:
    """Return the lower end of the colour scale for values in [`low`, 1]: −1 if some are clearly negative."""
    return -1.0 if low < -0.05 else min(low, 1.0 - 1e-6)


def scale(low: float) -> list[list[Any]]:
    """Return the colour scale for values in [`low`, 1]: diverging if some are clearly negative, else sequential."""
    return theme.DIVERGING if low < -0.05 else theme.SEQUENTIAL


def title(scene: Scene) -> str:
    """Name the model and the part of it."""
    return TEXTS("scenes.one", model=scene.name, part=name_part(scene.part))


def name_part(part: str) -> str:
    """Return a part of a model as a label: all of it, all of its heads or one, or one kind of its layers."""
    kind, _, rest = part.partition(" ")
    name = PARTS.get(kind, kind)
    if f" {rest}" == ALL_HEADS:
        return TEXTS("parts.all_heads", part=name)
    if rest.startswith("head "):
        return TEXTS("parts.head", part=name, head=rest.removeprefix("head "))
    return TEXTS("parts.layers", part=name, layers=rest) if rest else name


def count_pairs(scene: Scene) -> str:
    """Count the pairs that each axis owns, as text."""
    owner = scene.role_spec.owner
    names = {k: look(axis).letter for k, axis in enumerate(scene.role_spec.axes)}
    names |= {MIXED: TEXTS("axis_words.mixed"), STILL: TEXTS("axis_words.zero")}
    counts = {name: int(np.sum(owner == mark)) for mark, name in names.items()}
    shown = [TEXTS("scenes.count", count=count, axis=name) for name, count in counts.items() if count]
    return TEXTS("scenes.pairs", counts=join_items(shown))


def speeds(shown: Sequence[Scene]) -> go.Figure:
    """Draw every pair at its wavelength, a lane of ticks per axis, with the image's side or video's length as a bar.

    Wavelengths are in patches (tokens, frames) of the scene, so that models with different position units compare.
    """
    low, high = find_wavelength_range(shown)
    traces, shapes, notes = [], [], []
    names: dict[float, str] = {}
    y = 0.0
    for scene in shown:
        head = {"xref": "paper", "x": 0, "y": y - 0.5, "xanchor": "left", "yanchor": "top", "showarrow": False}
        text = TEXTS("scenes.heading", scene=theme.plain_text(title(scene)), pairs=count_pairs(scene))
        notes.append(head | {"text": text, "name": "panel", "font": {"size": 12, "color": theme.TEXT}, "yshift": 1})
        if y:
            across = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": y - 0.47, "y1": y - 0.47}
            shapes.append(across | {"line": {"color": theme.RULE, "width": 1}})
        y -= HEAD
        for lane in lanes_of(scene):
            y -= 1.0
            names[y] = lane.look.label
            ticks_here = lane.pairs(scene)
            traces.append(lane_ticks(scene, lane, ticks_here, y))
            if scene.role_spec.second is not None:
                traces.append(lane_ticks(scene, lane, ticks_here, y, second=True))
            if lane.side > 1:
                inside = int(np.sum(ticks_here.length <= lane.side))
                text = TEXTS(
                    "wavelengths.turns", side=lane.side, unit=lane.unit, inside=inside, pairs=len(ticks_here.length)
                )
                bars, note = side_bar(lane, low, y, text)
                shapes += bars
                notes.append(note)
    return theme.figure(
        traces,
        x={
            "title": TEXTS("wavelengths.axis"),
            "type": "log",
            "range": theme.log_range(low, high),
            **theme.length_ticks(low, high, 12),
        },
        y={
            "range": [y - 0.5, -0.5],
            "tickvals": list(names),
            "ticktext": list(names.values()),
            "fixedrange": True,
            "showgrid": False,
        },
        height=speeds_height(shown),
        shapes=shapes,
        notes=notes,
        hovermode="closest",
        margin={"l": 86, "r": 24, "t": 10, "b": 48},
        meta={"narrow": {"margin": {"l": 76, "r": 14}, "xaxis": theme.length_ticks(low, high, 6)}},
    )


def side_bar(lane: Lane, low: float, y: float, text: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the shapes that show the side of the image or video in a lane, and the annotation that labels them."""
    ends = {"y0": y - 0.42, "y1": y + 0.42}
    bar = {"type": "rect", "layer": "below", "x0": low, "x1": lane.side, "line": {"width": 0}} | ends
    line = theme.rule(lane.side, "", axis="x") | {"yref": "y"} | ends
    where = {"x": math.log10(lane.side), "y": y + 0.45, "xanchor": "left", "yanchor": "top", "showarrow": False}
    note = where | {"text": text, "xshift": 3, "font": {"size": 11, "color": lane.look.colour}}
    return [bar | {"fillcolor": theme.tint(lane.look.colour, 0.13)}, line], note


@dataclass(frozen=True)
class Lane:
    """A row of ticks: the pairs of one axis, and the side of the image or video along it."""

    direction: int
    look: AxisStyle
    side: int
    unit: str

    def pairs(self, scene: Scene) -> Ticks:
        """Return the lane's pairs and their wavelengths."""
        seen = scene.role_spec
        pair = np.flatnonzero(seen.owner == self.direction)
        return Ticks(pair, wavelengths(seen.weights)[pair])


@dataclass(frozen=True, eq=False)
class Ticks:
    """Pair numbers and wavelengths, both of shape (n,)."""

    pair: Any
    length: FloatArray


def wavelengths(weights: FloatArray) -> FloatArray:
    """Return each pair's wavelength along its own direction, shape (pairs,); infinite at zero frequency."""
    frequency = np.sqrt((weights**2).sum(axis=1))
    with np.errstate(divide="ignore"):
        return np.asarray(2.0 * math.pi / frequency)


def lanes_of(scene: Scene) -> list[Lane]:
    """Return a lane for each axis that owns a pair, and one for the pairs that mix axes."""
    seen, units = scene.role_spec, TEXTS.group("units")
    sides: Mapping[str, int] = scene.sides  # type: ignore[assignment]
    lanes = [
        Lane(k, look(axis), sides.get(axis, 1), units.get(axis, ""))
        for k, axis in enumerate(seen.axes)
        if np.any(seen.owner == k)
    ]
    if np.any(seen.owner == MIXED):
        longest = max((side for role, side in scene.sides.items() if role != "time"), default=1)
        lanes.append(Lane(MIXED, MIX, longest, units[scene.units]))
    return lanes


def lane_ticks(scene: Scene, lane: Lane, here: Ticks, y: float, *, second: bool = False) -> dict[str, Any]:
    """Return the ticks of a lane; second members of pairs with their own frequency get short ticks below the others."""
    length = here.length
    if second and scene.role_spec.second is not None:
        length = wavelengths(scene.role_spec.second)[here.pair]
    marker = {"symbol": "line-ns", "size": 9 if second else 15, "line": {"color": lane.look.colour, "width": 1.5}}
    hover = TEXTS("wavelengths.second_hover" if second else "wavelengths.hover", axis=lane.look.word)
    return {
        "type": "scatter",
        "mode": "markers",
        "x": theme.finite(length),
        "y": np.full(len(length), y - (0.36 if second else 0.14)),
        # An object array: Plotly copies nested lists entry by entry.
        "customdata": np.array(
            [[int(pair), format_wavelength(each)] for pair, each in zip(here.pair, length, strict=True)], object
        ),
        "marker": marker,
        "name": TEXTS("wavelengths.lane", scene=title(scene), axis=lane.look.word),
        "hovertemplate": hover,
    }


def format_wavelength(length: float) -> str:
    """Format a wavelength."""
    return format_tokens(round(length)) if length >= 100 else format_number(length)


def find_wavelength_range(shown: Sequence[Scene]) -> tuple[float, float]:
    """Return the ends of the wavelength axis: powers of four around all finite wavelengths and all sides."""
    lengths = np.concatenate([wavelengths(scene.role_spec.weights) for scene in shown])
    sides = [float(side) for scene in shown for side in scene.sides.values()]
    top = max([*lengths[np.isfinite(lengths)], *sides, 64.0])
    low = min([*lengths[np.isfinite(lengths)], 6.0])
    return 4.0 ** math.floor(math.log(low, 4) - 0.2), 4.0 ** math.ceil(math.log(top, 4) + 0.05)


def speeds_height(shown: Sequence[Scene]) -> int:
    """Return the height of `speeds` in pixels, which grows with the number of lanes."""
    return 58 + round(52 * sum(len(lanes_of(scene)) + HEAD for scene in shown))
