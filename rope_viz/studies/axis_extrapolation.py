"""One axis of an image or a video extended beyond its trained size: methods, and where the score recurs.

If every axis has its own ladder, a method applies to that ladder and the trained side. For a ladder shared by all axes
it applies to the whole ladder and the trained length in tokens, over the pair index, as in transformers.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rope_viz.embedding.axes_spec import STILL
from rope_viz.embedding.axis_sections import analyse_spec
from rope_viz.embedding.exact_angles import MAX_DISTANCE, exact_angles
from rope_viz.embedding.scaling import NtkAware, Yarn, correction_dim, mscale, require_two_pairs, with_base
from rope_viz.embedding.spec import FloatArray, RopeSpec, Scaling, freeze, require_number, short_repr
from rope_viz.multi_axis.image_layouts import Role, Scene
from rope_viz.studies import scores

# RIFLEx: Zhao et al., https://arxiv.org/abs/2502.15894, and github.com/thu-ml/RIFLEx, `riflex_utils.py`
TURN_SHARE = 0.9  # the share of a turn that the extended video may use

# Turns in the trained extent between which linear changes to NTK, and NTK to plain. DyPE at its first step: Issachar et
# al., https://arxiv.org/abs/2510.20766, and github.com/guyyariv/DyPE, `flux/transformer_flux.py`
LINEAR_TO_NTK = (1.25, 0.75)
NTK_TO_PLAIN = (16.0, 2.0)


@dataclass(frozen=True)
class ImageYarn(Scaling):
    """YaRN for one side of an image: divided, then NTK, then plain, by the turns in the trained side."""

    name: str = field(default="image-yarn", init=False)

    def validate(self, spec: RopeSpec) -> None:
        require_two_pairs(spec, self.name)

    def inv_freq(self, spec: RopeSpec, length: int | None = None) -> FloatArray:
        factor = self.growth(spec, length)
        if factor <= 1.0:
            return spec.plain_inv_freq
        divided = spec.plain_inv_freq / factor
        ntk = with_base(spec, spec.base * factor ** (spec.rotary_dim / (spec.rotary_dim - 2)))
        mixed = blend_by_turns(spec, divided, ntk, LINEAR_TO_NTK)
        return freeze(blend_by_turns(spec, mixed, spec.plain_inv_freq, NTK_TO_PLAIN))

    def attention_factor(self, spec: RopeSpec, length: int | None = None) -> float:
        return mscale(self.growth(spec, length))

    def growth(self, spec: RopeSpec, length: int | None = None) -> float:
        """Return the wanted extent over the trained extent, at least 1."""
        return max((length or spec.target) / spec.context, 1.0)

    def factor_for(self, spec: RopeSpec) -> float:
        return self.growth(spec)


def blend_by_turns(spec: RopeSpec, slow: FloatArray, fast: FloatArray, turns: tuple[float, float]) -> FloatArray:
    """Blend: `fast` above turns[0] turns in the trained extent, `slow` below turns[1].

    Linear in the pair index in between, with the ends rounded outwards and clamped as published.
    """
    low = max(float(math.floor(correction_dim(spec, turns[0]))), 0.0)
    high = min(float(math.ceil(correction_dim(spec, turns[1]))), spec.rotary_dim - 1.0, spec.rotary_dim // 2)
    if low == high:
        high += 0.001
    slow_share = np.clip((np.arange(spec.pairs) - low) / (high - low), 0.0, 1.0)
    return np.asarray(slow * slow_share + fast * (1.0 - slow_share))


METHODS = ("none", "stretch", "ntk", "yarn", "riflex")
LEAST_PEAK = 0.25
MANY = 1 << 16


@dataclass(frozen=True, eq=False)
class ExtendedAxis:
    """The pairs of one direction, (n,), with frequencies per patch as trained (`plain`) and extended (`extended`).

    `trained` and `target` are patches or frames. `factor` multiplies cos and sin. `changed` are the pairs whose
    frequency differs.
    """

    role: Role
    method: str
    pair: NDArray[np.int64]
    plain: FloatArray
    extended: FloatArray
    trained: int
    target: int
    factor: float = 1.0
    changed: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def score(self, displacements: FloatArray, *, plain: bool = False) -> FloatArray:
        """Return the mean cosine of these pairs, (n,)."""
        return mean_cosine(self.plain if plain else self.extended, displacements)

    @functools.cached_property
    def curves(self) -> tuple[FloatArray, FloatArray]:
        """Return the scores at 0, 1, … `target`, as trained and extended."""
        plain = scores.mean_cosine(self.plain, self.target + 1)
        return plain, scores.mean_cosine(self.extended, self.target + 1) if self.changed.size else plain


@dataclass(frozen=True)
class Peak:
    """A displacement at which the score recurs, and the score there."""

    at: int
    score: float


def available_methods(scene: Scene, role: Role) -> list[str]:
    """Return the methods available for a direction of a scene."""
    found = analyse_spec(scene.role_spec)
    names = ["none", "stretch"]
    if found is not None and (("" if found.shared else role) in found.ladders) and found.counts.get(role, 0) > 1:
        names += ["ntk", "yarn"]
    if found is not None and not found.shared and role == "time" and found.counts.get(role, 0) > 1:
        names.append("riflex")
    return names


def extend_axis(scene: Scene, role: Role, method: str = "none", growth: float = 4.0) -> ExtendedAxis:
    """Return the pairs of a direction, extended to `growth` times the side of the scene.

    Raises `ValueError` if there is no such direction, or the method is not available for it.
    """
    require_number(growth, "growth", least=1.0, most=64.0)
    seen = scene.role_spec
    if role not in scene.roles:
        raise ValueError(f"there is no {role} here; there are {', '.join(scene.roles)}")
    if method not in available_methods(scene, role):
        raise ValueError(
            f"method must be one of {', '.join(available_methods(scene, role))} here, got {short_repr(method)}"
        )
    weights = seen.along(role)
    if not weights.any() and seen.second is not None:
        # A table that is not a rotation: only the second members may use this direction.
        weights = seen.second[:, seen.index(role)]
    pair = np.flatnonzero(weights)
    plain, side = weights[pair], scene.sides.get(role, 1)
    target = max(1, round(side * growth))
    frequencies, factor = plain, 1.0
    if method == "stretch":
        frequencies = plain / growth
    elif method == "riflex":
        slowed = nearest_pair(plain, find_recurrence(plain, side))
        frequencies = slow_pair(plain, slowed, target)
    elif method in ("ntk", "yarn"):
        frequencies, factor = apply_method(scene, role, method, growth)
    changed = pair[np.abs(frequencies - plain) > 1e-9 * np.abs(plain)]
    return ExtendedAxis(role, method, pair, plain, frequencies, side, target, factor, changed)


def apply_method(scene: Scene, role: Role, method: str, growth: float) -> tuple[FloatArray, float]:
    """Return the frequencies of a direction under NTK or YaRN, and the factor on cos and sin."""
    seen = scene.role_spec
    found = analyse_spec(seen)
    assert found is not None
    pairs = np.flatnonzero(seen.along(role))
    scaling: Scaling
    if found.shared:
        # The ladder of the model itself, because positions per patch differ between axes.
        model_anatomy = analyse_spec(scene.spec)
        rotating = np.flatnonzero(seen.owner != STILL)
        step = seen.along(role)[pairs] / scene.spec.weights.sum(axis=1)[pairs]
        base = (model_anatomy or found).ladders[""].base
        scaling = Yarn(factor=growth) if method == "yarn" else NtkAware(growth)
        size = 2 * len(rotating)
        spec = RopeSpec(size, size, base, scene.context, max(1, round(scene.context * growth)), scaling)
        return spec.inv_freq()[np.searchsorted(rotating, pairs)] * step, spec.attention_factor()
    ladder = found.ladders[role]
    extent = max(1, round(scene.sides.get(role, 1) * ladder.first))
    scaling = ImageYarn() if method == "yarn" else NtkAware(growth)
    size = 2 * ladder.pairs
    spec = RopeSpec(size, size, ladder.base, extent, max(1, round(extent * growth)), scaling)
    return spec.inv_freq() * ladder.first, spec.attention_factor()


def nearest_pair(frequencies: FloatArray, frame: int) -> int:
    """Return the pair whose period, in whole frames, is nearest to a frame, as in RIFLEx."""
    return int(np.argmin(np.abs(np.rint(2.0 * np.pi / frequencies) - frame)))


def slow_pair(frequencies: FloatArray, pair: int, frames: int) -> FloatArray:
    """Return the frequencies after RIFLEx: a video of this many latent frames spans 0.9 of a turn of the pair."""
    return np.where(np.arange(len(frequencies)) == pair, TURN_SHARE * 2.0 * np.pi / frames, frequencies)


def find_recurrence(frequencies: FloatArray, side: int) -> int:
    """Return the frame beyond the trained ones at which the score recurs most: there videos begin to repeat.

    The paper observes that frame in videos; the false peak predicts it (HunyuanVideo 50, CogVideoX 19 to 20). Without
    such a peak up to four times the trained side, return the trained side.
    """
    curve = scores.mean_cosine(frequencies, 4 * side + 1)
    beyond = [peak.at for peak in false_peaks(curve, max(2, side // 4)) if peak.at > side]
    return beyond[0] if beyond else side


def mean_cosine(frequencies: FloatArray, displacements: FloatArray) -> FloatArray:
    """Return the mean of cos over pairs (n,), at displacements (m,): (m,)."""
    return np.asarray(np.cos(angles(frequencies, displacements)).mean(axis=1))


def false_peaks(curve: FloatArray, least_gap: int) -> list[Peak]:
    """Return the highest peaks of a curve over 0, 1, 2 … after its first fall, at least `least_gap` apart.

    Only peaks of at least 0.25, highest first, each the maximum within `least_gap` on both sides.
    """
    falls = np.flatnonzero(np.diff(curve) > 0.0)
    if not falls.size:
        return []
    begin = int(falls[0])
    found = []
    inner = curve[begin + 1 : -1]
    tops = (inner >= LEAST_PEAK) & (inner >= curve[begin:-2]) & (inner > curve[begin + 2 :])
    for at in (np.flatnonzero(tops) + begin + 1).tolist():
        low, high = max(begin, at - least_gap), min(len(curve), at + least_gap + 1)
        if curve[at] == curve[low:high].max():
            found.append(Peak(at, float(curve[at])))
    return sorted(found, key=lambda peak: -peak.score)


def find_peaks(done: ExtendedAxis, *, plain: bool = False) -> list[Peak]:
    """Return the false peaks of a direction up to its target."""
    if done.target > MANY:
        return []
    return false_peaks(done.curves[0 if plain else 1], max(2, done.trained // 4))


def count_unturned_pairs(done: ExtendedAxis) -> int:
    """Return how many pairs do not complete a turn within the trained side."""
    return int(np.sum(np.abs(done.plain) * done.trained < 2.0 * np.pi))


def angles(weights: FloatArray, displacements: FloatArray) -> FloatArray:
    """Return angles (n, pairs): exact for whole displacements, else the float64 product."""
    if np.all(displacements == np.rint(displacements)) and np.all(np.abs(displacements) <= MAX_DISTANCE):
        return exact_angles(weights, displacements)
    return np.multiply.outer(displacements, weights)
