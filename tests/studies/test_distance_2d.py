"""Maps of scores over displacements against angles computed here, and the published weakness of sections."""

import numpy as np
import pytest

from rope_viz.embedding.axes_spec import (
    THW,
    AxesSpec,
    alternate_then,
    assign_sections,
    interleave_sections,
    ladder_per_axis,
    mix_axes,
    shared_ladder,
    without_rotation,
)
from rope_viz.embedding.spec import RopeSpec
from rope_viz.studies.distance_2d import (
    coefficients,
    even_coefficients,
    mean_cosine,
    plane,
    profile,
    scores_from,
    unrotated_score,
)

QWEN2 = shared_ladder(RopeSpec(head_dim=128, base=1e6), assign_sections([16, 24, 24], 64))
QWEN3 = shared_ladder(RopeSpec(head_dim=128, base=5e6), interleave_sections([24, 20, 20], 64))
ERNIE = shared_ladder(RopeSpec(head_dim=128, base=5e5), alternate_then(64, 20))
MIXED = mix_axes(np.random.default_rng(0).normal(size=(20, 2)), ("h", "w"))
STRETCHED = AxesSpec(QWEN3.weights, factor=np.linspace(0.5, 2.0, 64), axes=THW)
SPECS = {"sections": QWEN2, "interleaved": QWEN3, "mixed": MIXED, "a factor per pair": STRETCHED}
SHEARED = without_rotation(QWEN2, QWEN3.weights)


def test_sections_have_the_published_weakness() -> None:
    """Mean cosine of all pairs with one axis moved by 32: columns do not count at all in Qwen2-VL."""
    assert [round(float(mean_cosine(QWEN2, axis, [32])[0]), 3) for axis in THW] == [0.739, 0.978, 1.0]
    assert [round(float(mean_cosine(QWEN3, axis, [32])[0]), 3) for axis in THW] == [0.900, 0.950, 0.910]
    time, row, column = (float(mean_cosine(ERNIE, axis, [32])[0]) for axis in THW)
    assert time > row
    assert time > column


@pytest.mark.parametrize("name", SPECS)
def test_a_map_is_the_score_of_rotated_vectors(name: str) -> None:
    spec = SPECS[name]
    q, k = np.random.default_rng(1).normal(size=(2, spec.head_dim))
    rows, columns = np.array([-32.0, -1.0, 0.0, 5.0, 31.0]), np.array([-7.0, 0.0, 2.5, 90.0])
    found = plane(spec, *coefficients(spec, q, k), rows, columns) + unrotated_score(spec, q, k)
    query = np.full(len(spec.axes), 100.0)
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            key = query.copy()
            key[spec.index("h")] -= row
            key[spec.index("w")] -= column
            turned = spec.rotate(np.stack([q, k]), np.stack([query, key]))
            assert found[i, j] == pytest.approx(turned[0] @ turned[1], abs=1e-9)


def test_both_computations_of_a_map_agree() -> None:
    aligned = ladder_per_axis([RopeSpec(head_dim=32, base=100.0)] * 2, ("h", "w"))
    # One pair that hears both axes a little sends the whole spec through the product.
    weights = np.array(aligned.weights)
    weights[3] = [1e-15, weights[3, 1] or weights[3, 0]] if weights[3, 1] else [weights[3, 0], 1e-15]
    nearly = AxesSpec(weights, aligned.dims, axes=aligned.axes)
    assert not nearly.is_aligned
    side = np.arange(-20.0, 21.0)
    np.testing.assert_allclose(
        plane(nearly, *even_coefficients(nearly), side, side),
        plane(aligned, *even_coefficients(aligned), side, side),
        atol=1e-12,
    )


def test_a_map_is_exact_far_away() -> None:
    far = np.array([0.0, 1.0, 12_345_678.0, 2.0**31])
    found = plane(QWEN3, *even_coefficients(QWEN3), far, far)
    for i, row in enumerate(far):
        for j, column in enumerate(far):
            turns = QWEN3.weights[:, 1].astype(np.longdouble) * row + QWEN3.weights[:, 2].astype(np.longdouble) * column
            assert found[i, j] == pytest.approx(float(np.cos(turns).mean()), abs=1e-7)


def test_a_profile_is_a_row_of_the_map() -> None:
    side = np.arange(-9.0, 10.0)
    whole = plane(QWEN3, *even_coefficients(QWEN3), side, side)
    np.testing.assert_allclose(mean_cosine(QWEN3, "w", side), whole[9], atol=1e-14)
    held = profile(QWEN3, *even_coefficients(QWEN3), "w", side, at={"h": 4.0})
    np.testing.assert_allclose(held, whole[13], atol=1e-14)
    np.testing.assert_allclose(plane(QWEN3, *even_coefficients(QWEN3), side, side, at={"t": 0.0}), whole, atol=1e-14)


def test_map_at_a_fixed_time_offset_has_the_score_of_that_time() -> None:
    near = plane(QWEN2, *even_coefficients(QWEN2), [0.0], [0.0], at={"t": 32.0})
    assert near[0, 0] == pytest.approx(float(mean_cosine(QWEN2, "t", [32])[0]))


@pytest.mark.parametrize("spec", [QWEN2, SHEARED], ids=["a rotation", "no rotation"])
def test_seen_from_gives_the_score_at_its_positions(spec: AxesSpec) -> None:
    q, k = np.random.default_rng(4).normal(size=(2, spec.head_dim))
    origin = np.array([11.0, 40.0, 7.0])
    rows, columns = np.array([-3.0, 0.0, 12.0]), np.array([0.0, 1.0, 50.0])
    found = scores_from(spec, q, k, origin, rows, columns)
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            turned = spec.rotate(np.stack([q, k]), np.stack([origin, origin + np.array([0.0, row, column])]))
            assert found[i, j] == pytest.approx(turned[0] @ turned[1], abs=1e-9)


def test_scores_of_a_sheared_table_depend_on_the_origin() -> None:
    q, k = np.random.default_rng(4).normal(size=(2, SHEARED.head_dim))
    side = np.arange(-4.0, 5.0)
    first = scores_from(SHEARED, q, k, [0.0, 0.0, 0.0], side, side)
    second = scores_from(SHEARED, q, k, [0.0, 20.0, 20.0], side, side)
    assert np.abs(first - second).max() > 1e-2
    with pytest.raises(ValueError, match="not a rotation"):
        plane(SHEARED, *even_coefficients(SHEARED), side, side)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: plane(QWEN2, *even_coefficients(QWEN2), [0.0], [0.0], axes=("h", "h")), "differ from each other"),
        (lambda: plane(QWEN2, *even_coefficients(QWEN2), [0.0], [0.0], at={"h": 1.0}), "differ from each other"),
        (lambda: plane(QWEN2, *even_coefficients(QWEN2), [0.0], [0.0], axes=("h", "x")), "axis must be one of"),
        (lambda: plane(QWEN2, np.ones(3), None, [0.0], [0.0]), "64"),
        (lambda: plane(QWEN2, np.ones((2, 64)), None, [0.0], [0.0]), "one set of coefficients"),
        (lambda: plane(QWEN2, *even_coefficients(QWEN2), [], [0.0]), "rows must be displacements"),
        (lambda: plane(QWEN2, *even_coefficients(QWEN2), np.arange(8192), np.arange(8192)), "at most"),
        (lambda: coefficients(QWEN2, np.ones(3), np.ones(128)), "q must have shape"),
    ],
)
def test_inconsistent_maps_raise_a_clear_error(make, says) -> None:
    with pytest.raises(ValueError, match=says):
        make()
