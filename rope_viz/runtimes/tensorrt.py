"""TensorRT-LLM as rules: indicative only, read from two stored snapshots that may not belong together.

`RopeEmbeddingUtils` of functional.py@0071496 was run; `RopeParams.from_config` of interface.py@000a01d was read.
"""

from __future__ import annotations

from rope_viz.runtimes.rule_engine import (
    ORIGINAL,
    Case,
    Refused,
    Rule,
    assume,
    has,
    has_type,
    ignore,
    mscale_of,
    ordered_bands,
    refuse,
    require,
    static_base,
    when,
)
from rope_viz.runtimes.transformers import top_original


def neox_dim(case: Case) -> Case:
    """from_config takes rotary_emb_base for the rotary dimension."""
    if case.fields.config.get("rotary_emb_base") is None:
        return case
    raise Refused("the rotary dimension is read from rotary_emb_base (a bug of the version read)")


def yarn(case: Case) -> Case:
    """m(s, mscale) / m(s, mscale_all_dim) with the defaults 1 and 0, and no other key."""
    changed = ignore("attention_factor", "truncate")(case)
    return changed.replace(attention=mscale_of(case, "mscale", 1.0) / mscale_of(case, "mscale_all_dim"))


def outer_original(case: Case) -> Case:
    """The trained length at the top wins."""
    outer = top_original(case)
    return case if outer is None or case.kind == "default" else case.with_rope(**{ORIGINAL: outer})


def once(case: Case) -> Case:
    """longrope: chosen once by max_seq_len, long where it is not given."""
    longer = case.length is None or case.length > case.original
    return ignore("attention_factor", "factor")(case.replace(length=case.original + 1 if longer else None))


RULES = (
    Rule(
        "not-run", "This architecture was not run.", when(has("tensorrt-llm", "not_run"), refuse("not run for {model}"))
    ),
    Rule(
        "neox-dim",
        "from_config takes rotary_emb_base for the rotary dimension.",
        when(has("tensorrt-llm", "neox_dim"), neox_dim),
    ),
    Rule(
        "partial-everywhere",
        "partial_rotary_factor is honoured by every model.",
        lambda case: case.replace(plain_share=case.share),
    ),
    Rule("original-at-top", f"A {ORIGINAL} outside the rope dict wins over the one inside.", outer_original),
    Rule(
        "yarn-original",
        f"yarn takes a missing {ORIGINAL} to be 1024.",
        when(has_type("yarn"), assume(**{ORIGINAL: 1024})),
    ),
    Rule("missing-factor", "A missing factor is taken to be 1.", when(has_type("linear", "yarn"), assume(factor=1.0))),
    Rule(
        "yarn-attention",
        "yarn reads no attention_factor and no truncate; mscale counts alone, mscale_all_dim is 0.",
        when(has_type("yarn"), yarn),
    ),
    Rule(
        "dynamic-alpha",
        "dynamic needs alpha: factor raises KeyError.",
        when(has_type("dynamic"), lambda case: static_base(lambda c: c.number("alpha"))(require("alpha")(case))),
    ),
    Rule(
        "llama3-defaults",
        "llama3 fills in missing keys: factor 8, bands 1 and 4, trained length 8192.",
        when(has_type("llama3"), assume(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, **{ORIGINAL: 8192})),
    ),
    Rule(
        "longrope-required",
        "longrope without its lists raises.",
        when(has_type("longrope"), require("short_factor", "long_factor")),
    ),
    Rule(
        "longrope-once",
        "longrope is chosen once by max_seq_len; attention_factor and factor are ignored.",
        when(has_type("longrope"), once),
    ),
    Rule(
        "fast-first", "A pair above high_freq_factor keeps its speed even where the bounds are swapped.", ordered_bands
    ),
    Rule(
        "mla-unknown",
        "The softmax scale was not measured.",
        when(lambda case: case.mla, lambda case: case.replace(softmax=None)),
    ),
)
