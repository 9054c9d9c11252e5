"""OLMo-core 3.0.0: ABF, position interpolation, stepwise scaling and YaRN.

Executed: `compute_inv_freqs` and the scaling classes of olmo_core/nn/rope.py (tests/goldens/training.json).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rope_viz.embedding.scaling import correction_dim, mscale
from rope_viz.embedding.spec import FloatArray, RopeSpec
from rope_viz.runtimes.rule_engine import ORIGINAL, Case, Refused, rule
from rope_viz.runtimes.texts import TEXTS
from rope_viz.runtimes.trainers.arguments import (
    Trainer,
    describe_arguments,
    has_arguments,
    is_given,
    number,
    set_base,
    set_inv_freq,
    set_linear,
    set_llama3,
    set_rope,
)

BANDS = ("low_freq_proportion", "high_freq_proportion")
BETAS = ("beta_fast", "beta_slow")


def write_arguments(case: Case) -> dict[str, Any]:
    """Return the fields of RoPEConfig and its scaling that state a case. Raise `Refused` where there are none."""
    found: dict[str, Any] = {"theta": case.base}
    if case.kind == "default":
        return found
    if case.kind == "linear":
        return found | {"factor": case.number("factor")}
    known = describe_arguments(case)
    found |= {"factor": known["factor"], "old_context_len": known[ORIGINAL]}
    if case.kind == "llama3":
        low, high = (case.number(key) for key in ("low_freq_factor", "high_freq_factor"))
        return found | dict(zip(BANDS, (1 - 1 / low, 1 / high), strict=True))
    if case.kind != "yarn":
        raise Refused(TEXTS("olmo_core.scaling", kind=case.kind))
    return found | {key: known[key] for key in BETAS}


@rule("stated-options", lambda case: not has_arguments(case))
def state_options(case: Case) -> Case:
    """config.json is not read: the fields of RoPEConfig that state it are assumed."""
    return case.replace(arguments=write_arguments(case))


IS_YARN, IS_STEPWISE = is_given(*BETAS), is_given(*BANDS)


@rule("options")
def read_options(case: Case) -> Case:
    """The scaling class follows from its fields: new_theta, factor, proportions or betas."""
    changed = set_rope(set_base(case, "new_theta", "theta"), "default").replace(pairing="half")
    if not IS_YARN(case) and not is_given("new_theta")(case):
        factor = number(case, "factor", default=1.0)
        if IS_STEPWISE(case):
            low = 1 / (1 - number(case, BANDS[0], default=0.0, positive=False))
            high = 1 / number(case, BANDS[1], default=0.25)
            changed = set_llama3(changed, factor, low, high, number(case, "old_context_len", default=8192))
        else:
            changed = set_linear(changed, factor)
    return changed.replace(attention=number(case, "attention_rescale_factor", default=1.0))


@rule("yarn-clamp", IS_YARN)
def clamp_yarn(case: Case) -> Case:
    """The ramp of YaRN ends at d/2 − 1 at the latest, not at d − 1; cos and sin are multiplied by 0.1·ln s + 1."""
    factor = number(case, "factor", default=8.0)
    original = int(number(case, "old_context_len", default=8192))
    spec = RopeSpec(head_dim=case.rotary_dim, base=case.base, context=original)
    low = max(math.floor(correction_dim(spec, number(case, "beta_fast", default=32.0))), 0)
    high = min(math.ceil(correction_dim(spec, number(case, "beta_slow", default=1.0))), spec.pairs - 1)
    ramp = np.clip((np.arange(spec.pairs) - low) / max(high - low, 1e-3), 0.0, 1.0)

    def blend(plain: FloatArray) -> FloatArray:
        values: FloatArray = plain / factor * ramp + plain * (1 - ramp)
        return values

    return set_inv_freq(case, blend).replace(attention=mscale(factor) if factor > 1 else 0.1 * math.log(factor) + 1.0)


RULES = (state_options, read_options, clamp_yarn)

OLMO_CORE = Trainer("OLMo-core", ("3.0.0",), RULES, "olmo_core/nn/rope.py, executed")
