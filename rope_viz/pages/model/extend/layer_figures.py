"""The figure of all layers of a model: what each sees, whether it rotates, and which of them scaling reaches."""

from __future__ import annotations

import numpy as np

from rope_viz.advice.memory.layer_kinds import Layer, Layers
from rope_viz.figures import theme
from rope_viz.texts import Texts

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
    found = {name: [row_of(layer) == name for layer in layers.layers] for name in COLOURS if name != "scaled"}
    return {name: flags for name, flags in found.items() if any(flags)} | {
        "scaled": [layer.scaled for layer in layers.layers]
    }


def find_label(name: str, layers: Layers) -> str:
    """Return the label of a row, with the window in it."""
    reaches = {layer.reach for layer in layers.layers if row_of(layer) == name and layer.reach is not None}
    if name in ("window", "chunk") and len(reaches) == 1:
        return TEXTS(f"layers.rows.{name}_of", reach=reaches.pop())
    return TEXTS(f"layers.rows.{name}")


def height(rows: int) -> int:
    """Return the height of the figure in pixels."""
    return FRAME + ROW * rows


def strip(layers: Layers) -> theme.Figure:
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
        "hovertemplate": TEXTS("layers.hover") + "<extra></extra>",
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
