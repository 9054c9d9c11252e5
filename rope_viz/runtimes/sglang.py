"""SGLang 0.5.23 as rules over what the configuration classes of transformers 5 hand over.

Read from `sglang/srt/layers/rotary_embedding` and the model files; its rotary package was run
(tests/goldens/runtimes.json).
"""

from __future__ import annotations

from collections.abc import Mapping

from rope_viz.embedding.scaling import mscale
from rope_viz.runtimes import shared_rules as shared
from rope_viz.runtimes.rule_engine import (
    Case,
    Rule,
    all_hold,
    assume,
    has,
    has_type,
    ignore,
    is_not,
    mscale_of,
    refuse,
    require_by_type,
    rule,
    static_base,
)
from rope_viz.runtimes.transformers import CONFIG_CLASS

# Gemma 3 runs by the functions of transformers, except on the CPU.
HAS_GEMMA3_PATH = has("sglang", "gemma3_path")


def is_by_backend(case: Case) -> bool:
    """Return whether the code of transformers runs the model. OLMo 3 becomes SGLang's own OLMo 2."""
    facts = case.architecture.runtime("sglang")
    by_backend = facts.get("file") == "transformers" or shared.is_foreign(case, "sglang")
    return by_backend and not facts.get("not_by_backend")


def is_native(case: Case) -> bool:
    """Return whether get_rope computes it, and not the functions of transformers."""
    return not is_by_backend(case) and (not HAS_GEMMA3_PATH(case) or case.path == "cpu")


def is_nested_olmo3(case: Case) -> bool:
    """Return whether this is OLMo 3 with the nested rope_parameters of transformers."""
    params = case.fields.config.get("rope_parameters")
    return has("sglang", "olmo3_nested")(case) and isinstance(params, Mapping) and "full_attention" in params


@rule("partial")
def read_declared_share(case: Case) -> Case:
    """Only some model files read partial_rotary_factor; the others rotate the whole head."""
    if is_by_backend(case) or HAS_GEMMA3_PATH(case) or case.kind == "proportional":
        return case
    # Only a declared attribute of the configuration class is seen.
    declared = case.architecture.partial_rotary or "partial_rotary_factor" in case.architecture.defaults
    is_read = (has("sglang", "partial")(case) and declared) or case.nested
    return shared.set_share(case, case.share if is_read else 1.0)


def is_nested_deepseek_v4(case: Case) -> bool:
    """Return whether the scaling of DeepSeek V4 is nested by layer type."""
    params = case.fields.config.get("rope_parameters")
    return case.model == "deepseek_v4" and isinstance(params, Mapping) and "compress" in params


def is_switched_off(case: Case) -> bool:
    """Return whether the config says that the softmax scale shall stay."""
    return case.rope.get("apply_yarn_scaling") is False or case.rope.get("apply_scale") is False


@rule("deepseek-yarn", shared.has_latent_heads, is_not(has("sglang", "no_deepseek_yarn")))
def make_deepseek_yarn(case: Case) -> Case:
    """The type becomes deepseek_yarn: mscale 1 and mscale_all_dim 0 by default, always rounded."""
    changed = assume(factor=1.0)(shared.deepseek_yarn(case, case.number("attn_factor", 1.0)))
    return changed.replace(kept_weight=case.number("extrapolation_factor", 1.0))


@rule("yarn-attention", is_native, has_type("yarn"), lambda case: case.attention is None)
def compute_attention(case: Case) -> Case:
    """yarn computes the factor on cos and sin itself, from mscale and mscale_all_dim if both exist."""
    if case.rope.get("mscale") is not None and case.rope.get("mscale_all_dim") is not None:
        attention = mscale_of(case, "mscale") / mscale_of(case, "mscale_all_dim")
    else:
        attention = mscale(case.number("factor", 1.0))
    weight = case.number("extrapolation_factor", 1.0)
    return case.replace(attention=attention * case.number("attn_factor", 1.0), kept_weight=weight)


@rule("attention-given", has("sglang", "attention_factor"), has_type("yarn"))
def set_attention(case: Case) -> Case:
    """The configuration class divides yarn's own factor out of attention_factor, so that this one is the factor."""
    given = case.rope.get("attention_factor")
    return case if given is None else case.replace(attention=case.number("attention_factor"))


RULES = (
    refuse("sglang.native_model", shared.is_absent("sglang")),
    shared.use_transformers.where(is_by_backend),
    refuse("sglang.typeerror_unhashable", is_nested_olmo3),
    refuse("sglang.keyerror_original_max_position_embedding", is_nested_deepseek_v4),
    *CONFIG_CLASS,
    shared.drop_for_dual_chunks(is_native),
    shared.share_base,
    Rule(
        "gemma3-cpu",
        "sglang.gemma3_cpu",
        Case.drop_scaling,
        all_hold(HAS_GEMMA3_PATH, is_native),
    ),
    shared.unscaled("sglang"),
    read_declared_share,
    shared.INTEGER_FACTOR.where(is_native),
    shared.DEEPSEEK_SOFTMAX.where(is_not(is_switched_off), is_not(is_by_backend)),
    make_deepseek_yarn.where(is_not(is_by_backend)),
    shared.scale_softmax.where(is_by_backend),
    shared.drop_attention_factor("sglang"),
    Rule(
        "missing-factor",
        "sglang.missing_factor",
        assume(factor=1.0),
        all_hold(is_native, has_type("linear", "dynamic", "yarn", "llama3")),
    ),
    Rule(
        "missing-bands",
        "sglang.missing_bands",
        assume(low_freq_factor=1.0, high_freq_factor=4.0),
        all_hold(is_native, has_type("llama3")),
    ),
    Rule(
        "attention-ignored",
        "sglang.attention_ignored",
        ignore("attention_factor"),
        all_hold(is_native, has_type("yarn"), is_not(has("sglang", "attention_factor"))),
    ),
    set_attention.where(is_native),
    compute_attention,
    shared.DYNAMIC_ALPHA.where(is_native),
    Rule(
        "dynamic-static",
        "sglang.dynamic_static",
        static_base(shared.square_growth),
        all_hold(is_native, has_type("dynamic")),
    ),
    refuse("sglang.unknown_rope", is_native, has_type("ntk")),
    require_by_type(longrope=shared.LISTS),
    shared.switch_late.where(is_native),
    shared.PROPORTIONAL_FACTOR,
    shared.FAST_FIRST.where(is_native),
)
