"""One trainer: its name, its releases, its rules for each release, and how those are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rope_viz.runtimes.releases import format_version
from rope_viz.runtimes.rule_engine import Rule

Evidence: TypeAlias = Literal["executed", "read"]


@dataclass(frozen=True)
class Trainer:
    """One trainer as its code was executed or read.

    `label` is the name that its makers write. `releases` are the newest first. `build` returns the rules of a release,
    in the order in which the trainer applies them. `source` names the files. `read` has the keys of rules whose code
    was read and not executed.
    """

    label: str
    releases: tuple[str, ...]
    build: Callable[[str], tuple[Rule, ...]]
    source: str
    read: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """The name on the command line: lower case, no brackets, dashes for spaces."""
        return self.label.lower().replace("(", "").replace(")", "").replace(" ", "-")

    def evidence(self, rules: tuple[Rule, ...]) -> Evidence:
        """Return whether everything that these rules say was executed."""
        return "read" if any(one.key in self.read for one in rules) else "executed"


def short_version(release: str) -> str:
    """Return the first word of a release that contains a digit, without a comma."""
    words = (word.rstrip(",") for word in release.split())
    return next((word for word in words if any(letter.isdigit() for letter in word)), format_version(release))
