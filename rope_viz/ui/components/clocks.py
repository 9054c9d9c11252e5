"""The clocks on the page: the frequencies go to the browser once, every frame is drawn there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import plotly.colors
import streamlit as st

from rope_viz.embedding import spectrum
from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures import theme
from rope_viz.ui import state
from rope_viz.ui.components.component import component

MODES = {"turn": "One position", "score": "Query and key"}
STARTS = {"turn": {"m": 0, "n": 0}, "score": {"m": 1040, "n": 1024}}
MAX_PAIRS = 256  # as dials; the score is over all pairs
LAST_POSITION = 10_000_000
# The height of the picture, wide and narrow, and of the controls below it.
HEIGHTS = {"turn": (512, 505), "score": (500, 620), "compact": (360, 430)}
CONTROLS = 110

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


def mount(
    key: str,
    message: Mapping[str, Any],
    *,
    on_pin: Callable[[int], None],
    on_rest: Callable[[int, int], None],
) -> None:
    """Show the clocks of a message; `on_pin` hears which pair a click pins, `on_rest` where the hands were left."""
    pairs = len(message["first"])

    def pinned() -> None:
        sent = state.as_mapping(st.session_state[key].get("pin"))
        if isinstance(sent.get("pair"), int) and 0 <= sent["pair"] < pairs:
            on_pin(sent["pair"])

    def rested() -> None:
        sent = state.as_mapping(st.session_state[key].get("at"))
        m, n = sent.get("m"), sent.get("n")
        if isinstance(m, int) and isinstance(n, int) and 0 <= min(m, n) <= max(m, n) <= LAST_POSITION:
            on_rest(m, n)

    height = message["heights"][0] + (65 if message["compact"] else CONTROLS)
    show = component("clocks", root_class="rv-clocks", height=height)
    show(key=key, data=dict(message), on_pin_change=pinned, on_at_change=rested)


def message(
    spec: RopeSpec,
    *,
    file: str,
    pin: int | None,
    mode: str = "turn",
    plain: bool = True,
    compact: bool = False,
    start: tuple[int, int] | None = None,
) -> dict[str, Any]:
    """All pairs of the spec (the first 256) as dials that turn; in mode "score", a query, a key and their score.

    `plain` adds the hand before scaling. `compact` leaves out what is not needed to play and pause. `start` is where
    the query and the key stand at first.
    """
    return packed(spec, mode=mode, plain=plain) | {
        "file": file,
        "pin": pin,
        "compact": compact,
        "plays": True,
        "start": start and dict(zip("mn", start, strict=True)),
        "begin": STARTS[mode],
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
