"""Sentences of the Precision page, and its list of implementations."""

from __future__ import annotations

import numpy as np

from rope_viz.embedding.spec import RopeSpec
from rope_viz.pages.precision.figures import DISTANCE, TEXTS, score_curve
from rope_viz.studies.precision import MAX_POSITION, PRACTICES, ROUNDINGS, Practice, find_largest_error, find_practices
from rope_viz.texts import Sentence, cache_by_language, join
from rope_viz.texts.texts import join_clauses


@cache_by_language(64)
def describe_errors(spec: RopeSpec, where: str, position: int, *, live: bool = False) -> Sentence:
    """Describe the rounding for this model: up to `position` if the error of the angle grows with it."""
    if ROUNDINGS[where].stage == "angle":
        return _describe_growing_error(spec, where, position)
    phrase = name_rounding(where)
    # These errors do not grow: a few positions give the same maximum as many, within some per cent.
    found = find_largest_error(spec, where, end=512 if live else None, length=spec.target)
    if not np.isfinite(found.angle):
        return TEXTS("errors.overflow", phrase=phrase)
    if spec.attention_factor(spec.target) == 0.0:
        return TEXTS("errors.zero_factor", phrase=phrase)
    largest = TEXTS("errors.fixed", phrase=phrase, angle=found.angle, length_percent=100.0 * found.length)
    return join(largest, TEXTS("errors.any_position"))


def _describe_growing_error(spec: RopeSpec, where: str, end: int) -> Sentence:
    phrase, found = name_rounding(where), find_largest_error(spec, where, end=end, length=spec.target)
    if not found.angle:
        return TEXTS("errors.none", phrase=phrase, end=end)
    worst = TEXTS("errors.worst", phrase=phrase, end=end, angle=found.angle, pair=found.pair, position=found.position)
    if not found.passing:
        return join(worst, TEXTS("errors.none_passes", end=end))
    first = {"first": found.first_pair, "first_at": found.first_position}
    return join(worst, TEXTS("errors.passes", count=found.passing, pairs=spec.pairs, end=end, **first))


def describe_score(spec: RopeSpec, where: str, *, live: bool = False) -> Sentence:
    """Say whether the score stays the same when both positions move."""
    _, off = score_curve(spec, where, live=live)
    about = TEXTS("scores.about", distance=DISTANCE, furthest=MAX_POSITION)
    if not np.isfinite(off["error"]).all():
        return join(about, TEXTS("scores.overflow", phrase=name_rounding(where)))
    error, shift = (float(off[name].max()) for name in ("error", "shift"))
    return join(
        about,
        TEXTS("scores.wrong", phrase=name_rounding(where), error=error, shift=shift),
        TEXTS("scores.relative") if where == "bf16-inv-freq" else "",
    )


def name_rounding(where: str) -> Sentence:
    """Return the name of a rounding as it continues "with"."""
    return TEXTS(f"phrases.{where}")


def list_implementations(where: str) -> Sentence:
    """Name the implementations that round at `where`."""
    found = find_practices(where)
    if not found:
        return TEXTS("practices.none", phrase=name_rounding(where))
    libraries = join_clauses([f"**{each.library}**" for each in found])
    return TEXTS("practices.found", phrase=name_rounding(where), libraries=libraries)


def format_practices(where: str) -> str:
    """Return all implementations as a Markdown table; those that round at `where` come first and are marked."""
    matching = find_practices(where)
    others = [each for each in PRACTICES if each not in matching]
    head = " | ".join(TEXTS(f"practices.{column}") for column in ("implementation", "does", "rounds"))
    lines = [f"| {head} |", "|---|---|---|"]
    lines += [_format_row(each, mark="● ") for each in matching] + [_format_row(each) for each in others]
    return "\n".join(lines)


def _format_row(each: Practice, mark: str = "") -> str:
    name = f"[{each.library}]({each.source})" if each.source.startswith("https://") else each.library
    rounds = join_clauses([TEXTS(f"roundings.{where}") for where in each.roundings]) or TEXTS("practices.not_emulated")
    does = TEXTS(f"implementations.{each.key}")
    return f"| {mark}{name} | {TEXTS('practices.ran', does=does) if each.was_run else does} | {rounds} |"
