"""The formulas of the papers as rules, where they differ from what was released.

Peng et al., https://arxiv.org/abs/2309.00071: the ramp of YaRN is linear in a pair's turns (eq. 17, 18), and dynamic
scaling takes s = l / L (section 3.3).
"""

from __future__ import annotations

from rope_viz.runtimes import shared_rules as shared
from rope_viz.runtimes.rule_engine import Case, Rule, has_type, is_not, refuse, static_base
from rope_viz.runtimes.transformers import KNOWN, NO_FUNCTION, REQUIRED


def length_over_context(case: Case) -> float:
    """Return the paper's dynamic factor: l / L, at least 1."""
    return max(1.0, (case.length or 0) / case.limit)


RULES = (
    shared.rename_su,
    refuse(NO_FUNCTION, is_not(has_type(*KNOWN))),
    shared.prefer_top_original,
    shared.fill_original,
    *REQUIRED,
    Rule(
        "dynamic-by-length",
        "paper.dynamic_by_length",
        static_base(length_over_context),
        has_type("dynamic"),
    ),
    Rule(
        "paper-ramp",
        "paper.paper_ramp",
        lambda case: case.replace(path="paper"),
        has_type("yarn"),
    ),
)
