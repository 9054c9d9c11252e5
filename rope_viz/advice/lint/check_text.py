"""The check of a config.json as text: what its keys mean, and what is odd about the text itself."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

from rope_viz.advice.lint import RULES, Finding, Severity, check, rule_name, sort_by_severity, source_of
from rope_viz.advice.lint.lint_context import TEXTS
from rope_viz.embedding.spec import short_repr
from rope_viz.models.formats.json_source import Raw, read_raw
from rope_viz.models.text_config import find_inside
from rope_viz.storage.decode_json import read_own

# Findings that no rule over a config makes: {name: what is looked for, and the source}.
OTHER_FINDINGS: dict[str, str] = read_own(__file__, "other_findings.json")


@dataclass(frozen=True)
class RuleText:
    """A rule as text: what it looks for, in one sentence, and the whole text with its source."""

    what: str
    text: str


def rules() -> dict[str, RuleText]:
    """Return {name: rule} of everything that the check can find."""
    texts = {rule_name(rule): inspect.getdoc(rule) or "" for rule in RULES} | OTHER_FINDINGS
    return {name: RuleText(" ".join(text.split("\n\n")[0].split()), text) for name, text in texts.items()}


def explain_rule(name: str) -> str:
    """Return what a rule looks for, and its source. Raises `ValueError` that lists the rules."""
    known = rules()
    if name not in known:
        raise ValueError(f"unknown rule {short_repr(name)}; rules are {', '.join(sorted(known))}")
    return f"{name}\n\n{known[name].text}"


def check_text(data: str | bytes) -> tuple[Raw, list[Finding]]:
    """Return what the text holds and what the check finds in it, the worst first. Raises `ValueError` for no config."""
    raw = read_raw(data)
    found = check(raw.config)
    for place in raw.repeated:
        last = short_repr(find_inside(raw.config, place))
        text = TEXTS("repeated-keys.message", key=short_repr(place[-1]), last=last)
        found.append(text_finding("repeated-keys", "warning", ".".join(place), text))
    if raw.marked:
        text = TEXTS("byte-order-mark.message")
        found.append(text_finding("byte-order-mark", "error", "", text))
    return raw, sort_by_severity(found)


def text_finding(rule: str, severity: Severity, key: str, message: str) -> Finding:
    """Return a finding about the text itself, with its source."""
    return Finding(rule, severity, key, message, source=source_of(OTHER_FINDINGS[rule]))
