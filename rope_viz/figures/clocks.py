"""The clocks: every pair of a spec as a dial that turns, packed for the browser, which draws every frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import plotly.colors

from rope_viz.embedding import spectrum
from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures import static_clocks, theme
from rope_viz.figures.files.colours import grey, greys

MODES = {"turn": "One position", "score": "Query and key"}
STARTS = {"turn": (0, 0), "score": (1040, 1024)}
MAX_PAIRS = 256  # as dials; the score is over all pairs
LAST_POSITION = 10_000_000
# The height of the picture, wide and narrow.
HEIGHTS = {"turn": (512, 505), "score": (500, 620), "compact": (360, 430)}

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


def greyed(message: Mapping[str, Any]) -> dict[str, Any]:
    """The message in greys; for a patch, too."""
    palette = {
        name: greys(light) if isinstance(light, str) else tuple(zip(*map(greys, light), strict=True))
        for name, (light, _) in message["palette"].items()
    }
    wheel = [3 * [int(grey("rgb({}, {}, {})".format(*colour))[1:3], 16)] for colour in message["cycle"]]
    return {**message, "palette": palette, "cycle": wheel}


def numbers(message: Mapping[str, Any]) -> dict[str, Any]:
    """What the dials show as they stand at the start: a row per pair."""
    return static_clocks.table(message, **message["start"])


def still(message: Mapping[str, Any]) -> theme.Figure:
    """The dials as they stand at the start, as the browser draws them."""
    return static_clocks.still(message, **message["start"], pin=message.get("pin"))
