"""CoPE (clipped RoPE): Li et al., https://arxiv.org/abs/2602.05258, code https://github.com/hrlics/CoPE at ed52ba5.

The code fades out 20 pairs of Llama 3; that the pairs with unseen angles are meant is in ml-explore/mlx-lm#1387.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rope_viz.embedding.spec import MAX_HEAD_DIM, FloatArray, RopeSpec, Scaling, freeze, knob, require_number
from rope_viz.embedding.spectrum import wavelength


@dataclass(frozen=True)
class ClippedRope(Scaling):
    """CoPE: the lowest frequencies fall to 0 by half a cosine; the first of them keeps its frequency."""

    name: str = field(default="cope", init=False)
    clipped: int | None = knob(
        None, "Faded pairs", 0, 256, "Empty: the pairs with a wavelength above the trained length.", integer=True
    )

    def validate(self, spec: RopeSpec) -> None:
        if self.clipped is not None:
            require_number(self.clipped, "clipped", least=0, most=MAX_HEAD_DIM, integer=True)

    def count_clipped(self, spec: RopeSpec) -> int:
        """Return how many pairs fade out, at most all of them."""
        if self.clipped is not None:
            return min(int(self.clipped), spec.pairs)
        return int(np.count_nonzero(wavelength(spec.plain_inv_freq) > spec.context))

    def kept_share(self, spec: RopeSpec) -> FloatArray:
        """Return the mask, shape (pairs,): 1 keeps the plain frequency, 0 is zero frequency."""
        count = self.count_clipped(spec)
        mask = np.ones(spec.pairs)
        mask[spec.pairs - count :] = 0.5 * (1.0 + np.cos(np.linspace(0.0, np.pi, count)))
        return mask

    def inv_freq(self, spec: RopeSpec, length: int | None = None) -> FloatArray:
        return freeze(spec.plain_inv_freq * self.kept_share(spec))
