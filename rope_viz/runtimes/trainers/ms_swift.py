"""ms-swift 4.6.0: `_init_rope_scaling` rewrites the scaling before transformers reads it, but not for Megatron.

Executed: swift/arguments/base_args/model_args.py and mcore_bridge/model/rope.py (tests/goldens/training.json).
"""

from __future__ import annotations

import math
from typing import Any

from rope_viz.embedding.spec import short_repr
from rope_viz.runtimes import transformers
from rope_viz.runtimes.rule_engine import ORIGINAL, Case, Refused, is_not, rule
from rope_viz.runtimes.texts import TEXTS
from rope_viz.runtimes.trainers.arguments import Trainer, argument, is_given, mapping, number, set_base, set_rope
from rope_viz.texts.texts import join_items

NAMED = ("linear", "dynamic", "yarn")


def find_original(case: Case, rope: dict[str, Any]) -> float:
    """Return the length that the factor is computed from, in tokens."""
    if rope.get(ORIGINAL) is not None:
        return float(rope[ORIGINAL])
    if case.rope.get(ORIGINAL) is not None:
        return case.number(ORIGINAL)
    # The same dict as the config's lost its factor unless the user gave another.
    factor = case.rope.get("factor") if is_given("rope_scaling")(case) else None
    return case.limit if factor is None else case.limit // float(factor)


@rule("factor-rewritten", is_given("rope_scaling", "max_model_len"))
def rewrite_factor(case: Case) -> Case:
    """With max_model_len and no rope_scaling the factor of the config is dropped: it becomes max_model_len over the
    original length, rounded up."""
    given = argument(case, "rope_scaling")
    if isinstance(given, str):
        if given not in NAMED:
            raise ValueError(TEXTS("options.scaling", named=join_items([*NAMED]), given=short_repr(given)))
        rope: dict[str, Any] = {"rope_type": given}
    elif given is not None:
        rope = dict(mapping(case, "rope_scaling") or {})
    else:
        rope = {key: value for key, value in case.rope.items() if key != "factor"}
    base = float(rope.pop("rope_theta", case.base))
    kind = rope.pop("rope_type", rope.pop("type", "default"))
    original, longest = find_original(case, rope), argument(case, "max_model_len")
    if rope.get("factor") is None:
        if longest is None:
            raise Refused(TEXTS("ms_swift.assertionerror_max_model_len"))
        rope["factor"] = max(float(math.ceil(number(case, "max_model_len", default=1.0) / original)), 1.0)
    rope[ORIGINAL] = original
    return set_rope(case, str(kind), **rope).replace(base=base) if kind != "default" else case


@rule("given-scaling", is_given("rope_scaling"), is_not(lambda case: argument(case, "rope_scaling") is None))
def take_given(case: Case) -> Case:
    """The dict of the options replaces that of the config."""
    rope = dict(mapping(case, "rope_scaling") or {})
    base = float(rope.pop("rope_theta", case.base))
    kind = rope.pop("rope_type", rope.pop("type", "default"))
    return set_rope(case, str(kind), **rope).replace(base=base)


@rule("given-base", is_given("rotary_base"))
def take_base(case: Case) -> Case:
    """rotary_base is the base."""
    return set_base(case, "rotary_base")


RULES = (rewrite_factor, *transformers.RULES["5.23.0"])
MEGATRON_RULES = (take_base, take_given, *transformers.RULES["5.23.0"])
"""The Megatron backend takes frequencies and factor from transformers."""

MS_SWIFT = Trainer(
    "ms-swift",
    ("4.6.0",),
    RULES,
    "ModelArguments._init_rope_scaling, executed with transformers 5.23.0",
)
MS_SWIFT_MEGATRON = Trainer(
    "ms-swift (Megatron backend)",
    ("ms-swift 4.6.0, mcore_bridge 1.6.5",),
    MEGATRON_RULES,
    "get_rope_inv_freq of mcore_bridge/model/rope.py, executed with transformers 5.23.0",
)
