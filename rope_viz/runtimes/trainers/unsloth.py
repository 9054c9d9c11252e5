"""unsloth 2026.10.9: its rotary classes follow transformers, and a longer max_seq_length writes linear scaling.

Executed: `LlamaRotaryEmbedding`, `LongRopeRotaryEmbedding` and `_extended_rope_scaling` of unsloth/models/llama.py
(tests/goldens/training.json).
"""

from __future__ import annotations

from rope_viz.runtimes import transformers
from rope_viz.runtimes.rule_engine import Case, Rule, has_type, is_not, rule
from rope_viz.runtimes.trainers.arguments import Trainer, is_given, mapping, number, set_linear, set_rope

# Releases before a fix of July 2026, which a public report describes; none was executed.
BEFORE_7028 = "before-7028"


def extends(case: Case) -> bool:
    """Return whether max_seq_length is beyond the limit and no rope_scaling is given."""
    longer = number(case, "max_seq_length", default=0.0, positive=False) > case.limit
    return longer and not is_given("rope_scaling")(case)


@rule("given-scaling", is_given("rope_scaling", "rope_parameters"))
def take_given(case: Case) -> Case:
    """A dict that the user gives replaces the scaling of the config."""
    given = dict(mapping(case, "rope_scaling") or mapping(case, "rope_parameters") or {})
    base = float(given.pop("rope_theta", case.base))
    given.pop("partial_rotary_factor", None)
    kind = given.pop("rope_type", given.pop("type", "default"))
    return set_rope(case, str(kind), **given).replace(base=base)


@rule("extended-linearly", extends, is_not(has_type("llama3")))
def extend_linearly(case: Case) -> Case:
    """A max_seq_length beyond the limit replaces any scaling but llama3 by linear, by the ratio of the two."""
    return set_linear(case, number(case, "max_seq_length", default=1.0) / case.limit)


@rule("full-head", lambda case: case.rotary_dim != case.head_dim)
def rotate_all(case: Case) -> Case:
    """partial_rotary_factor is read and not used: the whole head rotates."""
    return case.replace(share=1.0, plain_share=1.0)


@rule("dynamic-frozen", has_type("dynamic"))
def freeze_dynamic(case: Case) -> Case:
    """dynamic is computed once at load, so it is not scaled at any length."""
    return case.replace(length=None)


@rule("longrope-early", has_type("longrope"), lambda case: case.length == case.original)
def switch_early(case: Case) -> Case:
    """longrope takes the long list from the original length on; transformers one token later."""
    return case.replace(length=case.original + 1)


@rule("extension-lost-base", extends)
def lose_base(case: Case) -> Case:
    """With transformers 5 an automatic extension replaces llama3 by linear too, and loses the base: it is 10000."""
    return set_linear(case, number(case, "max_seq_length", default=1.0) / case.limit).replace(base=10_000.0)


def build(version: str) -> tuple[Rule, ...]:
    """Return the rules of a release."""
    extend = lose_base if version.startswith(BEFORE_7028) else extend_linearly
    return (take_given, extend, rotate_all, freeze_dynamic, *transformers.RULES["5.23.0"], switch_early)


UNSLOTH = Trainer(
    "unsloth",
    ("2026.10.9", "015bdef0 (2026-08-22)", f"{BEFORE_7028} (releases before unsloth#7028)"),
    build,
    "unsloth/models/llama.py, executed with configs of transformers 5.23.0",
    frozenset(("longrope-early", "extension-lost-base")),
)
