"""Fixed random vectors that are the same in every process, and vectors a reader types in.

The bytes come from SHAKE-256 (FIPS 202) and become normal deviates by Box and Muller's transform, so the numbers
depend neither on PYTHONHASHSEED nor on NumPy's generators; another machine's logarithm may change the last digit.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

import numpy as np

from rope_viz.spec import FloatArray, require_number, shorten


def normals(key: str, *shape: int) -> FloatArray:
    """Standard normal deviates, float64, of the given shape; the same key gives the same numbers."""
    size = math.prod(shape)
    half = (size + 1) // 2
    raw = np.frombuffer(hashlib.shake_256(key.encode()).digest(16 * half), dtype="<u8").astype(np.uint64)
    # 53 bits fill a float64; the half step keeps 0 out of the logarithm.
    uniform = ((raw >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    radius, angle = np.sqrt(-2.0 * np.log(uniform[:half])), 2.0 * math.pi * uniform[half:]
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:size].reshape(shape)


def parse_vector(text: str | Sequence[float], size: int) -> FloatArray:
    """A vector of `size` numbers from a list, or from text with commas, spaces or lines between them.

    Raises `ValueError` that names the bad entry, or how many numbers there are.
    """
    words = text.replace(",", " ").replace(";", " ").strip("[]() \n").split() if isinstance(text, str) else list(text)
    numbers = []
    for word in words:
        try:
            number = float(word)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"a vector must be made of numbers, got {shorten(word)}") from None
        require_number(number, "a vector's entry", least=-1e30, most=1e30)
        numbers.append(number)
    if len(numbers) != size:
        raise ValueError(f"the vector must have {size} numbers, one per dimension, got {len(numbers)}")
    return np.array(numbers)
