"""vLLM 0.33.0 as rules over what the configuration classes of transformers 5 hand over.

Read from `vllm/model_executor/layers/rotary_embedding`, the model files and `vllm/transformers_utils/config.py`; its
rotary package was run (tests/goldens/runtimes.json).
"""

from __future__ import annotations

from rope_viz.embedding.spec import shorten
from rope_viz.runtimes.rule_engine import (
    ORIGINAL,
    Case,
    Refused,
    Rule,
    has,
    has_type,
    ignore,
    is_absent,
    mscale_of,
    ordered_bands,
    refuse,
    require,
    static_base,
    when,
)
from rope_viz.runtimes.transformers import NESTED_TRUNCATE, STANDARD, mla_softmax

KNOWN = ("default", "linear", "dynamic", "ntk", "yarn", "llama3", "longrope", "proportional")


def native(case: Case) -> bool:
    """Whether vLLM has a model file of its own."""
    return case.architecture.runtime("vllm").get("file") != "transformers"


def conflicting_types(case: Case) -> Case:
    """Both names of the type, with different types."""
    new, old = case.rope.get("rope_type"), case.rope.get("type")
    if new is None or old is None or new == old or [old, new] in (["su", "longrope"], ["mrope", "default"]):
        return case
    raise Refused(f"rope_type {shorten(new)} and type {shorten(old)} contradict each other")


def whole_factor(case: Case) -> bool:
    """A linear factor that is a JSON integer."""
    factor = case.rope.get("factor")
    return case.kind == "linear" and isinstance(factor, int) and not isinstance(factor, bool)


def rope_dim(case: Case) -> Case:
    """An explicit number of rotated dimensions instead of a share."""
    if not case.rope.get("rope_dim"):
        return case
    share = min(case.number("rope_dim") / case.head_dim, 1.0)
    return case.replace(share=share, plain_share=share) if share > 0 else case


def table_growth(case: Case) -> float:
    """s·M/T − (s − 1), T = max_trained_positions, M by default: so usually 1."""
    factor = case.number("factor")
    return factor * case.limit / case.number("max_trained_positions", case.limit) - (factor - 1.0)


def fixed_ntk(case: Case) -> Case:
    """Type "ntk": the base times s, then every pair divided by s^(2/d)."""
    factor, dims = case.number("factor"), max(case.rotary_dim, 1)
    divisors = (factor ** (2.0 / dims),) * ((dims + 1) // 2)
    return case.replace(
        rope={"rope_type": "default"}, base=case.base * factor, divisors=divisors, plain_share=case.share
    )


def fixed_attention(case: Case) -> Case:
    """longrope reads short_mscale and long_mscale, or the formula from the lengths; nothing else."""
    longer = case.length is not None and case.length > case.original
    explicit = case.rope.get("long_mscale" if longer else "short_mscale")
    changed = ignore("attention_factor", "factor")(case)
    return (
        changed
        if explicit is None
        else changed.replace(attention=case.number("long_mscale" if longer else "short_mscale"))
    )


def of_deepseek(case: Case) -> bool:
    """Whether DeepSeek's attention scales this. MiniCPM 3 has heads of that kind and a file of its own."""
    return case.mla and case.kind != "default" and not has("vllm", "no_deepseek_yarn")(case)


def deepseek(case: Case) -> Case:
    """deepseek_yarn whatever the type: mscale 1 and mscale_all_dim 0 by default, always rounded."""
    changed = require("factor", ORIGINAL)(case.with_rope(rope_type="yarn", type=None))
    changed = ignore("attention_factor", "truncate")(changed)
    return changed.replace(attention=mscale_of(changed, "mscale", 1.0) / mscale_of(changed, "mscale_all_dim"))


def deepseek_softmax(case: Case) -> Case:
    """The softmax multiplier, dropped where attention_factor is 1.0 and the type becomes deepseek_llama_scaling."""
    return case if case.rope.get("attention_factor") == 1.0 else mla_softmax(case)


def gpt_oss(case: Case) -> Case:
    """The model file passes these keys and no others."""
    needed = require("factor", ORIGINAL, "beta_fast", "beta_slow")(case)
    return ignore("attention_factor", "mscale", "mscale_all_dim")(needed.with_rope(rope_type="yarn", type=None))


RULES = (
    Rule(
        "no-such-model",
        "There is no such model in its registry.",
        when(is_absent("vllm"), refuse("{model} is not in the vLLM registry")),
    ),
    Rule("type-conflict", "rope_type and type that differ raise ValueError.", conflicting_types),
    *STANDARD,
    Rule(
        "transformers-backend",
        "There is no native model: the rotary code is that of transformers.",
        when(lambda case: not native(case), lambda case: NESTED_TRUNCATE.change(case.replace(path="transformers"))),
    ),
    Rule(
        "unknown-type",
        "A rope type outside its list raises ValueError.",
        when(lambda case: case.kind not in KNOWN, refuse("unknown RoPE scaling type {kind}")),
    ),
    Rule(
        "partial-everywhere",
        "partial_rotary_factor is honoured by every model, scaled or not.",
        when(native, lambda case: case.replace(plain_share=case.share)),
    ),
    Rule("rope-dim", "rope_dim, where it is given, is how many dimensions rotate.", when(native, rope_dim)),
    Rule(
        "gpt-oss-keys",
        "Only factor, original length, betas and truncate are passed.",
        when(has("vllm", "gpt_oss_keys"), gpt_oss),
    ),
    Rule(
        "deepseek-softmax",
        "The softmax scale is multiplied by m(s, mscale_all_dim)².",
        when(of_deepseek, deepseek_softmax),
    ),
    Rule(
        "deepseek-yarn",
        "The type becomes deepseek_yarn: mscale 1 and mscale_all_dim 0 by default, always rounded.",
        when(of_deepseek, deepseek),
    ),
    Rule(
        "yarn-required",
        f"yarn without factor or {ORIGINAL} raises KeyError.",
        when(has_type("yarn"), require("factor", ORIGINAL)),
    ),
    Rule(
        "llama3-required",
        "llama3 without one of its four keys raises KeyError.",
        when(has_type("llama3"), require("factor", "low_freq_factor", "high_freq_factor", ORIGINAL)),
    ),
    Rule(
        "integer-factor",
        "linear with an integer factor raises TypeError: 'int' object is not iterable.",
        when(lambda case: native(case) and whole_factor(case), refuse("TypeError: a linear factor must be a float")),
    ),
    Rule("linear-required", "linear without factor raises KeyError.", when(has_type("linear"), require("factor"))),
    Rule(
        "dynamic-alpha",
        "dynamic with alpha multiplies the base by alpha^(d/(d−2)), once.",
        when(
            lambda case: native(case) and has_type("dynamic")(case) and case.rope.get("alpha") is not None,
            static_base(lambda case: case.number("alpha")),
        ),
    ),
    Rule("dynamic-required", "dynamic needs alpha or factor.", when(has_type("dynamic"), require("factor"))),
    Rule(
        "dynamic-static",
        "dynamic is static: its base is computed once for max_trained_positions, so by default it is "
        "the plain one at every length.",
        when(lambda case: native(case) and has_type("dynamic")(case), static_base(table_growth)),
    ),
    Rule(
        "ntk-fixed",
        'Type "ntk" multiplies the base by the factor and divides every pair by factor^(2/d).',
        when(has_type("ntk"), fixed_ntk),
    ),
    Rule(
        "longrope-required",
        "longrope without its lists raises KeyError.",
        when(has_type("longrope"), require("short_factor", "long_factor")),
    ),
    Rule(
        "longrope-attention",
        "longrope ignores attention_factor and factor; the lengths give the factor.",
        when(lambda case: native(case) and has_type("longrope")(case), fixed_attention),
    ),
    Rule("proportional-factor", "proportional ignores factor.", when(has_type("proportional"), ignore("factor"))),
    Rule(
        "fast-first",
        "A pair above high_freq_factor keeps its speed even where the bounds are swapped.",
        when(native, ordered_bands),
    ),
)
