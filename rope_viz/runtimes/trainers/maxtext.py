"""MaxText e591f30c: three rotary classes, chosen by model_name and rope_type of its YAML files.

Executed: `Attention.init_rotary_embedding` and layers/embeddings.py; the softmax scale was read in attention_mla.py
(tests/goldens/training.json).
"""

from __future__ import annotations

from typing import Any

from rope_viz.embedding.scaling import mscale
from rope_viz.runtimes.rule_engine import ORIGINAL, Case, rule
from rope_viz.runtimes.trainers.arguments import (
    Trainer,
    argument,
    describe_arguments,
    has_arguments,
    is_given,
    number,
    set_base,
    set_linear,
    set_llama3,
    set_rope,
    set_rotary,
    set_yarn,
)

YARN = ("rope_factor", ORIGINAL, "beta_fast", "beta_slow", "rope_attention_scaling", "rope_truncate", "rope_theta")


def write_arguments(case: Case) -> dict[str, Any]:
    """Return the options of base.yml that state a case, as far as MaxText has any."""
    found: dict[str, Any] = {"rope_max_timescale": case.base}
    if case.rotary_dim != case.head_dim:
        found["partial_rotary_factor"] = case.rotary_dim / case.head_dim
    if case.kind == "linear":
        return found | {"rope_type": "default", "rope_linear_scaling_factor": case.number("factor")}
    if case.kind == "llama3":
        return found | {"rope_type": "llama3.1"}
    if case.kind != "yarn":
        return found | {"rope_type": "default"}
    known = describe_arguments(case)
    ramp = {key: known[key] for key in (ORIGINAL, "beta_fast", "beta_slow")}
    found |= {"rope_type": "yarn", "rope_factor": known["factor"], **ramp, "rope_truncate": known["truncate"]}
    return found | {"rope_attention_scaling": not case.mla}


@rule("stated-options", lambda case: not has_arguments(case))
def state_options(case: Case) -> Case:
    """config.json is not read: the options of base.yml that state it are assumed."""
    return case.replace(arguments=write_arguments(case))


def find_class(case: Case) -> str:
    """Return which class is built: "llama3.1", "yarn" or "default". Without a name the options tell."""
    kind, model = str(argument(case, "rope_type", default="")), str(argument(case, "model_name", default=""))
    if model.startswith("llama3.1") or kind.startswith("llama3.1"):
        return "llama3.1"
    if kind or model:
        return "yarn" if kind.startswith("yarn") else "default"
    if is_given("rope_use_scale")(case):
        return "llama3.1"
    return "yarn" if is_given(*YARN)(case) else "default"


@rule("llama3-constants", lambda case: find_class(case) == "llama3.1")
def read_llama3(case: Case) -> Case:
    """The factor 8, the bands 1 and 4 and the original length 8192 are constants; adjacent pairs rotate."""
    changed = set_base(case, "rope_max_timescale").replace(pairing="interleaved")
    scales = argument(case, "rope_use_scale", default=True)
    return set_llama3(changed) if scales else set_rope(changed, "default")


@rule("yarn-options", lambda case: find_class(case) == "yarn")
def read_yarn(case: Case) -> Case:
    """q and k are multiplied by 0.1·ln s + 1 only with rope_attention_scaling, which is off by default."""
    factor = number(case, "rope_factor", default=40.0)
    changed = set_yarn(
        set_base(case, "rope_max_timescale", "rope_theta"),
        factor,
        number(case, ORIGINAL, default=4096),
        number(case, "beta_fast", default=32.0),
        number(case, "beta_slow", default=1.0),
        truncate=argument(case, "rope_truncate", "truncate", default=True) is not False,
    )
    adjacent = argument(case, "rope_interleave", "interleave", default=True)
    scales = argument(case, "rope_attention_scaling", "attention_scaling", default=False)
    return changed.replace(
        attention=mscale(factor) if scales else 1.0,
        factor_place="q_k",
        pairing="interleaved" if adjacent else "half",
    )


@rule("partial", is_given("partial_rotary_factor"))
def rotate_share(case: Case) -> Case:
    """partial_rotary_factor is the share of the head that rotates."""
    share = number(case, "partial_rotary_factor", default=1.0)
    return set_rotary(case, int(case.head_dim * share))


@rule("default-options", lambda case: find_class(case) == "default")
def read_default(case: Case) -> Case:
    """The default class divides by rope_linear_scaling_factor and knows no other scaling."""
    changed = set_base(case, "rope_max_timescale").replace(pairing="half")
    return set_linear(changed, number(case, "rope_linear_scaling_factor", default=1.0))


@rule("mla-softmax", lambda case: case.mla, lambda case: case.kind == "yarn")
def scale_mla(case: Case) -> Case:
    """MLA multiplies the softmax scale by (0.1·mscale·ln s + 1)² if the limit is beyond the original length."""
    limit = number(case, "max_position_embeddings", default=case.limit)
    weight = number(case, "mscale", default=1.0, positive=False)
    return case.replace(softmax=mscale(case.number("factor"), weight) ** 2) if limit > case.original else case


RULES = (state_options, rotate_share, read_llama3, read_yarn, read_default, scale_mla)

MAXTEXT = Trainer(
    "MaxText",
    ("e591f30c (2026-08-22)",),
    RULES,
    "Attention.init_rotary_embedding and layers/embeddings.py, executed",
    frozenset(("mla-softmax",)),
    permutes=True,  # checkpoint_conversion/to_huggingface.py and max_utils.py
)
