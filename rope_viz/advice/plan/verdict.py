"""The verdict on a plan: what to do in a few words, how sure that is, why, and how far it was measured.

Command line, pages and reports all show this one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from rope_viz.advice.lint import describe_errors
from rope_viz.advice.plan import TEXTS
from rope_viz.advice.plan.extension_plan import ExtensionPlan
from rope_viz.advice.plan.ways import Evidence, Rank, Way, describe_angles
from rope_viz.models.identity.shipped_scaling import describe_method
from rope_viz.texts import join
from rope_viz.texts.sentences import is_made_from
from rope_viz.texts.texts import join_list

Certainty: TypeAlias = Literal["documented", "further", "unshown"]
"""Its maker documents it; it is the maker's method, taken further; it was not shown to work."""

FURTHEST = 2.0
"""So many times the documented length still counts as the maker's method taken further.

This is a judgement: a YaRN model that was trained on 64k read texts of 128k (Peng et al.,
https://arxiv.org/abs/2309.00071), and longer steps were not shown.
"""

REASONS: dict[Rank, str] = {
    "as it is": "shipped",
    "documented": "documented",
    "usual": "common",
    "possible": "untested",
    "as set": "set",
}


@dataclass(frozen=True)
class PlanVerdict:
    """A verdict in words. `certainty` is None where nothing is recommended; then `words` and `measured` are empty.

    `wrong`: the config has errors, or a runtime cannot do this.
    """

    headline: str
    certainty: Certainty | None
    words: str
    reason: str
    measured: str
    wrong: str = ""

    @property
    def mark(self) -> str:
        """How sure it is in a few words, or else what is wrong; empty where nothing is recommended or wrong."""
        return self.wrong or self.words

    @property
    def look(self) -> str:
        """The name of the look of `mark`: that of its certainty, or "lossy" for what is wrong or not recommended."""
        is_lossy = self.wrong or is_made_from(self.words, "certainty.lossy")
        return "lossy" if is_lossy else self.certainty or ""


def make_verdict(plan: ExtensionPlan) -> PlanVerdict:
    """Return the verdict on a plan."""
    if plan.refused:
        headline = TEXTS("verdict.refused", target=plan.target)
        return PlanVerdict(headline, None, "", plan.refusals[0], "", _describe_wrong(plan))
    certainty = decide_certainty(plan.way)
    return PlanVerdict(
        _write_headline(plan, certainty),
        certainty,
        describe_certainty(plan.way),
        _explain(plan.way),
        _describe_measured(plan.way),
        _describe_wrong(plan),
    )


def decide_certainty(way: Way) -> Certainty:
    """Return how sure it is that a way works for its model at its length."""
    known = way.recognised
    if not way.is_advised or way.rank == "possible":
        return "unshown"
    if way.rank == "documented" or (way.rank == "as set" and way.source):
        return "documented"
    as_given = not way.spec.is_scaled or known.exact or known.model is None or known.how == "fine-tune"
    reach = _find_documented_reach(way)
    if way.rank == "as it is" and (as_given or (not known.departs and way.target <= reach)):
        return "documented"
    return "further" if way.target <= FURTHEST * reach else "unshown"


def describe_certainty(way: Way) -> str:
    """Return how sure it is in words, and whether nothing but the config itself says so."""
    if not way.is_advised:
        return TEXTS("certainty.lossy")
    return TEXTS("certainty.by_config" if _is_documented_by_config(way) else f"certainty.{decide_certainty(way)}")


def find_measured(way: Way) -> Evidence | None:
    """Return what was measured of the model with this method up to a shorter length; None where nothing was."""
    found = (one for one in way.evidence if one.models and 0 < one.longest < way.target)
    return max(found, key=lambda one: one.longest, default=None)


def _find_documented_reach(way: Way) -> int:
    """Return the longest length for which this method is documented for this model, 0 for none."""
    known, method = way.recognised, way.spec.scaling
    model, shipped = known.model, known.shipped
    lengths = [0]
    for one in model.documented if model is not None else ():
        rope = one["rope_scaling"]
        if rope.get("rope_type", rope.get("type")) == method.rope_type:
            lengths.append(int(one["to"]))
    if shipped is not None and shipped.scaling.name == method.name:
        lengths.append(shipped.target)
    # The file of somebody else tells how its own maker uses it.
    if (model is None or known.how == "fine-tune") and known.spec.is_scaled and known.spec.scaling.name == method.name:
        lengths.append(known.reach)
    return max(lengths)


def _is_documented_by_config(way: Way) -> bool:
    """Return whether nothing but the config itself says that the model reaches this length."""
    known = way.recognised
    is_foreign = known.how == "fine-tune" and way.spec.is_scaled and not known.exact
    is_unknown = known.model is None and not known.trained.is_known
    return way.rank == "as it is" and decide_certainty(way) == "documented" and (is_unknown or is_foreign)


def _write_headline(plan: ExtensionPlan, certainty: Certainty) -> str:
    """Return what to do in a few words; what was not shown to work is no advice."""
    way, before = plan.way, plan.recognised.spec
    key, values = "method", {"method": describe_method(way.spec)}
    if not plan.file.fragment:
        key, values = "keep", {}
    elif way.spec.scaling == before.scaling and way.spec.base == before.base:
        key, values = "limit", {}
    elif way.spec.base != before.base:
        key, values = "base", {"base": f"{way.spec.base:,.10g}"}
    group = "lossy" if not way.is_advised else "unshown" if certainty == "unshown" else "verdict"
    return TEXTS(f"{group}.{key}", **values)


def _explain(way: Way) -> str:
    """Return why this is the answer, in one or two sentences."""
    angles = describe_angles(way)
    if not way.is_advised:
        return way.because or angles
    certainty, reach = decide_certainty(way), _find_documented_reach(way)
    if way.because:
        first = way.because
    elif way.rank == "its own, further" or (way.rank == "usual" and certainty == "further"):
        is_makers = reach and way.recognised.model is not None
        key = "further" if is_makers else "config_further"
        first = TEXTS(f"reason.{key}", reach=reach or way.recognised.reach)
    elif way.rank == "as it is" and (certainty != "documented" or _is_documented_by_config(way)):
        first = TEXTS("reason.by_config" if certainty == "documented" else "reason.edited")
    else:
        first = TEXTS(f"reason.{REASONS[way.rank]}", reach=way.reach or way.target)
    return join(first, angles)


def _describe_measured(way: Way) -> str:
    """Return up to which length the model was measured, in a sentence; empty where nothing was or it is as long."""
    found = find_measured(way)
    return "" if found is None else TEXTS("measured", length=found.longest, score=found.score)


def _describe_wrong(plan: ExtensionPlan) -> str:
    """Return that the config has errors, or which runtimes cannot do this; empty where nothing is wrong."""
    names = [one.name for one in plan.instructions if one.is_checked is False]
    return describe_errors(plan.found) or (TEXTS("cannot", names=join_list(names)) if names else "")
