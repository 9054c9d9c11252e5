"""TensorRT-LLM as rules: indicative only, read from two stored snapshots that may not belong together.

`RopeEmbeddingUtils` of functional.py@0071496 was run; `RopeParams.from_config` of interface.py@000a01d was read.
"""

from __future__ import annotations

from rope_viz.runtimes import shared_rules as shared
from rope_viz.runtimes.rule_engine import (
    ORIGINAL,
    Case,
    Rule,
    assume,
    has,
    has_type,
    ignore,
    is_scaled,
    refuse,
    require,
    require_by_type,
    rule,
    static_base,
)

FACTS = "tensorrt-llm"


@rule("original-at-top", is_scaled)
def prefer_top_original(case: Case) -> Case:
    """An original_max_position_embeddings outside the rope dict overrides the one inside."""
    return case if case.top_original is None else case.with_rope(**{ORIGINAL: case.top_original})


@rule("dynamic-alpha", has_type("dynamic"))
def need_alpha(case: Case) -> Case:
    """dynamic needs alpha: factor alone raises KeyError."""
    return static_base(lambda one: one.number("alpha"))(require("alpha")(case))


@rule("longrope-once", has_type("longrope"))
def choose_once(case: Case) -> Case:
    """longrope is chosen once by max_seq_len; attention_factor and factor are ignored."""
    longer = case.length is None or case.length > case.original
    return ignore("attention_factor", "factor")(case.replace(length=case.original + 1 if longer else None))


RULES = (
    refuse("tensorrt.run", has(FACTS, "not_run")),
    # from_config takes rotary_emb_base for the rotary dimension.
    refuse(
        "tensorrt.rotary_dimension",
        has(FACTS, "neox_dim"),
        lambda case: case.fields.config.get("rotary_emb_base") is not None,
    ),
    Rule("partial-everywhere", "tensorrt.partial_everywhere", shared.rotate_share),
    prefer_top_original,
    Rule("yarn-original", "tensorrt.yarn_original", assume(**{ORIGINAL: 1024}), has_type("yarn")),
    Rule("missing-factor", "tensorrt.missing_factor", assume(factor=1.0), has_type("linear", "yarn")),
    shared.take_mscale_alone,
    need_alpha,
    refuse("tensorrt.rotaryscalingtype_type", has_type("ntk")),
    Rule(
        "llama3-defaults",
        "tensorrt.llama3_defaults",
        assume(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, **{ORIGINAL: 8192}),
        has_type("llama3"),
    ),
    require_by_type(longrope=shared.LISTS),
    choose_once,
    shared.FAST_FIRST,
    Rule(
        "mla-unknown",
        "tensorrt.mla_unknown",
        lambda case: case.replace(softmax=None),
        lambda case: case.mla,
    ),
)
