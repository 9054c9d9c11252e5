"""Angles are exact at every integer position, and the other ways err as published measurements say."""

import mpmath
import numpy as np
import pytest

from rope_viz.kernels import error_by_position, exact_table, fixed_point, float32_table, tables

pytestmark = pytest.mark.float32_products

INV_FREQ = 10_000.0 ** (-np.arange(64) / 64)
POSITIONS = np.array([0, 1, 2, 4095, 131_071, 1_000_000, 2**31 - 1, 2**31, 2**40 + 7, -1, -(2**31), -(2**45) - 3])


def exact(function, positions, inv_freq):
    with mpmath.workprec(200):
        return np.array([[float(function(int(p) * mpmath.mpf(float(f)))) for f in inv_freq] for p in positions])


def test_exact_table_agrees_with_mpmath_at_any_position():
    cos, sin = exact_table(INV_FREQ, POSITIONS)
    # The increment is rounded to 2^-65 turns, which the position multiplies.
    bound = 1e-15 + np.abs(POSITIONS)[:, None] * 2.0**-65 * 2 * np.pi
    assert (np.abs(cos - exact(mpmath.cos, POSITIONS, INV_FREQ)) <= bound).all()
    assert (np.abs(sin - exact(mpmath.sin, POSITIONS, INV_FREQ)) <= bound).all()


def test_increments_are_the_nearest_integers():
    frequencies = [1.0, 0.1, 3.0, 1e-9, 0.7071, 6.5, 1e-30, -0.25]
    with mpmath.workprec(300):
        want = [int(mpmath.nint(mpmath.mpf(f) / (2 * mpmath.pi) * 2**64)) for f in frequencies]
    assert [int(i) % 2**64 for i in fixed_point.increments(frequencies)] == [w % 2**64 for w in want]


def test_kernel_polynomial_errs_by_one_part_in_ten_million():
    positions = np.concatenate([np.arange(4096), np.random.default_rng(0).integers(-(2**31), 2**33, 4096)])
    assert error_by_position(INV_FREQ, positions, "fixed-point phase").max() < 1.05e-7


# Figures of facts/kernels.md section 3, base 10,000, 64 pairs: the largest error over a window of positions.
@pytest.mark.parametrize(
    ("method", "low", "high", "error"),
    [
        ("float32 angle", 0, 4096, 2.3e-4),
        ("float32 angle", 100_000, 131_072, 7.4e-3),
        ("float32 angle", 995_000, 1_000_000, 6.2e-2),
        ("fixed-point phase", 0, 4096, 9.6e-8),
        ("fixed-point phase", 100_000, 131_072, 9.4e-8),
    ],
)
def test_errors_match_measured_values(method, low, high, error):
    assert error_by_position(INV_FREQ, np.arange(low, high), method).max() == pytest.approx(error, rel=0.1)


def test_bf16_positions_are_exact_up_to_256_and_wrong_at_257():
    errors = error_by_position(INV_FREQ, np.array([256, 257]), "bf16 positions")
    assert errors[0] < 1e-4
    assert errors[1] > 0.5  # 257 is read as 256: the fastest pair is a whole radian off


def test_bf16_table_errs_by_half_a_bf16_step():
    error = error_by_position(INV_FREQ, np.arange(1, 1000), "bf16 table").max()
    assert 0.9 * 2**-9 < error < 1.1 * 2**-9


def test_bf16_rounding_is_that_of_torch():
    torch = pytest.importorskip("torch")
    values = np.random.default_rng(0).standard_normal(4096).astype(np.float32)
    values[:2] = 1.00390625, 1.01171875  # ties
    assert np.array_equal(tables.round_to_bf16(values), torch.from_numpy(values).bfloat16().float().numpy())


def test_float32_table_equals_the_table_of_torch():
    torch = pytest.importorskip("torch")
    cos, sin = float32_table(INV_FREQ, np.arange(1000))
    angle = torch.outer(torch.arange(1000.0), torch.tensor(INV_FREQ, dtype=torch.float32))
    np.testing.assert_allclose(cos, angle.cos(), atol=1.2e-7)
    np.testing.assert_allclose(sin, angle.sin(), atol=1.2e-7)


@pytest.mark.parametrize(
    ("inv_freq", "message"), [([], "at least one"), ([[1.0]], "shape"), ([np.nan], "finite"), ([np.inf], "finite")]
)
def test_impossible_frequencies_are_refused(inv_freq, message):
    with pytest.raises(ValueError, match=message):
        fixed_point.increments(inv_freq)


@pytest.mark.parametrize("positions", [[0.5], [True], [2**63]])
def test_positions_that_are_no_64_bit_integers_are_refused(positions):
    with pytest.raises(ValueError, match="positions"):
        exact_table(INV_FREQ, np.array(positions))


def test_unknown_method_is_refused():
    with pytest.raises(ValueError, match="method"):
        error_by_position(INV_FREQ, [1], "float8")
