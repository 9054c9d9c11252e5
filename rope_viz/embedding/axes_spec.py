"""Rotary embeddings of positions with several axes: time, row, column, and what else a token may be counted by.

    angle[token, pair] = Σ_axis weights[pair, axis] · position[token, axis]
    out[a] = (x[a]·cos − x[b]·sin)·factor        out[b] = (x[b]·cos + x[a]·sin)·factor        (a, b) = dims[pair]

A `RopeSpec` is the case of one axis (`one_axis`). Three allocations make the weights of every model we know:

    shared_ladder     one ladder of speeds (a RopeSpec with its scaling), and an axis for every pair
    ladder_per_axis   each axis has a ladder of its own, joined as blocks or pair by pair
    directions        the weights are given: a pair listens to a mix of axes

Which position a token gets is a value of its own: see `layouts`.

M-RoPE: Qwen2-VL, https://arxiv.org/abs/2409.12191; axial and mixed RoPE: Heo et al., https://arxiv.org/abs/2403.13298
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rope_viz.embedding.exact_angles import finite
from rope_viz.embedding.spec import PAIRINGS, FloatArray, Pairing, RopeSpec, frozen, shorten

Dims: TypeAlias = NDArray[np.int64]
Order: TypeAlias = Literal["blocks", "pair by pair"]

STILL = -1  # in place of an axis: the pair does not turn
MIXED = -2  # the pair listens to more than one axis
THW = ("t", "h", "w")
MAX_SECTION = 1 << 20
MAX_AXES = 16


@dataclass(frozen=True, eq=False)
class AxesSpec:
    """Which pair listens to which axis, and how fast.

    weights: (pairs, axes) float64, radians per unit of position; a row of zeros is a pair that stands still.
    dims: (pairs, 2), the two dimensions of the head that a pair turns; None is the half pairing (i, i + pairs).
    factor: multiplies cos and sin, one number or one per pair; logits are multiplied by its square.
    axes: one name per axis.
    second: the weights of each pair's second member (b) where it turns by another angle than the first, else None.
    Such a table is no rotation: it changes the length of q and k (`stretch`), and a score depends on more than the
    displacement.
    head_dim: the size of the head; 0 is the smallest that holds all dims.

    The arrays are read-only. Equal content is equal, so that a spec may be the key of a cache. Raises `ValueError`
    with one sentence where the parts do not fit together.
    """

    weights: FloatArray
    dims: Dims = None  # type: ignore[assignment]
    factor: float | FloatArray = 1.0
    axes: tuple[str, ...] = ()
    second: FloatArray | None = None
    head_dim: int = 0

    def __post_init__(self) -> None:
        weights = matrix(self.weights, "weights")
        pairs, count = weights.shape
        put(self, "weights", weights)
        put(self, "dims", checked_dims(self.dims, pairs))
        put(self, "axes", checked_names(self.axes, count))
        put(self, "factor", checked_factor(self.factor, pairs))
        if self.second is not None:
            second = matrix(self.second, "second")
            if second.shape != weights.shape:
                raise ValueError(f"second must have the shape of weights, {weights.shape}, got {second.shape}")
            put(self, "second", None if np.array_equal(second, weights) else second)
        needed = int(self.dims.max()) + 1
        size = self.head_dim or needed
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < needed:
            raise ValueError(f"head_dim must be a whole number of at least {needed}, got {shorten(self.head_dim)}")
        put(self, "head_dim", int(size))

    @property
    def pairs(self) -> int:
        """How many pairs are described, those that stand still included."""
        return len(self.weights)

    @property
    def rotation(self) -> bool:
        """Whether both members of every pair turn by the same angle."""
        return self.second is None

    @functools.cached_property
    def owner(self) -> NDArray[np.int64]:
        """The axis each pair (its first member) listens to, (pairs,); STILL for none, MIXED for several."""
        return read_only(owner(self.weights))

    @functools.cached_property
    def aligned(self) -> bool:
        """Whether every pair listens to one axis at most."""
        return self.rotation and not bool(np.any(self.owner == MIXED))

    @property
    def factors(self) -> FloatArray:
        """The factor of every pair, (pairs,)."""
        return np.broadcast_to(np.asarray(self.factor, dtype=np.float64), (self.pairs,))

    def index(self, axis: str) -> int:
        """The column of an axis by its name. Raises `ValueError` that names those there are."""
        if axis not in self.axes:
            raise ValueError(f"axis must be one of {', '.join(self.axes)}, got {shorten(axis)}")
        return self.axes.index(axis)

    def along(self, axis: str) -> FloatArray:
        """Radians per unit of one axis, (pairs,): what a RopeSpec calls inv_freq; 0 where a pair does not listen."""
        return self.weights[:, self.index(axis)]

    def angles(self, positions: ArrayLike) -> FloatArray:
        """Angles in radians, (tokens, pairs), of positions (tokens, axes)."""
        return np.asarray(self.checked_positions(positions) @ self.weights.T)

    def cos_sin(self, positions: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """factor·cos and factor·sin, each (tokens, pairs), as the first members of the pairs take them."""
        angle = self.angles(positions)
        return np.cos(angle) * self.factors, np.sin(angle) * self.factors

    def cos_sin_second(self, positions: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """As `cos_sin`, for the second members; the same where the table is a rotation."""
        angle = self.angles(positions) if self.second is None else self.checked_positions(positions) @ self.second.T
        return np.cos(angle) * self.factors, np.sin(angle) * self.factors

    def stretch(self, positions: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """The smallest and the largest factor on a pair's length, each (tokens, pairs): √(1 ∓ |sin(α − β)|)·factor.

        α and β are the angles of the two members. Both are the factor alone where the table is a rotation.
        """
        places = self.checked_positions(positions)
        second = self.weights if self.second is None else self.second
        skew = np.abs(np.sin(places @ (self.weights - second).T))
        return np.sqrt(1.0 - skew) * self.factors, np.sqrt(1.0 + skew) * self.factors

    def rotate(self, x: ArrayLike, positions: ArrayLike) -> FloatArray:
        """x (…, tokens, head_dim) turned at positions (tokens, axes), float64; dimensions of no pair are copied."""
        value = finite(x, "x")
        cos, sin = self.cos_sin(positions)
        cos_second, sin_second = self.cos_sin_second(positions)
        if value.ndim < 2 or value.shape[-2] != len(cos) or value.shape[-1] < self.head_dim:
            raise ValueError(f"x must have shape (…, {len(cos)}, {self.head_dim}), got {value.shape}")
        first, other = value[..., self.dims[:, 0]], value[..., self.dims[:, 1]]
        result = value.copy()
        result[..., self.dims[:, 0]] = first * cos - other * sin
        result[..., self.dims[:, 1]] = other * cos_second + first * sin_second
        return result

    def checked_positions(self, positions: ArrayLike) -> FloatArray:
        """Positions as float64 (tokens, axes), or `ValueError`; (tokens,) will do where there is one axis."""
        places = finite(positions, "positions")
        if places.ndim == 1 and len(self.axes) == 1:
            places = places[:, None]
        if places.ndim != 2 or places.shape[1] != len(self.axes):
            raise ValueError(f"positions must have shape (tokens, {len(self.axes)}), got {places.shape}")
        return places

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AxesSpec) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    @functools.cached_property
    def _content(self) -> tuple[object, ...]:
        second = None if self.second is None else self.second.tobytes()
        sizes = (self.weights.shape, self.head_dim, self.axes)
        return (*sizes, self.weights.tobytes(), self.dims.tobytes(), np.asarray(self.factor).tobytes(), second)


def one_axis(spec: RopeSpec, *, axis: str = "position", length: int | None = None) -> AxesSpec:
    """A RopeSpec as it is: one axis, its pairs and its factor at this length."""
    return shared_ladder(spec, [0] * spec.pairs, (axis,), length=length)


def shared_ladder(
    spec: RopeSpec, axis: Sequence[int], axes: Sequence[str] = THW, *, length: int | None = None
) -> AxesSpec:
    """One ladder over the rotary dimensions, and an axis for every pair (STILL for none).

    `axis` is what `sections`, `interleaved`, `sections_then` or `alternating` give. Scaling is that of the spec, over
    the pair index whatever the axis, as transformers has it.
    """
    inv_freq = spec.inv_freq(length)
    return AxesSpec(
        weights=placed(inv_freq, axis, len(axes)),
        dims=paired(spec.pairs, spec.pairing),
        factor=spec.attention_factor(length),
        axes=tuple(axes),
        head_dim=spec.head_dim,
    )


def ladder_per_axis(
    ladders: Sequence[RopeSpec | ArrayLike],
    axes: Sequence[str],
    *,
    order: Order = "blocks",
    pairing: Pairing = "half",
    listens: Sequence[int] | None = None,
    head_dim: int = 0,
    length: int | None = None,
) -> AxesSpec:
    """Each axis with a ladder of its own: all pairs of the first, then all of the second ("blocks"), or in turn.

    A ladder is a RopeSpec with its own scaling and trained extent, or the speeds themselves, (pairs,). A RopeSpec's
    attention factor is that of its own pairs alone. `listens` says which axis each ladder belongs to, where that is not
    its place in the list. `pairing` is over all pairs together.
    """
    speeds = [
        ladder.inv_freq(length) if isinstance(ladder, RopeSpec) else finite(ladder, "a ladder") for ladder in ladders
    ]
    factors = [ladder.attention_factor(length) if isinstance(ladder, RopeSpec) else 1.0 for ladder in ladders]
    if not speeds or any(part.ndim != 1 for part in speeds):
        raise ValueError("ladders must be a list of RopeSpecs or of speeds, each (pairs,)")
    owners = range(len(speeds)) if listens is None else listens
    if len(owners) != len(speeds):
        raise ValueError(f"listens must name an axis for each of the {len(speeds)} ladders, got {len(owners)}")
    flat = [(rung, k, i) for k, part in enumerate(speeds) for i, rung in enumerate(part.tolist())]
    if order == "pair by pair":
        flat.sort(key=lambda entry: entry[2])
    elif order != "blocks":
        raise ValueError(f"order must be 'blocks' or 'pair by pair', got {shorten(order)}")
    inv_freq = np.array([rung for rung, _, _ in flat])
    factor = np.array([factors[k] for _, k, _ in flat])
    return AxesSpec(
        weights=placed(inv_freq, [owners[k] for _, k, _ in flat], len(axes)),
        dims=paired(len(flat), pairing),
        factor=float(factor[0]) if len(set(factors)) == 1 else factor,
        axes=tuple(axes),
        head_dim=head_dim,
    )


def directions(
    weights: ArrayLike, axes: Sequence[str], *, pairing: Pairing = "interleaved", head_dim: int = 0
) -> AxesSpec:
    """Weights as given, (pairs, axes): every pair may listen to a mix of axes."""
    value = matrix(weights, "weights")
    return AxesSpec(weights=value, dims=paired(len(value), pairing), axes=tuple(axes), head_dim=head_dim)


def joined(parts: Sequence[AxesSpec]) -> AxesSpec:
    """Specs over the same axes one behind the other in the head, each with its own pairing (Gemma 4)."""
    if not parts or any(part.axes != parts[0].axes or not part.rotation for part in parts):
        raise ValueError("joined needs rotations over the same axes")
    starts = np.cumsum([0, *(part.head_dim for part in parts)])
    return AxesSpec(
        weights=np.concatenate([part.weights for part in parts]),
        dims=np.concatenate([part.dims + start for part, start in zip(parts, starts[:-1], strict=True)]),
        factor=np.concatenate([part.factors for part in parts]),
        axes=parts[0].axes,
        head_dim=int(starts[-1]),
    )


def without_rotation(spec: AxesSpec, second: ArrayLike) -> AxesSpec:
    """The same spec whose second members turn by weights of their own, (pairs, axes)."""
    return dataclasses.replace(spec, second=matrix(second, "second"))


def sections(counts: Sequence[int], pairs: int) -> list[int]:
    """The first axis' pairs, then the second's, …: (pairs,) axes. Raises `ValueError` unless the counts add up.

    >>> sections([1, 2, 2], 5)
    [0, 1, 1, 2, 2]
    """
    sizes = checked_counts(counts)
    if sum(sizes) != pairs:
        raise ValueError(f"sections must add up to the {pairs} pairs that rotate, got {sum(sizes)}")
    return [axis for axis, count in enumerate(sizes) for _ in range(count)]


def interleaved(counts: Sequence[int], pairs: int) -> list[int]:
    """t h w t h w …: pair i is the axis i mod n while i < n·counts[axis], and else the first.

    The first count is not read: its axis takes what the others leave. Qwen3-VL and its like.

    >>> interleaved([4, 2, 2], 8)
    [0, 1, 2, 0, 1, 2, 0, 0]
    """
    sizes = checked_counts(counts)
    return [i % len(sizes) if i % len(sizes) and i < len(sizes) * sizes[i % len(sizes)] else 0 for i in range(pairs)]


def alternating(pairs: int, axes: Sequence[int] = (0, 1)) -> list[int]:
    """The axes in turn: h w h w …

    >>> alternating(5)
    [0, 1, 0, 1, 0]
    """
    return [axes[i % len(axes)] for i in range(pairs)]


def sections_then(pairs: int, last: int, *, axes: Sequence[int] = (1, 2), then: int = 0) -> list[int]:
    """The `axes` in turn, and `then` for the `last` pairs: h w h w … t (ERNIE 4.5 VL).

    >>> sections_then(6, 2)
    [1, 2, 1, 2, 0, 0]
    """
    if not 0 <= last <= pairs:
        raise ValueError(f"the last section must have between 0 and {pairs} pairs, got {last}")
    return [*alternating(pairs - last, axes), *[then] * last]


def owner(weights: FloatArray) -> NDArray[np.int64]:
    """The axis each row listens to, (pairs,); STILL for none, MIXED for several."""
    heard = weights != 0.0
    count = heard.sum(axis=1)
    return np.where(count == 0, STILL, np.where(count > 1, MIXED, heard.argmax(axis=1)))


def placed(inv_freq: FloatArray, axis: Sequence[int], count: int) -> FloatArray:
    """Speeds (pairs,) in the columns of their axes: (pairs, count)."""
    if len(axis) != len(inv_freq):
        raise ValueError(f"every pair needs an axis: {len(inv_freq)} pairs, {len(axis)} axes given")
    if any(not STILL <= k < count for k in axis):
        raise ValueError(f"an axis must be from 0 to {count - 1}, got {shorten(sorted(set(axis)))}")
    weights = np.zeros((len(inv_freq), count))
    turning = [i for i, k in enumerate(axis) if k != STILL]
    weights[turning, [axis[i] for i in turning]] = inv_freq[turning]
    return weights


def paired(pairs: int, pairing: Pairing, *, start: int = 0) -> Dims:
    """The dimensions of each pair, (pairs, 2), from `start` on: (i, i + pairs) or (2i, 2i + 1)."""
    if pairing not in PAIRINGS:
        raise ValueError(f"pairing must be 'half' or 'interleaved', got {shorten(pairing)}")
    i = np.arange(pairs, dtype=np.int64)
    both = (i, i + pairs) if pairing == "half" else (2 * i, 2 * i + 1)
    return np.stack(both, axis=1) + start


def matrix(value: ArrayLike, name: str) -> FloatArray:
    """A read-only float64 copy of shape (pairs, axes), or `ValueError`."""
    array = np.array(finite(value, name))
    if array.ndim != 2 or not 1 <= array.shape[1] <= MAX_AXES or not len(array):
        raise ValueError(f"{name} must have shape (pairs, axes) with at least one pair, got {array.shape}")
    return frozen(array)


def checked_dims(dims: ArrayLike | None, pairs: int) -> Dims:
    """dims as a read-only (pairs, 2) of whole numbers, none of them twice, or `ValueError`."""
    array = paired(pairs, "half") if dims is None else np.array(dims)
    if array.shape != (pairs, 2) or array.dtype.kind not in "iu":
        raise ValueError(f"dims must be whole numbers of shape ({pairs}, 2), got shape {array.shape}")
    array = array.astype(np.int64)
    if array.min() < 0 or len(np.unique(array)) != array.size:
        raise ValueError("dims must be from 0 on, and no dimension may belong to two pairs")
    return read_only(array)


def checked_names(axes: Sequence[str], count: int) -> tuple[str, ...]:
    """One name per axis, all different, or `ValueError`."""
    names = tuple(axes) or (("position",) if count == 1 else tuple(f"axis {k}" for k in range(count)))
    if len(names) != count or len(set(names)) != count or not all(isinstance(name, str) for name in names):
        raise ValueError(f"axes must be {count} different names, got {shorten(names)}")
    return names


def checked_factor(factor: ArrayLike, pairs: int) -> float | FloatArray:
    """A finite number, or one per pair; all the same are one number."""
    array = finite(factor, "factor")
    if array.shape not in ((), (pairs,)):
        raise ValueError(f"factor must be a number or one per pair, ({pairs},), got shape {array.shape}")
    return float(array.flat[0]) if array.size == 1 or np.ptp(array) == 0.0 else frozen(np.array(array))


def checked_counts(counts: Sequence[int]) -> tuple[int, ...]:
    """Section sizes as whole numbers of at least 0, or `ValueError`."""
    if not isinstance(counts, (list, tuple)) or not 1 <= len(counts) <= MAX_AXES:
        raise ValueError(f"sections must be a list of pair counts, got {shorten(counts)}")
    for count in counts:
        number = isinstance(count, (int, float)) and not isinstance(count, bool) and math.isfinite(count)
        if not number or not 0 <= count == math.floor(count) <= MAX_SECTION:
            raise ValueError(
                f"sections must be whole numbers of at least 0 and at most {MAX_SECTION:,}, got {shorten(count)}"
            )
    return tuple(int(count) for count in counts)


def read_only(array: NDArray[np.int64]) -> NDArray[np.int64]:
    """The array, which nobody changes from now on."""
    array.flags.writeable = False
    return array


def put(spec: AxesSpec, name: str, value: object) -> None:
    """Set a field of a frozen spec while it is made."""
    object.__setattr__(spec, name, value)
