"""Recognise frequencies, or a vector before and after its rotation, by layout, base, divisor and typical mistake."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rope_viz.advice.check_rope import is_near, name_frequencies
from rope_viz.advice.conformance import LAST, find_mistakes
from rope_viz.embedding.spec import FloatArray, RopeSpec
from rope_viz.storage.decode_json import ContentError, decode_json

Layout: TypeAlias = Literal["single", "half", "adjacent"]
LEAST: Final = 4
"""A shorter list of numbers is not taken for frequencies."""
LARGEST: Final = 1 << 16
PAIRINGS: Final[tuple[Literal["half", "interleaved"], ...]] = ("half", "interleaved")
NEAR: Final = 1e-2
"""How far a turned pair of length 1 may be off: bfloat16 holds eight binary digits."""


@dataclass(frozen=True, eq=False)
class Rotation:
    """A vector `before` and `after` its rotation, (dimensions,) each, at a `position` of 1 or more."""

    before: FloatArray
    after: FloatArray
    position: int


@dataclass(frozen=True)
class RotationFound:
    """What a rotation shows.

    `pairing` is "half" or "interleaved", "" where neither turns one vector into the other. `factor` is by how much the
    vector grew. `same` says that the model turns it so, and `mistake` is the typical mistake that does, "" for none.
    `frequencies` are those of the angles at position 1, where they cannot have passed a turn; None at others.
    """

    pairing: Literal["half", "interleaved", ""]
    factor: float
    same: bool
    mistake: str
    frequencies: FrequencyList | None


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


def read_measured(content: str | bytes) -> FloatArray | Rotation | None:
    """Return frequencies, or a rotation from {"before": […], "after": […], "position": 1}; None for anything else."""
    if len(content) > LARGEST:
        return None
    try:
        found = decode_json(content, "")
    except ContentError:
        found = None
    if not isinstance(found, dict):
        return read_frequencies(content)
    values = found.get("inv_freq")
    if isinstance(values, list):
        return read_frequencies(json.dumps(values))
    before, after, position = (found.get(key) for key in ("before", "after", "position"))
    if not (isinstance(before, list) and isinstance(after, list) and isinstance(position, int)):
        return None
    try:
        vectors = [np.array([float(value) for value in vector]) for vector in (before, after)]
    except (TypeError, ValueError):
        return None
    fits = len(vectors[0]) == len(vectors[1]) >= 2 * LEAST and np.isfinite(vectors).all() and position >= 1
    return Rotation(vectors[0], vectors[1], position) if fits else None


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


def diagnose_rotation(rotation: Rotation, spec: RopeSpec) -> RotationFound:
    """Return what a vector before and after its rotation shows, compared with a model.

    Dimensions after the model's rotated ones are left out where the rotation left them as they were.
    """
    before, after = rotation.before, rotation.after
    if len(before) > spec.rotary_dim and np.array_equal(before[spec.rotary_dim :], after[spec.rotary_dim :]):
        before, after = before[: spec.rotary_dim], after[: spec.rotary_dim]
    for pairing in PAIRINGS:
        pairs = [np.array(join_pairs(vector, pairing)) for vector in (before, after)]
        if len(before) % 2 or (np.abs(pairs[0]) < 1e-6).any():
            continue
        growth = np.abs(pairs[1]) / np.abs(pairs[0])
        if np.ptp(growth) > NEAR * growth.mean():
            continue
        turned = pairs[1] / pairs[0] / growth
        same, mistake = name_rotation(turned, rotation.position, pairing, spec)
        angles = np.angle(turned) % (2 * np.pi)
        found = diagnose_frequencies(angles, spec) if rotation.position == 1 else None
        return RotationFound(pairing, float(growth.mean()), same, mistake, found)
    return RotationFound("", 1.0, False, "", None)


def name_rotation(turned: NDArray[np.complex128], position: int, pairing: str, spec: RopeSpec) -> tuple[bool, str]:
    """Return whether the model turns its pairs so, and the typical mistake that does."""
    for right in (spec.inv_freq(), spec.inv_freq(LAST)):
        for mistake, values in (("", right), *find_mistakes(spec, right)):
            if len(values) != len(turned):
                continue
            wanted = np.exp(1j * position * values)
            if (np.abs(turned - wanted) < NEAR).all():
                names = [mistake, "pairing" if pairing != spec.pairing else ""]
                return not any(names), " and ".join(name for name in names if name)
            if (np.abs(turned - wanted.conj()) < NEAR).all():
                return False, " and ".join(name for name in (mistake, "turned backwards") if name)
    return False, ""


def join_pairs(vector: FloatArray, pairing: str) -> NDArray[np.complex128]:
    """Return the pairs of a vector as complex numbers, (pairs,)."""
    half = len(vector) // 2
    first, second = (vector[:half], vector[half:]) if pairing == "half" else (vector[0::2], vector[1::2])
    return np.asarray(first[:half] + 1j * second[:half])


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
