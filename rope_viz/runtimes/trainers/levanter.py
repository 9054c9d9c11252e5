"""levanter 9263f81e: default, linear and Llama 3 as transformers has them, and YaRN by formulas of its own."""

from __future__ import annotations

import math

import numpy as np

from rope_viz.embedding.spec import FloatArray
from rope_viz.runtimes.rule_engine import ORIGINAL, Case, has_type, is_not, refuse, rule
from rope_viz.runtimes.trainers.arguments import (
    Trainer,
    is_given,
    mapping,
    plain_inv_freq,
    set_base,
    set_inv_freq,
    set_linear,
    set_llama3,
    set_rope,
)


@rule("from-hf-config", is_given("from_hf_config", "rope_theta"))
def take_given(case: Case) -> Case:
    """The dict and rope_theta of the options replace those of the config."""
    changed = set_base(case, "rope_theta")
    given = dict(mapping(case, "from_hf_config") or {}) if is_given("from_hf_config")(case) else None
    if given is None:
        return changed
    kind = given.pop("rope_type", given.pop("type", "default"))
    return set_rope(changed, str(kind), **given)


@rule("default", has_type("default", "linear"))
def divide(case: Case) -> Case:
    """default and linear divide the frequencies by factor, 1 where it is missing."""
    return set_linear(case, case.number("factor", 1.0))


@rule("llama3-defaults", has_type("llama3"))
def fill_llama3(case: Case) -> Case:
    """Missing keys of llama3 are 8, 1, 4 and 8192."""
    bands = (case.number("low_freq_factor", 1.0), case.number("high_freq_factor", 4.0))
    return set_llama3(case, case.number("factor", 8.0), *bands, case.number(ORIGINAL, 8192))


@rule("own-yarn", has_type("yarn"))
def compute_yarn(case: Case) -> Case:
    """YaRN halves the bounds of the ramp, divides positions by the factor once more, and has √(0.1·mscale·ln s + 1)."""
    factor, original = case.number("factor", 1.0), case.number(ORIGINAL, 2048)
    half = case.rotary_dim // 2

    def bound(turns: float) -> float:
        return half * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(case.base))

    low = max(math.floor(bound(case.number("beta_fast", 32.0))), 0)
    high = min(math.ceil(bound(case.number("beta_slow", 1.0))), half - 1)
    ramp = np.clip((np.arange(len(plain_inv_freq(case))) - low) / max(high - low, 1), 0.0, 1.0)

    def blend_twice(plain: FloatArray) -> FloatArray:
        values: FloatArray = (plain / factor * ramp + plain * (1 - ramp)) / factor
        return values

    weight = case.number("mscale", 1.0)
    attention = 1.0 if factor < 1 else math.sqrt(0.1 * weight * math.log(factor) + 1.0)
    return set_inv_freq(case, blend_twice).replace(attention=attention)


@rule("pairing")
def halves(case: Case) -> Case:
    """Halves rotate."""
    return case.replace(pairing="half")


KNOWN = is_not(has_type("default", "linear", "llama3", "yarn"))
RULES = (take_given, refuse("levanter.keyerror_class", KNOWN), divide, fill_llama3, compute_yarn, halves)

LEVANTER = Trainer("levanter", ("9263f81e (2025-09-26)",), RULES, "src/levanter/layers/rotary.py, executed")
