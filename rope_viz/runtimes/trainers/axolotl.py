"""axolotl 0.19.0: no options for RoPE; overrides_of_model_config sets attributes of the loaded config one by one.

Executed: the loop of axolotl/loaders/utils.py, typed again, on transformers 5.23.0, 5.14.1 and 5.8.0
(tests/goldens/training.json).
"""

from __future__ import annotations

from rope_viz.runtimes import transformers
from rope_viz.runtimes.rule_engine import Case, Refused, is_not, refuse, rule
from rope_viz.runtimes.texts import TEXTS
from rope_viz.runtimes.trainers.arguments import Trainer, is_given, mapping, set_rope

OVERRIDES = "overrides_of_model_config"
TRAINED_BASE = "base_model_rope_theta"


def overrides(case: Case) -> dict[str, object]:
    """Return the overrides of the options, empty where there are none."""
    return dict(mapping(case, OVERRIDES) or {})


@rule("scaling-replaced", is_given(OVERRIDES))
def replace_scaling(case: Case) -> Case:
    """A whole rope_parameters or rope_scaling replaces that of the model; without rope_theta it raises TypeError."""
    given = next((overrides(case)[key] for key in ("rope_parameters", "rope_scaling") if key in overrides(case)), None)
    if given is None:
        return case
    if not isinstance(given, dict):
        raise ValueError(TEXTS("options.parameters", option=OVERRIDES))
    if given.get("rope_theta") is None:
        raise Refused(TEXTS("axolotl.typeerror_override"))
    if "rope_type" not in given:
        raise Refused(TEXTS("axolotl.keyerror_rope_type"))
    knobs = {key: value for key, value in given.items() if key not in ("rope_type", "type", "rope_theta")}
    return set_rope(case, str(given["rope_type"]), **knobs).replace(base=float(given["rope_theta"]))


@rule("base-ignored", is_given(OVERRIDES), lambda case: "rope_theta" in overrides(case))
def ignore_base(case: Case) -> Case:
    """An override of rope_theta changes nothing in the model, and is written at the top of the saved config."""
    known = case.arguments.get(TRAINED_BASE)
    if known is not None:
        return case.replace(base=float(known))
    if overrides(case)["rope_theta"] == case.base:
        raise Refused(TEXTS("axolotl.rope_theta_ignored", overrides=OVERRIDES, trained_base=TRAINED_BASE))
    return case


old_key = refuse(
    "axolotl.top_scaling",
    is_given("rope_scaling"),
    is_not(is_given(OVERRIDES)),
    option=OVERRIDES,
)
RULES = (old_key, replace_scaling, ignore_base, *transformers.RULES["5.23.0"])

AXOLOTL = Trainer(
    "axolotl",
    ("0.19.0 / 067b021c (pins transformers 5.14.1)",),
    RULES,
    "the override loop of loaders/utils.py, typed again and executed with transformers 5.23.0",
)
