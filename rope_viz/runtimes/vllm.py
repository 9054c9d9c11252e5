"""vLLM 0.33.0 as rules over what the configuration classes of transformers 5 hand over.

Read from `vllm/model_executor/layers/rotary_embedding`, the model files and `vllm/transformers_utils/config.py`; its
rotary package was run (tests/goldens/runtimes.json).
"""

from __future__ import annotations

import math

from rope_viz.embedding.scaling import mscale
from rope_viz.models.rope_config import TELECHAT3_WEIGHT, TELECHAT3_YARN
from rope_viz.runtimes import shared_rules as shared
from rope_viz.runtimes.releases import OLDER
from rope_viz.runtimes.rule_engine import (
    ORIGINAL,
    Case,
    Refused,
    Rule,
    all_hold,
    has,
    has_type,
    ignore,
    is_not,
    refuse,
    require,
    require_by_type,
    rule,
    static_base,
)
from rope_viz.runtimes.texts import TEXTS
from rope_viz.runtimes.transformers import CONFIG_CLASS

KNOWN = ("default", "linear", "dynamic", "ntk", "yarn", "llama3", "longrope", "proportional")


def is_native(case: Case) -> bool:
    """Return whether vLLM has a model file of its own."""
    return case.architecture.runtime("vllm").get("file") != "transformers" and not shared.is_foreign(case, "vllm")


@rule("rope-dim", is_native)
def read_rope_dim(case: Case) -> Case:
    """rope_dim, if given, is the number of rotated dimensions."""
    if not case.rope.get("rope_dim"):
        return case
    share = min(case.number("rope_dim") / case.head_dim, 1.0)
    return shared.set_share(case, share) if share > 0 else case


@rule("gpt-oss-keys", has("vllm", "gpt_oss_keys"))
def pass_gpt_oss_keys(case: Case) -> Case:
    """Only factor, original length, betas and truncate are passed."""
    needed = require("factor", ORIGINAL, "beta_fast", "beta_slow")(case)
    return ignore("attention_factor", "mscale", "mscale_all_dim")(needed.with_rope(rope_type="yarn", type=None))


def table_growth(case: Case) -> float:
    """Return s·M/T − (s − 1), where T is max_trained_positions, M by default: so usually 1."""
    factor = case.number("factor")
    return factor * case.limit / case.number("max_trained_positions", case.limit) - (factor - 1.0)


@rule("longrope-attention", is_native, has_type("longrope"))
def derive_longrope_attention(case: Case) -> Case:
    """longrope ignores attention_factor and factor; the lengths give the factor."""
    return shared.read_mscales(case, case.length is not None and case.length > case.original)


@rule("telechat3-yarn", has_type(TELECHAT3_YARN))
def write_telechat3_factor(case: Case) -> Case:
    """telechat3-yarn becomes yarn with the attention factor 0.07 · ln s + 1."""
    factor = require("factor")(case).number("factor")
    if factor <= 0:
        raise Refused(TEXTS("vllm.valueerror_logarithm"))
    return case.with_rope(rope_type="yarn", type=None, attention_factor=TELECHAT3_WEIGHT * math.log(factor) + 1.0)


# Some models have heads of DeepSeek's kind, and files that leave the type of the scaling alone.
HAS_DEEPSEEK_YARN = is_not(has("vllm", "no_deepseek_yarn"))


def keeps_type(case: Case) -> bool:
    """Return whether a file leaves the type of the config as it is, and the config names plain yarn (sarvam.py)."""
    given = case.fields.mapping("rope_scaling") or {}
    is_named = "deepseek_yarn" in (given.get("type"), given.get("rope_type"))
    return has("vllm", "keeps_type")(case) and not is_named


MAKES_DEEPSEEK_YARN = all_hold(HAS_DEEPSEEK_YARN, is_not(keeps_type))

RULES = (
    refuse("vllm.vllm_registry", shared.is_absent("vllm")),
    shared.refuse_conflicting_types,
    write_telechat3_factor,
    *CONFIG_CLASS,
    shared.drop_for_dual_chunks(is_native),
    shared.use_transformers.where(is_not(is_native)),
    shared.unscaled("vllm", "vllm.unscaled"),
    refuse("vllm.unknown_rope", is_not(has_type(*KNOWN))),
    Rule(
        "partial-everywhere",
        "vllm.partial_everywhere",
        shared.rotate_share,
        all_hold(is_native, is_not(has("vllm", "whole_head"))),
    ),
    Rule(
        "whole-head",
        "vllm.whole_head",
        lambda case: shared.set_share(case, 1.0),
        has("vllm", "whole_head"),
    ),
    read_rope_dim,
    pass_gpt_oss_keys,
    # attention_factor 1.0 turns the type into deepseek_llama_scaling, which leaves the softmax.
    shared.DEEPSEEK_SOFTMAX.where(
        MAKES_DEEPSEEK_YARN, is_native, lambda case: case.rope.get("attention_factor") != 1.0
    ),
    shared.make_deepseek_yarn.where(MAKES_DEEPSEEK_YARN, is_native),
    shared.drop_attention_factor("vllm"),
    shared.scale_softmax.where(is_not(is_native)),
    shared.INTEGER_FACTOR.where(is_native),
    shared.DYNAMIC_ALPHA.where(is_native),
    require_by_type(
        yarn=("factor", ORIGINAL),
        llama3=(*shared.LLAMA3_KEYS, ORIGINAL),
        linear=("factor",),
        dynamic=("factor",),
        longrope=shared.LISTS,
    ),
    Rule(
        "dynamic-static",
        "vllm.dynamic_static",
        static_base(table_growth),
        all_hold(is_native, has_type("dynamic")),
    ),
    shared.fix_ntk,
    derive_longrope_attention,
    shared.PROPORTIONAL_FACTOR,
    shared.FAST_FIRST.where(is_native),
)

# Releases of vLLM and SGLang that people still run. Read from their rotary packages, of which that of SGLang 0.4.6
# was taken from vLLM; run together with their model files (tests/goldens/older.json). They start from the
# configuration classes of transformers 4.
OLDER_TYPES = ("default", "linear", "dynamic", "yarn", "llama3", "longrope")

# The first release of vLLM with the type "ntk" and with alpha for dynamic.
HAS_NTK = "0.10.2"


@rule("yarn-plain", has_type("yarn"), lambda case: not case.mla)
def pass_two_factors(case: Case) -> Case:
    """yarn takes attn_factor and extrapolation_factor; attention_factor, mscale and truncate are not known, and the
    range is always rounded."""
    needed = require("factor", ORIGINAL)(case)
    attention = mscale(case.number("factor")) * case.number("attn_factor", 1.0)
    changed = ignore("attention_factor", "truncate", "mscale", "mscale_all_dim")(needed)
    return changed.replace(attention=attention, kept_weight=case.number("extrapolation_factor", 1.0))


def build_older_rules(server: str, version: str) -> tuple[Rule, ...]:
    """Return the rules of one release."""
    at = f"{server} {version}"
    has_ntk = version == HAS_NTK
    return (
        refuse("vllm.no_model", shared.is_absent(at), server=at),
        shared.refuse_conflicting_types,
        shared.read_old_keys,
        shared.rename_su,
        shared.prefer_top_original,
        shared.unscaled(at),
        refuse("vllm.unknown_rope", is_not(has_type(*OLDER_TYPES, *(["ntk"] if has_ntk else [])))),
        shared.partial_share(at),
        shared.DEEPSEEK_SOFTMAX,
        shared.make_deepseek_yarn,
        pass_two_factors,
        shared.INTEGER_FACTOR,
        *((shared.DYNAMIC_ALPHA,) if has_ntk else ()),
        require_by_type(
            llama3=(*shared.LLAMA3_KEYS, ORIGINAL),
            linear=("factor",),
            dynamic=("factor",),
            longrope=(*shared.LISTS, ORIGINAL),
        ),
        Rule(
            "dynamic-static",
            "vllm.dynamic_static_every",
            static_base(shared.square_growth),
            has_type("dynamic"),
        ),
        shared.fix_ntk,
        shared.switch_late,
        shared.FAST_FIRST,
    )


OLDER_RULES = {release: build_older_rules(*release) for release in OLDER if release[0] in ("vllm", "sglang")}
"""By runtime and version."""
