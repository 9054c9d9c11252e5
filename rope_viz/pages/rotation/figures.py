"""Figures of the algebra: the matrix R in both pairings, the permutation between them, and wrong conversions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from rope_viz.embedding.spec import Pairing, RopeSpec
from rope_viz.figures import theme
from rope_viz.models.catalog import catalog
from rope_viz.studies import conversion
from rope_viz.studies.conversion import Mistake
from rope_viz.studies.rotation import Form, IntArray, pair_dimensions, pairing_permutation, rotation_matrix
from rope_viz.texts import Texts

TEXTS = Texts("rotation")
PARTS = TEXTS.group("parts")
WAYS = TEXTS.group("ways")
LIBRARIES = TEXTS.group("libraries")
PAIRING_NAMES = TEXTS.group("pairing_names")
PAIRING_WORDS = TEXTS.group("pairing_words")
FEW = 8
DISTANCES = 256
PANELS = ((0.0, 0.29), (0.355, 0.645), (0.71, 1.0))


def matrices(spec: RopeSpec, position: int, *, part: str = "whole") -> go.Figure:
    """Draw R at one position, interleaved and half-split, with the permutation P from the first to the second."""
    dims = [_dimensions(spec, pairing, part) for pairing in ("interleaved", "half")]
    size = len(dims[0])
    order = pairing_permutation(spec, "interleaved", "half")
    column = np.searchsorted(dims[0], order[dims[1]])
    traces = [_matrix(spec, position, "interleaved", dims[0], "")]
    traces.append(
        {
            "type": "scatter",
            "mode": "markers",
            "x": column,
            "y": np.arange(size),
            "customdata": np.stack([order[dims[1]], dims[1]], axis=1).tolist(),
            "marker": {"size": max(2.5, min(14, 300 / size)), "symbol": "square", "color": theme.CURRENT},
            "hovertemplate": TEXTS("matrix.moves"),
            "name": "P",
            "xaxis": "x2",
            "yaxis": "y2",
        }
    )
    traces.append(_matrix(spec, position, "half", dims[1], "3"))
    axes: dict[str, Any] = {}
    for index, (low, high) in enumerate(PANELS):
        name = "" if index == 0 else str(index + 1)
        rows, columns = (dims[0], dims[0]) if index == 0 else (dims[1], dims[0]) if index == 1 else (dims[1], dims[1])
        shared = {"range": [-0.5, size - 0.5], "showgrid": False, "linecolor": theme.RULE, "showline": True}
        shared |= {"zeroline": False, "mirror": True}
        axes[f"xaxis{name}"] = shared | _ticks(columns) | {"domain": [low, high], "anchor": f"y{name}"}
        axes[f"yaxis{name}"] = shared | _ticks(rows) | {"range": [size - 0.5, -0.5], "anchor": f"x{name}"}
    for axis, text in (("yaxis", TEXTS("matrix.rows")), ("xaxis2", TEXTS("matrix.columns"))):
        axes[axis]["title"] = {"text": text, "standoff": 6, "font": {"size": 13}}
    fig = theme.figure(
        traces,
        x=axes.pop("xaxis") | {"showspikes": False},
        y=axes.pop("yaxis"),
        height=theme.MAIN_HEIGHT,
        notes=[
            _above(0, TEXTS("matrix.is_interleaved")),
            _above(1, "P"),
            _above(2, TEXTS("matrix.in_halves")),
        ],
        hovermode="closest",
        margin={"l": 60, "r": 70, "t": 34, "b": 52},
        **axes,
    )
    fig.table = lambda: _cells(
        {"interleaved": (dims[0], dims[0]), "P": (dims[1], dims[0]), "in halves": (dims[1], dims[1])},
        [traces[0]["z"], (np.arange(size) == column[:, None]).astype(float), traces[2]["z"]],
    )
    return fig


def permutation(spec: RopeSpec, heads: int, source: Pairing, to: Pairing) -> go.Figure:
    """Draw where each row of a q or k weight goes, for the first two heads; all heads are permuted alike."""
    drawn = min(heads, 2)
    order = conversion.weight_permutation(spec, drawn, source, to)
    first = set((pair_dimensions(spec, source)[0][:, None] + spec.head_dim * np.arange(drawn)).ravel().tolist())
    second = set((pair_dimensions(spec, source)[1][:, None] + spec.head_dim * np.arange(drawn)).ravel().tolist())
    groups = {
        TEXTS("weight.first"): (theme.FURTHER[1], first),
        TEXTS("weight.second"): (theme.FURTHER[0], second),
        TEXTS("weight.unrotated"): (theme.RULE, set(range(drawn * spec.head_dim)) - first - second),
    }
    traces = []
    for name, (colour, rows) in groups.items():
        ends = [(int(old), new) for new, old in enumerate(order) if int(old) in rows]
        if ends:
            x = np.array([(old, new, np.nan) for old, new in ends]).ravel()
            y = np.array([(1.0, 0.0, np.nan)] * len(ends)).ravel()
            hover = TEXTS("weight.hover", name=name)
            traces.append(theme.line(x, y, name, colour, width=1, hovertemplate=hover))
    total = drawn * spec.head_dim
    rules = [theme.rule(head * spec.head_dim - 0.5, "", axis="x") for head in range(1, drawn)]
    key = " · ".join(f'<span style="color:{colour}">{name}</span>' for name, (colour, rows) in groups.items() if rows)
    legend = {"x": 0, "y": 1, "xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom", "yshift": 4}
    fig = theme.figure(
        traces,
        x={"title": TEXTS("weight.axis", drawn=drawn, heads=heads), "range": [-1, total], "showgrid": False},
        y={
            "range": [-0.04, 1.04],
            "tickvals": [0, 1],
            "ticktext": [TEXTS(f"pairing_ticks.{name}") for name in (to, source)],
            "showgrid": False,
            "fixedrange": True,
        },
        height=270,
        shapes=rules,
        notes=[legend | {"text": key, "showarrow": False, "font": {"size": 13}}],
        hovermode="closest",
        margin={"l": 92, "r": 24, "t": 34, "b": 48},
    )
    kinds = {row: name for name, (_, rows) in groups.items() for row in rows}
    fig.table = lambda: {
        f"row, {to}": np.arange(total),
        f"row, {source}": order,
        "which": [kinds[int(row)] for row in order],
    }
    return fig


def mistakes(found: Sequence[Mistake]) -> go.Figure:
    """Draw scores by distance for each way to convert q and k; only one is right."""
    colours = (theme.CURRENT, theme.FURTHER[2], theme.FURTHER[1], theme.FURTHER[3])
    distance = np.arange(DISTANCES)
    traces, ends = [], []
    for mistake, colour, dash in zip(found, colours, theme.DASHES, strict=True):
        name = TEXTS(f"mistake_lines.{mistake.name}")
        name = name if mistake.error else TEXTS("mistake_lines.right", name=name)
        traces.append(
            theme.line(distance, mistake.scores, name, colour, dash=dash, width=2.5 if dash == "solid" else 1.5)
        )
        ends.append((float(distance[-1]), float(mistake.scores[-1]), name, colour))
    low = min(float(np.min(mistake.scores)) for mistake in found)
    high = max(float(np.max(mistake.scores)) for mistake in found)
    room = 0.06 * (high - low or 1.0)
    span = [low - room, high + room]
    return theme.figure(
        traces,
        x={
            "title": theme.TEXTS("axes.distance"),
            "range": [0, DISTANCES - 1],
            **theme.length_ticks(0, DISTANCES, log=False),
        },
        y={"title": TEXTS("mistake_lines.axis"), "range": span},
        height=theme.SIDE_HEIGHT,
        notes=theme.spread_labels(ends, span, log=False, height=theme.SIDE_HEIGHT),
        margin={"l": 68, "r": 140, "t": 26, "b": 48},
    )


def costs(forms: Sequence[Form]) -> list[dict[str, Any]]:
    """Return a table of the equivalent forms: operations, numbers moved, and the largest difference from the first."""
    return [
        {
            TEXTS("form_columns.form"): TEXTS(f"form_names.{form.name}"),
            TEXTS("form_columns.multiplications"): form.multiplications,
            TEXTS("form_columns.additions"): form.additions,
            TEXTS("form_columns.numbers"): form.numbers,
            TEXTS("form_columns.bytes"): form.bytes,
            TEXTS("form_columns.difference"): form.error,
        }
        for form in forms
    ]


def results(forms: Sequence[Form], vector: Any) -> Mapping[str, Any]:
    """Return the vector and its rotation by each form, a row per dimension."""
    columns: dict[str, Any] = {TEXTS("form_columns.dimension"): np.arange(len(vector)), "x": vector}
    return columns | {TEXTS(f"results.{form.name}"): form.result for form in forms}


def pairings() -> list[dict[str, Any]]:
    """Return the pairing of every model of the catalog, with its source."""
    return [
        {
            TEXTS("pairing_columns.model"): model.name,
            TEXTS("pairing_columns.pairing"): PAIRING_WORDS.get(model.pairing, model.pairing),
            TEXTS("pairing_columns.confirmed"): model.verified,
            TEXTS("pairing_columns.source"): model.source,
        }
        for model in sorted(catalog().values(), key=lambda model: (model.pairing, model.name.lower()))
    ]


def _dimensions(spec: RopeSpec, pairing: Pairing, part: str) -> IntArray:
    """Return the dimensions to draw: the whole head, or those of the first pairs."""
    if part == "whole":
        return np.arange(spec.head_dim)
    return np.sort(np.concatenate([side[:FEW] for side in pair_dimensions(spec, pairing)]))


def _matrix(spec: RopeSpec, position: int, pairing: Pairing, dims: IntArray, axis: str) -> dict[str, Any]:
    full = rotation_matrix(spec, position, pairing=pairing, length=spec.target)
    side = np.arange(len(dims))
    bar = {"thickness": 12, "outlinewidth": 0, "len": 1.0, "x": 1.01, "xpad": 4, "tickvals": [-1, 0, 1]}
    return {
        "type": "heatmap",
        "x": side,
        "y": side,
        "z": full[np.ix_(dims, dims)].astype(np.float32),
        "zmin": -1,
        "zmax": 1,
        "colorscale": theme.DIVERGING,
        "showscale": axis != "",
        "colorbar": bar,
        "hovertemplate": TEXTS("matrix.hover"),
        "name": PAIRING_NAMES[pairing],
        "xaxis": f"x{axis}",
        "yaxis": f"y{axis}",
    }


def _cells(maps: Mapping[str, tuple[IntArray, IntArray]], values: Sequence[Any]) -> dict[str, Any]:
    """Return the cells of several matrices as table rows: matrix, row, column, value."""
    out: dict[str, list[Any]] = {"matrix": [], "row (dimension)": [], "column (dimension)": [], "value": []}
    for (name, (rows, columns)), grid in zip(maps.items(), values, strict=True):
        count = len(rows) * len(columns)
        cells = ([name] * count, np.repeat(rows, len(columns)), np.tile(columns, len(rows)), np.ravel(grid))
        for column, cell in zip(out.values(), cells, strict=True):
            column.extend(np.asarray(cell).tolist())
    return out


def _ticks(dimensions: IntArray) -> dict[str, Any]:
    """Return ticks at matrix indices, labelled with the head's dimensions."""
    places = theme.thin_ticks(len(dimensions), 5)
    return {"tickvals": places, "ticktext": [str(dimensions[place]) for place in places], "tickmode": "array"}


def _above(panel: int, text: str) -> dict[str, Any]:
    middle = sum(PANELS[panel]) / 2
    where = {"xref": "paper", "yref": "paper", "x": middle, "y": 1.0, "yanchor": "bottom", "yshift": 4}
    return where | {"text": text, "showarrow": False, "font": {"size": 13}}
