"""torchtune 0.6.1: a rotary module per model family, with Llama 3 scaling for Llama 3.1 and 3.2 alone.

Executed: `RotaryPositionalEmbeddings`, `Llama3ScaledRoPE` and `Qwen2RotaryPositionalEmbeddings`
(tests/goldens/training.json).
"""

from __future__ import annotations

from rope_viz.runtimes.rule_engine import Case, has, has_type, is_not, is_scaled, rule
from rope_viz.runtimes.trainers.arguments import Trainer, set_llama3, set_rope

NAME = "torchtune"


@rule("llama3-constants", has_type("llama3"))
def fix_llama3(case: Case) -> Case:
    """Of llama3 the factor alone is an option: 8 for Llama 3.1, 32 for 3.2; the bands and the length are constants."""
    return set_llama3(case, case.number("factor", 8.0))


@rule("no-scaling", is_scaled, is_not(has_type("llama3")))
def drop_scaling(case: Case) -> Case:
    """There is no other scaling: config.json is copied unchanged on save."""
    return set_rope(case, "default")


@rule("full-head", lambda case: case.rotary_dim != case.head_dim)
def rotate_all(case: Case) -> Case:
    """The whole head rotates."""
    return case.replace(share=1.0, plain_share=1.0)


@rule("pairing")
def choose_pairing(case: Case) -> Case:
    """Llama rotates adjacent pairs with permuted q and k; Qwen 2 and Phi-3 rotate halves."""
    named = str(case.arguments.get("id", ""))
    halves = has(NAME, "halves")(case) or named.startswith(("qwen", "phi"))
    return case.replace(pairing="half" if halves else "interleaved")


RULES = (fix_llama3, drop_scaling, rotate_all, choose_pairing)

TORCHTUNE = Trainer(
    NAME,
    ("0.6.1",),
    RULES,
    "torchtune/models and torchtune/modules, executed",
    frozenset(("full-head",)),
    permutes=True,  # torchtune/models/convert_weights.py
)
