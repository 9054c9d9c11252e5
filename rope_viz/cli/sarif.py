"""Conversion of findings to SARIF 2.1.0, which code hosts display at the line of a change.

OASIS, https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, TypeAlias

from rope_viz import __version__
from rope_viz.advice.lint import Finding
from rope_viz.advice.lint.check_text import rules

Spots: TypeAlias = Mapping[str, tuple[int, int]]

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def document(reports: Sequence[tuple[str, Sequence[Finding], Spots]]) -> dict[str, Any]:
    """Return one SARIF run over all files, with the rules that have findings, sorted by name."""
    known = rules()
    named = sorted({finding.rule for _, findings, _ in reports for finding in findings})
    described = [
        {"id": name, "shortDescription": {"text": known[name].what}, "help": {"text": known[name].text}}
        for name in named
    ]
    results = [
        result(finding, named.index(finding.rule), name, spots)
        for name, findings, spots in reports
        for finding in findings
    ]
    driver = {"name": "rope-viz", "version": __version__, "rules": described}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def result(finding: Finding, index: int, name: str, spots: Spots) -> dict[str, Any]:
    """Return one finding at its line, or at the top of the file if it concerns no key."""
    line, column = nearest(finding.key, spots)
    effect = finding.effect
    size = f" Frequencies up to x{effect.ratio:.4g}, at pair {effect.pair}." if effect else ""
    place = {"artifactLocation": {"uri": uri(name)}, "region": {"startLine": line, "startColumn": column}}
    return {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": finding.severity,
        "message": {"text": finding.message + size},
        "locations": [{"physicalLocation": place}],
        "partialFingerprints": {"place/v1": f"{finding.rule}:{finding.key}"},
    }


def nearest(key: str, spots: Spots) -> tuple[int, int]:
    """Return the line and column of a key, or of the nearest enclosing one that exists."""
    parts = key.split(".")
    names = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((spots[name] for name in names if name in spots), (1, 1))


def uri(name: str) -> str:
    """Return a file's name as a relative reference, "stdin" for standard input."""
    return "stdin" if name == "-" else urllib.parse.quote(PurePath(name).as_posix(), safe="/@")
