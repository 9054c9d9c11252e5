"""nanotron 2411b022: a base, and position interpolation in the Qwen class; rope_scaling is a field that nothing reads.

Executed: src/nanotron/nn/rotary.py (tests/goldens/training.json).
"""

from __future__ import annotations

from rope_viz.runtimes.rule_engine import Case, is_scaled, rule
from rope_viz.runtimes.trainers.arguments import (
    Trainer,
    argument,
    has_arguments,
    number,
    set_base,
    set_linear,
    set_rope,
)

FACTORS = ("seq_len_scaling_factor", "rope_seq_len_interpolation_factor", "seq_len_interpolation_factor")


@rule("stated-options", lambda case: not has_arguments(case), lambda case: case.kind == "linear")
def state_options(case: Case) -> Case:
    """config.json is not read: rope_seq_len_interpolation_factor of the Qwen class is assumed to state it."""
    return case.replace(arguments={FACTORS[1]: case.number("factor")})


@rule("no-scaling", is_scaled)
def drop_scaling(case: Case) -> Case:
    """rope_scaling is a field of the config that nothing reads."""
    return set_rope(case, "default")


@rule("options")
def read_options(case: Case) -> Case:
    """Frequencies follow from the base and from the interpolation factor of the Qwen class."""
    changed = set_base(case, "base", "rope_theta")
    changed = changed.replace(pairing="interleaved" if argument(case, "rope_interleaved", "interleaved") else "half")
    return set_linear(changed, number(case, *FACTORS, default=1.0))


RULES = (state_options, drop_scaling, read_options)

NANOTRON = Trainer("nanotron", ("2411b022 (2026-04-07)",), RULES, "src/nanotron/nn/rotary.py, executed")
