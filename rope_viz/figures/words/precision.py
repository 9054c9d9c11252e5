"""Sentences of the precision page, and its list of implementations."""

from __future__ import annotations

import functools

import numpy as np

from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures.precision import DISTANCE, score_curve
from rope_viz.studies import precision
from rope_viz.studies.precision import MAX_POSITION, ROUNDINGS
from rope_viz.studies.rounding_in_practice import PRACTICES, Practice, find_practices
from rope_viz.texts.numbers import format_number


@functools.lru_cache(maxsize=64)
def rounding(spec: RopeSpec, where: str, position: int, *, live: bool = False) -> str:
    """Describe the rounding for this model: up to `position` if the error of the angle grows with it."""
    if ROUNDINGS[where].stage == "angle":
        return precision.describe(spec, where, end=position, length=spec.target)
    # These errors do not grow: a few positions give the same maximum as many, within some per cent.
    return precision.describe(spec, where, end=512 if live else None, length=spec.target)


def scores(spec: RopeSpec, where: str, *, live: bool = False) -> str:
    """Say whether the score stays the same when both positions move."""
    _, off = score_curve(spec, where, live=live)
    text, phrase = f"The score of one q and one k, {DISTANCE} tokens apart, as both move", ROUNDINGS[where].phrase
    if not np.isfinite(off["error"]).all():
        return f"{text}. With {phrase}, cos and sin times the attention factor overflow: no score is left."
    wrong, moves = (_brief(float(off[name].max())) for name in ("error", "shift"))
    text += f" up to {MAX_POSITION:,}. With {phrase} it is wrong by up to **{wrong}** and moves by up to **{moves}**."
    if where == "bf16-inv-freq":
        text += " A rounded inv_freq keeps the relative property: only the frequencies are wrong, for q and k alike."
    return text


def practised(where: str) -> str:
    """Name the implementations that round at `where`."""
    found = find_practices(where)
    if not found:
        return "No implementation in the list rounds there; it is here for comparison."
    return f"{ROUNDINGS[where].label}: " + ", ".join(f"**{each.library}**" for each in found) + "."


def practices(where: str) -> str:
    """Return all implementations as a Markdown table; those that round at `where` come first and are marked."""
    matching = find_practices(where)
    others = [each for each in PRACTICES if each not in matching]
    lines = ["| implementation | what it does | rounds |", "|---|---|---|"]
    lines += [_row(each, mark="● ") for each in matching] + [_row(each) for each in others]
    return "\n".join(lines)


def _row(each: Practice, mark: str = "") -> str:
    name = f"[{each.library}]({each.source})" if each.source.startswith("https://") else each.library
    rounds = "; ".join(ROUNDINGS[name].label for name in each.roundings) or "float32 throughout, or not emulated"
    was_run = " Run." if each.was_run else ""
    return f"| {mark}{name} | {each.description}{was_run} | {rounds} |"


def _brief(value: float) -> str:
    return format_number(float(f"{value:.2g}"))
