"""Releases of vLLM and SGLang that people still run: 0.6.6, 0.8.5 and 0.10.2 of the one, 0.4.6 of the other, as rules.

Read from their rotary packages, of which that of SGLang 0.4.6 was taken from vLLM; run together with their model files
(tests/goldens/older.json). They start from the configuration classes of transformers 4.
"""

from __future__ import annotations

from rope_viz.embedding.scaling import mscale
from rope_viz.runtimes import shared_rules as shared
from rope_viz.runtimes.releases import OLDER
from rope_viz.runtimes.rule_engine import (
    ORIGINAL,
    Case,
    Rule,
    has_type,
    ignore,
    is_not,
    refuse,
    require,
    require_by_type,
    rule,
    static_base,
)

KNOWN = ("default", "linear", "dynamic", "yarn", "llama3", "longrope")
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


def build_rules(server: str, version: str) -> tuple[Rule, ...]:
    """Return the rules of one release."""
    at = f"{server} {version}"
    has_ntk = version == HAS_NTK
    return (
        refuse(f"no {{model}} model in {at}", shared.is_absent(at)),
        shared.refuse_conflicting_types,
        shared.read_old_keys,
        shared.rename_su,
        shared.prefer_top_original,
        shared.unscaled(at),
        refuse("unknown RoPE scaling type {kind}", is_not(has_type(*KNOWN, *(["ntk"] if has_ntk else [])))),
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
            "dynamic is static: at every length its base is that for factor times the trained length.",
            static_base(shared.square_growth),
            has_type("dynamic"),
        ),
        shared.fix_ntk,
        shared.switch_late,
        shared.FAST_FIRST,
    )


RULES = {release: build_rules(*release) for release in OLDER}
"""By runtime and version."""
