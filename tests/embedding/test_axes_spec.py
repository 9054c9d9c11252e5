"""Laws of every allocation: length, displacement, and equality with RopeSpec for one axis."""

import dataclasses

import numpy as np
import pytest

from rope_viz.embedding.axes_spec import (
    MIXED,
    STILL,
    THW,
    AxesSpec,
    alternate_axes,
    alternate_then,
    assign_sections,
    interleave_sections,
    join_specs,
    ladder_per_axis,
    mix_axes,
    one_axis,
    shared_ladder,
    without_rotation,
)
from rope_viz.embedding.scaling import METHODS, Linear, NtkAware, Yarn
from rope_viz.embedding.spec import RopeSpec

LADDER = RopeSpec(head_dim=64, base=1e6)
SIDE = RopeSpec(head_dim=16, base=256.0)
RANDOM = np.random.default_rng(3)

ALLOCATIONS = {
    "sections": shared_ladder(LADDER, assign_sections([8, 12, 12], 32)),
    "interleaved": shared_ladder(LADDER, interleave_sections([12, 10, 10], 32)),
    "h w then t": shared_ladder(LADDER, alternate_then(32, 10)),
    "even and odd": shared_ladder(LADDER, alternate_axes(32), ("row", "column")),
    "some still": shared_ladder(LADDER, [0] * 16 + [STILL] * 16),
    "blocks": ladder_per_axis([SIDE, RopeSpec(head_dim=24), RopeSpec(head_dim=24)], THW),
    "pair by pair": ladder_per_axis([SIDE, SIDE], ("h", "w"), order="pair by pair", pairing="interleaved"),
    "speeds": ladder_per_axis([[3.0, 1.0], [0.5]], ("h", "w"), listens=[1, 0]),
    "directions": mix_axes(RANDOM.normal(size=(32, 3)), THW),
    "joined": join_specs([AxesSpec(np.array([[1.0, 0.0], [0.1, 0.0]])), AxesSpec(np.array([[0.0, 1.0], [0.0, 0.1]]))]),
}
SHEARED = without_rotation(ALLOCATIONS["sections"], ALLOCATIONS["interleaved"].weights)


def places(spec: AxesSpec, count: int = 5) -> np.ndarray:
    return np.random.default_rng(1).integers(-300, 300, size=(count, len(spec.axes))).astype(float)


@pytest.mark.parametrize("name", ALLOCATIONS)
def test_rotation_preserves_length(name: str) -> None:
    spec = dataclasses.replace(ALLOCATIONS[name], factor=1.0)
    x = np.random.default_rng(2).normal(size=(5, spec.head_dim))
    turned = spec.rotate(x, places(spec))
    np.testing.assert_allclose(np.linalg.norm(turned, axis=1), np.linalg.norm(x, axis=1), rtol=1e-12)
    assert spec.is_rotation
    assert spec.is_aligned == (name != "directions")


@pytest.mark.parametrize("name", ALLOCATIONS)
def test_the_score_depends_on_the_displacement_alone(name: str) -> None:
    spec = ALLOCATIONS[name]
    q, k = np.random.default_rng(5).normal(size=(2, spec.head_dim))
    query, key = places(spec, 2)
    for shift in (0.0, 1.0, -77.0, 1000.5):
        turned = spec.rotate(np.stack([q, k]), np.stack([query, key]) + shift)
        if shift == 0.0:
            first = turned[0] @ turned[1]
        assert turned[0] @ turned[1] == pytest.approx(first, abs=1e-9)


def test_sheared_table_preserves_neither_length_nor_scores() -> None:
    x = np.random.default_rng(2).normal(size=(5, SHEARED.head_dim))
    at = places(SHEARED)
    ratio = np.linalg.norm(SHEARED.rotate(x, at), axis=1) / np.linalg.norm(x, axis=1)
    assert np.abs(ratio - 1.0).max() > 0.01
    low, high = SHEARED.stretch(at)
    assert np.all(ratio >= low.min(axis=1) - 1e-12)
    assert np.all(ratio <= high.max(axis=1) + 1e-12)

    def score(shift: float) -> float:
        turned = SHEARED.rotate(x[:2], at[:2] + shift)
        return float(turned[0] @ turned[1])

    assert abs(score(0.0) - score(9.0)) > 1e-3
    assert not SHEARED.is_rotation
    assert not SHEARED.is_aligned


def test_stretch_is_the_singular_values_of_each_pair() -> None:
    at = places(SHEARED)
    low, high = SHEARED.stretch(at)
    cos, sin = SHEARED.cos_sin(at)
    cos_second, sin_second = SHEARED.cos_sin_second(at)
    for token in range(len(at)):
        for pair in range(SHEARED.pairs):
            block = np.array(
                [[cos[token, pair], -sin[token, pair]], [sin_second[token, pair], cos_second[token, pair]]]
            )
            values = np.linalg.svd(block, compute_uv=False)
            np.testing.assert_allclose([low[token, pair], high[token, pair]], values[::-1], atol=1e-7)


@pytest.mark.parametrize("method", METHODS)
def test_one_axis_is_rope_spec(method: str) -> None:
    spec = RopeSpec(head_dim=96, rotary_dim=64, context=2048, target=8192, scaling=METHODS[method]())
    for length in (None, 8192):
        axes = one_axis(spec, length=length)
        np.testing.assert_array_equal(axes.along("position"), spec.inv_freq(length))
        assert axes.factor == spec.attention_factor(length)
        assert (axes.pairs, axes.head_dim, axes.axes) == (spec.pairs, 96, ("position",))


@pytest.mark.parametrize("method", METHODS)
def test_scaling_uses_the_pair_index_on_every_axis(method: str) -> None:
    spec = dataclasses.replace(LADDER, context=4096, target=16384, scaling=METHODS[method]())
    axes = shared_ladder(spec, interleave_sections([12, 10, 10], 32), length=16384)
    np.testing.assert_array_equal(axes.weights.sum(axis=1), spec.inv_freq(16384))
    assert np.count_nonzero(axes.weights, axis=1).max() == 1


def test_each_axis_has_its_own_scaling_and_factor() -> None:
    yarn = RopeSpec(head_dim=24, context=64, target=128, scaling=Yarn(factor=2.0, beta_fast=2.0))
    spec = ladder_per_axis([SIDE, yarn, dataclasses.replace(yarn, scaling=NtkAware(2.0))], THW)
    np.testing.assert_array_equal(spec.along("h")[8:20], yarn.inv_freq())
    assert isinstance(spec.factor, np.ndarray)
    np.testing.assert_allclose(spec.factor, [1.0] * 8 + [yarn.attention_factor()] * 12 + [1.0] * 12)
    assert ladder_per_axis([yarn, yarn], ("h", "w")).factor == yarn.attention_factor()
    assert ladder_per_axis([dataclasses.replace(yarn, scaling=Linear(2.0))] * 2, ("h", "w")).factor == 1.0


def test_owner_maps_pairs_to_axes() -> None:
    weights = np.array([[1.0, 0.0], [0.0, 0.0], [0.5, 0.5], [0.0, -2.0]])
    assert mix_axes(weights, ("h", "w")).owner.tolist() == [0, STILL, MIXED, 1]
    assert not mix_axes(weights, ("h", "w")).is_aligned


def test_sections_cycle_over_the_pairs_as_in_models() -> None:
    assert assign_sections([1, 0, 3], 4) == [0, 2, 2, 2]
    assert interleave_sections([24, 20, 20], 64)[-5:] == [2, 0, 0, 0, 0]
    assert interleave_sections([2, 2, 2], 8) == [0, 1, 2, 0, 1, 2, 0, 0]
    assert alternate_then(5, 1) == [1, 2, 1, 2, 0]


def test_equal_content_is_equal_and_hashes_alike() -> None:
    again = shared_ladder(LADDER, assign_sections([8, 12, 12], 32))
    assert again == ALLOCATIONS["sections"]
    assert hash(again) == hash(ALLOCATIONS["sections"])
    assert again != ALLOCATIONS["interleaved"]
    assert again != dataclasses.replace(again, axes=("a", "b", "c"))
    assert without_rotation(again, again.weights) == again
    assert again != SHEARED


def test_arrays_of_a_spec_are_read_only() -> None:
    for array in (ALLOCATIONS["blocks"].weights, ALLOCATIONS["blocks"].dims, SHEARED.second):
        assert array is not None
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: assign_sections([1, 2], 4), "sections must add up to the 4 pairs that rotate, got 3"),
        (lambda: assign_sections([1.5, 2.5], 4), "whole numbers"),
        (lambda: assign_sections([-1, 5], 4), "at least 0"),
        (lambda: assign_sections("8 12", 4), "list of pair counts"),
        (lambda: AxesSpec(np.zeros((0, 2))), "at least one pair"),
        (lambda: AxesSpec(np.zeros(3)), "shape"),
        (lambda: AxesSpec(np.array([[np.nan]])), "finite"),
        (lambda: AxesSpec(np.ones((2, 1)), np.array([[0, 1], [1, 2]])), "two pairs"),
        (lambda: AxesSpec(np.ones((2, 1)), np.array([[0, 1], [-1, 2]])), "from 0 on"),
        (lambda: AxesSpec(np.ones((2, 1)), np.array([[0.0, 1.0], [2.0, 3.0]])), "whole numbers"),
        (lambda: AxesSpec(np.ones((2, 2)), axes=("h", "h")), "different names"),
        (lambda: AxesSpec(np.ones((2, 2)), axes=("h",)), "2 different names"),
        (lambda: AxesSpec(np.ones((2, 1)), factor=np.ones(3)), "one per pair"),
        (lambda: AxesSpec(np.ones((2, 1)), second=np.ones((2, 2))), "shape of weights"),
        (lambda: AxesSpec(np.ones((2, 1)), head_dim=3), "head_dim must be"),
        (lambda: shared_ladder(LADDER, [0] * 31), "every pair needs an axis"),
        (lambda: shared_ladder(LADDER, [3] * 32), "from 0 to 2"),
        (lambda: ladder_per_axis([], ("h",)), "ladders must be"),
        (lambda: ladder_per_axis([SIDE], ("h",), order="woven"), "order must be"),  # type: ignore[arg-type]
        (lambda: ladder_per_axis([SIDE], ("h",), pairing="both"), "pairing must be"),  # type: ignore[arg-type]
        (lambda: ladder_per_axis([SIDE, SIDE], ("h", "w"), listens=[0]), "each of the 2"),
        (lambda: ALLOCATIONS["blocks"].index("x"), "one of t, h, w"),
        (lambda: ALLOCATIONS["blocks"].angles([[1.0, 2.0]]), "positions must have shape"),
        (lambda: ALLOCATIONS["blocks"].rotate(np.zeros((1, 8)), [[0.0, 0.0, 0.0]]), "x must have shape"),
    ],
)
def test_inconsistent_axes_raise_a_clear_error(make, says) -> None:
    with pytest.raises(ValueError, match=says):
        make()
