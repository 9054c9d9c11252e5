"""GPT-NeoX ea7aefd8: a base and a rotated share, no scaling; cos and sin from float32 angles.

Executed: `RotaryEmbedding` of megatron/model/positional_embeddings.py (tests/goldens/training.json).
"""

from __future__ import annotations

import numpy as np

from rope_viz.embedding.spec import FloatArray, short_repr
from rope_viz.runtimes.rule_engine import Case, is_scaled, rule
from rope_viz.runtimes.texts import TEXTS
from rope_viz.runtimes.trainers.arguments import Trainer, argument, number, set_base, set_inv_freq, set_rope, set_rotary
from rope_viz.texts.texts import join_items

# {precision: bits of its mantissa with the hidden one, exponent of its smallest step}
PRECISIONS = {"float16": (11, -24), "bfloat16": (8, -133), "float32": (24, -149)}


@rule("no-scaling", is_scaled)
def drop_scaling(case: Case) -> Case:
    """There are no options for scaling; the conversion from Hugging Face drops rope_scaling."""
    return set_rope(case, "default")


@rule("options")
def read_options(case: Case) -> Case:
    """Frequencies follow from rotary_emb_base and from the rotated dimensions."""
    dims = number(case, "dim", default=case.rotary_dim) * number(case, "rotary_pct", default=1.0)
    return set_rotary(set_base(case, "rotary_emb_base"), int(dims)).replace(pairing="half")


@rule("saved-buffer", lambda case: bool(argument(case, "rotary_save_freqs_buffer")))
def round_buffer(case: Case) -> Case:
    """rotary_save_freqs_buffer saves the frequencies in the precision of training; cos and sin do not use them."""
    name = str(argument(case, "precision", default="float16")).removeprefix("torch.")
    if name not in PRECISIONS:
        raise ValueError(TEXTS("options.precision", precisions=join_items([*PRECISIONS]), name=short_repr(name)))
    bits, least = PRECISIONS[name]

    def round_to(plain: FloatArray) -> FloatArray:
        step = 2.0 ** np.maximum(np.frexp(plain)[1] - bits, least)
        values: FloatArray = np.round(plain / step) * step
        return values

    return set_inv_freq(case, round_to)


RULES = (drop_scaling, read_options, round_buffer)

GPT_NEOX = Trainer("GPT-NeoX", ("ea7aefd8 (2026-05-19)",), RULES, "positional_embeddings.py, executed")
