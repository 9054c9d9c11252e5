"""torchtitan 0.3.0 and b5bcd76c: `ComplexRoPE` and `CosSinRoPE`, whose settings come from presets in code.

Executed: torchtitan/models/common/rope.py; the softmax scale was read in deepseek_v3/model.py and gpt_oss/model.py
(tests/goldens/training.json).
"""

from __future__ import annotations

from typing import Any

from rope_viz.embedding.scaling import mscale
from rope_viz.runtimes.rule_engine import ORIGINAL, Case, Refused, has, has_type, refuse, rule
from rope_viz.runtimes.texts import TEXTS
from rope_viz.runtimes.trainers.arguments import (
    Trainer,
    argument,
    describe_arguments,
    has_arguments,
    number,
    set_base,
    set_llama3,
    set_rope,
    set_rotary,
    set_yarn,
)

NAME = "torchtitan"
LLAMA3 = {"scaling_factor": "factor", "low_freq_factor": "low_freq_factor", "high_freq_factor": "high_freq_factor"}


def write_arguments(case: Case) -> dict[str, Any]:
    """Return the fields of RoPE.Config that state a case. Raise `Refused` for scaling that it does not have."""
    found: dict[str, Any] = {"dim": case.rotary_dim, "theta": case.base}
    if case.kind == "default":
        return found
    if case.kind == "llama3":
        bands = {name: case.number(key) for name, key in LLAMA3.items()}
        return found | {"scaling": "llama", **bands, ORIGINAL: case.original}
    if case.kind != "yarn":
        raise Refused(TEXTS("torchtitan.scaling_none", kind=case.kind))
    known = describe_arguments(case)
    ramp = {key: known[key] for key in ("beta_fast", "beta_slow", "truncate")}
    found |= {"scaling": "yarn", "rope_factor": known["factor"], "original_seq_len": known[ORIGINAL], **ramp}
    if case.mla:
        found["mscale"] = float(case.rope.get("mscale_all_dim") or 0.0)
    return found


@rule("stated-options", lambda case: not has_arguments(case))
def state_options(case: Case) -> Case:
    """config.json is not read: the fields of RoPE.Config that state it are assumed."""
    return case.replace(arguments=write_arguments(case))


@rule("options")
def read_options(case: Case) -> Case:
    """Frequencies follow from the fields of RoPE.Config."""
    changed = set_rotary(set_base(case, "theta"), number(case, "dim", default=case.rotary_dim))
    scaling = argument(case, "scaling", default="none")
    if scaling == "llama":
        return set_llama3(
            changed,
            number(case, "scaling_factor", default=8.0),
            number(case, "low_freq_factor", default=1.0),
            number(case, "high_freq_factor", default=4.0),
            number(case, ORIGINAL, default=8192),
        )
    factor = number(case, "rope_factor", default=1.0)
    if scaling != "yarn" or factor <= 1:
        return set_rope(changed, "default")
    return set_yarn(
        changed,
        factor,
        number(case, "original_seq_len", default=4096),
        number(case, "beta_fast", default=32.0),
        number(case, "beta_slow", default=1.0),
        truncate=argument(case, "truncate", default=True) is not False,
    )


@rule("no-factor", has_type("yarn"), lambda case: case.attention is not None)
def drop_factor(case: Case) -> Case:
    """YaRN has no factor on cos and sin; only the models of DeepSeek and gpt-oss scale the softmax instead."""
    return case.replace(attention=1.0)


def find_preset_mscale(case: Case) -> float:
    """Return mscale of the preset of the model: that of DeepSeek V2 Lite rounds 0.707 to 0.70."""
    given = case.fields.mapping("rope_scaling") or case.fields.mapping("rope_parameters") or {}
    return 0.70 if given.get("mscale_all_dim") == 0.707 else 1.0


@rule("mla-softmax", lambda case: case.mla, lambda case: case.kind == "yarn")
def scale_mla(case: Case) -> Case:
    """DeepSeek and Kimi multiply the softmax scale by (0.1·mscale·ln s + 1)²; the 16B preset has mscale 0.70."""
    weight = number(case, "mscale", default=find_preset_mscale(case), positive=False)
    return case.replace(softmax=mscale(case.number("factor"), weight) ** 2)


def is_gpt_oss(case: Case) -> bool:
    """Return whether the model is gpt-oss, whose presets alone do not round YaRN's range."""
    own = has(NAME, "gpt_oss_softmax")(case) or (case.rope.get("truncate") is False and not case.mla)
    return own and case.kind == "yarn"


@rule("gpt-oss-softmax", is_gpt_oss)
def scale_gpt_oss(case: Case) -> Case:
    """gpt-oss multiplies the softmax scale by (0.1·ln s + 1)² instead of cos and sin."""
    return case.replace(softmax=mscale(case.number("factor")) ** 2)


def is_half_split(case: Case) -> bool:
    """Return whether the model uses CosSinRoPE."""
    return has(NAME, "cos_sin")(case)


@rule("pairing")
def choose_pairing(case: Case) -> Case:
    """ComplexRoPE rotates adjacent pairs, with q and k rows permuted on import; CosSinRoPE rotates halves."""
    return case.replace(pairing="half" if is_half_split(case) or is_gpt_oss(case) else "interleaved")


has_llama = refuse("torchtitan.cossinrope_does", is_half_split, lambda case: argument(case, "scaling") == "llama")
RULES = (state_options, has_llama, read_options, drop_factor, scale_mla, scale_gpt_oss, choose_pairing)

TORCHTITAN = Trainer(
    NAME,
    ("0.3.0", "0.2.2@b5bcd76c"),
    RULES,
    "torchtitan/models/common/rope.py, executed; the softmax scale was read in the model files",
    frozenset(("mla-softmax", "gpt-oss-softmax")),
    permutes=True,  # state_dict_adapter.py
)
