"""Releases of vLLM and SGLang that people still run: 0.6.6, 0.8.5 and 0.10.2 of the one, 0.4.6 of the other, as rules.

Read from their rotary packages, of which that of SGLang 0.4.6 was taken from vLLM; run together with their model files
(tests/goldens/older.json). They start from the configuration classes of transformers 4.
"""

from __future__ import annotations

from collections.abc import Callable

from rope_viz.embedding.scaling import mscale
from rope_viz.runtimes.rule_engine import (
    ORIGINAL,
    Case,
    Rule,
    has,
    has_type,
    ignore,
    is_absent,
    ordered_bands,
    plainly,
    refuse,
    require,
    static_base,
    when,
)
from rope_viz.runtimes.sglang import late_switch, square_growth
from rope_viz.runtimes.transformers import SU_IS_LONGROPE, TOP_ORIGINAL, mla_softmax, old_keys_only
from rope_viz.runtimes.vllm import conflicting_types, deepseek, fixed_ntk, whole_factor

KNOWN = ("default", "linear", "dynamic", "yarn", "llama3", "longrope")


def yarn(case: Case) -> Case:
    """attn_factor multiplies the factor on cos and sin, extrapolation_factor the ramp; nothing else is passed on."""
    needed = require("factor", ORIGINAL)(case)
    attention = mscale(case.number("factor")) * case.number("attn_factor", 1.0)
    changed = ignore("attention_factor", "truncate", "mscale", "mscale_all_dim")(needed)
    return changed.replace(attention=attention, kept_weight=case.number("extrapolation_factor", 1.0))


def shares(at: str) -> Callable[[Case], Case]:
    """The rotated share, where the model file reads it."""

    def change(case: Case) -> Case:
        partial = has(at, "partial")(case)
        return case.replace(plain_share=case.share) if partial else case.replace(share=1.0, plain_share=1.0)

    return change


def rules(server: str, version: str) -> tuple[Rule, ...]:
    """What this release does."""
    at = f"{server} {version}"
    known = (*KNOWN, "ntk") if version == "0.10.2" else KNOWN

    def alpha(case: Case) -> bool:
        return has_type("dynamic")(case) and version == "0.10.2" and case.rope.get("alpha") is not None

    return (
        Rule(
            "no-such-model",
            "Its registry has no such model.",
            when(is_absent(at), refuse(f"no {{model}} model in {at}")),
        ),
        Rule("type-conflict", "rope_type and type that differ raise ValueError.", conflicting_types),
        Rule(
            "old-keys-only",
            "Only rope_theta and rope_scaling at the top are read; rope_parameters is not known.",
            old_keys_only,
        ),
        SU_IS_LONGROPE,
        TOP_ORIGINAL,
        Rule(
            "unscaled",
            "The model file asks for plain RoPE: any rope_scaling is ignored.",
            when(has(at, "unscaled"), plainly),
        ),
        Rule(
            "unknown-type",
            "A rope type outside its list raises ValueError.",
            when(lambda case: case.kind not in known, refuse("unknown RoPE scaling type {kind}")),
        ),
        Rule(
            "partial",
            "partial_rotary_factor is read by some model files only; the others rotate the whole head.",
            shares(at),
        ),
        Rule(
            "deepseek-softmax",
            "The softmax scale is multiplied by m(s, mscale_all_dim)².",
            when(lambda case: case.mla and case.kind != "default", mla_softmax),
        ),
        Rule(
            "deepseek-yarn",
            "The type becomes deepseek_yarn: mscale 1 and mscale_all_dim 0 by default, always rounded.",
            when(lambda case: case.mla and case.kind != "default", deepseek),
        ),
        Rule(
            "yarn-plain",
            "yarn takes attn_factor and extrapolation_factor; attention_factor, mscale and truncate are not known, and "
            "the range is always rounded.",
            when(lambda case: has_type("yarn")(case) and not case.mla, yarn),
        ),
        Rule(
            "llama3-required",
            "llama3 without one of its four keys raises KeyError.",
            when(has_type("llama3"), require("factor", "low_freq_factor", "high_freq_factor", ORIGINAL)),
        ),
        Rule(
            "integer-factor",
            "linear with an integer factor raises TypeError: 'int' object is not iterable.",
            when(whole_factor, refuse("TypeError: a linear factor must be a float")),
        ),
        Rule("linear-required", "linear without factor raises KeyError.", when(has_type("linear"), require("factor"))),
        Rule(
            "dynamic-alpha",
            "dynamic with alpha multiplies the base by alpha^(d/(d−2)), once.",
            when(alpha, static_base(lambda case: case.number("alpha"))),
        ),
        Rule("dynamic-required", "dynamic needs factor.", when(has_type("dynamic"), require("factor"))),
        Rule(
            "dynamic-static",
            "dynamic is static: its base is that for factor times the trained length, at every length.",
            when(has_type("dynamic"), static_base(square_growth)),
        ),
        Rule(
            "ntk-fixed",
            'Type "ntk" multiplies the base by the factor and divides every pair by factor^(2/d).',
            when(has_type("ntk"), fixed_ntk),
        ),
        Rule(
            "longrope-required",
            f"longrope without its lists or {ORIGINAL} raises KeyError.",
            when(has_type("longrope"), require("short_factor", "long_factor", ORIGINAL)),
        ),
        Rule(
            "longrope-late",
            "longrope switches one token late, and ignores attention_factor and factor.",
            when(has_type("longrope"), late_switch),
        ),
        Rule(
            "fast-first",
            "A pair above high_freq_factor keeps its speed even where the bounds are swapped.",
            ordered_bands,
        ),
    )


RULES: dict[tuple[str, str], tuple[Rule, ...]] = {
    ("vllm", "0.10.2"): rules("vllm", "0.10.2"),
    ("vllm", "0.8.5"): rules("vllm", "0.8.5"),
    ("vllm", "0.6.6"): rules("vllm", "0.6.6"),
    ("sglang", "0.4.6"): rules("sglang", "0.4.6"),
}
"""By runtime and version, the newest of each first."""
