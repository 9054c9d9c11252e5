"""Numbers as PyTorch draws them from a seed, so that weights a class starts with can be named without PyTorch.

PyTorch's CPU generator is MT19937, seeded as Matsumoto and Nishimura's `init_genrand`; `torch.rand` in float32 takes
the lower 24 bits of each 32-bit draw, in order.
"""

from __future__ import annotations

import numpy as np

from rope_viz.embedding.spec import FloatArray


def uniform(seed: int, count: int) -> FloatArray:
    """What `torch.manual_seed(seed); torch.rand(count)` gives, as float64, (count,)."""
    draws = np.frombuffer(np.random.RandomState(seed & 0xFFFFFFFF).bytes(4 * count), dtype="<u4")
    return np.asarray((draws & 0xFFFFFF) * 2.0**-24, dtype=np.float64)
