"""transformers 5.23.0, 4.57.6, 4.52.4 and 4.43.4 as rules, and the formulas of the papers.

Read from `modeling_rope_utils`, the configuration classes and the model files of each release; the four releases were
also run (tests/goldens/runtimes.json).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from rope_viz.models.rope_parameters import telechat_growth
from rope_viz.runtimes.rule_engine import (
    ORIGINAL,
    Case,
    Refused,
    Rule,
    has,
    has_type,
    ignore,
    mscale_of,
    ordered_bands,
    plainly,
    refuse,
    require,
    when,
)
from rope_viz.runtimes.transformers_validation import STRICT_CLASSES, VALUES

TRANSFORMERS_4, TRANSFORMERS = "transformers 4", "transformers"
# The last one came with 5.0.
KNOWN = ("default", "linear", "dynamic", "yarn", "llama3", "longrope", "proportional")
# The releases that are emulated: `since` of a record is the first of them that has the type.
SINCE = ("4.43.4", "4.52.4", "4.57.6", "5.23.0")


def top_original(case: Case) -> int | None:
    """original_max_position_embeddings outside the rope dict."""
    value = case.fields.number(ORIGINAL, least=1, integer=True)
    return None if value is None else int(value)


def original_from_top(case: Case) -> Case:
    """The length outside the dict wins over the one inside."""
    outer = top_original(case)
    extended = has_type("yarn", "llama3", "longrope")(case) and not case.nested
    return case.with_rope(**{ORIGINAL: outer}) if extended and outer is not None else case


def original_from_limit(case: Case) -> Case:
    """A missing trained length is taken to be max_position_embeddings."""
    extended = has_type("yarn", "llama3", "longrope")(case) and case.rope.get(ORIGINAL) is None
    return case.with_rope(**{ORIGINAL: case.limit}) if extended else case


def mla_softmax(case: Case) -> Case:
    """DeepSeek's attention multiplies its softmax scale by m(s, mscale_all_dim)²."""
    if not case.mla or case.kind == "default" or not case.rope.get("mscale_all_dim"):
        return case
    return case.replace(softmax=mscale_of(case, "mscale_all_dim") ** 2)


def null_head(release_4: bool) -> Callable[[Case], Case]:
    """TypeError where head_dim is null and the function multiplies it by the rotated share."""

    def change(case: Case) -> Case:
        null = case.architecture.validation.null_head_dim
        null = null or (release_4 and bool(case.architecture.runtime(TRANSFORMERS_4).get("null_head_dim")))
        absent = case.fields.raw("head_dim") is None and null
        # HunYuan computes dynamic with alpha itself.
        if absent and has_type("dynamic", "yarn", "longrope")(case) and not case.rope.get("alpha"):
            raise Refused(f"TypeError: {case.kind} multiplies head_dim, which is null")
        return case

    return change


def olmo3_sliding(case: Case) -> Case:
    """Releases before 5 and the runtimes with an OLMo 3 of their own use one base for all layers."""
    if case.layer != "sliding_attention" or case.fields.config.get("rope_theta") is None:
        return case
    return case.replace(base=case.fields.theta())


def needs_rope_type(case: Case) -> Case:
    """A rope dict with the old key "type" alone."""
    if case.kind == "default" or "rope_type" in case.rope:
        return case
    raise Refused("KeyError: rope_scaling needs rope_type")


def required(case: Case) -> Case:
    """The keys without which the configuration class or the function raises KeyError."""
    keys = {
        "linear": ("factor",),
        "dynamic": ("factor",),
        "llama3": ("factor", "low_freq_factor", "high_freq_factor"),
        "longrope": ("short_factor", "long_factor"),
    }
    if case.kind == "yarn" and "factor" not in case.rope:
        raise Refused("yarn needs factor")
    return require(*keys.get(case.kind, ()))(case)


SU_IS_LONGROPE = Rule(
    "phi3-renamed",
    'For Phi-3 the types "su" and "yarn" are old names of "longrope".',
    when(
        lambda case: has(TRANSFORMERS, "su_is_longrope")(case) and has_type("yarn")(case),
        lambda case: case.with_rope(rope_type="longrope"),
    ),
)
UNKNOWN_TYPE = Rule(
    "unknown-type",
    "A rope type outside its table raises KeyError.",
    when(lambda case: case.kind not in KNOWN, refuse("no rope type {kind} in its table of functions")),
)
TOP_ORIGINAL = Rule(
    "original-at-top", f"A {ORIGINAL} outside the rope dict wins over the one inside.", original_from_top
)
FILL_ORIGINAL = Rule(
    "original-filled",
    f"A missing {ORIGINAL} is silently taken to be max_position_embeddings.",
    original_from_limit,
)
NESTED_TRUNCATE = Rule(
    "nested-truncate",
    "truncate is read from the outer dict, so in parameters nested by layer type it is ignored.",
    when(lambda case: case.nested and case.kind == "yarn", ignore("truncate")),
)
MLA = Rule("mla-softmax", "The softmax scale is multiplied by m(s, mscale_all_dim)².", mla_softmax)

REQUIRED = Rule("required", "A missing required key raises KeyError.", required)
NULL_HEAD = "A head_dim that the class leaves null raises TypeError."
FAST_FIRST = Rule(
    "fast-first", "A pair above high_freq_factor keeps its speed even where the bounds are swapped.", ordered_bands
)
OLMO3_SLIDING = Rule(
    "olmo3-sliding-base",
    "OLMo 3's sliding layers use rope_theta like the full ones.",
    when(has(TRANSFORMERS_4, "one_base"), olmo3_sliding),
)

STANDARD = (VALUES, SU_IS_LONGROPE, TOP_ORIGINAL, FILL_ORIGINAL)
"""What the configuration classes of transformers 5 do, so what vLLM and SGLang start from."""


def dbrx(case: Case) -> Case:
    """The base of DBRX stands in attn_config; the rotary module looks for it at the top."""
    inner = case.fields.mapping("attn_config") or {}
    params = case.fields.mapping("rope_scaling") or case.fields.mapping("rope_parameters") or {}
    if inner.get("rope_theta") is None or params.get("rope_theta") is not None:
        return case
    return case.replace(base=case.fields.theta())


def telechat(case: Case) -> Case:
    """TeleChat beyond its training length: the base grows in steps, cos and sin by 0.1·ln(length / trained) + 1."""
    trained = case.fields.size("training_seqlen") or case.limit
    if case.length is None or case.length <= trained:
        return case
    grown = 10_000.0 * telechat_growth(case.fields, case.length) ** (case.head_dim / (case.head_dim - 2))
    return case.replace(base=grown, attention=0.1 * math.log(case.length / trained) + 1.0)


V5 = (
    VALUES,
    Rule(
        "telechat-growth",
        "Beyond training_seqlen the base grows with the length in steps, and the factor on cos and sin with it.",
        when(has(TRANSFORMERS, "telechat_growth"), telechat),
    ),
    Rule(
        "dbrx-base",
        "attn_config.rope_theta is not read: the base is rope_theta at the top, or 10000.",
        when(has(TRANSFORMERS, "dbrx_base"), dbrx),
    ),
    SU_IS_LONGROPE,
    UNKNOWN_TYPE,
    TOP_ORIGINAL,
    FILL_ORIGINAL,
    REQUIRED,
    Rule("null-head", NULL_HEAD, null_head(False)),
    *STRICT_CLASSES,
    NESTED_TRUNCATE,
    MLA,
)


def missing_in(version: str) -> Callable[[Case], bool]:
    """Whether this release does not have the architecture yet."""
    later = SINCE[SINCE.index(version) + 1 :]
    return lambda case: case.architecture.since in later


def old_keys_only(case: Case) -> Case:
    """Releases before 5 read rope_theta and rope_scaling at the top and know no rope_parameters."""
    config = case.fields.config
    if not config.get("rope_parameters") or config.get("rope_scaling"):
        return case
    return case.drop_scaling().replace(base=case.fields.theta(), share=1.0, plain_share=1.0)


def phi3_dict(case: Case) -> Case:
    """Phi3Config before 5 accepts exactly {type, short_factor, long_factor}, with one factor per pair."""
    scaled = case.fields.config.get("rope_scaling")
    if not scaled or case.kind == "default":
        return case
    names = set(scaled) - {"type", "rope_type"}
    if names != {"short_factor", "long_factor"} or case.kind not in ("longrope", "yarn"):
        raise Refused("its Phi3Config takes exactly type, short_factor and long_factor")
    for key in ("short_factor", "long_factor"):
        values = case.rope.get(key)
        if not isinstance(values, (list, tuple)) or len(values) != case.rotary_dim // 2:
            raise Refused(f"its Phi3Config wants {case.rotary_dim // 2} numbers in {key}")
    # With "rope_type" alone the class raises; what follows is computed as if "type" were there.
    return case if "type" in scaled else case.with_rope(type=case.kind)


def old_longrope(case: Case) -> Case:
    """Before 5 longrope reads the trained length outside the dict only, and then sets the factor itself."""
    outer = top_original(case)
    if outer is not None:
        return case.with_rope(**{ORIGINAL: outer, "factor": case.limit / outer})
    if case.rope.get("factor") is None:
        raise Refused("longrope needs factor where original_max_position_embeddings is not at the top")
    return case.with_rope(**{ORIGINAL: case.limit})


def ratio_as_factor(case: Case) -> Case:
    """4.52 uses max_position_embeddings over the trained length and not the factor."""
    return case.with_rope(factor=case.limit / case.original) if case.rope.get(ORIGINAL) is not None else case


def everywhere(case: Case) -> Case:
    """The shared plain function of release 4 knows partial_rotary_factor."""
    return case.replace(plain_share=case.share)


def derived_head(case: Case) -> Case:
    """The head dimension without head_dim."""
    return case.replace(head_dim=case.fields.required("hidden_size") // case.fields.required("num_attention_heads"))


def yarn_443(case: Case) -> Case:
    """4.43: the range comes from max_position_embeddings, and only attention_factor is read of the rest."""
    explicit = case.rope.get("attention_factor")
    attention = 0.1 * math.log(case.number("factor")) + 1.0 if explicit is None else None
    return ignore(ORIGINAL, "mscale", "mscale_all_dim", "truncate")(case).replace(attention=attention)


def longrope_443(case: Case) -> Case:
    """4.43, Llama: the long list once and for all where the model is extended."""
    if case.rope.get("attention_factor") is None:
        raise Refused("TypeError: its check compares a missing attention_factor with 0")
    longer = case.number("factor") > 1 or (top_original(case) or case.limit) < case.limit
    return case.replace(length=case.original + 1 if longer else None)


def own_class(case: Case) -> Case:
    """4.43: these classes take exactly {type, factor}, linear or dynamic, and a float above 1."""
    scaled = case.fields.config.get("rope_scaling")
    if not scaled:
        return case
    factor = case.rope.get("factor")
    if set(scaled) != {"type", "factor"} or case.kind not in ("linear", "dynamic") or not isinstance(factor, float):
        raise Refused("its config class takes exactly type (linear or dynamic) and factor, a float above 1")
    if factor <= 1:
        raise Refused("its config class wants a factor above 1")
    return case


def old(version: str) -> tuple[Rule, ...]:
    """What every release before 5 does."""
    return (
        Rule(
            "no-such-model",
            f"transformers {version} does not have this architecture.",
            when(missing_in(version), refuse(f"model type {{model}} does not exist in transformers {version}")),
        ),
        Rule(
            "remote-code",
            "The model's code travels with the model.",
            when(lambda case: case.architecture.remote_code, refuse("{model} is remote code, not in transformers")),
        ),
        Rule(
            "old-keys-only",
            "Only rope_theta and rope_scaling at the top are read; rope_parameters is not known.",
            old_keys_only,
        ),
        Rule(
            "phi3-three-keys",
            "Phi3Config accepts exactly type, short_factor and long_factor.",
            when(has(TRANSFORMERS_4, "phi3_three_keys"), phi3_dict),
        ),
        SU_IS_LONGROPE,
        Rule(
            "unknown-type",
            UNKNOWN_TYPE.text,
            when(lambda case: case.kind not in KNOWN[:-1], refuse("no rope type {kind} in its table of functions")),
        ),
        REQUIRED,
        Rule(
            "llama3-original",
            f"llama3 without {ORIGINAL} raises KeyError.",
            when(has_type("llama3"), require(ORIGINAL)),
        ),
    )


LONGROPE_TOP = Rule(
    "longrope-top-original",
    "longrope reads the trained length at the top of the config only.",
    when(has_type("longrope"), old_longrope),
)
SHARED = (
    Rule(
        "strict-config",
        "The configuration class accepts exactly type and factor, linear or dynamic.",
        when(has(TRANSFORMERS_4, "exact_rope_scaling"), own_class),
    ),
    Rule(
        "old-type-key",
        "The configuration class knows rope_type only.",
        when(has(TRANSFORMERS_4, "needs_rope_type"), needs_rope_type),
    ),
    Rule("null-head", NULL_HEAD, null_head(True)),
    OLMO3_SLIDING,
    Rule("partial-everywhere", "The shared plain function honours partial_rotary_factor.", everywhere),
    LONGROPE_TOP,
)
"""What the releases do whose models all share the functions."""

V457 = (
    *old("4.57.6"),
    *SHARED,
    Rule("mla-softmax", MLA.text, when(lambda case: not has(TRANSFORMERS_4, "no_mla_softmax_4.57")(case), mla_softmax)),
)
V452 = (
    *old("4.52.4"),
    Rule(
        "modernbert-unscaled",
        "ModernBERT passes no config to the shared function: any scaling raises.",
        when(
            lambda case: has(TRANSFORMERS_4, "unscalable_4.52")(case) and case.kind != "default",
            refuse("ModernBERT cannot be scaled"),
        ),
    ),
    *SHARED,
    Rule(
        "no-truncate", "truncate is not known: the range is always rounded.", when(has_type("yarn"), ignore("truncate"))
    ),
    Rule(
        "factor-replaced",
        f"yarn replaces factor by max_position_embeddings / {ORIGINAL}.",
        when(has_type("yarn"), ratio_as_factor),
    ),
    MLA,
)
V443 = (
    *old("4.43.4"),
    Rule(
        "own-class",
        "The class knows linear and dynamic only, and its config accepts exactly type and factor.",
        when(has(TRANSFORMERS_4, "own_class_4.43"), own_class),
    ),
    Rule(
        "unscaled",
        "The architecture has a rotary class of its own without any scaling: rope_scaling is ignored.",
        when(
            lambda case: not has(TRANSFORMERS_4, "shared_functions_4.43", "phi3_three_keys", "own_class_4.43")(case),
            plainly,
        ),
    ),
    Rule(
        "head-dim-derived",
        "The head dimension is hidden_size / num_attention_heads; head_dim is not read.",
        when(has(TRANSFORMERS_4, "shared_functions_4.43"), derived_head),
    ),
    Rule(
        "partial-llama",
        "The shared plain function honours partial_rotary_factor.",
        when(has(TRANSFORMERS_4, "shared_functions_4.43"), everywhere),
    ),
    Rule(
        "phi3-no-partial",
        "Phi-3 rotates the whole head and its config wants as many factors.",
        when(
            lambda case: has(TRANSFORMERS_4, "phi3_three_keys")(case) and case.share < 1.0,
            lambda case: phi3_dict(case.replace(share=1.0)),
        ),
    ),
    LONGROPE_TOP,
    Rule(
        "longrope-once",
        "longrope takes the long list once and for all where the model is extended.",
        when(
            lambda case: has(TRANSFORMERS_4, "shared_functions_4.43")(case) and has_type("longrope")(case), longrope_443
        ),
    ),
    Rule(
        "yarn-from-limit",
        f"yarn computes its range from max_position_embeddings; {ORIGINAL}, mscale and truncate are not read.",
        when(has_type("yarn"), yarn_443),
    ),
    FAST_FIRST,
)

RELEASES: dict[str, tuple[Rule, ...]] = {"5.23.0": V5, "4.57.6": V457, "4.52.4": V452, "4.43.4": V443}
