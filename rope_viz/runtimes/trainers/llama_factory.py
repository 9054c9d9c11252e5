"""LLaMA-Factory 0.9.5: `configure_rope` writes another scaling into the config before transformers 4.57.6 reads it.

Executed: src/llamafactory/model/model_utils/rope.py (tests/goldens/training.json).
"""

from __future__ import annotations

import math

from rope_viz.runtimes import transformers
from rope_viz.runtimes.rule_engine import ORIGINAL, Case, is_not, refuse, rule
from rope_viz.runtimes.trainers.arguments import Trainer, argument, is_given, mapping, number, set_rope

TYPES = ("linear", "dynamic", "yarn", "llama3")


def cutoff(case: Case) -> float | None:
    """Return the training length in tokens, None where neither an option nor the user names one."""
    found = number(case, "cutoff_len", "model_max_length", default=float(case.length or 0), positive=False)
    return found or None


@rule("written", is_given("written"))
def take_written(case: Case) -> Case:
    """The scaling that configure_rope wrote replaces that of the config."""
    written = dict(mapping(case, "written") or {})
    given = dict(written.get("rope_scaling") or {})
    base = float(written.get("rope_theta") or case.base)
    limit = int(written.get("max_position_embeddings") or case.limit)
    kind = given.pop("rope_type", given.pop("type", "default"))
    return set_rope(case, str(kind), **given).replace(base=base, limit=limit)


@rule("configure-rope", is_given("rope_scaling"), is_not(is_given("written")))
def configure(case: Case) -> Case:
    """rope_scaling replaces all scaling: the factor is cutoff_len over the original length, rounded up."""
    old, longest = case.original, cutoff(case)
    if longest is not None and longest <= old:
        return case
    factor = 2.0 if longest is None else float(math.ceil(longest / old))
    knobs: dict[str, float] = {} if argument(case, "rope_scaling") == "linear" else {ORIGINAL: old}
    if argument(case, "rope_scaling") == "llama3":
        knobs |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
    changed = set_rope(case, str(argument(case, "rope_scaling")), factor=factor, **knobs)
    return changed.replace(limit=int(old * factor))


RULES = (
    refuse(
        "llama_factory.types",
        is_given("rope_scaling"),
        lambda case: argument(case, "rope_scaling") not in TYPES,
        types=", ".join(TYPES),
    ),
    refuse(
        "llama_factory.transformers_refuses",
        is_given("rope_scaling"),
        lambda case: str(argument(case, "transformers", default="4")).startswith("5"),
    ),
    take_written,
    configure,
    *transformers.RULES["5.23.0"],
)

LLAMA_FACTORY = Trainer(
    "LLaMA-Factory",
    ("0.9.5 = 0.9.6.dev0@ff6d4d12",),
    RULES,
    "configure_rope, executed with transformers 4.57.6",
)
