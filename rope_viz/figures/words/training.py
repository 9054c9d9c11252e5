"""Sentences about what trainers compute and servers serve."""

from __future__ import annotations

from rope_viz.advice.check_rope import Finding
from rope_viz.advice.identify_rotation import Identified, Method
from rope_viz.advice.match_training import describe_match
from rope_viz.advice.training_matrix import TrainingMatrix, state_of
from rope_viz.figures.words.common import plain
from rope_viz.texts import Texts

TEXTS = Texts("training")


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
    return f"{'; '.join(parts)}. {largest}"


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
    few = f" {TEXTS('identify.few')}" if found.method is None else ""
    against = " ".join(map(describe_finding, found.findings)) or TEXTS("identify.same")
    return f"{' · '.join(parts)}.{few} {against}"


def describe_method(method: Method) -> str:
    """Describe the base and scaling of frequencies."""
    values = {"base": method.base, "factor": method.factor, "kept": method.kept, "divided": method.divided}
    return str(TEXTS(f"identify.methods.{method.name or 'none'}", **values if method.name else {}))


def describe_finding(finding: Finding) -> str:
    """Describe one difference between values and a config, with the mistake that explains it."""
    if not finding.mistake:
        return str(TEXTS("identify.unexplained", detail=finding.detail))
    key = "differs" if finding.is_wrong else "note"
    return str(TEXTS(f"identify.{key}", mistake=finding.mistake, detail=finding.detail))
