"""The formulas of the papers as rules, where they differ from what was released.

Peng et al., https://arxiv.org/abs/2309.00071: the ramp of YaRN is linear in a pair's turns (eq. 17, 18), and dynamic
scaling takes s = l / L (section 3.3).
"""

from __future__ import annotations

from rope_viz.runtimes.rule_engine import Case, Rule, has_type, static_base, when
from rope_viz.runtimes.transformers import FILL_ORIGINAL, SU_IS_LONGROPE, TOP_ORIGINAL, UNKNOWN_TYPE, required


def length_over_context(case: Case) -> float:
    """The paper's dynamic factor: l / L, at least 1."""
    return max(1.0, (case.length or 0) / case.limit)


RULES = (
    SU_IS_LONGROPE,
    UNKNOWN_TYPE,
    TOP_ORIGINAL,
    FILL_ORIGINAL,
    Rule("required", "A method needs its keys.", required),
    Rule(
        "dynamic-by-length",
        "The dynamic factor is the current length over the trained one; factor has no part in it.",
        when(has_type("dynamic"), static_base(length_over_context)),
    ),
    Rule(
        "paper-ramp",
        "The ramp is linear in a pair's turns, and the factor on cos and sin is 0.1 ln s + 1.",
        when(has_type("yarn"), lambda case: case.replace(path="paper")),
    ),
)
