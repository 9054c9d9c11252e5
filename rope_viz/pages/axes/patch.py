"""The pairs of one image patch as dials: data for the browser, which moves the patch over its grid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rope_viz.embedding.axes_spec import MIXED, STILL
from rope_viz.embedding.spectrum import TAU
from rope_viz.figures import clocks, theme
from rope_viz.multi_axis.image_layouts import Role, Scene
from rope_viz.pages.axes.figures import LOOKS, MIX, TEXTS, AxisStyle, look

HEIGHTS = (480, 620)
ORDER: tuple[Role, ...] = ("time", "row", "column")
MOST = 5
WIDE = 1000
HIDDEN = {"csv": False}
ZERO_FREQUENCY = AxisStyle("zero", "", theme.PLAIN, "solid")


def message(scene: Scene, at: Mapping[Role, int]) -> dict[str, Any]:
    """Return the data of every pair (at most 256): radians per frame, row and column, and the patch's position.

    `bands` is an index into `names` per pair: the axis that rotates it, several, or none. `first` is a pair's rotation
    over the sides of the image, in radians.
    """
    seen = scene.role_spec
    roles = [role for role in ORDER if role in seen.axes]
    weights = np.stack([seen.along(role) if role in roles else np.zeros(seen.pairs) for role in ORDER], axis=1)
    looks, kinds = kinds_of(scene)
    sides = [scene.sides.get(role, 1) for role in ORDER]
    title = "patch.title_first" if seen.pairs > clocks.MAX_PAIRS else "patch.title"
    both = [(each.colour, theme.DARK[each.colour]) for each in looks]
    return {
        "title": TEXTS(title, shown=clocks.MAX_PAIRS, pairs=seen.pairs, model=scene.name),
        "mode": "patch",
        "most": clocks.MAX_PAIRS,
        "weights": weights[: clocks.MAX_PAIRS].tolist(),
        "first": np.abs(weights @ np.array(sides, dtype=np.float64)).tolist(),
        "bands": kinds,
        "names": [each.label for each in looks],
        "sides": sides,
        "units": TEXTS(f"units.{scene.units}"),
        "moves": [role in scene.roles for role in ORDER],
        "start": {"t": at.get("time", 0), "m": at.get("row", 0), "n": at.get("column", 0)},
        "context": 1,
        "target": 1,
        "scaled": None,
        "plain": False,
        "palette": clocks.palette()
        | {"bands": [list(side) for side in zip(*both, strict=True)]}
        | {role: [LOOKS[role].colour, theme.DARK[LOOKS[role].colour]] for role in ORDER},
        "cycle": [],
        "heights": HEIGHTS,
        "texts": dict(TEXTS.group("dials")),
    }


def kinds_of(scene: Scene) -> tuple[list[AxisStyle], list[int]]:
    """Return the styles of everything that rotates a pair of this part, and each pair's index in them."""
    owner = scene.role_spec.owner
    found = sorted({int(each) for each in owner}, key=lambda each: (each < 0, abs(each)))
    names = {MIXED: MIX, STILL: ZERO_FREQUENCY}
    looks = [names[each] if each < 0 else look(scene.role_spec.axes[each]) for each in found]
    # There are MOST dash styles for rings; further kinds share the last.
    return looks[:MOST], [min(found.index(int(each)), MOST - 1) for each in owner]


def turns(message: Mapping[str, Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the angle of every dial in turns, in [0, 1), (pairs,)."""
    at = message["start"]
    return np.asarray((np.array(message["weights"]) @ np.array([at["t"], at["m"], at["n"]]) / TAU) % 1.0)


def dial_values(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the dials: what rotates each pair, by how much, and its angle in turns."""
    weights, at = np.array(message["weights"]), message["start"]
    names = [message["names"][kind] for kind in message["bands"][: len(weights)]]
    columns = {f"rad per {role}": weights[:, k] for k, role in enumerate(ORDER) if message["moves"][k]}
    where = f"turns at frame {at['t']}, row {at['m']}, column {at['n']}"
    return {"pair": np.arange(len(weights)), "moved by": names, **columns, where: turns(message)}


def draw_static(message: Mapping[str, Any]) -> theme.DataFigure:
    """Draw the dials as a static figure: 0 at 3 o'clock, counterclockwise, coloured by what rotates them."""
    turn = turns(message)
    pairs = len(turn)
    wide, tall = WIDE, message["heights"][0]
    columns = min(pairs, max(1, int(np.ceil(np.sqrt(pairs * wide / tall)))))
    rows = int(np.ceil(pairs / columns))
    x, y = np.arange(pairs) % columns + 0.5, rows - np.arange(pairs) // columns - 0.5
    ring = np.append(np.linspace(0, TAU, 33), np.nan)
    traces = []
    for kind, name in enumerate(message["names"]):
        members = np.flatnonzero(np.array(message["bands"][:pairs]) == kind)
        if not members.size:
            continue
        colour = message["palette"]["bands"][0][kind]
        ring_x, ring_y = x[members][:, None] + 0.42 * np.cos(ring), y[members][:, None] + 0.42 * np.sin(ring)
        traces.append(
            theme.line(
                ring_x.ravel(),
                ring_y.ravel(),
                TEXTS("patch.ring", name=name),
                colour,
                width=1,
                hoverinfo="skip",
                meta=HIDDEN,
            )
        )
        angle = TAU * turn[members][:, None]
        reach = np.array([0.0, 0.36, np.nan])
        tip_x, tip_y = x[members][:, None] + reach * np.cos(angle), y[members][:, None] + reach * np.sin(angle)
        traces.append(theme.line(tip_x.ravel(), tip_y.ravel(), name, colour, width=2.5, hoverinfo="skip", meta=HIDDEN))
    hidden = {"showgrid": False, "showline": False, "showticklabels": False, "ticks": "", "tickvals": []}
    each = min((wide - 24) / columns, (tall - 24) / rows)
    fig = theme.figure(
        traces,
        x=hidden | {"range": [0, (wide - 24) / each], "showspikes": False},
        y=hidden | {"range": [rows - (tall - 24) / each, rows]},
        height=tall,
        margin={"l": 12, "r": 12, "t": 12, "b": 12},
        hovermode=False,
    )
    fig.table = lambda: dial_values(message)
    return fig
