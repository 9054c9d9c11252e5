"""megatron-core and Megatron-LM: `RotaryEmbedding`, `YarnRotaryEmbedding` and the softmax scale of MLA.

Read and executed: megatron/core/models/common/embeddings/rotary_pos_embedding.py, yarn_rotary_pos_embedding.py;
megatron/core/transformer/multi_latent_attention.py; megatron/training/argument_utils.py (tests/goldens/training.json).
"""

from __future__ import annotations

import math
from typing import Any

from rope_viz.embedding.scaling import mscale
from rope_viz.models.formats.megatron_config import (
    CORE_MLA_FACTOR,
    GPT_OSS,
    LLAMA3,
    LLAMA3_FACTOR,
    YARN,
    concentrate,
    rename,
)
from rope_viz.runtimes.rule_engine import ORIGINAL, Case, Refused, Rule, has_type, rule
from rope_viz.runtimes.texts import TEXTS
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
    set_rotary,
    set_yarn,
)

OLD = "0.12.0"


def write_arguments(case: Case) -> dict[str, Any]:
    """Return the arguments that state the scaling of a case, as far as megatron-core has any.

    An attention factor of its own is stated by mscale: 0.1·mscale·ln s + 1, with mscale_all_dim 0.
    """
    found: dict[str, Any] = {"kv_channels": case.head_dim, "rotary_base": case.base}
    if case.rotary_dim != case.head_dim:
        found["rotary_percent"] = case.rotary_dim / case.head_dim
    # With YaRN it is refused, and multi-head latent attention rotates adjacent pairs without it.
    if case.architecture.pairing == "interleaved" and not case.mla and case.kind != "yarn":
        found["rotary_interleaved"] = True
    if case.kind == "linear":
        found["seq_len_interpolation_factor"] = case.number("factor")
    elif case.kind == "llama3":
        found |= {"rope_scaling": True, "rope_scaling_factor": case.number("factor")}
    elif case.kind == "yarn":
        known = describe_arguments(case)
        found |= {
            "scaling_factor": known["factor"],
            **{key: known[key] for key in (ORIGINAL, "beta_fast", "beta_slow")},
        }
        found |= {"mscale": case.rope.get("mscale"), "mscale_all_dim": case.rope.get("mscale_all_dim")}
        found["correction_range_round_to_int"] = known["truncate"]
        explicit = case.rope.get("attention_factor")
        if explicit is not None and known["factor"] > 1 and not case.mla:
            found |= {"mscale": (float(explicit) - 1) / (0.1 * math.log(known["factor"])), "mscale_all_dim": 0.0}
    return found


@rule("stated-options", lambda case: not has_arguments(case))
def state_options(case: Case) -> Case:
    """No options are given: those that state this config are assumed."""
    return case.replace(arguments=write_arguments(case))


@rule("option-names", has_arguments)
def rename_options(case: Case) -> Case:
    """Options of the command line and of YAML files have the names of the constructor's arguments."""
    return case.replace(
        arguments=rename(case.arguments),
        path="yarn by hand" if "yarn_rotary_scaling_factor" in case.arguments else "",
    )


def is_yarn(case: Case) -> bool:
    """Return whether the options build `YarnRotaryEmbedding`."""
    if case.mla:
        return bool(argument(case, "rope_type", default="yarn") == "yarn")
    named = argument(case, "position_embedding_type")
    return bool(named == "yarn" or (named is None and is_given(*YARN)(case)))


def read_plain(case: Case) -> Case:
    """Return what `RotaryEmbedding` computes from its arguments."""
    head = number(case, "kv_channels", "dim", "qk_pos_emb_head_dim", default=case.head_dim)
    changed = set_rotary(set_base(case, "rotary_base"), int(head * number(case, "rotary_percent", default=1.0)))
    factor = number(case, "seq_len_interpolation_factor", default=1.0)
    if not argument(case, "rope_scaling"):
        return set_linear(changed, factor)
    scaled = set_llama3(changed, number(case, "rope_scaling_factor", default=LLAMA3_FACTOR))
    if factor != 1.0:
        scaled = scaled.replace(divisors=(factor,) * (scaled.rotary_dim // 2))
    return scaled


def concentration(case: Case, factor: float) -> float:
    """Return the factor on cos and sin: m(mscale)/m(mscale_all_dim), or 0.1·ln s + 1 where one of them is None."""
    values = [argument(case, name, default=default) for name, default in (("mscale", 1.0), ("mscale_all_dim", 0.0))]
    if None in values:
        return concentrate(factor, None, None)
    weight, over = (
        number(case, name, default=value, positive=False)
        for name, value in zip(("mscale", "mscale_all_dim"), values, strict=True)
    )
    return concentrate(factor, weight, over)


def read_yarn(case: Case) -> Case:
    """Return what `YarnRotaryEmbedding` computes from its arguments: it rotates the whole head."""
    head = number(case, "kv_channels", "dim", "qk_pos_emb_head_dim", default=case.head_dim)
    changed = set_rotary(set_base(case, "rotary_base"), head)
    for name in ("beta_fast", "beta_slow"):
        if argument(case, name, default=0.0) is None:
            raise Refused(TEXTS("megatron.typeerror_none", name=name))
    if argument(case, "rotary_interleaved"):
        raise Refused(TEXTS("megatron.yarn_does"))
    factor = number(case, "scaling_factor", default=CORE_MLA_FACTOR if case.mla else 1.0)
    rounds = argument(case, "correction_range_round_to_int", default=True)
    changed = set_yarn(
        changed,
        factor,
        number(case, ORIGINAL, default=4096),
        number(case, "beta_fast", default=32.0),
        number(case, "beta_slow", default=1.0),
        truncate=bool(rounds),
    )
    return changed.replace(attention=concentration(case, factor))


def interleave(case: Case) -> Case:
    """Return the case with the pairing that its options name."""
    adjacent = case.mla or bool(argument(case, "rotary_interleaved"))
    return case.replace(pairing="interleaved" if adjacent else "half")


@rule("options")
def read_options(case: Case) -> Case:
    """Frequencies follow from the options alone: position_embedding_type yarn or a YaRN option chooses YaRN."""
    return interleave(read_yarn(case) if is_yarn(case) else read_plain(case))


@rule("yarn-by-hand", lambda case: case.path == "yarn by hand" and not is_yarn(case))
def keep_concentration(case: Case) -> Case:
    """With rope as position_embedding_type, yarn_rotary_scaling_factor still multiplies cos and sin."""
    return case.replace(attention=concentration(case, number(case, "scaling_factor", default=1.0)))


@rule("always-rounded", is_given("correction_range_round_to_int"))
def round_always(case: Case) -> Case:
    """This version has no correction_range_round_to_int: the range is always rounded."""
    return case.replace(arguments={**case.arguments, "correction_range_round_to_int": True})


def mla_softmax(key: str) -> Rule:
    """Return the rule of the softmax scale of MLA, which takes this of the two mscales."""

    def change(case: Case) -> Case:
        scale = number(case, "scaling_factor", default=CORE_MLA_FACTOR)
        weight = number(case, key, default=1.0 if key == "mscale" else 0.0, positive=False)
        return case.replace(softmax=mscale(scale, weight) ** 2)

    return Rule("mla-softmax", "megatron.mla-softmax", change, lambda case: case.mla, {"key": key})


@rule("fixed-bands", has_type("llama3"))
def fix_bands(case: Case) -> Case:
    """low_freq_factor 1, high_freq_factor 4 and the original length 8192 are constants."""
    return case.with_rope(**LLAMA3)


def build_core(version: str) -> tuple[Rule, ...]:
    """Return the rules of one release of megatron-core."""
    is_old = version.startswith(OLD)
    return (
        fix_bands,
        state_options,
        rename_options,
        *((round_always,) if is_old else ()),
        read_options,
        keep_concentration,
        mla_softmax("mscale" if is_old else "mscale_all_dim"),
    )


@rule("factor-8", lambda case: bool(argument(case, "rope_scaling")))
def ignore_llama3_factor(case: Case) -> Case:
    """--rope-scaling-factor is parsed and does not reach the model: the factor is always 8."""
    return case.replace(arguments={**case.arguments, "rope_scaling_factor": LLAMA3_FACTOR})


@rule("gpt-oss-builder", is_given("enable_gpt_oss"))
def build_gpt_oss(case: Case) -> Case:
    """--enable-gpt-oss uses YaRN by 32 from an original length of 131,072, not rounded."""
    return case.replace(arguments={**case.arguments, **GPT_OSS}) if argument(case, "enable_gpt_oss") else case


@rule("mla-factor-1", lambda case: case.mla, lambda case: not is_given("scaling_factor")(case))
def default_mla_factor(case: Case) -> Case:
    """--rotary-scaling-factor is 1 by default, so MLA is not scaled."""
    return case.replace(arguments={**case.arguments, "scaling_factor": 1.0})


def build_lm(version: str) -> tuple[Rule, ...]:
    """Return the rules of the command line of pretrain_gpt.py, over those of megatron-core."""
    bands, start, names, *rest = build_core("")
    return (bands, start, names, build_gpt_oss, default_mla_factor, ignore_llama3_factor, *rest)


CORE = Trainer(
    "megatron-core",
    ("0.20.0@d98e8a64", "0.16.1", "0.12.0"),
    build_core,
    "megatron/core/models/common/embeddings, executed",
)
LM = Trainer(
    "Megatron-LM",
    ("d98e8a64 (0.20.0 dev, 2026-08-22)",),
    build_lm,
    "gpt_config_from_args of megatron/training, executed",
    frozenset(("mla-factor-1",)),
)
