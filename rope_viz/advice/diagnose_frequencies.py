"""Recognise a list of frequencies: its layout, base and divisor, and whether a model's config gives it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from rope_viz.advice.check_rope import is_near, name_frequencies
from rope_viz.advice.conformance import LAST, find_mistakes
from rope_viz.embedding.spec import FloatArray, RopeSpec

Layout: TypeAlias = Literal["single", "half", "adjacent"]
LEAST: Final = 4
"""A shorter list of numbers is not taken for frequencies."""
LARGEST: Final = 1 << 16


@dataclass(frozen=True)
class FrequencyList:
    """What a list of frequencies shows.

    `layout` is "single" for one number per pair, "half" where the whole list is repeated, "adjacent" where each number
    is. `base` is that of the fastest pairs, `divisor` what the slowest is divided by; both None where unknown.
    `is_plain` is True where base and divisor give every pair. `same` says that the model has these frequencies;
    `mistake` is the typical mistake that makes them from the model's, "" for none.
    """

    layout: Layout
    pairs: int
    base: float | None
    divisor: float | None
    is_plain: bool
    same: bool
    mistake: str


def read_frequencies(content: str | bytes) -> FloatArray | None:
    """Return the numbers of a JSON list, text or CSV file; None for anything else, a config above all."""
    if len(content) > LARGEST:
        return None
    try:
        text = content.decode() if isinstance(content, bytes) else content
        words = text.strip().removeprefix("[").removesuffix("]").replace(",", " ").replace(";", " ").split()
        values = np.array([float(word) for word in words])
    except ValueError:
        return None
    return values if len(values) >= LEAST and np.isfinite(values).all() and (values >= 0).all() else None


def diagnose_frequencies(values: FloatArray, spec: RopeSpec) -> FrequencyList:
    """Return what a list of frequencies shows, compared with those of a model."""
    layout, values = split_layout(values)
    base, divisor = fit_base(values)
    is_plain = base is not None and divisor is not None and is_near(values, plain(base, len(values)) / divisor, 1e-5)
    same, mistake = False, ""
    for right in (spec.inv_freq(), spec.inv_freq(LAST)):
        same = same or (len(right) == len(values) and is_near(values, right))
        case = {"inv_freq": right, "mistakes": list(find_mistakes(spec, right))}
        mistake = mistake or name_frequencies(case, values)
    return FrequencyList(layout, len(values), base, divisor, is_plain, same, "" if same else mistake)


def split_layout(values: FloatArray) -> tuple[Layout, FloatArray]:
    """Return the layout of a list, and one frequency per pair."""
    half = len(values) // 2
    if len(values) % 2 == 0 and np.array_equal(values[:half], values[half:]):
        return "half", values[:half]
    if len(values) % 2 == 0 and np.array_equal(values[0::2], values[1::2]):
        return "adjacent", values[0::2]
    return "single", values


def fit_base(values: FloatArray) -> tuple[float | None, float | None]:
    """Return the base of the two fastest pairs, and what the slowest pair is divided by."""
    if len(values) < 2 or not 0 < values[1] < values[0] or values[-1] <= 0:
        return None, None
    base = float(values[0] / values[1]) ** len(values)
    even = float(values[0] / values[-1]) ** (len(values) / (len(values) - 1))
    base = even if abs(even / base - 1) < 1e-4 else base  # all pairs give the base better than two
    base = float(f"{base:.5g}")  # float32 frequencies hold no more digits
    return base, float(f"{plain(base, len(values))[-1] / values[-1]:.4g}")


def plain(base: float, pairs: int) -> FloatArray:
    """Return the frequencies of plain RoPE."""
    return np.asarray(base ** (-np.arange(pairs) / pairs), dtype=np.float64)
