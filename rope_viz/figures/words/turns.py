"""The sentence about the pairs that complete no turn within the original length."""

from __future__ import annotations

import numpy as np

from rope_viz.embedding import spectrum
from rope_viz.embedding.spec import RopeSpec
from rope_viz.texts import Sentence, Texts, join

TEXTS = Texts("frequencies")


def count_unturned(spec: RopeSpec) -> Sentence:
    """Count the pairs with zero frequency, and of the others those without a full turn in training, before scaling."""
    turns = spectrum.trained_inv_freq(spec) * spec.context / spectrum.TAU
    zero, slow = int(np.count_nonzero(turns == 0.0)), int(np.count_nonzero((turns > 0.0) & (turns < 1.0)))
    others = spec.pairs - zero
    how_many = "all" if not slow else "none" if slow == others else "some"
    length = TEXTS("training.length", length_name=spec.length_name, count=spec.context, context=spec.context)
    numbers = {"slow": slow, "pairs": spec.pairs, "zero": zero, "others": others, "length": length}
    if not zero:
        return TEXTS(f"training.{how_many}", **numbers)
    return join(TEXTS("training.zero", count=zero, **numbers), TEXTS(f"training.others_{how_many}", **numbers))
