"""Sentences of the page of all models in all runtimes, with the current numbers."""

from __future__ import annotations

from collections.abc import Sequence

from rope_viz.figures.words import footnote, plain
from rope_viz.pages.differences.figures import TEXTS, ModelAnswer, list_answers, list_counts
from rope_viz.runtimes.asked_engines import name_verdict
from rope_viz.runtimes.provenance import EXECUTED_ON
from rope_viz.runtimes.releases import REFERENCE
from rope_viz.runtimes.verdict_counts import HOWS, find_state
from rope_viz.texts import join
from rope_viz.texts.texts import join_clauses


def summarise() -> str:
    """Count the models that some runtime computes differently, apart by how that is known."""
    every = list_answers().values()
    parts = []
    for how in HOWS:
        differing = sum(any(one.differs and one.comparison.how == how for one in row) for row in every)
        if any(one.comparison.how == how for row in every for one in row):
            parts.append(str(TEXTS(f"summary.{how.replace(' ', '_')}", count=differing)))
    if asked := sum(any(one.comparison.emulation.known.asked for one in row) for row in every):
        parts.append(str(TEXTS("summary.asked", count=asked)))
    return join(TEXTS("summary.models", count=len(every)), *parts)


def introduce(rows: Sequence[ModelAnswer], runtime: str) -> str:
    """Return what the table is compared with, or that a runtime computes nothing differently."""
    return str(TEXTS("answers", reference=REFERENCE) if rows else TEXTS("nothing", runtime=plain(runtime)))


def date_counts() -> str:
    """Name the runtimes that differ most, and the day of the data."""
    most = max(list_counts(), key=lambda row: row["differs"])
    known = TEXTS(f"known.{most['key']}")
    values = {"runtime": plain(most["runtime"]), "differs": most["differs"], "computed": most["computed"]}
    return str(TEXTS("counts.sentence", known=known, date=EXECUTED_ON, **values))


def describe(one: ModelAnswer) -> str:
    """Describe one cell of the grid: what the runtime computes, why, and how that is known."""
    state = find_state(one.comparison)
    source = footnote(one.comparison.emulation.known.source.rstrip("."))
    is_remote = bool(list_answers()[one.model.id][0].comparison.emulation.remote)
    reference = str(TEXTS("cell.own_code")) if is_remote else REFERENCE
    values = {"model": plain(one.model.name), "runtime": plain(one.name), "reference": reference}
    if one.name == reference:
        return f"{TEXTS('cell.reference', **values)}{source}"
    if state == "not known":
        return f"{TEXTS('cell.not_known', **values)}{source}"
    sentence = TEXTS(f"cell.{state}", verdict=plain(one.comparison.words("×{:.4g}".format)), **values)
    return join(sentence, TEXTS(f"cell.by.{one.key}"), words_asked(one), plain(one.row.why)) + source


def words_asked(one: ModelAnswer) -> str:
    """Return which releases were asked as whole engines, and what they answered; "" where none was."""
    answers = [
        TEXTS("cell.answer", release=answer.release, config=answer.config, verdict=name_verdict(answer.verdict))
        for answer in one.comparison.emulation.known.asked
    ]
    return TEXTS("cell.asked", answers=plain(join_clauses(answers))) if answers else ""
