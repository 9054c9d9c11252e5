"""Figures of the page Extend: memory by context length, and the table of methods to reach a length."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from rope_viz.advice.memory.kv_cache import GPU, USED, human
from rope_viz.advice.memory.layer_kinds import Layer, Layers
from rope_viz.advice.plan.extension_plan import ExtensionPlan, Memory
from rope_viz.advice.plan.ways import SUPPORT, Way
from rope_viz.figures import theme
from rope_viz.figures.words import footnote
from rope_viz.models.identity.identify_model import TrainedLength
from rope_viz.texts import Texts, join
from rope_viz.texts.texts import split_at_colon

EXTEND = Texts("model/extend")
LEAST = 1024


def ways(plan: ExtensionPlan) -> list[dict[str, str]]:
    """Return the table of methods in ranked order, each with its support level and reasons."""
    known: set[str] = set()
    return [
        {
            EXTEND("columns.way"): f"{number}. {way.title}",
            EXTEND("columns.support"): SUPPORT[way.rank],
            EXTEND("columns.why"): join(*why(way, known)),
        }
        for number, way in enumerate(plan.advice.ways, start=1)
    ]


def why(way: Way, known: set[str]) -> Iterator[str]:
    """Yield a method's reasons and sourced measurements, except those in `known`; add them to it."""
    for reason in way.reasons:
        fact, colon, meaning = split_at_colon(reason)
        yield EXTEND("fact", fact=fact) if meaning in known else reason
        if colon:
            known.add(meaning)
    for result in way.evidence:
        if result.text not in known:
            yield EXTEND("measured", result=f"{result.text}{footnote(result.source)}")
        known.add(result.text)


def memory(estimate: Memory, target: int, trained: TrainedLength) -> tuple[theme.DataFigure, str]:
    """Draw the KV cache on top of the weights by length, with the usable memory of one 80 GB GPU."""
    assert estimate.cache is not None
    last = max(4 * target, 4 * trained.length, 4 * LEAST)
    lengths = np.unique(np.geomspace(LEAST, last, 160).astype(np.int64))
    cached = np.array([estimate.cache.bytes(int(length), estimate.sequences) for length in lengths]) / 1e9
    total, weights = cached + estimate.weights / 1e9, estimate.weights / 1e9
    room = USED * GPU / 1e9
    top = max(float(total[-1]), room) * 1.6
    low = min(weights, room) / 2.0
    traces = [
        theme.line(
            lengths,
            total,
            EXTEND("memory.with_cache"),
            theme.CURRENT,
            width=2.5,
            hovertemplate=HOVER,
            text=hovers(total),
        ),
        theme.line(
            lengths,
            np.full(len(lengths), weights),
            EXTEND("memory.weights"),
            theme.PLAIN,
            dash="dot",
            hovertemplate=None,
        ),
    ]
    ends = [
        (math.log10(last), float(total[-1]), EXTEND("memory.both"), theme.CURRENT),
        (math.log10(last), weights, EXTEND("memory.weights"), theme.PLAIN),
    ]
    rules = [
        theme.rule(room, EXTEND("memory.gpu"), dash="dash"),
        theme.rule(target, EXTEND("memory.needed", length=target), axis="x", dash="dash"),
    ]
    if trained.length < target:
        name = "trained" if trained.is_known else "original" if trained.divides else "limit"
        rules.append(theme.rule(trained.length, EXTEND(f"memory.{name}", length=trained.length), axis="x"))
    fig = theme.figure(
        traces,
        x={
            "title": EXTEND("memory.length_axis"),
            "type": "log",
            "range": theme.log_range(LEAST, last),
            **theme.length_ticks(LEAST, last),
        },
        y={"title": EXTEND("memory.axis"), "type": "log", "range": theme.log_range(low, top), **gigabytes(low, top)},
        shapes=rules,
        notes=theme.spread_labels(ends, theme.log_range(low, top), log=True),
        margin={"l": 68, "r": 132, "t": 26, "b": 48},
    )
    sizes = {"weights": human(estimate.weights), "cache": human(estimate.cached)}
    return fig, EXTEND("memory.title", tokens=target, **sizes)


HOVER = "%{text}<extra></extra>"


def hovers(total: np.ndarray) -> list[str]:  # type: ignore[type-arg]
    """Return the hover texts of the totals, which are in GB."""
    return [EXTEND("memory.hover", size=human(value * 1e9)) for value in total]


def gigabytes(low: float, top: float) -> dict[str, object]:
    """Return ticks at 1, 2 and 5 times powers of ten."""
    steps = [mantissa * 10.0**e for e in range(-3, 7) for mantissa in (1, 2, 5)]
    values = [value for value in steps if low <= value <= top]
    shown = values[:: 1 + len(values) // 9]
    return {"tickvals": shown, "ticktext": [f"{value:g}" for value in shown], "tickmode": "array"}


TEXTS = Texts("model")

ROW, FRAME = 28, 76
"""Pixels: the height of a row, and of what is above and below the rows."""

GAPS = 70
"""Layers, up to which cells have gaps between them."""

COLOURS = {
    "full": theme.CURRENT,
    "sparse": theme.CURRENT,
    "compressed": theme.FURTHER[3],
    "window": theme.FURTHER[1],
    "chunk": theme.FURTHER[1],
    "unrotated": theme.PLAIN,
    "recurrent": theme.FURTHER[0],
    "convolution": theme.FURTHER[2],
    "image": theme.FURTHER[5],
    "nothing": theme.RULE,
    "scaled": theme.DIVIDED,
}
"""{row: colour}, in the order of the rows."""


def row_of(layer: Layer) -> str:
    """Return the row of a layer: what it sees, or that it attends without rotation."""
    attends = layer.sees in ("full", "sparse", "compressed", "window", "chunk")
    return "unrotated" if attends and not layer.rotates else layer.sees


def find_rows(layers: Layers) -> dict[str, list[bool]]:
    """Return {row: whether each layer is in it} from top to bottom, last what scaling reaches."""
    rows = [row_of(layer) for layer in layers.layers]
    found = {name: [row == name for row in rows] for name in COLOURS if name in rows}
    return found | {"scaled": [layer.scaled for layer in layers.layers]}


def is_mixed(layers: Layers) -> bool:
    """Return True if layers are of several kinds, or scaling reaches some of them only."""
    return len(find_rows(layers)) > 2 or 0 < layers.scaled < len(layers.layers)


def find_label(name: str, layers: Layers) -> str:
    """Return the label of a row, with the window in it."""
    reaches = {layer.reach for layer in layers.layers if row_of(layer) == name and layer.reach is not None}
    if name in ("window", "chunk") and len(reaches) == 1:
        return TEXTS(f"layers.rows.{name}_of", reach=reaches.pop())
    return TEXTS(f"layers.rows.{name}")


def height(rows: int) -> int:
    """Return the height of the figure in pixels."""
    return FRAME + ROW * rows


def strip(layers: Layers) -> theme.DataFigure:
    """Draw one column per layer, with a cell in the row of its kind and one in the last row if scaling reaches it."""
    rows = find_rows(layers)
    labels = [find_label(name, layers) for name in rows]
    cells = np.array([np.where(flags, place, np.nan) for place, flags in enumerate(rows.values())])
    count, last = len(layers.layers), len(rows) - 1
    scale = [
        [edge / len(rows), COLOURS[name]] for place, name in enumerate(rows) for edge in (float(place), place + 1.0)
    ]
    gap = 1 if count <= GAPS else 0
    cell = {
        "type": "heatmap",
        "x": np.arange(count),
        "y": np.arange(len(rows)),
        "z": cells,
        "zmin": -0.5,
        "zmax": last + 0.5,
        "colorscale": scale,
        "showscale": False,
        "hoverongaps": False,
        "xgap": gap,
        "ygap": 4,
        "hovertemplate": TEXTS("layers.hover"),
        "name": TEXTS("layers.axis"),
    }
    fig = theme.figure(
        [cell],
        x={
            "title": TEXTS("layers.axis"),
            "range": [-0.5, count - 0.5],
            "tickvals": theme.thin_ticks(count),
            "showgrid": False,
            "showspikes": False,
        },
        y={
            "range": [last + 0.5, -0.5],
            "tickvals": list(range(len(rows))),
            "ticktext": labels,
            "showgrid": False,
            "ticks": "",
        },
        height=height(len(rows)),
        hovermode="closest",
        margin={"l": 124, "r": 12, "t": 12, "b": 48},
        meta={"narrow": {"margin": {"l": 104, "r": 12}, "xaxis": {"tickvals": theme.thin_ticks(count, 6)}}},
    )
    columns = {TEXTS("layers.axis"): np.arange(count)}
    kinds = [
        next(label for name, label in zip(rows, labels, strict=True) if rows[name][index]) for index in range(count)
    ]
    reached = [int(layer.scaled) for layer in layers.layers]
    fig.table = lambda: columns | {TEXTS("layers.kind"): kinds, labels[-1]: reached}
    return fig
