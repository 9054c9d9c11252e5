"""Rounding errors of a rotary embedding, by position, pair and the step at which numbers are rounded.

Each rounding is emulated alone, with everything else in float64, to show its own share of the error. The exact angle is
position times the float64 inv_freq. Wang et al., "When Precision Meets Position", https://arxiv.org/abs/2411.13476; the
running product is `ggml_compute_forward_rope` of https://github.com/ggml-org/llama.cpp.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rope_viz.embedding.spec import MAX_LENGTH, FloatArray, RopeSpec, freeze, require_number, short_repr
from rope_viz.storage.decode_json import read_own
from rope_viz.studies.rotation import ComplexArray, position_angles, to_complex
from rope_viz.studies.vectors import draw_normals
from rope_viz.texts import Texts

LIBRARIES = Texts("practices")


# bfloat16 and IEEE 754 binary16; the 8-bit formats of Micikevicius et al., https://arxiv.org/abs/2209.05433. The rule
# is round to nearest, ties to even. Values beyond the largest become infinite; e4m3 has no infinity and saturates, as
# in torch 2.13 (ml_dtypes makes them NaN). The tests compare with torch bit for bit.
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


MAX_POSITION = 10_000_000
SAMPLES = 32
TWO_PI = 2 * Fraction(31415926535897932384626433832795028841971693993751, 10**49)


@dataclass(frozen=True)
class Rounding:
    """A step at which numbers are rounded.

    `stage` classifies the error: "angle" grows with the position, "table" rounds cos and sin and does not grow,
    "products" rounds the rotation itself and depends on the vector. The texts of the Precision page name it.
    """

    name: str
    stage: Literal["angle", "table", "products"]
    form: str = ""


ROUNDINGS: dict[str, Rounding] = {
    each.name: each
    for each in (
        Rounding("bf16-positions", "angle", "bf16"),
        Rounding("bf16-inv-freq", "angle", "bf16"),
        Rounding("bf16-angles", "angle", "bf16"),
        Rounding("float32-angles", "angle"),
        Rounding("running-product", "angle"),
        Rounding("phase64", "table"),
        Rounding("bf16-table", "table", "bf16"),
        Rounding("fp16-table", "table", "fp16"),
        Rounding("fp8-e4m3-table", "table", "fp8-e4m3"),
        Rounding("fp8-e5m2-table", "table", "fp8-e5m2"),
        Rounding("bf16-products", "products", "bf16"),
    )
}


def angle_error(spec: RopeSpec, positions: ArrayLike, where: str, *, length: int | None = None) -> FloatArray:
    """Return the signed angle error of each pair in radians, shape (positions, pairs), float64.

    For stage "angle" it is not reduced modulo a turn (5.0 rad is 0.8 turn). For the others it is the direction of the
    rotated pair minus the exact one, of a fixed random vector. The result itself is accurate to 1.1e-16 of the angle
    for stage "angle" and to 1e-15 rad for the others.
    """
    rounding, places = check_rounding(where), check_positions(positions)
    if rounding.stage == "angle":
        return rounded_angles(spec, places, where, length) - position_angles(spec, places, length=length)
    x = sample_pairs(spec, "angle")
    # A negative factor turns both by half a turn. Overflow (NaN) or a factor of 0 leaves no direction.
    sign = math.copysign(1.0, spec.attention_factor(length))
    with np.errstate(invalid="ignore"):
        found = rotate_rounded(spec, x, places, where, length) * np.conj(x * (sign * exact_unit(spec, places, length)))
    return np.where(found == 0.0, 0.0, np.angle(found))


def norm_error(spec: RopeSpec, positions: ArrayLike, where: str, *, length: int | None = None) -> FloatArray:
    """Return the signed relative error of each rotated pair's length, shape (positions, pairs); 0 for stage "angle"."""
    rounding, places = check_rounding(where), check_positions(positions)
    if rounding.stage == "angle":
        return np.zeros((places.size, spec.pairs))
    x = sample_pairs(spec, "angle")
    found = np.abs(rotate_rounded(spec, x, places, where, length))
    exact = np.broadcast_to(abs(spec.attention_factor(length)) * np.abs(x), found.shape)
    # With a factor of 0 there is no length to compare.
    error: FloatArray = np.divide(found, exact, out=np.ones_like(found), where=exact > 0.0) - 1.0
    return error


@dataclass(frozen=True, eq=False)
class ShiftTest:
    """Scores of the same q and k at the same distance while both move; exact arithmetic would not change them.

    `scores`, shape (positions,); `exact` is the true score; `drift` the largest minus the smallest score.
    """

    positions: NDArray[np.int64]
    scores: FloatArray
    exact: float
    drift: float


def shift_test(
    spec: RopeSpec, positions: ArrayLike, where: str, *, distance: int = 10, seed: int = 0, length: int | None = None
) -> ShiftTest:
    """Return the scores of keys at `positions` with queries `distance` later, which should not change.

    q and k are fixed random vectors of head_dim with bf16 entries; half of k's energy is q's, so that the score is not
    near 0. The score is q·k/√head_dim with the attention factor, summed in float64. A rounded inv_freq causes no drift:
    it gives q and k the same other frequencies.
    """
    require_number(distance, "distance", least=0, most=MAX_POSITION, integer=True)
    keys = check_positions(positions)
    q = sample_vector(spec, f"q {seed}")
    k = to_bf16((q + sample_vector(spec, f"k {seed}")) / math.sqrt(2.0))
    pair_q, pair_k = to_complex(spec, q), to_complex(spec, k)
    scale = 1.0 / math.sqrt(spec.head_dim)
    tail = float(q[2 * spec.pairs :] @ k[2 * spec.pairs :])
    turned_q = rotate_rounded(spec, pair_q, keys + int(distance), where, length)
    turned_k = rotate_rounded(spec, pair_k, keys, where, length)
    scores = scale * (np.einsum("mi,mi->m", turned_q, np.conj(turned_k)).real + tail)
    between = exact_unit(spec, np.array([int(distance)]), length)[0]
    exact = scale * (spec.attention_factor(length) ** 2 * float(np.sum(pair_q * np.conj(pair_k) * between).real) + tail)
    return ShiftTest(keys, scores, exact, float(np.ptp(scores)) if scores.size else 0.0)


def worst_error(
    spec: RopeSpec, edges: ArrayLike, where: str, *, samples: int = SAMPLES, length: int | None = None
) -> FloatArray:
    """Return the largest absolute angle error of each bin of positions, radians, shape (bins, pairs).

    Bin j holds the positions edges[j] … edges[j + 1] − 1. Rounding errors have no closed form, so at most `samples`
    positions per bin are tried: the last, where a growing error is largest, and others spread by the golden ratio,
    which avoids the powers of two. The result is a lower bound.
    """
    borders = check_positions(edges)
    require_number(samples, "samples", least=1, most=4096, integer=True)
    if borders.size < 2 or np.any(np.diff(borders) < 1):
        raise ValueError("edges must rise by at least one position from bin to bin")
    width = np.diff(borders)
    spread = np.concatenate([np.modf(np.arange(1, samples) * ((math.sqrt(5.0) - 1.0) / 2.0))[0], [1.0]])
    places = borders[:-1, None] + np.minimum((spread * width[:, None]).astype(np.int64), width[:, None] - 1)
    return np.stack([np.abs(angle_error(spec, each, where, length=length)).max(axis=0) for each in places])


def first_position_beyond(
    spec: RopeSpec, where: str, *, turns: float = 0.1, limit: int = MAX_POSITION, length: int | None = None
) -> FloatArray:
    """Return where each pair's error first exceeds `turns` of a turn, shape (pairs,); NaN if above `limit`.

    Exact for bf16 positions and a bf16 inv_freq. Otherwise it is the first of a sample: 32 consecutive positions at
    each of up to 1,024 places, evenly spaced on a log scale from 1 to `limit`.
    """
    require_number(turns, "turns", above=0.0)
    require_number(limit, "limit", least=1, most=MAX_LENGTH, integer=True)
    threshold = 2.0 * math.pi * turns
    inv_freq = spec.inv_freq(length)
    if check_rounding(where).name == "bf16-inv-freq":
        first = np.floor(divide(threshold, np.abs(round_to(inv_freq, "bf16") - inv_freq))) + 1.0
    elif where == "bf16-positions":
        # From 2^e on, bf16 positions are 2^(e-7) apart, so the error just past 2^e equals the excess over 2^e.
        past = np.floor(divide(threshold, inv_freq)) + 1.0
        first = np.exp2(np.maximum(np.ceil(np.log2(past)) + 8.0, 8.0)) + past
    else:
        places = sampled_positions(int(limit), spec.pairs)
        beyond = np.abs(angle_error(spec, places, where, length=length)) > threshold
        first = np.where(beyond.any(axis=0), places[beyond.argmax(axis=0)], np.inf)
    return np.where(first <= limit, first, np.nan)


@dataclass(frozen=True)
class LargestError:
    """The largest error of a rounding among a sample of positions up to `end`.

    `angle` is in radians, at `pair` and `position`; `length` is the relative error of a pair's length. Both are NaN if
    cos and sin overflow. `passing` pairs pass 0.1 turn up to `end`, the first of them `first_pair` at `first_position`.
    """

    end: int
    angle: float
    length: float
    pair: int
    position: int
    passing: int = 0
    first_pair: int = -1
    first_position: int = -1


def find_largest_error(
    spec: RopeSpec, where: str, *, end: int | None = None, length: int | None = None
) -> LargestError:
    """Return the largest error of a rounding up to `end` (default: the target length), and the pairs past 0.1 turn."""
    rounding, end = check_rounding(where), spec.target if end is None else end
    places = sampled_positions(end, spec.pairs)
    off = np.abs(angle_error(spec, places, where, length=length))
    # Among equal errors take the last position, so that a text names the end of the range.
    row, pair = np.unravel_index(off.size - 1 - int(off[:, ::-1][::-1].argmax()), off.shape)
    found = LargestError(end, float(off.max()), 0.0, int(pair), int(places[row]))
    if rounding.stage != "angle":
        return replace(found, length=float(np.abs(norm_error(spec, places, where, length=length)).max()))
    past = first_position_beyond(spec, where, limit=max(end, 1), length=length)
    if np.isnan(past).all():
        return found
    first = int(np.nanargmin(past))
    passing = int(np.sum(~np.isnan(past)))
    return replace(found, passing=passing, first_pair=first, first_position=int(past[first]))


def exact_unit(spec: RopeSpec, positions: NDArray[np.int64], length: int | None = None) -> ComplexArray:
    """Return cos + i sin of the exact angles, shape (positions, pairs), accurate to 1e-15 at every position."""
    increments, residue = phase_increments(spec, length)
    phase = positions.astype(np.uint64)[:, None] * increments
    turns = phase.view(np.int64) * 2.0**-64 - positions[:, None] * (residue * 2.0**-64)
    unit: ComplexArray = np.exp(2j * math.pi * turns)
    return unit


@functools.lru_cache(maxsize=64)
def phase_increments(spec: RopeSpec, length: int | None = None) -> tuple[NDArray[np.uint64], FloatArray]:
    """Return turns per position in units of 2^-64, rounded, shape (pairs,), and by how much each was rounded up."""
    exact = [Fraction(float(f)) / TWO_PI * 2**64 for f in spec.inv_freq(length)]
    increments = np.array([round(each) % 2**64 for each in exact], dtype=np.uint64)
    increments.flags.writeable = False
    return increments, freeze(np.array([float(round(each) - each) for each in exact]))


def rounded_angles(spec: RopeSpec, positions: NDArray[np.int64], where: str, length: int | None) -> FloatArray:
    """Return the angles after a rounding of stage "angle", radians, shape (positions, pairs)."""
    inv_freq = spec.inv_freq(length)
    if where == "bf16-positions":
        return position_angles(spec, round_to(positions, "bf16"), length=length)
    if where == "bf16-inv-freq":
        return positions.astype(np.float64)[:, None] * to_bf16(inv_freq)
    if where == "bf16-angles":
        return to_bf16(round_to(positions, "bf16")[:, None] * round_to(inv_freq, "bf16"))
    if where == "float32-angles":
        return (positions.astype(np.float32)[:, None] * inv_freq.astype(np.float32)).astype(np.float64)
    # llama.cpp: theta = position, then theta *= theta_scale from pair to pair. Scaled frequencies divide each angle
    # once, as its rope_freqs tensors do.
    scale = np.float32(float(np.float32(spec.base)) ** float(np.float32(-2.0 / spec.rotary_dim)))
    factors = np.full((positions.size, spec.pairs), scale, dtype=np.float32)
    factors[:, 0] = positions
    angle = np.multiply.accumulate(factors, axis=1, dtype=np.float32)
    return (angle / divide(spec.plain_inv_freq, inv_freq).astype(np.float32)).astype(np.float64)


def rotate_rounded(
    spec: RopeSpec, pairs: ComplexArray, positions: NDArray[np.int64], where: str, length: int | None
) -> ComplexArray:
    """Return pairs, shape (pairs,), rotated at every position in the rounded arithmetic, shape (positions, pairs)."""
    rounding = check_rounding(where)
    gain = spec.attention_factor(length)
    if rounding.stage == "angle":
        turned: ComplexArray = pairs * (gain * np.exp(1j * rounded_angles(spec, positions, where, length)))
        return turned
    if where == "phase64":
        return pairs * (gain * phase_unit(spec, positions, length))
    table = gain * exact_unit(spec, positions, length)
    cos, sin = (round_to(part, rounding.form).astype(np.float64) for part in (table.real, table.imag))
    if rounding.stage == "table":
        with np.errstate(invalid="ignore"):  # a factor too large for the format makes it infinite, and ∞ · 0 is NaN
            return pairs * (cos + 1j * sin)
    return bf16_products(pairs, cos, sin)


def bf16_products(pairs: ComplexArray, cos: FloatArray, sin: FloatArray) -> ComplexArray:
    """Rotate with every product and sum rounded to bf16, bit for bit like the eager code of transformers."""
    first = to_bf16(to_bf16(pairs.real * cos) - to_bf16(pairs.imag * sin))
    second = to_bf16(to_bf16(pairs.imag * cos) + to_bf16(pairs.real * sin))
    return first + 1j * second


def phase_unit(spec: RopeSpec, positions: NDArray[np.int64], length: int | None) -> ComplexArray:
    """Return cos + i sin as the kernels compute them: top 32 bits of the phase, a quadrant, float32 polynomials."""
    increments, _ = phase_increments(spec, length)
    turns = ((positions.astype(np.uint64)[:, None] * increments) >> np.uint64(32)).astype(np.int64)
    quadrant = (turns + (1 << 29)) >> 30
    t = (turns - (quadrant << 30)).astype(np.float32) * np.float32(2.0**-32)
    square = t * t
    sine = t * polynomial(square, (-75.40184020996094, 81.59254455566406, -41.3416633605957, 6.2831854820251465))
    cosine = polynomial(square, (59.22028732299805, -85.4428482055664, 64.93931579589844, -19.739208221435547, 1.0))
    unit: ComplexArray = (cosine + 1j * sine.astype(np.float64)) * np.array([1, 1j, -1, -1j])[quadrant & 3]
    return unit


def polynomial(x: NDArray[np.float32], coefficients: tuple[float, ...]) -> NDArray[np.float32]:
    """Evaluate a polynomial by Horner's rule in float32, highest power first."""
    value = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        value = value * x + np.float32(coefficient)
    return value


def sampled_positions(limit: int, pairs: int) -> NDArray[np.int64]:
    """Return runs of 32 positions at up to 1,024 places, evenly spaced on a log scale up to `limit`, increasing.

    Heads with more than 64 pairs get fewer places, so that pairs times positions stays within 2^21.
    """
    starts = np.geomspace(1.0, max(limit, 1), max(min(1024, 2**21 // (SAMPLES * pairs)), 2)).astype(np.int64)
    places = np.unique(starts[:, None] - np.arange(SAMPLES))
    return np.append(places[(places >= 0) & (places < limit)], limit).astype(np.int64)


def sample_vector(spec: RopeSpec, key: str) -> FloatArray:
    """Return a fixed random vector of head_dim with bf16 entries."""
    return round_to(draw_normals(f"precision {key}", spec.head_dim), "bf16").astype(np.float64)


def sample_pairs(spec: RopeSpec, key: str) -> ComplexArray:
    """Return the pairs of a fixed random vector as complex numbers, shape (pairs,)."""
    return to_complex(spec, sample_vector(spec, key))


def to_bf16(values: NDArray[Any]) -> FloatArray:
    """Return the values rounded to bf16, as float64."""
    return round_to(values, "bf16").astype(np.float64)


def divide(numerator: Any, denominator: FloatArray) -> FloatArray:
    """Return the quotient; infinite where the denominator is 0."""
    quotient = np.full_like(denominator, np.inf)
    np.divide(numerator, denominator, out=quotient, where=denominator != 0.0)
    return quotient


def check_rounding(where: str) -> Rounding:
    """Return the rounding of that name, or raise `ValueError`."""
    if not isinstance(where, str) or where not in ROUNDINGS:
        raise ValueError(f"the rounding must be one of {', '.join(ROUNDINGS)}, got {short_repr(where)}")
    return ROUNDINGS[where]


def check_positions(positions: ArrayLike) -> NDArray[np.int64]:
    """Return whole positions from 0 to 2^31, shape (positions,), or raise `ValueError`."""
    values = np.atleast_1d(np.asarray(positions))
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise ValueError(f"positions must be a row of whole numbers, got {short_repr(positions)}")
    if values.size and (values.min() < 0 or values.max() > MAX_LENGTH):
        raise ValueError(f"positions must be from 0 to {MAX_LENGTH:,}, got {values.min():,} to {values.max():,}")
    return values.astype(np.int64)


@dataclass(frozen=True)
class Practice:
    """One published implementation: its roundings, by name in `ROUNDINGS`, and a link as evidence.

    It was read in the source of the named version, or in a public report; it was executed only if `was_run`.

    `key` finds its description in the texts of the Precision page. Empty `roundings` mean float32 throughout with a
    float32 table, or arithmetic that is not emulated here.
    """

    key: str
    roundings: tuple[str, ...]
    source: str
    was_run: bool = False

    @property
    def library(self) -> str:
        """Return its name, with the release or the years."""
        return LIBRARIES.entries[self.key]


PRACTICES = tuple(
    Practice(**each | {"roundings": tuple(each["roundings"])}) for each in read_own(__file__, "practices.json")
)


def find_practices(where: str) -> tuple[Practice, ...]:
    """Return the implementations with this rounding, in the order of the list."""
    return tuple(each for each in PRACTICES if where in each.roundings)
