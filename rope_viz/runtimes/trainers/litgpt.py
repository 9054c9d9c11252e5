"""litgpt 0.5.13: `build_rope_cache`, whose ramp of YaRN is the wrong way round."""

from __future__ import annotations

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
    mapping,
    number,
    set_base,
    set_inv_freq,
    set_linear,
    set_llama3,
    set_rotary,
)


def write_arguments(case: Case) -> dict[str, Any]:
    """Return the arguments of build_rope_cache that state a case, as far as it has any."""
    found: dict[str, Any] = {"n_elem": case.rotary_dim, "base": case.base}
    if case.kind == "linear":
        return found | {"condense_ratio": case.number("factor")}
    known = describe_arguments(case)
    extra = {"factor": known["factor"], "original_max_seq_len": known[ORIGINAL]}
    if case.kind == "llama3":
        bands = {key: case.number(key) for key in ("low_freq_factor", "high_freq_factor")}
        return found | {"extra_config": {**extra, **bands}}
    if case.kind == "yarn":
        mscales = {key: case.rope[key] for key in ("mscale", "mscale_all_dim") if case.rope.get(key) is not None}
        betas = {key: known[key] for key in ("beta_fast", "beta_slow")}
        return found | {"extra_config": {**extra, **betas, **mscales}}
    return found


@rule("stated-options", lambda case: not has_arguments(case))
def state_options(case: Case) -> Case:
    """config.json is not read: the arguments of build_rope_cache that state it are assumed."""
    return case.replace(arguments=write_arguments(case))


def read_extra(case: Case, key: str) -> float:
    """Return a number of extra_config. Raise `Refused` where it is missing, as the trainer raises KeyError."""
    extra = mapping(case, "extra_config") or {}
    if extra.get(key) is None:
        raise Refused(TEXTS("litgpt.keyerror_extra_config", key=key))
    return float(extra[key])


def is_yarn(case: Case) -> bool:
    """Return whether extra_config chooses YaRN."""
    return bool({"beta_fast", "beta_slow"} & set(mapping(case, "extra_config") or {}))


@rule("options")
def read_options(case: Case) -> Case:
    """Frequencies follow from n_elem, base, condense_ratio and extra_config."""
    changed = set_rotary(set_base(case, "base"), number(case, "n_elem", default=case.rotary_dim)).replace(
        pairing="half"
    )
    divisor, extra = number(case, "condense_ratio", default=1.0), mapping(case, "extra_config") or {}
    if not extra or is_yarn(case):
        return set_linear(changed, divisor)
    if "original_max_seq_len" not in extra:
        return set_linear(changed, divisor * read_extra(case, "factor"))
    keys = ("factor", "low_freq_factor", "high_freq_factor", "original_max_seq_len")
    scaled = set_llama3(changed, *(read_extra(case, key) for key in keys))
    return scaled if divisor == 1.0 else scaled.replace(divisors=(divisor,) * (changed.rotary_dim // 2))


@rule("inverted-ramp", is_yarn)
def invert_ramp(case: Case) -> Case:
    """The ramp of YaRN weights the unscaled frequency: fast pairs are divided, slow ones kept. Its end is d/2 − 1."""
    dims, factor = case.rotary_dim, read_extra(case, "factor")
    spec = RopeSpec(head_dim=dims, base=case.base, context=int(read_extra(case, "original_max_seq_len")))
    low = max(np.floor(correction_dim(spec, read_extra(case, "beta_fast"))), 0.0)
    high = min(np.ceil(correction_dim(spec, read_extra(case, "beta_slow"))), dims // 2 - 1)
    kept = np.clip((np.arange(spec.pairs) - low) / (high - low or 0.001), 0.0, 1.0)
    divisor = case.number("factor", 1.0)

    def blend(plain: FloatArray) -> FloatArray:
        values: FloatArray = (plain / factor * (1 - kept) + plain * kept) / divisor
        return values

    return set_inv_freq(case, blend).replace(attention=read_attention(case, factor))


def read_attention(case: Case, factor: float) -> float:
    """Return the factor on cos and sin: 1 without mscale keys."""
    extra = mapping(case, "extra_config") or {}
    over, under = (extra.get(key) for key in ("mscale", "mscale_all_dim"))
    if over and under:
        return mscale(factor, float(over)) / mscale(factor, float(under))
    return mscale(factor, float(over or under or 0.0))


RULES = (state_options, read_options, invert_ramp)

LITGPT = Trainer("litgpt", ("0.5.13",), RULES, "build_rope_cache of litgpt/model.py, executed")
