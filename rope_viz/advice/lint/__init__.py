"""The check: what is wrong with a model's config.json, by how much, and the repaired config.

Every rule is a function of `rules` whose docstring says what is wrong and where that is known from.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rope_viz.advice.lint.lint_context import Config, Finding, Severity, View
from rope_viz.advice.lint.multi_axis_rules import check_axes
from rope_viz.advice.lint.rules import RULES
from rope_viz.embedding.spec import shorten
from rope_viz.models.no_rope_types import NoRope
from rope_viz.runtimes.compare import Effect

__all__ = ["RULES", "SEVERITIES", "Effect", "Finding", "Severity", "check", "repair", "summary"]

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""From the worst to the mildest."""
READER = "rope_viz.models.rope_config"


def check(config: Mapping[str, Any], *, without: Sequence[str] = ()) -> list[Finding]:
    """Everything the rules find, the worst first; [] where there is nothing to say. Rules of `without` are not asked.

    A key that holds what nothing can be computed from is a finding too, "not-computable", and so is a model without
    rotary embedding, "no-rope": a note, and nothing else is said of it. Raises `ValueError` where the argument is no
    object.
    """
    if not isinstance(config, Mapping):
        raise ValueError(f"a config must be an object, got {shorten(config)}")
    try:
        alone = check_axes(config)
    except ValueError as error:
        return [Finding("not-computable", "error", "", str(error), source=READER)]
    if alone is not None:
        return alone
    try:
        view = View(copy.deepcopy(dict(config)))
    except RecursionError:
        raise ValueError("the config is nested too deeply") from None
    try:
        _ = view.fields
    except NoRope as absence:
        return [Finding("no-rope", "note", ".".join(view.root), f"{absence}.", source="rope_viz.models.no_rope_types")]
    except (ValueError, ArithmeticError, RecursionError):
        pass  # said below, unless a rule says more
    found: list[Finding] = []
    for rule in RULES:
        found += findings(rule, view) if rule.__name__.replace("_", "-") not in without else []
    try:
        _ = view.specs
    except ValueError as error:
        if not any(finding.severity == "error" for finding in found):
            found.append(Finding("not-computable", "error", ".".join(view.root), str(error), source=READER))
    except (ArithmeticError, RecursionError):
        found.append(Finding("not-computable", "error", "", "the numbers are too large or too small", source=READER))
    return sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))


def summary(found: Sequence[Finding]) -> str:
    """How many of each severity, in words: "1 error, 2 notes"; empty where nothing was found."""
    counts = [(severity, sum(finding.severity == severity for finding in found)) for severity in SEVERITIES]
    return ", ".join(f"{count} {severity}{'s' if count > 1 else ''}" for severity, count in counts if count)


def repair(config: Mapping[str, Any]) -> Config:
    """The config after every repair that the check offers, one after the other. Raises `ValueError` as `check` does."""
    current = copy.deepcopy(dict(config)) if isinstance(config, Mapping) else config
    for _ in range(4 * len(RULES)):
        repaired = next((finding.repaired for finding in check(current) if finding.repaired is not None), None)
        # Compared as text: 4 and 4.0 are equal and yet a repair.
        if repaired is None or repr(repaired) == repr(current):
            break
        current = repaired
    return current


def findings(rule: Callable[[View], Iterable[Finding]], view: View) -> list[Finding]:
    """What one rule finds; nothing where the config cannot be read far enough for it."""
    try:
        found = list(rule(view))
    except (ValueError, ArithmeticError, RecursionError):
        return []
    name = rule.__name__.replace("_", "-")
    return [
        Finding(name, one.severity, one.key, one.message, one.effect, one.repaired, one.source or source(rule))
        for one in found
    ]


def source(rule: Callable[..., object]) -> str:
    """What the rule's docstring names as its source."""
    text = inspect.getdoc(rule) or ""
    return " ".join(text.partition("Source:")[2].split())
