"""Sentences of the page Runtimes, with the current numbers."""

from __future__ import annotations

from collections.abc import Sequence

from rope_viz.advice.plan.export import Export
from rope_viz.advice.plan.runtime_matrix import (
    RuntimeAnswer,
    RuntimeCase,
    RuntimeMatrix,
    compare_catalog,
    find_largest_ratio,
    release_history,
)
from rope_viz.advice.training.match_training import Match, TrainingMatrix, describe_match, state_of
from rope_viz.advice.verify.check_rope import Difference
from rope_viz.advice.verify.identify_rotation import Identified, Method
from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures.words import footnote, name_layer, plain
from rope_viz.runtimes.axes import AxesAnswer
from rope_viz.runtimes.longest_length import describe_derived_lengths
from rope_viz.runtimes.provenance import converted_only, executed_counts
from rope_viz.runtimes.releases import REFERENCE, format_name, format_version
from rope_viz.runtimes.releases import RUNTIMES as TODAY
from rope_viz.texts import Texts, join
from rope_viz.texts.sentences import remove_period
from rope_viz.texts.texts import join_clauses, join_items, join_list

TEXTS = Texts("model/training")
RUNTIMES = Texts("model/runtimes")


def count_agreeing(board: RuntimeMatrix) -> tuple[int, int]:
    """Return how many runtimes agree with the reference, itself included, and how many were compared."""
    rows = [row for row in board.rows if row.runtime]
    return len(find_agreeing(rows)), len(rows)


def find_agreeing(rows: Sequence[RuntimeAnswer]) -> list[RuntimeAnswer]:
    """Return the rows that agree with the reference; the model's own code is no runtime."""
    return [row for row in rows if row.comparison.agrees and row.comparison.emulation.supported]


def agreement(board: RuntimeMatrix) -> str:
    """Count the runtimes that agree, and list those that differ, refuse or are unknown."""
    if board.problem:
        return RUNTIMES("agreement.problem", problem=board.problem)
    rows = [row for row in board.rows if row.runtime]
    unknown = [row.name for row in rows if row.comparison.how == "not known"]
    if len(unknown) == len(rows):
        return RUNTIMES("unknown", unread=RUNTIMES("unread"), source=footnote(rows[0].why))
    same = find_agreeing(rows)
    ruled = [row.name for row in same if row.comparison.how == "by rule"]
    reference = RUNTIMES("agreement.own_code") if board.rows[0].comparison.emulation.remote else board.rows[0].name
    other = [
        RUNTIMES("agreement.differs", name=row.name, verdict=row.verdict)
        for row in rows
        if row.differs and not row.comparison.effect
    ]
    refusing = [row.name for row in rows if refuses(row) and row.name not in unknown]
    parts = [*gathered(rows), *other]
    if refusing:
        parts.append(RUNTIMES("agreement.refuse", count=len(refusing), names=join_list(refusing)))
    if ruled:
        parts.append(RUNTIMES("agreement.by_rule", names=join_list(ruled)))
    if unknown:
        parts.append(RUNTIMES("agreement.not_known", names=join_list(unknown)))
    if len(same) == len(rows):
        first = RUNTIMES("agreement.all", count=len(rows))
    else:
        first = RUNTIMES("agreement.some", same=len(same), count=len(rows), reference=reference)
    return RUNTIMES("agreement.sentence", clauses=join_clauses([first, *parts]))


def refuses(row: RuntimeAnswer) -> bool:
    """Return True if a runtime rejects the model; running it by the model's own code counts as rejecting it."""
    return bool(row.comparison.emulation.remote) or not row.comparison.emulation.supported


def gathered(rows: list[RuntimeAnswer]) -> list[str]:
    """List the runtimes that differ, those with the same verdict together."""
    out: dict[str, list[str]] = {}
    for row in rows:
        if row.comparison.effect:
            out.setdefault(row.verdict, []).append(row.name)
    return [
        RUNTIMES("agreement.off", count=len(names), names=join_list(names), verdict=text) for text, names in out.items()
    ]


def whose(asked: RuntimeCase, length: int | None) -> str:
    """Name the config and the length in question, and the lengths that servers derive from the config."""
    subject = plain(asked.whose)
    if asked.layer:
        subject = RUNTIMES("whose.layer", whose=subject, layer=plain(name_layer(asked.layer)))
    if length is not None:
        subject = RUNTIMES("whose.at", whose=subject, length=length)
    return join(
        RUNTIMES("whose.sentence", whose=subject),
        RUNTIMES("whose.problem", problem=plain(asked.problem)) if asked.problem else "",
        *(RUNTIMES("whose.sentence", whose=text) for text in release_history(asked, length)),
        describe_derived_lengths(asked.config),
    )


def counts() -> str:
    """Count the executed architectures per runtime of today; the older releases have a section of their own."""
    today = {(name, format_version(release)) for name, release in TODAY}
    found = [
        RUNTIMES("executed_in", release=f"{format_name(name)} {at}", count=count)
        for name, at, count in executed_counts()
        if (name, at) in today
    ]
    alone = len(converted_only())
    return RUNTIMES("executed", counts=join_items(found), alone=alone)


def faithful(made: Export, name: str) -> str:
    """Return whether the exported text gives the intended frequencies."""
    if made.faithful:
        return RUNTIMES("faithful", name=name)
    off = RUNTIMES("off", ratio=made.effect.ratio, pair=made.effect.pair) if made.effect else ""
    return join(RUNTIMES("not_faithful", name=name, reason=plain(remove_period(made.reason))), off)


def extension(spec: RopeSpec, target: int, name: str) -> str:
    """Describe the table of methods; `name` is that of the length that they start from."""
    factor = max(1.0, target / spec.context)
    return RUNTIMES("extension", length=name, start=spec.context, target=target, factor=factor)


def model_list() -> str:
    """Count the models of the catalog that some runtime computes differently."""
    found = compare_catalog()
    differing = sum(find_largest_ratio(board.rows) > 1.0 for _, board in found)
    return RUNTIMES("models", differing=differing, count=len(found), reference=REFERENCE)


def several(answers: Sequence[AxesAnswer]) -> str:
    """Return where text continues after a video, and which runtimes assign pairs to axes differently."""
    if not answers:
        return RUNTIMES("axes.one")
    known = [answer for answer in answers if answer.behind is not None]
    groups: dict[float, list[str]] = {}
    for answer in known:
        groups.setdefault(answer.behind or 0.0, []).append(answer.name)
    video = ""
    if len(groups) == 1:
        video = RUNTIMES("axes.video_same", at=next(iter(groups)))
    elif groups:
        places = [RUNTIMES("axes.place", at=at, names=join_list(names)) for at, names in groups.items()]
        video = RUNTIMES("axes.video", places=join_clauses(places))
    diffs = [RUNTIMES("axes.differs", name=answer.name, against=answer.against) for answer in answers if answer.differs]
    pairs = RUNTIMES("axes.pairs", pairs=join_clauses(diffs)) if diffs else RUNTIMES("axes.same")
    return join(video, pairs, RUNTIMES("axes.seconds"))


def summarise(found: TrainingMatrix) -> str:
    """Count the trainers that agree with the first server, and describe the largest difference."""
    if found.problem:
        return str(TEXTS("problem", problem=plain(found.problem)))
    states = [state_of(row[0]) for row in found.rows]
    counts = {state: states.count(state) for state in ("same", "differs", "refused", "not known")}
    first = found.emulations[0].name
    parts = [TEXTS("agree", same=counts["same"], count=len(states), server=first)]
    parts += [TEXTS(f"counts.{key}", count=counts[key]) for key in ("differs", "refused") if counts[key]]
    if counts["not known"]:
        parts = [TEXTS("unknown", server=first)]
    sentence = "" if found.worst is None else plain(describe_match(found.find(*found.worst)))
    largest = TEXTS("worst", sentence=sentence) if sentence else TEXTS("none_differs")
    pairs = TEXTS("permuted", trainers=join_items(found.permuted)) if found.permuted else ""
    return join(TEXTS("clauses", clauses=join_clauses(parts)), largest, pairs)


def describe_rotation(found: Identified) -> str:
    """Describe the layout, base and method of values, and how they differ from the config."""
    parts = [str(TEXTS("identify.rotated", size=found.rotary_dim))]
    if found.layout is not None:
        parts.append(str(TEXTS(f"identify.layouts.{found.layout or 'none'}")))
        if abs(found.attention_factor - 1.0) > 1e-3:
            parts.append(str(TEXTS("identify.attention", factor=found.attention_factor)))
    if found.method is not None:
        parts.append(describe_method(found.method))
        if found.method.still:
            parts.append(str(TEXTS("identify.still", count=found.method.still)))
    few = TEXTS("identify.few") if found.method is None else ""
    against = join(*map(describe_finding, found.findings)) or TEXTS("identify.same")
    return join(TEXTS("clauses", clauses=" · ".join(parts)), few, against)


def describe_method(method: Method) -> str:
    """Describe the base and scaling of frequencies."""
    values = {"base": method.base, "factor": method.factor, "kept": method.kept, "divided": method.divided}
    return str(TEXTS(f"identify.methods.{method.name or 'none'}", **values if method.name else {}))


def describe_finding(finding: Difference) -> str:
    """Describe one difference between values and a config, with the mistake that explains it."""
    if not finding.mistake:
        return str(TEXTS("identify.unexplained", detail=finding.detail))
    key = "differs" if finding.is_wrong else "note"
    return str(TEXTS(f"identify.{key}", mistake=finding.mistake, detail=finding.detail))


def write_command(match: Match) -> str:
    """Return the command that makes the same comparison."""
    training, server = match.training, match.emulation
    release = f"{training.trainer.name}={training.version}"
    return f"rope-viz match config.json --trainer {release} --server {server.runtime}={format_version(server.version)}"
