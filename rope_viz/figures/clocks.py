"""The data of the animated clocks: every pair of a spec as a dial, drawn frame by frame in the browser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.colors

from rope_viz.embedding import spectrum
from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures import line_styles, static_clocks, theme
from rope_viz.figures.compared import Compared
from rope_viz.figures.files.colours import grey_pair, to_grey
from rope_viz.texts import Sentence, Texts, join

APP, TEXTS = Texts("app"), Texts("clocks")
MODES = TEXTS.group("modes")
STARTS = {"turn": (0, 0), "score": (1040, 1024)}
MAX_PAIRS = 256  # drawn as dials; the score uses all pairs
LAST_POSITION = 10_000_000
# Height in pixels by mode: (wide, narrow).
HEIGHTS = {"turn": (420, 505), "score": (500, 620)}

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
    start: tuple[int, int] | None = None,
    variants: Sequence[Compared] = (),
) -> dict[str, Any]:
    """Return the data of the spec's pairs as dials (at most 256); in mode "score", of a query, a key and their score.

    `plain` adds the unscaled hand. `start` holds the initial positions of query and key; unless they are the default
    ones, the animation starts paused. `variants` are further embeddings, each with a hand of its own.
    """
    return packed(spec, mode=mode, plain=plain, variants=variants) | {
        "pin": pin,
        # Start paused at a position that a link asks for.
        "plays": start is None or start == STARTS[mode],
        "start": dict(zip("mn", start or STARTS[mode], strict=True)),
        "heights": heights(mode, len(variants)),
        "speed": 60.0 if mode == "turn" else 2.0,
        "texts": TEXTS.group("canvas") | TEXTS.group("player") | APP.group("video"),
    }


def heights(mode: str, variants: int = 0) -> tuple[int, int]:
    """Return the height in pixels on a wide and on a narrow screen, with a line for the names of variants."""
    wide, narrow = HEIGHTS[mode]
    return wide + (static_clocks.NAMES if variants else 0), narrow + static_clocks.NAMES * variants


def packed(spec: RopeSpec, *, mode: str, plain: bool, variants: Sequence[Compared] = ()) -> dict[str, Any]:
    """Return what the browser needs of a spec: frequencies in radians per position, bands, lengths and colours."""
    scaled, first = spec.inv_freq(spec.target), spec.plain_inv_freq
    changed = bool(np.any(scaled != first))
    return {
        "title": str(title(spec, mode)),
        "mode": mode,
        "most": MAX_PAIRS,
        "first": first.tolist(),
        "scaled": scaled.tolist() if changed else None,
        "plain": plain and changed,
        "bands": spectrum.bands(spec, length=spec.target).kind.tolist(),
        "names": spectrum.BAND_NAMES,
        "context": spec.context,
        "target": spec.target,
        "variants": [
            {
                "name": each.label,
                "rates": each.inv_freq.tolist(),
                "colour": (each.colour, theme.DARK[each.colour]),
                "dash": each.dash,
                "strokes": line_styles.strokes(each.dash),
            }
            for each in variants
        ],
        "palette": palette(),
        "cycle": [plotly.colors.unlabel_rgb(colour) for _, colour in theme.CYCLIC],
    }


def title(spec: RopeSpec, mode: str) -> Sentence:
    """Return the description of the dials for screen readers, with their keys."""
    count = "some" if spec.pairs > MAX_PAIRS else "one" if spec.pairs == 1 else "all"
    drawn = TEXTS(f"dials.{count}", most=MAX_PAIRS, pairs=spec.pairs, motion=TEXTS(f"dials.{mode}"))
    return join(drawn, TEXTS("dials.keys"))


def has_two_hands(spec: RopeSpec, mode: str) -> bool:
    """Return True if the scaled frequencies differ, so that an unscaled hand can be shown as well."""
    return mode == "turn" and bool(np.any(spec.inv_freq(spec.target) != spec.plain_inv_freq))


def palette() -> dict[str, Any]:
    """Return the colours by meaning, each as (light, dark)."""
    both = {name: (colour, theme.DARK[colour]) for name, colour in COLOURS.items()}
    return both | {"bands": (theme.BAND_COLOURS, [theme.DARK[colour] for colour in theme.BAND_COLOURS])}


def greyed(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message, of these clocks, of a patch or of hands, with greys for colours."""
    palette = {
        name: grey_pair(light) if isinstance(light, str) else tuple(zip(*map(grey_pair, light), strict=True))
        for name, (light, _) in message["palette"].items()
    }
    hands = [{**each, "colour": grey_pair(each["colour"][0])} for each in message.get("variants", ())]
    grey_cycle = [3 * [int(to_grey("rgb({}, {}, {})".format(*colour))[1:3], 16)] for colour in message["cycle"]]
    return {**message, "palette": palette, "cycle": grey_cycle, "variants": hands}


def numbers(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that the dials show at their start positions, a row per pair."""
    return static_clocks.table(message, **message["start"])


def still(message: Mapping[str, Any]) -> theme.Figure:
    """Draw the dials at their start positions as a static figure."""
    return static_clocks.still(message, **message["start"], pin=message.get("pin"))
