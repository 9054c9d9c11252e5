"""The figure of the distances that dual chunk attention and SelfExtend give to queries and keys."""

from __future__ import annotations

from typing import Any

import numpy as np

from rope_viz.figures import theme
from rope_viz.figures.heatmap_grid import Panel, draw_panels
from rope_viz.studies.distance_maps import Chunks, Groups
from rope_viz.texts import Texts
from rope_viz.texts.numbers import format_tokens

TEXTS = Texts("scaling")
CELLS = 64
HEIGHT, NARROW_HEIGHT = 400, 620


def maps(trained: int, target: int, chunks: Chunks, groups: Groups) -> Any:
    """Draw three maps of query and key: the distance of plain RoPE, and of the two methods, over the trained length."""
    at = (np.arange(CELLS) * target / CELLS).astype(np.int64)
    query, key = at[:, None], at[None, :]
    first, last = np.array([0], dtype=np.int64), np.array([target - 1], dtype=np.int64)
    drawn = []
    for name, distance, largest in (
        ("plain", (query - key).astype(np.float64), target - 1.0),
        ("chunks", chunks.distance(query, key), float(min(chunks.size, target - 1))),
        ("groups", groups.distance(query, key), float(groups.distance(last, first)[0])),
    ):
        seen = np.where(key <= query, distance / trained, np.nan)
        line = TEXTS("maps.largest", largest=round(largest))
        hover = TEXTS("maps.hover") + "<extra></extra>"
        drawn.append(Panel(TEXTS(f"maps.{name}"), [line], seen, {"hovertemplate": hover, "hoverongaps": False}))
    most = target / trained
    share = 1.0 / most
    scale: list[list[Any]] = [[0.0, "#FEFEFE"], [share / 2, "#8DB4E2"], [share, theme.POSITIVE]]
    ends = [0.0, 1.0]
    if target > trained:
        scale += [[share, theme.DIVIDED], [1.0, theme.DIVIDED]]
        ends.append(most)
    ticks = {"tickvals": ends, "ticktext": [format_tokens(round(end * trained)) for end in ends]}
    return draw_panels(
        drawn,
        [format_tokens(int(position)) for position in at],
        ends=(0.0, most),
        scale=scale,
        bar=ticks | {"title": {"text": TEXTS("maps.bar"), "side": "top"}},
        height=HEIGHT,
        narrow_height=NARROW_HEIGHT,
    )
