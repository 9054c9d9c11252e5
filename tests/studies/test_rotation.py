"""The laws of the rotation matrix, its equivalent forms and its precision."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rope_viz.embedding.scaling import Yarn
from rope_viz.embedding.spec import PAIRINGS, RopeSpec
from rope_viz.studies.rotation import (
    equivalent_forms,
    matrix_laws,
    pairing_permutation,
    position_angles,
    rotate,
    rotation_matrix,
)
from rope_viz.studies.vectors import draw_normals, parse_vector

SPECS = [
    RopeSpec(head_dim=64, pairing=pairing, rotary_dim=rotary_dim, scaling=scaling)
    for pairing in PAIRINGS
    for rotary_dim in (0, 48)
    for scaling in (RopeSpec().scaling, Yarn(factor=4))
]


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_the_laws_of_the_matrix_hold_to_rounding(spec):
    for law in matrix_laws(spec, 1000, 123_456):
        # Angles of 1e5 rad carry 2.3e-16 of themselves.
        assert law.error < 1e-10, law


def test_laws_name_what_they_check():
    statements = [law.statement for law in matrix_laws(RopeSpec(head_dim=8), 1, 2)]
    assert statements[:3] == ["RRᵀ = I", "det R = 1", "RₘᵀRₙ = Rₙ₋ₘ"]


def test_two_dimensional_matrix_is_the_rotation_by_the_position():
    angle = 2.5
    expected = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    for pairing in PAIRINGS:
        np.testing.assert_allclose(
            rotation_matrix(RopeSpec(head_dim=2, pairing=pairing), angle), expected, rtol=0, atol=1e-15
        )


def test_interleaved_is_block_diagonal_and_half_is_off_diagonal():
    spec = RopeSpec(head_dim=8)
    row, column = np.nonzero(rotation_matrix(spec, 1, pairing="interleaved"))
    assert np.array_equal(row // 2, column // 2)
    row, column = np.nonzero(rotation_matrix(spec, 1, pairing="half"))
    assert set((row - column).tolist()) == {0, 4, -4}


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_rotate_is_the_matrix_product(spec):
    x = draw_normals("x", 3, spec.head_dim)
    positions = np.array([0, 7, 4095])
    expected = [rotation_matrix(spec, m) @ row for m, row in zip(positions, x, strict=True)]
    np.testing.assert_allclose(rotate(spec, x, positions), expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_every_form_gives_the_same_vector(spec):
    forms = equivalent_forms(spec, draw_normals("x", 64), 777)
    assert [form.name for form in forms] == ["dense", "interleaved", "half", "complex"]
    for form in forms:
        assert form.error < 1e-14
        np.testing.assert_allclose(form.result, forms[0].result, rtol=0, atol=1e-14)


def test_dense_product_costs_d_squared_and_elementwise_4d():
    dense, interleaved, half, multiplied = equivalent_forms(RopeSpec(head_dim=128), np.ones(128), 1)
    assert dense.multiplications == 128**2
    assert interleaved.numbers == half.numbers == 4 * 128
    assert interleaved.multiplications == half.multiplications == multiplied.multiplications == 2 * 128
    assert half.bytes == 4 * half.numbers


def test_permutation_of_eight_dimensions():
    # Published, for example in transformers' Llama conversion: even dimensions first, then odd ones.
    spec = RopeSpec(head_dim=8)
    assert pairing_permutation(spec, "interleaved", "half").tolist() == [0, 2, 4, 6, 1, 3, 5, 7]
    assert pairing_permutation(spec, "half", "interleaved").tolist() == [0, 4, 1, 5, 2, 6, 3, 7]
    assert pairing_permutation(spec, "half", "half").tolist() == list(range(8))


@settings(deadline=None)
@given(st.integers(0, 1_000_000), st.integers(-2000, 2000), st.sampled_from(PAIRINGS), st.sampled_from([0, 2, 12, 30]))
def test_the_score_depends_on_the_distance_only(position, distance, pairing, rotary_dim):
    spec = RopeSpec(head_dim=32, rotary_dim=rotary_dim, pairing=pairing)
    q, k = draw_normals("q", 32), draw_normals("k", 32)
    here = rotate(spec, q, distance) @ rotate(spec, k, 0)
    there = rotate(spec, q, position + distance) @ rotate(spec, k, position)
    assert abs(here - there) < 1e-8


@pytest.mark.parametrize("end", [4096, 131_072, 1_000_000, 10_000_000])
def test_float64_angles_stay_within_their_stated_bound(end):
    spec = RopeSpec(base=500_000.0, head_dim=96)
    positions = np.linspace(1, end, 12).astype(int)
    ours = position_angles(spec, positions)
    with mpmath.workdps(40):
        for m, row in zip(positions.tolist(), ours, strict=True):
            for f, angle in zip(spec.inv_freq().tolist(), row.tolist(), strict=True):
                assert abs(mpmath.mpf(angle) - m * mpmath.mpf(f)) <= 1.12e-16 * angle


@pytest.mark.parametrize(("end", "published"), [(4096, 2e-13), (131_072, 7e-12), (1_000_000, 6e-11)])
def test_float64_sines_are_of_the_order_published(end, published):
    # The largest error of sine or cosine over all pairs, base 1e4, against ideal frequencies. How a library rounds
    # base^(-2i/d) itself changes this by up to a factor of two.
    spec = RopeSpec()
    positions = np.linspace(end - 4000, end - 1, 12).astype(int)
    worst = 0.0
    with mpmath.workdps(40):
        inv_freq = [mpmath.mpf(10_000) ** (mpmath.mpf(-i) / 64) for i in range(64)]
        ours = np.exp(1j * position_angles(spec, positions))
        for row, m in enumerate(positions.tolist()):
            for i, f in enumerate(inv_freq):
                exact = mpmath.expj(m * f)
                worst = max(
                    worst, abs(ours[row, i].real - float(exact.real)), abs(ours[row, i].imag - float(exact.imag))
                )
    assert published / 10 < worst < 2.0 * published


def test_gain_multiplies_only_what_rotates():
    spec = RopeSpec(head_dim=8, rotary_dim=4)
    x = draw_normals("x", 8)
    plain, doubled = rotate(spec, x, 3), rotate(spec, x, 3, gain=2.0)
    np.testing.assert_allclose(doubled[:4], 2.0 * plain[:4])
    np.testing.assert_array_equal(doubled[4:], x[4:])


def test_a_dense_matrix_too_large_to_look_at_is_refused():
    with pytest.raises(ValueError, match="head_dim, for a dense matrix, must be at most 1,024, got 2048"):
        rotation_matrix(RopeSpec(head_dim=2048), 1)


def test_a_vector_of_the_wrong_size_is_refused():
    with pytest.raises(ValueError, match="head_dim = 8"):
        rotate(RopeSpec(head_dim=8), np.ones(6), 1)


def test_a_typed_vector_is_read():
    np.testing.assert_array_equal(parse_vector("[1, 2.5; -3\n4e0]", 4), [1.0, 2.5, -3.0, 4.0])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1, two, 3", "'two'"),
        ("1 2", "must have 3 numbers"),
        ("1 2 inf", "finite"),
        ("", "got 0"),
        ("1 2 1e300", "most"),
    ],
)
def test_bad_vector_raises_a_clear_error(text, said):
    with pytest.raises(ValueError, match=said):
        parse_vector(text, 3)


def test_normals_are_normal_and_fixed():
    values = draw_normals("a", 40_000)
    assert abs(values.mean()) < 0.02
    assert abs(values.std() - 1.0) < 0.02
    assert abs((values**4).mean() - 3.0) < 0.15
    np.testing.assert_array_equal(values, draw_normals("a", 40_000))
    assert np.abs(np.corrcoef(values, draw_normals("b", 40_000))[0, 1]) < 0.02
    assert draw_normals("a", 3, 5).shape == (3, 5)
