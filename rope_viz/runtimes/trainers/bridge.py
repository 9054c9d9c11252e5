"""Megatron-Bridge, mbridge and verl: which options of megatron-core a Hugging Face config becomes.

Executed: `_hf_config_to_megatron_kwargs` and `LlamaBridge` of Megatron-Bridge, `LLaMABridge` of mbridge and
`get_rope_scaling_args` of verl, on configs of transformers 5.23.0 (tests/goldens/training.json).
"""

from __future__ import annotations

from typing import Any

from rope_viz.models.formats.megatron_config import YARN
from rope_viz.runtimes.rule_engine import (
    ORIGINAL,
    Case,
    Refused,
    Rule,
    all_hold,
    has,
    has_type,
    is_not,
    is_scaled,
    refuse,
    rule,
)
from rope_viz.runtimes.texts import TEXTS
from rope_viz.runtimes.trainers import megatron
from rope_viz.runtimes.trainers.arguments import Trainer, argument, is_given, set_rope

BRIDGE, MBRIDGE = "megatron-bridge", "mbridge"
IMPORTED = is_not(is_given(*YARN, "rotary_base", "rope_scaling", "seq_len_interpolation_factor"))
"""No options of megatron-core are given: the config is imported."""


def is_dense(case: Case) -> bool:
    """Return whether the model's attention is not DeepSeek's."""
    return not case.mla


def pass_options(case: Case, **options: Any) -> Case:
    """Return the case with these options of megatron-core, added to those that are given."""
    return case.replace(arguments={"rotary_base": case.base, **options, **case.arguments})


@rule("partial-lost", IMPORTED, lambda case: case.rotary_dim != case.head_dim)
def lose_partial(case: Case) -> Case:
    """partial_rotary_factor is read outside rope_parameters, but transformers 5.23.0 has it inside: all dims rotate."""
    return case.replace(share=1.0, plain_share=1.0)


@rule("llama-scaling", IMPORTED, has(BRIDGE, "llama_scaling"), has_type("llama3", "linear"))
def import_llama(case: Case) -> Case:
    """LlamaBridge imports linear and llama3 scaling; of llama3 the factor alone."""
    if case.kind == "linear":
        return pass_options(case, seq_len_interpolation_factor=case.number("factor"))
    return pass_options(case, rope_scaling=True, rope_scaling_factor=case.number("factor", 8.0))


@rule("scaling-dropped", IMPORTED, is_dense, is_scaled, is_not(has_type("yarn")))
def drop_scaling(case: Case) -> Case:
    """Any other scaling than YaRN is dropped without a word."""
    return set_rope(case, "default")


@rule("yarn-keys", IMPORTED, has_type("yarn"))
def import_yarn(case: Case) -> Case:
    """YaRN keys are copied as they are; a missing one is None, and a missing truncate counts as false."""
    rope = case.rope
    options = {
        "scaling_factor": rope.get("factor"),
        **{key: rope.get(key) for key in (ORIGINAL, "beta_fast", "beta_slow", "mscale", "mscale_all_dim")},
        "correction_range_round_to_int": rope.get("truncate"),
    }
    if case.mla:  # Its fields keep the defaults of MLATransformerConfig.
        options = {key: value for key, value in options.items() if value is not None}
    return pass_options(case, **options)


@rule("mla-plain", IMPORTED, is_not(is_dense), is_not(has_type("yarn")))
def import_plain_mla(case: Case) -> Case:
    """For MLA without YaRN the factor 1 is forced, because the default is 40."""
    return pass_options(set_rope(case, "default"), scaling_factor=1.0, mscale_all_dim=1.0)


@rule("plain", IMPORTED)
def import_plain(case: Case) -> Case:
    """The base is passed."""
    return pass_options(case, rotary_percent=case.rotary_dim / case.head_dim)


def build_bridge(version: str) -> tuple[Rule, ...]:
    """Return the rules of Megatron-Bridge, over those of megatron-core 0.16.1."""
    _, _, *core = megatron.build_core("0.16.1")
    return (
        refuse(
            "bridge.get_model_config_field",
            all_hold(IMPORTED, is_dense, has_type("yarn"), lambda case: not is_provider(case)),
        ),
        lose_partial,
        import_llama,
        drop_scaling,
        import_yarn,
        import_plain_mla,
        import_plain,
        *core,
    )


def is_provider(case: Case) -> bool:
    """Return whether the user chose the deprecated import through a provider."""
    return bool(argument(case, "path") == "provider")


@rule("any-scaling-is-linear", IMPORTED, has(MBRIDGE, "llama_scaling"))
def make_linear(case: Case) -> Case:
    """The factor of any rope_scaling becomes seq_len_interpolation_factor: a linear one."""
    if case.rope.get("factor") is None:
        raise Refused(TEXTS("bridge.keyerror_factor"))
    return pass_options(case, seq_len_interpolation_factor=case.number("factor"))


@rule("scaling-dropped", IMPORTED, is_dense, is_scaled)
def drop_all_scaling(case: Case) -> Case:
    """Only the base is passed: any scaling is dropped."""
    return set_rope(case, "default")


def build_mbridge(version: str) -> tuple[Rule, ...]:
    """Return the rules of mbridge, over those of megatron-core 0.16.1."""
    _, _, *core = megatron.build_core("0.16.1")
    return (make_linear, drop_all_scaling, import_yarn, import_plain_mla, import_plain, *core)


def is_old_transformers(case: Case) -> bool:
    """Return whether the user says that verl runs on transformers 4."""
    return str(argument(case, "transformers", default="5")).startswith("4")


@rule("any-scaling-is-linear", IMPORTED, is_old_transformers, is_scaled)
def scale_linearly(case: Case) -> Case:
    """On transformers 4 the factor of any rope_scaling becomes seq_len_interpolation_factor: a linear one."""
    return pass_options(case, seq_len_interpolation_factor=case.number("factor"))


@rule("scaling-dropped", IMPORTED, is_dense, is_scaled)
def drop_for_verl(case: Case) -> Case:
    """On transformers 5 rope_scaling is no attribute of its own, so nothing is scaled."""
    return set_rope(case, "default")


def build_verl(version: str) -> tuple[Rule, ...]:
    """Return the rules of verl with use_mbridge: False, over those of megatron-core 0.16.1."""
    _, _, *core = megatron.build_core("0.16.1")
    return (scale_linearly, drop_for_verl, import_yarn, import_plain_mla, import_plain, *core)


MEGATRON_BRIDGE = Trainer(
    "Megatron-Bridge",
    ("067f987d (2026-08-22) on megatron-core 0.16.1",),
    build_bridge,
    "conversion/model_bridge.py and llama_bridge.py, executed with configs of transformers 5.23.0",
)
MBRIDGE_TRAINER = Trainer(
    "mbridge",
    ("10cb17f (2026-06-12)",),
    build_mbridge,
    "LLaMABridge._get_gptmodel_args, executed with configs of transformers 5.23.0",
    frozenset(("yarn-keys", "mla-plain")),
)
VERL = Trainer(
    "verl",
    ("0.9.1 (use_mbridge: False path)",),
    build_verl,
    "BaseModelInitializer.get_rope_scaling_args, executed with configs of transformers 5.23.0",
    frozenset(("yarn-keys", "mla-plain")),
)
