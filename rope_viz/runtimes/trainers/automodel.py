"""NeMo Automodel 0.7.0: three rotary files, one for dense models, one for mixtures of experts, one for DeepSeek.

Executed: llama/rope_utils.py, gpt_oss/rope_utils.py and deepseek_v3/rope_utils.py of components/models; the arguments
that the model files pass, and the softmax scale, were read (tests/goldens/training.json).
"""

from __future__ import annotations

import math

from rope_viz.embedding.scaling import mscale
from rope_viz.runtimes import transformers
from rope_viz.runtimes.rule_engine import ORIGINAL, Case, Rule, Test, all_hold, has, has_type, is_not, refuse, rule
from rope_viz.runtimes.trainers.arguments import Trainer, is_given, mapping, set_rope, set_yarn

NAME = "nemo-automodel"
DEEPSEEK_KEYS = ("factor", "beta_fast", "beta_slow", ORIGINAL)
SOFTMAX_KEYS = ("factor", "mscale", ORIGINAL)


def is_deepseek(case: Case) -> bool:
    """Return whether the model uses DeepSeek's file."""
    return case.mla or is_given("max_seq_len")(case)


def is_mixture(case: Case) -> bool:
    """Return whether the model uses the file of gpt-oss."""
    own = has(NAME, "yarn_whenever_scaled")(case) or is_given("partial_rotary_factor")(case)
    return own and not is_deepseek(case)


IS_DENSE = all_hold(is_not(is_mixture), is_not(is_deepseek))


@rule("rope-parameters", is_given("rope_parameters"))
def take_parameters(case: Case) -> Case:
    """The rope_parameters of the options replace those of the config."""
    given = dict(mapping(case, "rope_parameters") or {})
    base = given.pop("rope_theta", case.base)
    given.pop("partial_rotary_factor", None)
    kind = given.pop("rope_type", given.pop("type", "default"))
    return set_rope(case, str(kind), **given).replace(base=float(base))


@rule("dynamic-frozen", IS_DENSE, has_type("dynamic"))
def freeze_dynamic(case: Case) -> Case:
    """dynamic is computed once, so it is not scaled at any length."""
    return case.replace(length=None)


@rule("yarn-whenever-scaled", is_mixture)
def run_as_yarn(case: Case) -> Case:
    """rope_type is not read: any factor above 1 is YaRN, not rounded, with 0.1·ln s + 1 on cos and sin."""
    factor = case.number("factor", 1.0)
    if factor <= 1:
        return set_rope(case, "default")
    dims = case.head_dim if case.kind == "proportional" else int(case.head_dim * case.share)
    values = (case.number(ORIGINAL, 4096), case.number("beta_fast", 32.0), case.number("beta_slow", 1.0))
    changed = set_yarn(case, factor, *values, truncate=False)
    return changed if dims == changed.rotary_dim else changed.replace(head_dim=dims, share=1.0, plain_share=1.0)


def has_odd_range(case: Case) -> bool:
    """Return whether the ramp of YaRN would not begin and end strictly within the pairs."""
    if case.kind != "yarn":
        return False
    half, turn = case.rotary_dim / 2, 2 * math.pi
    low, high = (
        half * math.log(case.original / (case.number(key) * turn)) / math.log(case.base)
        for key in ("beta_fast", "beta_slow")
    )
    return not 0 < low < high < half - 1


@rule("deepseek-keys", is_deepseek)
def need_all_keys(case: Case) -> Case:
    """YaRN needs factor, both betas and the original length, and a limit beyond it; without one it is plain."""
    limit = case.limit if not is_given("max_seq_len")(case) else case.arguments["max_seq_len"]
    complete = all(case.rope.get(key) is not None for key in DEEPSEEK_KEYS) and limit > case.number(ORIGINAL, limit)
    softmax = 1.0
    if all(case.rope.get(key) is not None for key in SOFTMAX_KEYS):
        weight = case.number("mscale")
        softmax = (mscale(case.number("factor"), weight) if limit > case.original else weight) ** 2
    if not complete:
        return set_rope(case, "default").replace(softmax=softmax, attention=1.0)
    values = [case.number(key) for key in ("factor", ORIGINAL, "beta_fast", "beta_slow")]
    return set_yarn(case, *values).replace(softmax=softmax, attention=1.0)


@rule("pairing")
def choose_pairing(case: Case) -> Case:
    """DeepSeek's file rotates adjacent pairs, the others halves."""
    return case.replace(pairing="interleaved" if is_deepseek(case) else "half")


def where(test: Test, rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """Return the rules for these cases only."""
    return tuple(one.where(test) for one in rules)


RULES = (
    take_parameters,
    freeze_dynamic,
    *where(IS_DENSE, transformers.RULES["5.23.0"]),
    run_as_yarn,
    refuse("automodel.assertionerror_ramp", is_mixture, has_odd_range),
    need_all_keys,
    choose_pairing,
)

AUTOMODEL = Trainer(
    NAME,
    ("0.7.0", "36044ad3 (2026-08-22)"),
    RULES,
    "rope_utils.py of llama, gpt_oss and deepseek_v3 in components/models, executed",
)
