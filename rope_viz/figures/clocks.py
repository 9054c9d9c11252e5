"""The clocks: every pair of a spec as a dial that turns, packed for the browser, which draws every frame."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import plotly.colors
import plotly.graph_objects as go

from rope_viz.embedding import spectrum
from rope_viz.embedding.spec import FloatArray, RopeSpec
from rope_viz.figures import theme

MODES = {"turn": "One position", "score": "Query and key"}
STARTS = {"turn": (0, 0), "score": (1040, 1024)}
MAX_PAIRS = 256  # as dials; the score is over all pairs
LAST_POSITION = 10_000_000
# The height of the picture, wide and narrow, and of the controls below it.
HEIGHTS = {"turn": (512, 505), "score": (500, 620), "compact": (360, 430)}
CONTROLS = 110
STILL_WIDTH = 1000

COLOURS = {
    "background": theme.BACKGROUND,
    "face": theme.GRID,
    "text": theme.TEXT,
    "rule": theme.RULE,
    "plain": theme.PLAIN,
    "current": theme.CURRENT,
    "query": theme.QUERY,
    "key": theme.KEY,
    "positive": theme.POSITIVE,
    "negative": theme.NEGATIVE,
}


def message(
    spec: RopeSpec,
    *,
    pin: int | None,
    mode: str = "turn",
    plain: bool = True,
    compact: bool = False,
    start: tuple[int, int] | None = None,
) -> dict[str, Any]:
    """All pairs of the spec (the first 256) as dials that turn; in mode "score", a query, a key and their score.

    `plain` adds the hand before scaling. `compact` leaves out what is not needed to play and pause. `start` is where
    the query and the key stand at first; where it is not the usual place, nothing moves until play is pressed.
    """
    return packed(spec, mode=mode, plain=plain) | {
        "pin": pin,
        "compact": compact,
        # A position in a link is shown as it stands.
        "plays": start is None or start == STARTS[mode],
        "start": dict(zip("mn", start or STARTS[mode], strict=True)),
        "heights": HEIGHTS["compact" if compact else mode],
        "speed": 60.0 if mode == "turn" else 2.0,
    }


def packed(spec: RopeSpec, *, mode: str, plain: bool) -> dict[str, Any]:
    """What the browser needs to know of a spec: frequencies in radians per position, bands, lengths and colours."""
    scaled, first = spec.inv_freq(spec.target), spec.plain_inv_freq
    changed = bool(np.any(scaled != first))
    shown = f"The first {MAX_PAIRS} of {spec.pairs}" if spec.pairs > MAX_PAIRS else f"{spec.pairs}"
    what = "a query and a key turning together, and their score" if mode == "score" else "turning with the position"
    return {
        "title": f"{shown} pairs as dials, {what}. Space plays and pauses, left and right arrows step.",
        "mode": mode,
        "most": MAX_PAIRS,
        "first": first.tolist(),
        "scaled": scaled.tolist() if changed else None,
        "plain": plain and changed,
        "bands": spectrum.bands(spec, length=spec.target).kind.tolist(),
        "names": spectrum.BAND_NAMES,
        "context": spec.context,
        "target": spec.target,
        "palette": palette(),
        "cycle": [plotly.colors.unlabel_rgb(colour) for _, colour in theme.CYCLIC],
    }


def has_two_hands(spec: RopeSpec, mode: str) -> bool:
    """Whether there is a hand before scaling to show beside the scaled one."""
    return mode == "turn" and bool(np.any(spec.inv_freq(spec.target) != spec.plain_inv_freq))


def palette() -> dict[str, Any]:
    """{meaning: (light, dark)}."""
    both = {name: (colour, theme.DARK[colour]) for name, colour in COLOURS.items()}
    return both | {"bands": (theme.BAND_COLOURS, [theme.DARK[colour] for colour in theme.BAND_COLOURS])}


def numbers(message: Mapping[str, Any]) -> dict[str, Any]:
    """What the dials show where they stand: of each pair its frequency, plain and scaled, and its angle in turns."""
    first = np.array(message["first"])
    scaled = np.array(message["scaled"] or message["first"])
    m, n = message["start"]["m"], message["start"]["n"]
    columns = {"pair": np.arange(len(first)), "θ plain (rad/token)": first, "θ scaled (rad/token)": scaled}
    turn = scaled / spectrum.TAU
    if message["mode"] == "score":
        return columns | {f"turns between query {m} and key {n}": ((m - n) * turn) % 1.0}
    return columns | {f"turns at position {m}": (m * turn) % 1.0}


def still(message: Mapping[str, Any]) -> go.Figure:
    """The dials as they stand at the start: 12 o'clock is no turn, hands go with the clock."""
    pairs = min(len(message["first"]), MAX_PAIRS)
    wide, tall = STILL_WIDTH, message["heights"][0]
    columns = min(pairs, max(1, math.ceil(math.sqrt(pairs * wide / tall))))
    rows = math.ceil(pairs / columns)
    x, y = np.arange(pairs) % columns + 0.5, rows - np.arange(pairs) // columns - 0.5
    ring = np.append(np.linspace(0, spectrum.TAU, 33), np.nan)
    traces = []
    for kind, colour in enumerate(theme.BAND_COLOURS):
        of = np.flatnonzero(np.array(message["bands"][:pairs]) == kind)
        if of.size:
            ring_x, ring_y = x[of][:, None] + 0.42 * np.sin(ring), y[of][:, None] + 0.42 * np.cos(ring)
            name = message["names"][kind]
            traces.append(theme.line(ring_x.ravel(), ring_y.ravel(), name, colour, width=1, hoverinfo="skip"))
    for name, colour, turn in hands(message):
        angle = spectrum.TAU * turn[:pairs]
        ends = np.stack([np.zeros(pairs), np.ones(pairs), np.full(pairs, np.nan)], axis=1)
        tip_x = x[:, None] + 0.36 * ends * np.sin(angle)[:, None]
        tip_y = y[:, None] + 0.36 * ends * np.cos(angle)[:, None]
        traces.append(theme.line(tip_x.ravel(), tip_y.ravel(), name, colour, width=2, hoverinfo="skip"))
    hidden = {"showgrid": False, "showline": False, "showticklabels": False, "ticks": "", "tickvals": []}
    each = min((wide - 24) / columns, (tall - 24) / rows)
    return theme.figure(
        traces,
        x=hidden | {"range": [0, (wide - 24) / each], "showspikes": False},
        y=hidden | {"range": [rows - (tall - 24) / each, rows]},
        height=tall,
        margin={"l": 12, "r": 12, "t": 12, "b": 12},
        hovermode=False,
    )


def hands(message: Mapping[str, Any]) -> list[tuple[str, str, FloatArray]]:
    """(name, colour, turns of every pair) of each hand: before scaling and after, or of the key and the query."""
    first = np.array(message["first"]) / spectrum.TAU
    scaled = np.array(message["scaled"] or message["first"]) / spectrum.TAU
    m, n = message["start"]["m"], message["start"]["n"]
    if message["mode"] == "score":
        return [(f"key {n}", theme.KEY, n * scaled % 1.0), (f"query {m}", theme.QUERY, m * scaled % 1.0)]
    plain = [("before scaling", theme.PLAIN, m * first % 1.0)] if message["plain"] else []
    return [*plain, (f"position {m}", theme.CURRENT, m * scaled % 1.0)]
