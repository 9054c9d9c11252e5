"""Which vector turns where: for each kind of layer, a bar for each vector, with the channels that rotate."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rope_viz.advice.memory.turning_vectors import TurningVectors, Vector, VectorStrip
from rope_viz.embedding.spec import FloatArray
from rope_viz.figures import theme
from rope_viz.models.identity.shipped_scaling import describe_method
from rope_viz.pages.model.extend.figures import row_of
from rope_viz.texts import Sentence, Texts, join
from rope_viz.texts.texts import join_list

TEXTS = Texts("model")
ROW, FRAME = 36, 74
"""Pixels: the height of a row, and of what is above and below the rows."""
LEFT, NARROW = 156, 126
"""Pixels left of the bars, for two short lines of text: on a wide and on a narrow screen."""
STILL, TURNS, BACK = range(3)
COLOURS = (theme.GRID, theme.CURRENT, theme.FURTHER[0])
"""Of channels that do not rotate, that rotate, and that are turned back."""


def count_rows(found: TurningVectors) -> int:
    """Return how many rows the picture has: one per vector, and the heading of each strip."""
    return sum(1 + len(strip.vectors) for strip in found.strips)


def height(rows: int) -> int:
    """Return the height of the figure in pixels."""
    return FRAME + ROW * rows


def name_vector(vector: Vector) -> str:
    """Return what a vector is called."""
    return TEXTS(f"vectors.names.{vector.name}{'_value' if vector.with_value else ''}")


def say_where(vector: Vector) -> str:
    """Return at which position a vector rotates, in a few words, that it does not, or that this is not known."""
    if vector.rotates is None:
        return TEXTS("vectors.where.unknown")
    if not vector.rotates:
        return TEXTS("vectors.where.still")
    if vector.inverse:
        return TEXTS(f"vectors.where.{'back' if vector.name == 'output' else 'backward'}")
    return TEXTS("vectors.where.block", every=vector.every) if vector.every else TEXTS("vectors.where.own")


def name_strip(strip: VectorStrip) -> str:
    """Return the kind of layers of a strip, and how many there are."""
    every = next((each.every for each in strip.vectors if each.name == "block"), 0)
    kind = row_of(strip.layer)
    if every:
        what = TEXTS("vectors.layers.compressed", every=every)
    elif kind in ("window", "chunk"):
        what = TEXTS(f"layers.rows.{kind}_of", reach=strip.layer.reach)
    else:
        what = TEXTS(f"layers.rows.{kind}")
    if any(each.name == "index_q" for each in strip.vectors):
        what = TEXTS("vectors.layers.indexed", what=what)
    return TEXTS("vectors.layers.strip", count=len(strip.numbers), what=what)


def describe_spec(strip: VectorStrip) -> str:
    """Return base, scaling and size of the rotation of a strip in a few words."""
    if not strip.layer.rotates:
        return TEXTS("vectors.where.still")
    spec = strip.spec
    return TEXTS("vectors.spec", base=spec.base, method=describe_method(spec), pairs=spec.pairs)


def draw(found: TurningVectors) -> theme.DataFigure:
    """Draw a bar for each vector of each kind of layer; its channels that rotate are filled."""
    widest = max(edge for strip in found.strips for each in strip.vectors for edge in list_edges(each))
    unit = math.gcd(*(edge for strip in found.strips for each in strip.vectors for edge in list_edges(each)), widest)
    cells: list[FloatArray] = []
    labels, notes = [], []
    for strip in found.strips:
        notes.append(head(len(cells), name_strip(strip), describe_spec(strip)))
        cells.append(np.full(widest // unit, np.nan))
        labels.append("")
        for vector in strip.vectors:
            cells.append(fill(vector, widest)[::unit])
            labels.append(f"{name_vector(vector)}<br>{say_where(vector)}")
    last = len(cells) - 1
    scale = [[edge / len(COLOURS), colour] for place, colour in enumerate(COLOURS) for edge in (place, place + 1.0)]
    bars = {
        "type": "heatmap",
        "x": unit * (np.arange(widest // unit) + 0.5),
        "y": np.arange(len(cells)),
        "z": np.array(cells),
        "zmin": -0.5,
        "zmax": len(COLOURS) - 0.5,
        "colorscale": scale,
        "showscale": False,
        "hoverongaps": False,
        "ygap": 14,
        "hovertemplate": "%{y}<extra></extra>",
        "name": TEXTS("vectors.axis"),
        # Its numbers stand for colours: files hold the channels instead.
        "meta": {"csv": False},
    }
    step = widest / 4
    fig = theme.figure(
        [bars],
        x={
            "title": TEXTS("vectors.axis"),
            "range": [0, widest],
            "tickvals": [round(step * place) for place in range(5)],
            "showgrid": False,
            "showspikes": False,
        },
        y={
            "range": [last + 0.5, -0.5],
            "tickvals": list(range(len(cells))),
            "ticktext": labels,
            "showgrid": False,
            "showline": False,
            "ticks": "",
        },
        height=height(len(cells)),
        hovermode="closest",
        notes=notes,
        margin={"l": LEFT, "r": 16, "t": 12, "b": 48},
        meta={"narrow": {"margin": {"l": NARROW, "r": 12}, "annotations": [head_narrow(note) for note in notes]}},
    )
    fig.table = lambda: tabulate(found)
    return fig


def head(row: int, name: str, about: str) -> dict[str, Any]:
    """Return the heading of a strip, from the left end of the bars."""
    place = {"xref": "paper", "x": 0, "xanchor": "left", "y": row - 0.04, "yanchor": "middle", "showarrow": False}
    text = f"<b>{theme.plain_text(name)}</b><br>{theme.plain_text(about)}"
    return place | {"text": text, "align": "left", "font": {"size": 13, "color": theme.TEXT}}


def head_narrow(note: dict[str, Any]) -> dict[str, Any]:
    """Return a heading for a phone: from the right end of the bars across the names of the rows."""
    return note | {"x": 1, "xanchor": "right", "align": "right", "font": {"size": 12, "color": theme.TEXT}}


def list_edges(vector: Vector) -> list[int]:
    """Return the channels at which a bar changes its colour."""
    rotating = vector.channels()
    changes = np.flatnonzero(np.diff(rotating) != 1)
    ends = [*rotating[:1], *rotating[changes + 1], *(rotating[changes] + 1), *(rotating[-1:] + 1)]
    return [*([] if vector.size is None else [vector.size]), *(int(edge) for edge in ends)]


def fill(vector: Vector, widest: int) -> FloatArray:
    """Return the colour of every channel up to the widest head; NaN beyond this one, and where nothing is known."""
    found = np.full(widest, np.nan)
    if vector.rotates is None:
        return found
    found[: vector.size or 0] = STILL
    found[vector.channels()] = BACK if vector.inverse else TURNS
    return found


def tabulate(found: TurningVectors) -> dict[str, Any]:
    """Return a row for each vector: what is drawn, and the pairing, the base and the method."""
    rows = [(strip, each) for strip in found.strips for each in strip.vectors]
    return {
        TEXTS("vectors.columns.layers"): [name_strip(strip) for strip, _ in rows],
        TEXTS("vectors.columns.vector"): [name_vector(each) for _, each in rows],
        TEXTS("vectors.columns.where"): [say_where(each) for _, each in rows],
        TEXTS("vectors.columns.channels"): [list_runs(each) for _, each in rows],
        TEXTS("vectors.columns.size"): ["" if each.size is None else each.size for _, each in rows],
        TEXTS("vectors.columns.pairing"): [each.pairing if each.rotates else "" for _, each in rows],
        TEXTS("vectors.columns.base"): [each.spec.base if each.rotates else "" for _, each in rows],
        TEXTS("vectors.columns.method"): [describe_method(each.spec) if each.rotates else "" for _, each in rows],
    }


def list_runs(vector: Vector) -> str:
    """Return the rotating channels of a vector as ranges: 448–511."""
    rotating = vector.channels()
    parts = np.split(rotating, np.flatnonzero(np.diff(rotating) != 1) + 1)
    return ", ".join(f"{part[0]}–{part[-1]}" for part in parts if part.size)


def describe(found: TurningVectors) -> Sentence:
    """Say which vectors rotate besides q and k, at which position, and how that is known."""
    vectors = [each for strip in found.strips for each in strip.vectors]
    rotating = {each.name for each in vectors if each.rotates}
    unknown = list(dict.fromkeys(name_vector(each) for each in vectors if each.rotates is None))
    first = "none" if "q" not in rotating else "value" if "v" in rotating else "plain" if not unknown else "only"
    parts = [TEXTS(f"vectors.says.{first}")]
    if any(each.rotates and each.inverse for each in vectors):
        parts.append(TEXTS(f"vectors.says.{'back' if 'output' in rotating else 'backward'}"))
    if "block" in rotating:
        parts.append(TEXTS("vectors.says.block"))
    if "index_q" in rotating:
        index = next(each for each in vectors if each.name == "index_q" and each.rotates)
        query = next(each for each in vectors if each.name == "q" and each.rotates)
        parts.append(TEXTS("vectors.says.index", rotary=index.channels().size, size=index.size or 0))
        if index.pairing != query.pairing:
            parts.append(TEXTS(f"vectors.says.index_{index.pairing}"))
    if unknown:
        parts.append(TEXTS("vectors.says.unknown", names=join_list(unknown)))
    return join(*parts, TEXTS(f"vectors.says.evidence.{found.evidence or 'none'}"))
