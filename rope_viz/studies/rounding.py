"""Rounding to the small number formats, in integer arithmetic: bf16, fp16 and the two 8-bit ones.

bfloat16 and IEEE 754 binary16; the 8-bit formats of Micikevicius et al., https://arxiv.org/abs/2209.05433. The rule is
round to nearest, ties to even. Values beyond the largest become infinite; e4m3 has no infinity and saturates, as in
torch 2.13 (ml_dtypes makes them NaN). The tests compare with torch bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Format:
    """A binary floating-point format narrower than float32."""

    name: str
    label: str
    fraction_bits: int
    least_exponent: int
    largest: float
    infinite: bool = True


FORMATS: dict[str, Format] = {
    "bf16": Format("bf16", "bfloat16", 7, -126, (2.0 - 2.0**-7) * 2.0**127),
    "fp16": Format("fp16", "float16", 10, -14, 65504.0),
    "fp8-e4m3": Format("fp8-e4m3", "float8 e4m3", 3, -6, 448.0, infinite=False),
    "fp8-e5m2": Format("fp8-e5m2", "float8 e5m2", 2, -14, 57344.0),
}


def round_to(values: ArrayLike, form: str) -> NDArray[np.float32]:
    """Return the nearest values of a format of `FORMATS`, as float32, same shape.

    The values are first rounded to float32, like a library's float32 table. Raises `ValueError` for an unknown format.
    """
    if form not in FORMATS:
        raise ValueError(f"the format must be one of {', '.join(FORMATS)}, got {form!r}")
    target = FORMATS[form]
    single: NDArray[np.float32] = to_float32(values)
    bits = single.view(np.uint32)
    exponent = ((bits >> 23) & 0xFF).astype(np.int32)
    normal = exponent > 0
    significand = (bits & 0x7FFFFF).astype(np.int64) | (normal.astype(np.int64) << 23)
    exponent = np.where(normal, exponent - 127, -126)
    # One unit in the target's last place is 2^step; the significand counts units of 2^(exponent - 23).
    step = np.maximum(exponent, target.least_exponent) - target.fraction_bits
    shift = np.minimum(step - (exponent - 23), 62).astype(np.int64)
    half = (np.int64(1) << shift) >> 1
    rounded = (significand + half - 1 + ((significand >> shift) & 1)) >> shift
    magnitude = np.ldexp(rounded.astype(np.float64), step)
    magnitude = np.where(magnitude > target.largest, np.inf if target.infinite else target.largest, magnitude)
    magnitude = np.where(np.isnan(single), np.nan, magnitude)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.copysign(magnitude, single).astype(np.float32)


def to_float32(values: ArrayLike) -> NDArray[Any]:
    """Return the nearest float32 values, without a warning on overflow."""
    with np.errstate(over="ignore"):
        return np.asarray(values, dtype=np.float32, order="C")
