"""mlx-lm 0.32.2 as rules: `mlx_lm/models/rope_utils.py` and what each model file passes to it.

The models were run on mlx 0.32.4 for CPU (tests/goldens/runtimes.json).
"""

from __future__ import annotations

from rope_viz.embedding.spec import require_number
from rope_viz.runtimes.rule_engine import (
    ORIGINAL,
    Case,
    Refused,
    Rule,
    assume,
    has,
    has_type,
    ignore,
    is_absent,
    mscale_of,
    plainly,
    refuse,
    require,
    when,
)
from rope_viz.runtimes.transformers import OLMO3_SLIDING, derived_head, mla_softmax, top_original

KNOWN = ("default", "linear", "dynamic", "yarn", "llama3", "longrope", "proportional")
FACTS = "mlx-lm"


def old_keys_only(case: Case) -> Case:
    """Most model files read rope_theta and rope_scaling at the top."""
    config = case.fields.config
    if (
        has(FACTS, "ignores_class_defaults")(case)
        and not config.get("rope_scaling")
        and not config.get("rope_parameters")
    ):
        return case.drop_scaling().replace(base=case.fields.theta())
    if has(FACTS, "new_keys")(case) or not config.get("rope_parameters") or config.get("rope_scaling"):
        return case
    share = config.get("partial_rotary_factor") or case.fields.default("partial_rotary_factor") or 1.0
    base = config.get("rope_theta") or case.architecture.runtime(FACTS).get("base", 10_000.0)
    require_number(base, "rope_theta", above=1.0)
    require_number(share, "partial_rotary_factor", above=0.0, most=1.0)
    return case.drop_scaling().replace(base=float(base), share=float(share), plain_share=float(share))


def shares(case: Case) -> Case:
    """The rotated share where the model file reads one."""
    return (
        case.replace(plain_share=case.share)
        if has(FACTS, "partial")(case)
        else case.replace(share=1.0, plain_share=1.0)
    )


def old_type_first(case: Case) -> Case:
    """initialize_rope reads "type" before "rope_type", and knows "su" in phi3.py only."""
    named = case.rope.get("type") or case.rope.get("rope_type")
    if named == "su" and not has(FACTS, "knows_su")(case):
        raise Refused("unsupported RoPE type su")
    return case if named is None or case.rope.get("rope_type") is None else case.with_rope(rope_type=named)


def legacy_type(case: Case) -> Case:
    """phi3.py and internlm2.py raise without the old key "type"; what follows is computed as if it were there."""
    return case if case.kind == "default" or "type" in case.rope else case.with_rope(type=case.kind)


def phi3(case: Case) -> Case:
    """phi3.py: longrope and linear, the trained length from the top of the config, 4096 by default."""
    require("long_factor")(case)
    if case.kind == "longrope":
        return case.with_rope(**{ORIGINAL: top_original(case) or 4096})
    if case.kind == "linear" and not isinstance(case.rope.get("factor"), float):
        raise Refused("a linear factor must be a float")
    return case if case.kind == "linear" else case.drop_scaling()


def internlm2(case: Case) -> Case:
    """internlm2.py: linear and dynamic."""
    if case.kind not in ("linear", "dynamic"):
        raise Refused("rope_scaling supports linear and dynamic only")
    return require("factor")(case)


def some_types(case: Case) -> Case:
    """Model files that know some types only: they raise for the others, or leave them out."""
    facts = case.architecture.runtime(FACTS)
    known = facts.get("takes")
    if known is not None and case.kind not in known:
        raise Refused(f"{case.model}.py takes {' and '.join(known)} only")
    if facts.get("needs_alpha") and case.rope.get("alpha") is None:
        raise Refused("rope_scaling must contain alpha, factor and type")
    return case.drop_scaling() if case.kind not in facts.get("ignores_all_but", (case.kind,)) else case


def nemotron(case: Case) -> Case:
    """nemotron.py: linear, the type read under its old name too, and a factor that must be a float."""
    if case.kind != "linear":
        raise Refused("rope_scaling supports linear only")
    if not isinstance(require("factor")(case).rope["factor"], float):
        raise Refused("a linear factor must be a float")
    return case


def yarn(case: Case) -> Case:
    """m(s, mscale) / m(s, mscale_all_dim) with the defaults 1 and 0, and no other key."""
    changed = ignore("attention_factor", "truncate")(case)
    return changed.replace(attention=mscale_of(case, "mscale", 1.0) / mscale_of(case, "mscale_all_dim"))


def always_long(case: Case) -> Case:
    """longrope: the long list at every length, the factor on cos and sin from the lengths."""
    return ignore("attention_factor", "factor")(case.replace(length=case.original + 1))


RULES = (
    Rule(
        "no-such-model",
        "There is no model file for this architecture.",
        when(is_absent(FACTS), refuse("no mlx_lm model file for {model}")),
    ),
    Rule(
        "old-keys-only",
        "The model file reads rope_theta and rope_scaling at the top and knows no rope_parameters.",
        old_keys_only,
    ),
    Rule(
        "partial", "partial_rotary_factor is read by some model files only; the others rotate the whole head.", shares
    ),
    Rule(
        "head-dim-derived",
        "The head dimension is hidden_size / num_attention_heads; head_dim is not read.",
        when(has(FACTS, "derived_head"), derived_head),
    ),
    OLMO3_SLIDING,
    Rule(
        "some-types",
        "The model file knows some types of scaling only.",
        when(lambda case: case.kind != "default", some_types),
    ),
    Rule(
        "unscaled",
        "The model file uses plain nn.RoPE: any rope_scaling is silently ignored.",
        when(has(FACTS, "unscaled"), plainly),
    ),
    Rule("old-type-first", 'The old key "type" wins over "rope_type".', old_type_first),
    Rule(
        "legacy-type",
        'The model file raises ValueError without the old key "type"; computed as if it were there.',
        when(has(FACTS, "legacy_type"), legacy_type),
    ),
    Rule(
        "phi3",
        "phi3.py knows longrope and linear; the trained length is read at the top, 4096 by default.",
        when(lambda case: has(FACTS, "phi3_longrope")(case) and case.kind != "default", phi3),
    ),
    Rule(
        "nemotron",
        "nemotron.py knows linear.",
        when(lambda case: has(FACTS, "nemotron_linear")(case) and case.kind != "default", nemotron),
    ),
    Rule(
        "internlm2",
        "internlm2.py knows linear and dynamic.",
        when(lambda case: has(FACTS, "internlm2_types")(case) and case.kind != "default", internlm2),
    ),
    Rule(
        "unknown-type",
        "A rope type outside its list raises ValueError.",
        when(lambda case: case.kind not in KNOWN, refuse("unsupported RoPE type {kind}")),
    ),
    Rule(
        "required",
        "A missing factor raises KeyError.",
        when(has_type("linear", "dynamic", "yarn", "llama3"), require("factor")),
    ),
    Rule(
        "gpt-oss-no-limit",
        "gpt_oss.py passes no max_position_embeddings: dynamic and longrope raise TypeError.",
        when(
            lambda case: has(FACTS, "passes_no_limit")(case) and has_type("dynamic", "longrope")(case),
            refuse("TypeError: gpt_oss.py passes no max_position_embeddings for {kind}"),
        ),
    ),
    Rule(
        "longrope-required",
        "longrope without its lists or the trained length raises KeyError.",
        when(has_type("longrope"), require("short_factor", "long_factor", ORIGINAL)),
    ),
    Rule(
        "yarn-original",
        f"yarn takes a missing {ORIGINAL} to be 4096.",
        when(has_type("yarn"), assume(**{ORIGINAL: 4096})),
    ),
    Rule(
        "llama3-defaults",
        "llama3 takes missing bands to be 1 and 4 and a missing trained length to be 8192.",
        when(has_type("llama3"), assume(low_freq_factor=1.0, high_freq_factor=4.0, **{ORIGINAL: 8192})),
    ),
    Rule("mla-softmax", "The softmax scale is multiplied by m(s, mscale_all_dim)².", mla_softmax),
    Rule(
        "yarn-attention",
        "yarn reads no attention_factor and no truncate; mscale counts alone, mscale_all_dim is 0.",
        when(has_type("yarn"), yarn),
    ),
    Rule(
        "longrope-long",
        "longrope always uses the long list, and ignores attention_factor and factor.",
        when(has_type("longrope"), always_long),
    ),
)
