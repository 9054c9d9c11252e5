"""transformers 5.0 to 5.24, 4.57.6, 4.52.4 and 4.43.4 as rules.

Read from `modeling_rope_utils`, the configuration classes and the model files; the releases were also run
(tests/goldens/releases.json, and releases_5.json for every minor release of 5). What a minor release does otherwise
than 5.24.0 is above `build_minor`; in which releases, the record of a model type says under "transformers 5".
"""

from __future__ import annotations

import math

from rope_viz.embedding.spec import require_number, short_repr
from rope_viz.models.rope_parameters import telechat_growth
from rope_viz.runtimes import shared_rules as shared
from rope_viz.runtimes.known_types import find_missing_wrapper
from rope_viz.runtimes.known_types import has_type as lists_type
from rope_viz.runtimes.releases import MINORS, is_between
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
    is_not,
    is_scaled,
    refuse,
    require_by_type,
    rule,
)
from rope_viz.runtimes.shared_rules import TRANSFORMERS, TRANSFORMERS_4
from rope_viz.runtimes.texts import TEXTS
from rope_viz.runtimes.transformers_validation import STRICT_CLASSES, asks_for, refuse_values

# The last one came with 5.0.
KNOWN = ("default", "linear", "dynamic", "yarn", "llama3", "longrope", "proportional")
# `since` of a record is the first of these releases that has the type; the lists of 5 know it by minor release.
NEWEST_FIRST = ("5.24.0", "5.23.0", "4.57.6", "4.52.4", "4.43.4")
FIVE = "transformers 5"

CONFIG_CLASS = (refuse_values, shared.rename_su, shared.prefer_top_original, shared.fill_original)
"""The rules of the configuration classes of transformers 5, with which vLLM and SGLang also start."""


NO_FUNCTION = "transformers.no_function"
REQUIRED = (
    refuse("transformers.yarn_needs", has_type("yarn"), lambda case: "factor" not in case.rope),
    require_by_type(linear=("factor",), dynamic=("factor",), llama3=shared.LLAMA3_KEYS, longrope=shared.LISTS),
)
"""The keys without which the configuration class or the function raises KeyError."""


def multiplies_null_head(case: Case) -> bool:
    """Return whether the function of this type multiplies head_dim, and the config has none."""
    is_multiplied = has_type("dynamic", "yarn", "longrope")(case)
    # HunYuan computes dynamic with alpha itself.
    return is_multiplied and case.fields.raw("head_dim") is None and not case.rope.get("alpha")


NULL_HEAD = "transformers.null_head"
NULL_HEAD_5 = refuse(NULL_HEAD, multiplies_null_head, asks_for("null_head_dim"))
NULL_HEAD_4 = refuse(NULL_HEAD, multiplies_null_head, has(TRANSFORMERS_4, "null_head_dim"))


@rule("dbrx-base", has(TRANSFORMERS, "dbrx_base"))
def ignore_inner_base(case: Case) -> Case:
    """attn_config.rope_theta is not read: the base is rope_theta at the top, or 10000."""
    inner = case.fields.mapping("attn_config") or {}
    params = case.fields.mapping("rope_scaling") or case.fields.mapping("rope_parameters") or {}
    if inner.get("rope_theta") is None or params.get("rope_theta") is not None:
        return case
    return case.replace(base=case.fields.theta())


@rule("telechat-growth", has(TRANSFORMERS, "telechat_growth"))
def grow_telechat(case: Case) -> Case:
    """Beyond training_seqlen the base grows with the length in steps, and the factor on cos and sin with it."""
    trained = case.fields.size("training_seqlen") or case.limit
    if case.length is None or case.length <= trained:
        return case
    grown = 10_000.0 * telechat_growth(case.fields, case.length) ** (case.head_dim / (case.head_dim - 2))
    return case.replace(base=grown, attention=0.1 * math.log(case.length / trained) + 1.0)


V5 = (
    refuse_values,
    grow_telechat,
    ignore_inner_base,
    shared.rename_su,
    refuse(NO_FUNCTION, is_not(has_type(*KNOWN))),
    shared.prefer_top_original,
    shared.fill_original,
    *REQUIRED,
    NULL_HEAD_5,
    *STRICT_CLASSES,
    shared.ignore_nested_truncate,
    shared.scale_softmax,
)


def accept_three_keys(case: Case) -> Case:
    """Raise `Refused` as Phi3Config before 5 does, which takes {type, short_factor, long_factor}."""
    scaled = case.fields.config.get("rope_scaling")
    if not scaled or case.kind == "default":
        return case
    names = set(scaled) - {"type", "rope_type"}
    if names != {"short_factor", "long_factor"} or case.kind not in ("longrope", "yarn"):
        raise Refused(TEXTS("transformers.phi3config_accepts"))
    for key in ("short_factor", "long_factor"):
        values = case.rope.get(key)
        if not isinstance(values, (list, tuple)) or len(values) != case.rotary_dim // 2:
            raise Refused(TEXTS("transformers.phi3config_needs", rotary_dim=case.rotary_dim // 2, key=key))
    # With "rope_type" alone the class raises; what follows is computed as if "type" were there.
    return case if "type" in scaled else case.with_rope(type=case.kind)


@rule("longrope-top-original", has_type("longrope"))
def need_top_original(case: Case) -> Case:
    """longrope reads the original length only at the top of the config."""
    outer = case.top_original
    if outer is not None:
        return case.with_rope(**{ORIGINAL: outer, "factor": case.limit / outer})
    if case.rope.get("factor") is None:
        raise Refused(TEXTS("transformers.longrope_needs"))
    return case.with_rope(**{ORIGINAL: case.limit})


@rule("factor-replaced", has_type("yarn"))
def replace_factor(case: Case) -> Case:
    """yarn replaces factor by max_position_embeddings / original_max_position_embeddings."""
    return case.with_rope(factor=case.limit / case.original) if case.rope.get(ORIGINAL) is not None else case


@rule("yarn-from-limit", has_type("yarn"))
def compute_yarn_from_limit(case: Case) -> Case:
    """yarn computes its range from max_position_embeddings; original_max_position_embeddings, mscale and truncate are
    not read."""
    explicit = case.rope.get("attention_factor")
    attention = 0.1 * math.log(case.number("factor")) + 1.0 if explicit is None else None
    return ignore(ORIGINAL, "mscale", "mscale_all_dim", "truncate")(case).replace(attention=attention)


@rule("longrope-once", has(TRANSFORMERS_4, "shared_functions_4.43"), has_type("longrope"))
def take_long_list_once(case: Case) -> Case:
    """longrope always uses the long list if the model is extended."""
    if case.rope.get("attention_factor") is None:
        raise Refused(TEXTS("transformers.typeerror_check"))
    longer = case.number("factor") > 1 or (case.top_original or case.limit) < case.limit
    return case.replace(length=case.original + 1 if longer else None)


def accept_two_keys(case: Case) -> Case:
    """Raise `Refused` as classes do that take {type, factor}, linear or dynamic, and a float above 1."""
    scaled = case.fields.config.get("rope_scaling")
    if not scaled:
        return case
    factor = case.rope.get("factor")
    if set(scaled) != {"type", "factor"} or case.kind not in ("linear", "dynamic") or not isinstance(factor, float):
        raise Refused(TEXTS("transformers.config_class"))
    if factor <= 1:
        raise Refused(TEXTS("transformers.config_class_needs"))
    return case


def refuse_later_types(version: str) -> Rule:
    """Return the rule of a release that refuses the model types that it does not have, those of wrappers included."""
    later = NEWEST_FIRST[: NEWEST_FIRST.index(version)]

    def change(case: Case) -> Case:
        missing = find_missing_wrapper(TRANSFORMERS, version, case.fields.wrappers)
        if missing or case.architecture.since in later:
            shown = short_repr(missing or case.model).strip("'")
            raise Refused(TEXTS("transformers.model_type", shown=shown, version=version))
        return case

    return Rule("refused", "transformers.later_types", change, values={"version": version})


def build_old(version: str) -> tuple[Rule, ...]:
    """Return the rules of every release before 5."""
    return (
        refuse_later_types(version),
        refuse("transformers.remote_code", lambda case: case.architecture.remote_code),
        shared.read_old_keys,
        Rule(
            "phi3-three-keys",
            "transformers.phi3_three_keys",
            accept_three_keys,
            has(TRANSFORMERS_4, "phi3_three_keys"),
        ),
        shared.rename_su,
        refuse(NO_FUNCTION, is_not(has_type(*KNOWN[:-1]))),
        *REQUIRED,
        require_by_type(llama3=(ORIGINAL,)),
    )


SHARED = (
    Rule(
        "strict-config",
        "transformers.strict_config",
        accept_two_keys,
        has(TRANSFORMERS_4, "exact_rope_scaling"),
    ),
    refuse(
        "transformers.keyerror_rope_scaling",
        has(TRANSFORMERS_4, "needs_rope_type"),
        is_scaled,
        lambda case: "rope_type" not in case.rope,
    ),
    NULL_HEAD_5,
    NULL_HEAD_4,
    shared.share_base,
    Rule("partial-everywhere", "transformers.partial_everywhere", shared.rotate_share),
    need_top_original,
)
"""The rules of releases whose models all share the functions."""

V457 = (
    *build_old("4.57.6"),
    *SHARED,
    shared.scale_softmax.where(is_not(has(TRANSFORMERS_4, "no_mla_softmax_4.57"))),
)
V452 = (
    *build_old("4.52.4"),
    refuse("transformers.modernbert_cannot", has(TRANSFORMERS_4, "unscalable_4.52"), is_scaled),
    *SHARED,
    Rule("no-truncate", "transformers.no_truncate", ignore("truncate"), has_type("yarn")),
    replace_factor,
    shared.scale_softmax,
)
V443 = (
    *build_old("4.43.4"),
    Rule(
        "own-class",
        "transformers.own_class",
        accept_two_keys,
        has(TRANSFORMERS_4, "own_class_4.43"),
    ),
    Rule(
        "unscaled",
        "transformers.unscaled",
        Case.drop_scaling,
        is_not(has(TRANSFORMERS_4, "shared_functions_4.43", "phi3_three_keys", "own_class_4.43")),
    ),
    shared.derive_head.where(has(TRANSFORMERS_4, "shared_functions_4.43")),
    Rule(
        "partial-llama",
        "transformers.partial_llama",
        shared.rotate_share,
        has(TRANSFORMERS_4, "shared_functions_4.43"),
    ),
    Rule(
        "phi3-no-partial",
        "transformers.phi3_no_partial",
        lambda case: accept_three_keys(case.replace(share=1.0)),
        all_hold(has(TRANSFORMERS_4, "phi3_three_keys"), lambda case: case.share < 1.0),
    ),
    need_top_original,
    take_long_list_once,
    compute_yarn_from_limit,
    shared.FAST_FIRST,
)


def lasts_in(version: str, fact: str) -> Test:
    """Return a test whether the record says this of a minor release: until one, or from one until another."""

    def test(case: Case) -> bool:
        return is_between(version, case.architecture.runtime(FIVE).get(fact))

    return test


def lacks_type(version: str) -> Rule:
    """Return the rule of a minor release that refuses the model types that its own list does not have."""

    def change(case: Case) -> Case:
        missing = find_missing_wrapper(TRANSFORMERS, version, case.fields.wrappers)
        is_later = lists_type(TRANSFORMERS, NEWEST_FIRST[0], case.model) and not case.fields.wrappers
        if missing or (is_later and lists_type(TRANSFORMERS, version, case.model) is False):
            shown = short_repr(missing or case.model).strip("'")
            raise Refused(TEXTS("transformers.model_type", shown=shown, version=version))
        return case

    return Rule("refused", "transformers.later_types", change, values={"version": version})


@rule("one-embedding")
def share_embedding(case: Case) -> Case:
    """All layers have the base and the scaling of the config; the sliding ones are not left alone."""
    given = case.fields.mapping("rope_parameters") or case.fields.mapping("rope_scaling") or {}
    rope = {key: value for key, value in given.items() if key not in ("rope_theta", "partial_rotary_factor")}
    base = given.get("rope_theta") or case.fields.config.get("rope_theta") or 10_000.0
    require_number(base, "rope_theta", above=1.0, most=1e30)
    return case.replace(rope=rope or {"rope_type": "default"}, base=float(base), nested=False)


@rule("whole-head")
def rotate_whole_head(case: Case) -> Case:
    """Without scaling the whole head rotates: partial_rotary_factor and its default are not read."""
    return case.replace(plain_share=1.0)


@rule("rotary-dim-unread", lambda case: case.fields.config.get("rotary_dim") is not None)
def ignore_rotary_dim(case: Case) -> Case:
    """rotary_dim is not read: without partial_rotary_factor the whole head rotates."""
    given = case.fields.config.get("partial_rotary_factor")
    return shared.set_share(case, case.share if given is not None else 1.0)


@rule("own-head-dim")
def take_own_head_dim(case: Case) -> Case:
    """head_dim is the size of the part that rotates, not qk_rope_head_dim, and partial_rotary_factor is read."""
    found = case.fields.raw("head_dim") or case.fields.default("head_dim")
    return shared.rotate_share(case.replace(head_dim=int(found)))


@rule("top-base-unread", lambda case: "rope_theta" in case.fields.config)
def ignore_top_base(case: Case) -> Case:
    """rope_theta at the top is not read: the base is that of the rope dict, or 10000."""
    given = case.fields.mapping("rope_parameters") or case.fields.mapping("rope_scaling") or {}
    return case if given.get("rope_theta") else case.replace(base=10_000.0)


@rule("share-at-top")
def prefer_top_share(case: Case) -> Case:
    """partial_rotary_factor at the top, or its default, overrides the one in the rope dict."""
    given = case.fields.mapping("rope_parameters") or case.fields.mapping("rope_scaling") or {}
    top = case.fields.config.get("partial_rotary_factor", case.fields.default("partial_rotary_factor"))
    if case.nested or "partial_rotary_factor" not in given or top is None:
        return case
    require_number(top, "partial_rotary_factor", above=0.0, most=1.0)
    plain = float(top) if case.plain_share == case.share else case.plain_share
    return case.replace(share=float(top), plain_share=plain)


def _has_indexed_layers(case: Case) -> bool:
    layers = case.fields.config.get("layer_types")
    return isinstance(layers, list) and "indexed_attention" in layers


UNKNOWN_LAYERS = refuse(
    "transformers.valueerror_layer_types",
    _has_indexed_layers,
)


def build_minor(version: str) -> tuple[Rule, ...]:
    """Return the rules of an older minor release of 5."""

    def until(minor: str, *rules: Rule) -> tuple[Rule, ...]:
        return rules if is_between(version, minor) else ()

    return (
        lacks_type(version),
        *until("5.5", refuse("transformers.keyerror_proportional", has_type("proportional"))),
        refuse("transformers.no_original", lasts_in(version, "misses_original"), has_type("yarn")),
        refuse(
            "transformers.keyerror_factor",
            lasts_in(version, "reads_factor"),
            is_scaled,
            lambda case: not case.rope.get("factor"),
        ),
        UNKNOWN_LAYERS.where(lasts_in(version, "no_indexed_layers")),
        *until("5.17", prefer_top_share),
        share_embedding.where(lasts_in(version, "one_embedding")),
        rotate_whole_head.where(lasts_in(version, "whole_head")),
        ignore_rotary_dim.where(lasts_in(version, "rotary_dim_unread")),
        take_own_head_dim.where(lasts_in(version, "own_head_dim")),
        ignore_top_base.where(lasts_in(version, "top_base_unread")),
        *V5[:-1],
        shared.scale_softmax.where(is_not(lasts_in(version, "plain_softmax"))),
    )


RULES: dict[str, tuple[Rule, ...]] = {
    NEWEST_FIRST[0]: V5,
    **{version: build_minor(version) for version in MINORS},
    **dict(zip(NEWEST_FIRST[2:], (V457, V452, V443), strict=True)),
}
