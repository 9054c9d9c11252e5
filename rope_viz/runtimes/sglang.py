"""SGLang 0.5.23 as rules over what the configuration classes of transformers 5 hand over.

Read from `sglang/srt/layers/rotary_embedding` and the model files; its rotary package was run
(tests/goldens/runtimes.json).
"""

from __future__ import annotations

from collections.abc import Mapping

from rope_viz.embedding.scaling import mscale
from rope_viz.runtimes.rule_engine import (
    Case,
    Rule,
    assume,
    has,
    has_type,
    ignore,
    is_absent,
    mscale_of,
    ordered_bands,
    plainly,
    refuse,
    require,
    static_base,
    when,
)
from rope_viz.runtimes.transformers import NESTED_TRUNCATE, OLMO3_SLIDING, STANDARD, mla_softmax
from rope_viz.runtimes.vllm import whole_factor


def backend(case: Case) -> bool:
    """Whether it has no model file and runs the model by the code of transformers. OLMo 3 becomes its own OLMo 2."""
    facts = case.architecture.runtime("sglang")
    return facts.get("file") == "transformers" and not facts.get("not_by_backend")


def shares(case: Case) -> Case:
    """The rotated share: only a declared attribute of the configuration class is seen."""
    declared = case.architecture.partial_rotary or "partial_rotary_factor" in case.architecture.defaults
    if backend(case) or has("sglang", "gemma3_path")(case) or case.kind == "proportional":
        return case
    if (has("sglang", "partial")(case) and declared) or case.nested:
        return case.replace(plain_share=case.share)
    return case.replace(share=1.0, plain_share=1.0)


def yarn(case: Case) -> Case:
    """attn_factor multiplies the factor on cos and sin; the mscale pair counts wherever both keys are there."""
    explicit = case.number("attn_factor", 1.0)
    both = case.rope.get("mscale") is not None and case.rope.get("mscale_all_dim") is not None
    attention = (
        mscale_of(case, "mscale") / mscale_of(case, "mscale_all_dim") if both else mscale(case.number("factor", 1.0))
    )
    return case.replace(attention=attention * explicit, kept_weight=case.number("extrapolation_factor", 1.0))


def deepseek(case: Case) -> Case:
    """deepseek_yarn whatever the type: mscale 1 and mscale_all_dim 0 by default, always rounded."""
    changed = ignore("attention_factor", "truncate")(case.with_rope(rope_type="yarn", type=None))
    changed = assume(factor=1.0)(changed)
    pair = mscale_of(changed, "mscale", 1.0) / mscale_of(changed, "mscale_all_dim")
    return changed.replace(
        attention=pair * case.number("attn_factor", 1.0), kept_weight=case.number("extrapolation_factor", 1.0)
    )


def unless_switched_off(case: Case) -> Case:
    """The softmax multiplier, unless apply_yarn_scaling or apply_scale is false."""
    off = case.rope.get("apply_yarn_scaling") is False or case.rope.get("apply_scale") is False
    return case if off else mla_softmax(case)


def square_growth(case: Case) -> float:
    """s² − (s − 1): what transformers reaches at s times the trained length."""
    factor = case.number("factor", 1.0)
    return factor * factor - (factor - 1.0)


def nested_olmo3(case: Case) -> bool:
    """OLMo 3 with the nested rope_parameters of transformers."""
    params = case.fields.config.get("rope_parameters")
    return has("sglang", "olmo3_nested")(case) and isinstance(params, Mapping) and "full_attention" in params


def late_switch(case: Case) -> Case:
    """A batch takes the long list when a position is above the trained length: one token later than transformers."""
    longer = case.length is not None and case.length > case.original + 1
    explicit = case.rope.get("long_mscale" if longer else "short_mscale")
    changed = ignore("attention_factor", "factor")(case.replace(length=case.length if longer else None))
    return (
        changed
        if explicit is None
        else changed.replace(attention=case.number("long_mscale" if longer else "short_mscale"))
    )


def native(case: Case) -> bool:
    """Whether get_rope computes it, and not the functions of transformers."""
    return not backend(case) and (not has("sglang", "gemma3_path")(case) or case.path == "cpu")


RULES = (
    Rule(
        "no-such-model",
        "There is no native model.",
        when(is_absent("sglang"), refuse("no native {model} model in SGLang")),
    ),
    Rule(
        "transformers-backend",
        "There is no native model: the rotary code is that of transformers.",
        when(backend, lambda case: NESTED_TRUNCATE.change(case.replace(path="transformers"))),
    ),
    Rule(
        "olmo3-nested",
        "OLMo 3 with rope_parameters nested by layer type raises TypeError; its own flat config works.",
        when(nested_olmo3, refuse("TypeError: unhashable type dict")),
    ),
    *STANDARD,
    OLMO3_SLIDING,
    Rule(
        "gemma3-cpu",
        "On the CPU path Gemma 3 asks for the default type: its factor is ignored.",
        when(lambda case: case.path == "cpu" and has("sglang", "gemma3_path")(case), plainly),
    ),
    Rule(
        "unscaled",
        "The model file asks for plain RoPE: any rope_scaling is ignored.",
        when(has("sglang", "unscaled"), plainly),
    ),
    Rule(
        "partial", "partial_rotary_factor is read by some model files only; the others rotate the whole head.", shares
    ),
    Rule(
        "integer-factor",
        "linear with an integer factor raises TypeError: 'int' object is not iterable.",
        when(lambda case: native(case) and whole_factor(case), refuse("TypeError: a linear factor must be a float")),
    ),
    Rule(
        "deepseek-softmax",
        "The softmax scale is multiplied by m(s, mscale_all_dim)².",
        when(lambda case: case.mla and case.kind != "default", unless_switched_off),
    ),
    Rule(
        "deepseek-yarn",
        "The type becomes deepseek_yarn: mscale 1 and mscale_all_dim 0 by default, always rounded.",
        when(
            lambda case: case.mla and not has("sglang", "no_deepseek_yarn")(case) and case.kind != "default", deepseek
        ),
    ),
    Rule(
        "deepseek-v4",
        "DeepSeek V4 puts no factor on cos and sin.",
        when(has("sglang", "no_attention_factor"), lambda case: case.replace(attention=1.0)),
    ),
    Rule(
        "missing-factor",
        "A missing factor is taken to be 1, with a warning.",
        when(lambda case: native(case) and has_type("linear", "dynamic", "yarn", "llama3")(case), assume(factor=1.0)),
    ),
    Rule(
        "missing-bands",
        "Missing band factors are taken to be 1 and 4, with a warning.",
        when(lambda case: native(case) and has_type("llama3")(case), assume(low_freq_factor=1.0, high_freq_factor=4.0)),
    ),
    Rule(
        "attention-ignored",
        "yarn does not read attention_factor; attn_factor multiplies what it computes.",
        when(lambda case: native(case) and has_type("yarn")(case), ignore("attention_factor")),
    ),
    Rule(
        "yarn-attention",
        "yarn computes the factor on cos and sin itself, from the mscale pair where both keys exist.",
        when(lambda case: native(case) and has_type("yarn")(case) and case.attention is None, yarn),
    ),
    Rule(
        "dynamic-alpha",
        "dynamic with alpha multiplies the base by alpha^(d/(d−2)), once.",
        when(
            lambda case: native(case) and has_type("dynamic")(case) and case.rope.get("alpha") is not None,
            static_base(lambda case: case.number("alpha")),
        ),
    ),
    Rule(
        "dynamic-static",
        "dynamic is static: the base is multiplied by (s² − s + 1)^(d/(d−2)) at every length.",
        when(lambda case: native(case) and has_type("dynamic")(case), static_base(square_growth)),
    ),
    Rule(
        "longrope-required",
        "longrope without its lists raises KeyError.",
        when(has_type("longrope"), require("short_factor", "long_factor")),
    ),
    Rule(
        "longrope-late",
        "longrope switches one token late, and ignores attention_factor and factor.",
        when(lambda case: native(case) and has_type("longrope")(case), late_switch),
    ),
    Rule("proportional-factor", "proportional ignores factor.", when(has_type("proportional"), ignore("factor"))),
    Rule(
        "fast-first",
        "A pair above high_freq_factor keeps its speed even where the bounds are swapped.",
        when(native, ordered_bands),
    ),
)
