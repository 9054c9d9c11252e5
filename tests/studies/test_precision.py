"""Where arithmetic breaks a rotary embedding: the published numbers, and the emulations against torch."""

import itertools
import json
import math
from itertools import pairwise
from pathlib import Path

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rope_viz.embedding.scaling import METHODS, Linear, Llama3, NtkAware, Proportional, Yarn
from rope_viz.embedding.spec import RopeSpec
from rope_viz.studies.precision import (
    PRACTICES,
    ROUNDINGS,
    angle_error,
    bf16_products,
    exact_unit,
    find_largest_error,
    find_practices,
    first_position_beyond,
    norm_error,
    rotate_rounded,
    round_to,
    shift_test,
    worst_error,
)
from tests.offenders import for_each

pytestmark = pytest.mark.float32_products

GOLDEN = json.loads((Path(__file__).parents[1] / "goldens" / "attention_transformers.json").read_text())
SPEC = RopeSpec(head_dim=128, base=10_000.0)
SCALED = RopeSpec(head_dim=64, scaling=Yarn(factor=4), context=4096, target=16384)
ANGLES = [name for name, rounding in ROUNDINGS.items() if rounding.stage == "angle"]
TABLES = [name for name, rounding in ROUNDINGS.items() if rounding.stage != "angle"]


def window(end: int, size: int = 4096):
    return np.arange(end - size, end)


def trig_error(positions, where):
    """The larger error of cos and sin, absolute, shape (positions, pairs)."""
    off = rotate_rounded(SPEC, np.ones(SPEC.pairs, dtype=complex), positions, where, None) - exact_unit(SPEC, positions)
    return np.maximum(np.abs(off.real), np.abs(off.imag))


# The published numbers: base 1e4, head dimension 128.


def test_bf16_inv_freq_errs_by_5_rad_at_4096_and_40_at_32768():
    off = np.abs(angle_error(SPEC, [4096, 32768], "bf16-inv-freq"))
    assert off.argmax(axis=1).tolist() == [1, 1]
    np.testing.assert_allclose(off.max(axis=1), [5.0, 40.0], rtol=0.005)


def test_the_relative_error_of_a_bf16_inv_freq_is_at_most_3_7e_3():
    inv_freq = SPEC.inv_freq()
    assert np.abs(round_to(inv_freq, "bf16") / inv_freq - 1.0).max() == pytest.approx(3.7e-3, rel=0.02)


def test_float32_angle_error_of_pair_1_has_published_values():
    off = np.abs(angle_error(SPEC, [131_071, 1_048_575], "float32-angles"))
    np.testing.assert_allclose(off[:, 1], [0.0027, 0.022], rtol=0.02)
    assert off[0].argmax() == 1


def test_bf16_cos2_plus_sin2_ranges_from_0_9946_to_1_0055():
    angle = np.linspace(0.0, 2.0 * np.pi, 1_000_001)
    cos, sin = (round_to(wave(angle), "bf16").astype(np.float64) for wave in (np.cos, np.sin))
    length = cos**2 + sin**2
    assert (round(length.min(), 4), round(length.max(), 4)) == (0.9946, 1.0055)
    reached = (1.0 + norm_error(SPEC, window(4096), "bf16-table")) ** 2
    assert 0.9946 < reached.min() < 0.995
    assert 1.005 < reached.max() < 1.0056


def test_running_product_errs_3_times_as_much_as_a_direct_one():
    assert np.abs(angle_error(SPEC, [131_071], "running-product")).max() == pytest.approx(0.0129, rel=0.005)
    # The direct product of the published figure takes the inv_freq that float32 arithmetic makes, as torch does.
    inv_freq = (1.0 / (10_000.0 ** (torch.arange(0, 128, 2).float() / 128))).numpy()
    direct = (np.float32(131_071) * inv_freq).astype(np.float64)
    assert np.abs(direct - 131_071 * SPEC.inv_freq()).max() == pytest.approx(0.0042, rel=0.02)
    # Rounded from float64, as here, inv_freq is closer.
    assert np.abs(angle_error(SPEC, [131_071], "float32-angles")).max() < 0.0042


@pytest.mark.parametrize(("end", "float32"), [(4096, 2.3e-4), (131_072, 7.4e-3), (1_000_000, 6.2e-2)])
def test_the_kernel_table_of_sine_and_cosine_errors(end, float32):
    # Windows differ a little from the published ones, and float32's error is as coarse as its last bit.
    assert trig_error(window(end), "float32-angles").max() == pytest.approx(float32, rel=0.06)
    # Published for the phase: 1.0e-7 at every position tried.
    assert 5e-8 < trig_error(window(end), "phase64").max() < 1.1e-7


def test_only_float32_angles_are_garbage_at_2_to_the_31():
    assert trig_error(window(2**31), "float32-angles").max() == pytest.approx(2.0, rel=0.001)
    assert trig_error(window(2**31), "phase64").max() < 1.1e-7


@pytest.mark.parametrize(("where", "published"), [("float32-angles", 0.006 / 18.83), ("bf16-products", 0.13 / 18.83)])
def test_score_drift_has_the_published_values(where, published):
    # Distance 10, shifts from 0 to 100,000; the published q and k are not known, so the drift is a share of the score.
    test = shift_test(SPEC, np.arange(0, 100_001, 7), where, distance=10)
    assert published / 2 < test.drift / test.exact < 2 * published


def test_positions_in_bf16_merge_from_257_on():
    off = angle_error(SPEC, [255, 256, 257, 258, 4095], "bf16-positions")[:, 0]
    np.testing.assert_allclose(off, [0.0, 0.0, -1.0, 0.0, 1.0])


# The emulations.


def test_exact_angles_match_mpmath():
    for spec in (SPEC, SCALED):
        positions = np.array([0, 1, 4095, 1_048_575, 9_999_999, 2**31])
        ours = exact_unit(spec, positions)
        with mpmath.workdps(40):
            for m, row in zip(positions.tolist(), ours, strict=True):
                theirs = [complex(mpmath.expj(m * mpmath.mpf(f))) for f in spec.inv_freq().tolist()]
                np.testing.assert_allclose(row, theirs, rtol=0, atol=1e-15)


@pytest.mark.parametrize("where", ["bf16-positions", "bf16-inv-freq", "bf16-angles", "float32-angles"])
def test_angle_errors_match_torch(where):
    positions = np.array([1, 300, 4095, 77_777, 9_999_999])
    inv_freq = torch.from_numpy(SPEC.inv_freq().copy())
    places = torch.from_numpy(positions)[:, None]
    low = torch.bfloat16
    theirs = {
        "bf16-positions": places.float().to(low).double() * inv_freq,
        "bf16-inv-freq": places.double() * inv_freq.float().to(low).double(),
        "bf16-angles": (places.float().to(low) * inv_freq.float().to(low)).double(),
        "float32-angles": (places.float() * inv_freq.float()).double(),
    }[where]
    expected = (theirs - places.double() * inv_freq).numpy()
    np.testing.assert_allclose(angle_error(SPEC, positions, where), expected, rtol=1e-12, atol=1e-15)


def test_the_running_product_is_a_loop_over_pairs_in_float32():
    positions = [1, 131_071, 9_999_999]
    scale = np.float32(10_000.0 ** (-2.0 / 128))
    for m, off in zip(positions, angle_error(SPEC, positions, "running-product"), strict=True):
        theta, loop = np.float32(m), []
        for _ in range(64):
            loop.append(float(theta))
            theta = np.float32(theta * scale)
        np.testing.assert_array_equal(off, np.array(loop) - m * SPEC.inv_freq())


def test_bf16_products_match_transformers_bit_for_bit():
    golden, half = GOLDEN["cases"]["half plain bf16"], 8
    cos, sin = (np.array(golden[name])[:, :half] for name in ("cos", "sin"))
    for name in "qk":
        x = round_to(GOLDEN[name], "bf16").astype(np.float64)
        ours = bf16_products(x[:, :half] + 1j * x[:, half:], cos, sin)
        np.testing.assert_array_equal(np.hstack([ours.real, ours.imag]), golden[name])


@pytest.mark.parametrize("where", TABLES)
def test_errors_of_tables_and_products_do_not_grow(where):
    near = np.abs(angle_error(SCALED, window(4096, 2048), where)).max()
    far = np.abs(angle_error(SCALED, window(10_000_000, 2048), where)).max()
    assert far < 1.3 * near


@pytest.mark.parametrize(
    ("where", "unit"),
    [("bf16-table", 2.0**-8), ("fp16-table", 2.0**-11), ("fp8-e4m3-table", 2.0**-4), ("fp8-e5m2-table", 2.0**-3)],
)
def test_a_table_errs_by_less_than_half_a_last_place(where, unit):
    # Between 1/2 and 1 neighbouring numbers are `unit` apart, so rounding moves cos and sin by half of that at most,
    # and the float32 they are in before that by 2^-25.
    worst = trig_error(window(4096), where).max()
    assert 0.4 * unit < worst <= 0.5 * unit + 2.0**-25


def test_bf16_inv_freq_preserves_the_relative_property():
    test = shift_test(SPEC, [0, 1000, 1_000_000], "bf16-inv-freq", distance=3000)
    assert test.drift < 1e-8
    assert abs(test.scores[0] - test.exact) > 0.05


def test_drift_falls_with_the_bits():
    positions = np.arange(0, 100_001, 97)
    drift = [
        shift_test(SCALED, positions, where).drift
        for where in ("fp8-e5m2-table", "fp8-e4m3-table", "bf16-table", "fp16-table", "phase64")
    ]
    assert drift == sorted(drift, reverse=True)
    assert drift[-1] < 1e-5


def test_attention_factor_is_in_exact_scores_but_not_in_norms():
    assert SCALED.attention_factor() > 1.1
    test = shift_test(SCALED, [0, 999_999], "phase64")
    np.testing.assert_allclose(test.scores, test.exact, rtol=0, atol=1e-5)
    assert np.abs(norm_error(SCALED, [3, 4095], "phase64")).max() < 1e-6


@pytest.mark.parametrize("factor", [0.0, -2.0])
@pytest.mark.parametrize("where", ["bf16-table", "fp16-table", "phase64"])
def test_norm_error_ignores_the_attention_factor(where, factor):
    spec = RopeSpec(head_dim=32, scaling=Yarn(4.0, attention=factor))
    plain = norm_error(RopeSpec(head_dim=32, scaling=Yarn(4.0, attention=2.0)), [3, 4095], where)
    np.testing.assert_array_equal(norm_error(spec, [3, 4095], where), plain if factor else 0.0)


def test_scores_include_the_unrotated_dimensions():
    whole, partial = RopeSpec(head_dim=64), RopeSpec(head_dim=64, rotary_dim=2)
    # The same q and k with all but one pair left alone: at distance 0 nothing turns, so both scores are equal.
    assert shift_test(whole, [5], "phase64", distance=0).exact == pytest.approx(
        shift_test(partial, [5], "phase64", distance=0).exact, rel=1e-12
    )


# First positions, bins and words.


@settings(deadline=None)
@given(
    st.sampled_from(["bf16-positions", "bf16-inv-freq"]),
    st.sampled_from([100.0, 10_000.0, 500_000.0]),
    st.floats(0.001, 0.4),
)
def test_the_first_position_beyond_is_the_first(where, base, turns):
    spec, limit = RopeSpec(head_dim=16, base=base), 6000
    beyond = np.abs(angle_error(spec, np.arange(limit + 1), where)) > 2.0 * math.pi * turns
    expected = np.where(beyond.any(axis=0), beyond.argmax(axis=0), np.nan)
    np.testing.assert_array_equal(first_position_beyond(spec, where, turns=turns, limit=limit), expected)


def test_sampled_first_positions_are_beyond_and_near_the_first():
    limit = 4000
    beyond = np.abs(angle_error(SPEC, np.arange(limit + 1), "bf16-angles")) > 0.2 * math.pi
    sampled = first_position_beyond(SPEC, "bf16-angles", limit=limit)
    found = ~np.isnan(sampled)
    assert found.sum() > 20
    first = beyond.argmax(axis=0)
    for pair in np.flatnonzero(found):
        assert beyond[int(sampled[pair]), pair]
        assert first[pair] <= sampled[pair] < 1.1 * first[pair]


@pytest.mark.parametrize("where", TABLES)
def test_no_table_ever_passes_a_tenth_of_a_turn(where):
    assert np.isnan(first_position_beyond(SPEC, where)).all()


@pytest.mark.parametrize("where", ROUNDINGS)
def test_bins_hold_their_worst_error_or_less(where):
    edges = np.array([0, 1, 5, 40, 1000])
    bins = worst_error(SPEC, edges, where)
    every = np.abs(angle_error(SPEC, np.arange(1000), where))
    exact = np.stack([every[low:high].max(axis=0) for low, high in pairwise(edges)])
    assert bins.shape == (4, 64)
    assert (bins <= exact).all()
    # A bin with no more positions than samples misses none of its last.
    np.testing.assert_array_equal(bins[0], exact[0])
    np.testing.assert_array_equal(bins[-1] >= every[999], True)
    assert bins[-1].max() > 0.5 * exact[-1].max()


def test_a_bf16_inv_freq_is_five_radians_off_at_4096():
    worst = find_largest_error(SPEC, "bf16-inv-freq")
    assert (worst.pair, worst.position, worst.angle) == (1, 4096, pytest.approx(5.0, abs=0.05))
    assert np.abs(angle_error(SPEC, [4096], "bf16-inv-freq")).argmax() == 1


def test_bf16_positions_pass_a_tenth_of_a_turn_at_257():
    passing = find_largest_error(SPEC, "bf16-positions")
    assert (passing.first_pair, passing.first_position) == (0, 257)
    assert find_largest_error(SPEC, "float32-angles").passing == 0


def test_a_power_of_two_is_exact_in_bf16():
    assert not angle_error(SPEC, [4096], "bf16-positions").any()


def test_pairs_of_zero_frequency_have_no_error():
    still = RopeSpec(scaling=Proportional(share=0.0))
    for where in ANGLES:
        assert find_largest_error(still, where).angle == 0.0


@for_each(itertools.product(METHODS, ROUNDINGS))
def test_every_rounding_takes_every_method(case):
    method, where = case
    spec = RopeSpec(head_dim=32, scaling=METHODS[method](), target=16384)
    assert angle_error(spec, [0, 5000], where, length=16384).shape == (2, 16)
    assert np.isfinite(angle_error(spec, [0, 5000], where, length=16384)).all()
    assert np.isfinite(find_largest_error(spec, where, length=16384).angle)


@pytest.mark.parametrize("scaling", [Linear(4.0), NtkAware(4.0), Llama3(), Yarn()], ids=lambda s: s.name)
def test_the_running_product_stays_near_the_scaled_angle(scaling):
    spec = RopeSpec(scaling=scaling)
    off = np.abs(angle_error(spec, [131_071], "running-product"))
    assert (off <= 131_071 * spec.inv_freq() * 64 * 2.0**-23).all()
    assert off.max() > 1e-4


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: angle_error(SPEC, [1], "bf8"), "the rounding must be one of bf16-positions"),
        (lambda: angle_error(SPEC, [-1], "phase64"), "from 0 to"),
        (lambda: angle_error(SPEC, [1.5], "phase64"), "whole numbers"),
        (lambda: worst_error(SPEC, [0, 5, 5], "phase64"), "edges must rise"),
        (lambda: first_position_beyond(SPEC, "phase64", turns=0.0), "turns"),
        (lambda: shift_test(SPEC, [1], "phase64", distance=-1), "distance"),
    ],
)
def test_bad_input_raises_a_clear_error(call, said):
    with pytest.raises(ValueError, match=said):
        call()


def test_every_practice_names_roundings_that_exist_and_a_source():
    for practice in PRACTICES:
        assert set(practice.roundings) <= set(ROUNDINGS)
        assert practice.source.startswith(("https://github.com/", "rope_viz/"))
        assert " " not in practice.source
    assert "rotary-embedding-torch 0.9.1" in {practice.library for practice in find_practices("bf16-positions")}
    for where in ("bf16-positions", "bf16-inv-freq", "bf16-angles", "bf16-table", "running-product", "phase64"):
        assert find_practices(where)
