"""Rules that several runtimes have in common; the rotary package of SGLang was once taken from that of vLLM."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from rope_viz.embedding.spec import short_repr
from rope_viz.runtimes.known_types import find_missing_wrapper
from rope_viz.runtimes.releases import RELEASES
from rope_viz.runtimes.rule_engine import (
    ORIGINAL,
    Case,
    Refused,
    Rule,
    Test,
    all_hold,
    has,
    has_type,
    ignore,
    is_scaled,
    mscale_of,
    order_bands,
    refuse,
    require,
    rule,
    static_base,
)
from rope_viz.runtimes.texts import TEXTS

TRANSFORMERS, TRANSFORMERS_4 = "transformers", "transformers 4"
LISTS = ("short_factor", "long_factor")
LLAMA3_KEYS = ("factor", "low_freq_factor", "high_freq_factor")


def is_absent(at: str) -> Test:
    """Return a test whether a model type has a record, and no file in this runtime."""

    def test(case: Case) -> bool:
        facts = case.architecture.runtime(at)
        return (case.architecture.listed and "file" not in facts) or bool(facts.get("absent"))

    return test


def is_foreign(case: Case, runtime: str) -> bool:
    """Return whether a server has no class for the wrapper, so that the code of transformers runs the whole model."""
    return bool(find_missing_wrapper(runtime, RELEASES[runtime].today[0], case.fields.wrappers))


def unscaled(at: str, entry: str = "shared_rules.unscaled") -> Rule:
    """Return the rule of model files that read no scaling."""
    return Rule("unscaled", entry, Case.drop_scaling, has(at, "unscaled"))


def drop_attention_factor(at: str) -> Rule:
    """Return the rule of model files that multiply cos and sin by nothing."""
    return Rule(
        "deepseek-v4",
        "shared_rules.deepseek_v4",
        lambda case: case.replace(attention=1.0),
        has(at, "no_attention_factor"),
    )


def has_dual_chunks(case: Case) -> bool:
    """Return whether the config asks for dual chunk attention (Qwen2.5-1M)."""
    return isinstance(case.fields.config.get("dual_chunk_attention_config"), Mapping)


def drop_for_dual_chunks(is_native: Test) -> Rule:
    """Return the rule of get_rope, whose first branch is dual chunk attention."""
    return Rule("dual-chunk", "shared_rules.dual_chunk", Case.drop_scaling, all_hold(is_native, has_dual_chunks))


def partial_share(at: str) -> Rule:
    """Return the rule of model files that read the rotated share, or do not."""
    is_read = has(at, "partial")
    return Rule("partial", "shared_rules.partial", lambda case: set_share(case, case.share if is_read(case) else 1.0))


def set_share(case: Case, share: float) -> Case:
    """Return the case with this share of the head rotated, scaled or not."""
    return case.replace(share=share, plain_share=share)


def rotate_share(case: Case) -> Case:
    """Return the case with its share rotated without scaling too."""
    return case.replace(plain_share=case.share)


def square_growth(case: Case) -> float:
    """Return s² − (s − 1): what dynamic NTK of transformers reaches at s times the trained length."""
    factor = case.number("factor", 1.0)
    return factor * factor - (factor - 1.0)


def read_mscales(case: Case, longer: bool) -> Case:
    """Return a longrope case whose factor is in short_mscale or long_mscale, or else follows from the lengths."""
    key = "long_mscale" if longer else "short_mscale"
    changed = ignore("attention_factor", "factor")(case)
    return changed if case.rope.get(key) is None else changed.replace(attention=case.number(key))


def has_latent_heads(case: Case) -> bool:
    """Return whether DeepSeek's attention is scaled."""
    return case.mla and is_scaled(case)


# Keys of the config.


@rule("type-conflict")
def refuse_conflicting_types(case: Case) -> Case:
    """rope_type and type that differ raise ValueError."""
    new, old = case.rope.get("rope_type"), case.rope.get("type")
    if new is None or old is None or new == old or [old, new] in (["su", "longrope"], ["mrope", "default"]):
        return case
    raise Refused(TEXTS("shared_rules.rope_type_type", new=short_repr(new), old=short_repr(old)))


@rule("phi3-renamed", has(TRANSFORMERS, "su_is_longrope"), has_type("yarn"))
def rename_su(case: Case) -> Case:
    """For Phi-3 the types "su" and "yarn" are old names of "longrope"."""
    return case.with_rope(rope_type="longrope")


@rule("original-at-top", has_type("yarn", "llama3", "longrope"))
def prefer_top_original(case: Case) -> Case:
    """An original_max_position_embeddings outside the rope dict overrides the one inside."""
    return case if case.nested or case.top_original is None else case.with_rope(**{ORIGINAL: case.top_original})


@rule("original-filled", has_type("yarn", "llama3", "longrope"))
def fill_original(case: Case) -> Case:
    """A missing original_max_position_embeddings is silently replaced by max_position_embeddings."""
    return case if case.rope.get(ORIGINAL) is not None else case.with_rope(**{ORIGINAL: case.limit})


@rule("old-keys-only")
def read_old_keys(case: Case) -> Case:
    """Only rope_theta and rope_scaling at the top are read; rope_parameters is not read."""
    config = case.fields.config
    if not config.get("rope_parameters") or config.get("rope_scaling"):
        return case
    return set_share(case.drop_scaling().replace(base=case.fields.theta()), 1.0)


@rule("olmo3-sliding-base", has(TRANSFORMERS_4, "one_base"))
def share_base(case: Case) -> Case:
    """OLMo 3's sliding layers use rope_theta like the full ones."""
    if case.layer != "sliding_attention" or case.fields.config.get("rope_theta") is None:
        return case
    return case.replace(base=case.fields.theta())


@rule("nested-truncate", lambda case: case.nested, has_type("yarn"))
def ignore_nested_truncate(case: Case) -> Case:
    """truncate is read from the outer dict, so in parameters nested by layer type it is ignored."""
    return ignore("truncate")(case)


@rule("transformers-backend")
def use_transformers(case: Case) -> Case:
    """There is no native model: the rotary code is that of transformers."""
    case = case.replace(path="transformers")
    return ignore("truncate")(case) if ignore_nested_truncate.applies(case) else case


@rule("head-dim-derived")
def derive_head(case: Case) -> Case:
    """The head dimension is hidden_size / num_attention_heads; head_dim is not read."""
    return case.replace(head_dim=case.fields.required("hidden_size") // case.fields.required("num_attention_heads"))


@rule("mla-softmax", has_latent_heads, lambda case: bool(case.rope.get("mscale_all_dim")))
def scale_softmax(case: Case) -> Case:
    """The softmax scale is multiplied by m(s, mscale_all_dim)²."""
    return case.replace(softmax=mscale_of(case, "mscale_all_dim") ** 2)


# What get_rope of vLLM and SGLang does, and mlx-lm and TensorRT-LLM in part.


def deepseek_yarn(case: Case, factor: float = 1.0) -> Case:
    """Return a case of yarn that is always rounded, with this factor on cos and sin next to that of its mscales."""
    changed = ignore("attention_factor", "truncate")(case.with_rope(rope_type="yarn", type=None))
    return changed.replace(attention=mscale_of(changed, "mscale", 1.0) / mscale_of(changed, "mscale_all_dim") * factor)


@rule("deepseek-yarn", has_latent_heads)
def make_deepseek_yarn(case: Case) -> Case:
    """The type becomes deepseek_yarn: mscale 1 and mscale_all_dim 0 by default, always rounded."""
    return deepseek_yarn(require("factor", ORIGINAL)(case.with_rope(rope_type="yarn", type=None)))


@rule("ntk-fixed", has_type("ntk"))
def fix_ntk(case: Case) -> Case:
    """Type "ntk" divides pair i, counted from 1, by factor^(2i/d); with mixed_b the exponent is (2i/d)^mixed_b."""
    return rotate_share(case)


@rule("longrope-late", has_type("longrope"))
def switch_late(case: Case) -> Case:
    """longrope switches one token late, and ignores attention_factor and factor."""
    longer = case.length is not None and case.length > case.original + 1
    return read_mscales(case.replace(length=case.length if longer else None), longer)


@rule("yarn-attention", has_type("yarn"))
def take_mscale_alone(case: Case) -> Case:
    """yarn does not read attention_factor and truncate; mscale counts without mscale_all_dim, which is 0."""
    changed = ignore("attention_factor", "truncate")(case)
    return changed.replace(attention=mscale_of(case, "mscale", 1.0) / mscale_of(case, "mscale_all_dim"))


DEEPSEEK_SOFTMAX = dataclasses.replace(scale_softmax, key="deepseek-softmax")
FAST_FIRST = Rule("fast-first", "shared_rules.fast_first", order_bands)
INTEGER_FACTOR = refuse(
    "shared_rules.typeerror_linear", has_type("linear"), lambda case: type(case.rope.get("factor")) is int
)
DYNAMIC_ALPHA = Rule(
    "dynamic-alpha",
    "shared_rules.dynamic_alpha",
    static_base(lambda case: case.number("alpha")),
    all_hold(has_type("dynamic"), lambda case: case.rope.get("alpha") is not None),
)
PROPORTIONAL_FACTOR = Rule(
    "proportional-factor", "shared_rules.proportional_factor", ignore("factor"), has_type("proportional")
)
