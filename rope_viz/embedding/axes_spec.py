"""Rotary embeddings of positions with several axes, such as time, row and column.

    angle[token, pair] = Σ_axis weights[pair, axis] · position[token, axis]
    out[a] = (x[a]·cos − x[b]·sin)·factor        out[b] = (x[b]·cos + x[a]·sin)·factor        (a, b) = dims[pair]

A `RopeSpec` is the case of one axis (`one_axis`). Three ways to allocate pairs give the weights of every known model:

    shared_ladder     one geometric sequence of frequencies (a "ladder", a RopeSpec); each pair has one axis
    ladder_per_axis   one ladder per axis, joined as blocks or pair by pair
    directions        explicit weights: a pair may mix axes

M-RoPE: Qwen2-VL, https://arxiv.org/abs/2409.12191; axial and mixed RoPE: Heo et al., https://arxiv.org/abs/2403.13298
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rope_viz.embedding import TEXTS
from rope_viz.embedding.exact_angles import require_finite
from rope_viz.embedding.spec import PAIRINGS, FloatArray, Pairing, RopeSpec, freeze, short_repr
from rope_viz.texts.texts import join_items

Dims: TypeAlias = NDArray[np.int64]
Order: TypeAlias = Literal["blocks", "pair by pair"]

STILL = -1  # in place of an axis: the pair has zero frequency
MIXED = -2  # in place of an axis: the pair mixes several axes
THW = ("t", "h", "w")
MAX_SECTION = 1 << 20
MAX_AXES = 16


@dataclass(frozen=True, eq=False)
class AxesSpec:
    """The axis and the frequency of every pair.

    weights: (pairs, axes) float64, radians per unit of position; a row of zeros is a pair with zero frequency.
    dims: (pairs, 2), the two head dimensions of each pair; None means half pairing (i, i + pairs).
    factor: multiplies cos and sin, one number or one per pair; logits are multiplied by its square.
    axes: one name per axis.
    second: weights of each pair's second member (b) if its angle differs from the first's, else None. That is not a
    rotation: it changes the length of q and k (`stretch`), and scores depend on more than the displacement.
    head_dim: size of the head; 0 means the smallest that holds all dims.

    Arrays are read-only. Specs with equal content are equal and hashable. Raises `ValueError` if the parts do not fit.
    """

    weights: FloatArray
    dims: Dims = None  # type: ignore[assignment]
    factor: float | FloatArray = 1.0
    axes: tuple[str, ...] = ()
    second: FloatArray | None = None
    head_dim: int = 0

    def __post_init__(self) -> None:
        weights = check_matrix(self.weights, "weights")
        pairs, count = weights.shape
        set_field(self, "weights", weights)
        set_field(self, "dims", check_dims(self.dims, pairs))
        set_field(self, "axes", check_names(self.axes, count))
        set_field(self, "factor", check_factor(self.factor, pairs))
        if self.second is not None:
            second = check_matrix(self.second, "second")
            if second.shape != weights.shape:
                raise ValueError(f"second must have the shape of weights, {weights.shape}, got {second.shape}")
            set_field(self, "second", None if np.array_equal(second, weights) else second)
        needed = int(self.dims.max()) + 1
        size = self.head_dim or needed
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < needed:
            raise ValueError(f"head_dim must be a whole number of at least {needed}, got {short_repr(self.head_dim)}")
        set_field(self, "head_dim", int(size))

    @property
    def pairs(self) -> int:
        """Return the number of pairs, including those with zero frequency."""
        return len(self.weights)

    @property
    def is_rotation(self) -> bool:
        """True if both members of every pair rotate by the same angle."""
        return self.second is None

    @functools.cached_property
    def owner(self) -> NDArray[np.int64]:
        """Return the axis of each pair's first member, (pairs,); STILL for none, MIXED for several."""
        return read_only(find_owner(self.weights))

    @functools.cached_property
    def is_aligned(self) -> bool:
        """True if every pair uses at most one axis, and the table is a rotation."""
        return self.is_rotation and not bool(np.any(self.owner == MIXED))

    @property
    def factors(self) -> FloatArray:
        """Return the factor of every pair, (pairs,)."""
        return np.broadcast_to(np.asarray(self.factor, dtype=np.float64), (self.pairs,))

    def index(self, axis: str) -> int:
        """Return the column of the named axis. Raises `ValueError` that lists the axes."""
        if axis not in self.axes:
            raise ValueError(TEXTS("errors.one_of", name="axis", options=join_items(self.axes), got=short_repr(axis)))
        return self.axes.index(axis)

    def along(self, axis: str) -> FloatArray:
        """Return radians per unit of one axis, (pairs,): the inv_freq along it; 0 for pairs that do not use it."""
        return self.weights[:, self.index(axis)]

    def angles(self, positions: ArrayLike) -> FloatArray:
        """Return angles in radians, (tokens, pairs), for positions (tokens, axes)."""
        return np.asarray(self.check_positions(positions) @ self.weights.T)

    def cos_sin(self, positions: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return factor·cos and factor·sin for the first members of the pairs, each (tokens, pairs)."""
        angle = self.angles(positions)
        return np.cos(angle) * self.factors, np.sin(angle) * self.factors

    def cos_sin_second(self, positions: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return the same as `cos_sin`, for the second members of the pairs."""
        angle = self.angles(positions) if self.second is None else self.check_positions(positions) @ self.second.T
        return np.cos(angle) * self.factors, np.sin(angle) * self.factors

    def stretch(self, positions: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return the least and largest factor on a pair's length, each (tokens, pairs): √(1 ∓ |sin(α − β)|)·factor.

        α and β are the angles of the two members. For a rotation both equal the factor.
        """
        places = self.check_positions(positions)
        second = self.weights if self.second is None else self.second
        skew = np.abs(np.sin(places @ (self.weights - second).T))
        return np.sqrt(1.0 - skew) * self.factors, np.sqrt(1.0 + skew) * self.factors

    def rotate(self, x: ArrayLike, positions: ArrayLike) -> FloatArray:
        """Return x (…, tokens, head_dim) rotated at positions (tokens, axes), float64. Copies other dimensions."""
        value = require_finite(x, "x")
        cos, sin = self.cos_sin(positions)
        cos_second, sin_second = self.cos_sin_second(positions)
        if value.ndim < 2 or value.shape[-2] != len(cos) or value.shape[-1] < self.head_dim:
            raise ValueError(f"x must have shape (…, {len(cos)}, {self.head_dim}), got {value.shape}")
        first, other = value[..., self.dims[:, 0]], value[..., self.dims[:, 1]]
        result = value.copy()
        result[..., self.dims[:, 0]] = first * cos - other * sin
        result[..., self.dims[:, 1]] = other * cos_second + first * sin_second
        return result

    def check_positions(self, positions: ArrayLike) -> FloatArray:
        """Return positions as float64 (tokens, axes), or raise `ValueError`. One axis may be given as (tokens,)."""
        places = require_finite(positions, "positions")
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
    """Return the RopeSpec as an AxesSpec with one axis, at this sequence length."""
    return shared_ladder(spec, [0] * spec.pairs, (axis,), length=length)


def shared_ladder(
    spec: RopeSpec, axis: Sequence[int], axes: Sequence[str] = THW, *, length: int | None = None
) -> AxesSpec:
    """Return a spec with one ladder over all pairs, and one axis per pair (STILL for none).

    `axis` comes from `assign_sections`, `interleave_sections`, `alternate_then` or `alternate_axes`. As in
    transformers, scaling depends on the pair index, whatever the pair's axis.
    """
    inv_freq = spec.inv_freq(length)
    return AxesSpec(
        weights=place_frequencies(inv_freq, axis, len(axes)),
        dims=pair_dimensions(spec.pairs, spec.pairing),
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
    """Return a spec with one ladder per axis: one block per axis ("blocks"), or the axes alternating ("pair by pair").

    A ladder is a RopeSpec, with its own scaling and trained extent, or frequencies (pairs,). A RopeSpec's attention
    factor applies to its own pairs only. `listens` gives each ladder's axis; default: its index in the list. `pairing`
    is over all pairs together. Raises `ValueError` if the ladders, axes or order do not fit.
    """
    frequencies = [
        ladder.inv_freq(length) if isinstance(ladder, RopeSpec) else require_finite(ladder, "a ladder")
        for ladder in ladders
    ]
    factors = [ladder.attention_factor(length) if isinstance(ladder, RopeSpec) else 1.0 for ladder in ladders]
    if not frequencies or any(part.ndim != 1 for part in frequencies):
        raise ValueError("ladders must be a list of RopeSpecs or of frequencies, each (pairs,)")
    owners = range(len(frequencies)) if listens is None else listens
    if len(owners) != len(frequencies):
        raise ValueError(f"listens must name an axis for each of the {len(frequencies)} ladders, got {len(owners)}")
    flat = [(frequency, k, i) for k, part in enumerate(frequencies) for i, frequency in enumerate(part.tolist())]
    if order == "pair by pair":
        flat.sort(key=lambda entry: entry[2])
    elif order != "blocks":
        raise ValueError(f"order must be 'blocks' or 'pair by pair', got {short_repr(order)}")
    inv_freq = np.array([frequency for frequency, _, _ in flat])
    factor = np.array([factors[k] for _, k, _ in flat])
    return AxesSpec(
        weights=place_frequencies(inv_freq, [owners[k] for _, k, _ in flat], len(axes)),
        dims=pair_dimensions(len(flat), pairing),
        factor=float(factor[0]) if len(set(factors)) == 1 else factor,
        axes=tuple(axes),
        head_dim=head_dim,
    )


def mix_axes(
    weights: ArrayLike, axes: Sequence[str], *, pairing: Pairing = "interleaved", head_dim: int = 0
) -> AxesSpec:
    """Return a spec with explicit weights (pairs, axes), in which a pair may mix axes."""
    value = check_matrix(weights, "weights")
    return AxesSpec(weights=value, dims=pair_dimensions(len(value), pairing), axes=tuple(axes), head_dim=head_dim)


def join_specs(parts: Sequence[AxesSpec]) -> AxesSpec:
    """Concatenate specs over the same axes along the head, each with its own pairing (Gemma 4)."""
    if not parts or any(part.axes != parts[0].axes or not part.is_rotation for part in parts):
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
    """Return the spec with separate weights (pairs, axes) for the second members of the pairs."""
    return dataclasses.replace(spec, second=check_matrix(second, "second"))


def assign_sections(counts: Sequence[int], pairs: int) -> list[int]:
    """Return the axis of each pair, (pairs,), in blocks. Raises `ValueError` unless the counts add up to `pairs`.

    >>> assign_sections([1, 2, 2], 5)
    [0, 1, 1, 2, 2]
    """
    sizes = check_counts(counts)
    if sum(sizes) != pairs:
        raise ValueError(TEXTS("axes.sections", pairs=pairs, got=sum(sizes)))
    return [axis for axis, count in enumerate(sizes) for _ in range(count)]


def interleave_sections(counts: Sequence[int], pairs: int) -> list[int]:
    """Return the axis of each pair in the order t h w t h w …: axis i mod n while i < n·counts[axis], else 0.

    The first count is ignored: its axis gets all remaining pairs. Used by Qwen3-VL and similar models.

    >>> interleave_sections([4, 2, 2], 8)
    [0, 1, 2, 0, 1, 2, 0, 0]
    """
    sizes = check_counts(counts)
    return [i % len(sizes) if i % len(sizes) and i < len(sizes) * sizes[i % len(sizes)] else 0 for i in range(pairs)]


def alternate_axes(pairs: int, axes: Sequence[int] = (0, 1)) -> list[int]:
    """Return the axes alternating: h w h w …

    >>> alternate_axes(5)
    [0, 1, 0, 1, 0]
    """
    return [axes[i % len(axes)] for i in range(pairs)]


def alternate_then(pairs: int, last: int, *, axes: Sequence[int] = (1, 2), then: int = 0) -> list[int]:
    """Return the `axes` alternating, then `then` for the `last` pairs: h w h w … t (ERNIE 4.5 VL).

    >>> alternate_then(6, 2)
    [1, 2, 1, 2, 0, 0]
    """
    if not 0 <= last <= pairs:
        raise ValueError(TEXTS("axes.last_section", pairs=pairs, last=last))
    return [*alternate_axes(pairs - last, axes), *[then] * last]


def find_owner(weights: FloatArray) -> NDArray[np.int64]:
    """Return the axis of each row, (pairs,); STILL for none, MIXED for several."""
    used = weights != 0.0
    count = used.sum(axis=1)
    return np.where(count == 0, STILL, np.where(count > 1, MIXED, used.argmax(axis=1)))


def place_frequencies(inv_freq: FloatArray, axis: Sequence[int], count: int) -> FloatArray:
    """Return weights (pairs, count) with each frequency of (pairs,) in the column of its axis."""
    if len(axis) != len(inv_freq):
        raise ValueError(TEXTS("axes.axis_count", pairs=len(inv_freq), axes=len(axis)))
    if any(not STILL <= k < count for k in axis):
        raise ValueError(TEXTS("axes.axis_range", last=count - 1, axis=short_repr(sorted(set(axis)))))
    weights = np.zeros((len(inv_freq), count))
    rotating = [i for i, k in enumerate(axis) if k != STILL]
    weights[rotating, [axis[i] for i in rotating]] = inv_freq[rotating]
    return weights


def pair_dimensions(pairs: int, pairing: Pairing, *, start: int = 0) -> Dims:
    """Return the dimensions of each pair, (pairs, 2), counted from `start`: (i, i + pairs) or (2i, 2i + 1)."""
    if pairing not in PAIRINGS:
        raise ValueError(TEXTS("errors.pairing", value=short_repr(pairing)))
    i = np.arange(pairs, dtype=np.int64)
    both = (i, i + pairs) if pairing == "half" else (2 * i, 2 * i + 1)
    return np.stack(both, axis=1) + start


def check_matrix(value: ArrayLike, name: str) -> FloatArray:
    """Return a read-only float64 copy of shape (pairs, axes), or raise `ValueError`."""
    array = np.array(require_finite(value, name))
    if array.ndim != 2 or not 1 <= array.shape[1] <= MAX_AXES or not len(array):
        raise ValueError(f"{name} must have shape (pairs, axes) with at least one pair, got {array.shape}")
    return freeze(array)


def check_dims(dims: ArrayLike | None, pairs: int) -> Dims:
    """Return dims as read-only integers (pairs, 2) without duplicates, or raise `ValueError`."""
    array = pair_dimensions(pairs, "half") if dims is None else np.array(dims)
    if array.shape != (pairs, 2) or array.dtype.kind not in "iu":
        raise ValueError(f"dims must be whole numbers of shape ({pairs}, 2), got shape {array.shape}")
    array = array.astype(np.int64)
    if array.min() < 0 or len(np.unique(array)) != array.size:
        raise ValueError("dims must be from 0 on, and no dimension may belong to two pairs")
    return read_only(array)


def check_names(axes: Sequence[str], count: int) -> tuple[str, ...]:
    """Return one distinct name per axis, or raise `ValueError`."""
    names = tuple(axes) or (("position",) if count == 1 else tuple(f"axis {k}" for k in range(count)))
    if len(names) != count or len(set(names)) != count or not all(isinstance(name, str) for name in names):
        raise ValueError(f"axes must be {count} different names, got {short_repr(names)}")
    return names


def check_factor(factor: ArrayLike, pairs: int) -> float | FloatArray:
    """Return a finite number, or one per pair if they differ; raise `ValueError` otherwise."""
    array = require_finite(factor, "factor")
    if array.shape not in ((), (pairs,)):
        raise ValueError(f"factor must be a number or one per pair, ({pairs},), got shape {array.shape}")
    return float(array.flat[0]) if array.size == 1 or np.ptp(array) == 0.0 else freeze(np.array(array))


def check_counts(counts: Sequence[int]) -> tuple[int, ...]:
    """Return section sizes as integers of at least 0, or raise `ValueError`."""
    if not isinstance(counts, (list, tuple)) or not 1 <= len(counts) <= MAX_AXES:
        raise ValueError(TEXTS("axes.counts", counts=short_repr(counts)))
    for count in counts:
        number = isinstance(count, (int, float)) and not isinstance(count, bool)
        # The limits first: an integer may be too large for a float, and NaN has no floor.
        if not number or not 0 <= count <= MAX_SECTION or count != math.floor(count):
            raise ValueError(TEXTS("axes.count", max_section=MAX_SECTION, count=short_repr(count)))
    return tuple(int(count) for count in counts)


def read_only(array: NDArray[np.int64]) -> NDArray[np.int64]:
    """Mark the array read-only and return it."""
    array.flags.writeable = False
    return array


def set_field(spec: AxesSpec, name: str, value: object) -> None:
    """Set a field of a frozen spec during its construction."""
    object.__setattr__(spec, name, value)


@dataclass(frozen=True)
class AlongAxis(RopeSpec):
    """A RopeSpec in which only the pairs `listens` (indices), those of one axis, rotate.

    Scaling is still that of the whole ladder, over the pair index.
    """

    listens: tuple[int, ...] = ()

    def inv_freq(self, length: int | None = None) -> FloatArray:
        """Return radians per position along the axis, (pairs,); 0 for pairs of other axes."""
        rotating = np.isin(np.arange(self.pairs), self.listens)
        return freeze(np.where(rotating, super().inv_freq(length), 0.0))


def along_axis(spec: RopeSpec, pairs: Iterable[int]) -> AlongAxis:
    """Return the spec along the axis that these pairs belong to."""
    fields = {item.name: getattr(spec, item.name) for item in dataclasses.fields(RopeSpec)}
    return AlongAxis(**fields, listens=tuple(int(pair) for pair in pairs))
