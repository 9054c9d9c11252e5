"""Wavelengths, bands and exact bin means, against float64 sums, mpmath and published numbers."""

import itertools

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rope_viz import RopeSpec
from rope_viz.embedding import spectrum
from rope_viz.embedding.scaling import (
    DynamicNtk,
    Linear,
    Llama3,
    LongRope,
    NtkAware,
    Proportional,
    Yarn,
    critical_dimension,
)
from rope_viz.embedding.spectrum import BLENDED, DIVIDED, KEPT, SPED, STILL
from rope_viz.models.catalog import catalog, model_specs
from tests.offenders import for_each

LLAMA_31 = RopeSpec(128, base=500_000.0, context=8192, target=131_072, scaling=Llama3(8.0))
LLAMA_32 = RopeSpec(64, base=500_000.0, context=8192, target=131_072, scaling=Llama3(32.0))


def test_wavelength_of_the_first_pair_is_two_pi():
    assert spectrum.wavelength(RopeSpec().inv_freq())[0] == pytest.approx(2 * np.pi)


def test_zero_frequency_has_an_infinite_wavelength():
    inv_freq = RopeSpec(scaling=Proportional(0.5)).inv_freq()
    assert np.all(np.isinf(spectrum.wavelength(inv_freq)[32:]))


@pytest.mark.parametrize(
    ("spec", "runs"),
    [
        (LLAMA_31, [(KEPT, 0, 28), (BLENDED, 29, 34), (DIVIDED, 35, 63)]),
        (LLAMA_32, [(KEPT, 0, 14), (BLENDED, 15, 17), (DIVIDED, 18, 31)]),
    ],
)
def test_llama_3_bands_are_those_of_the_published_configs(spec, runs):
    assert spectrum.bands(spec).runs == runs


def test_all_pairs_are_kept_unscaled_and_divided_by_linear():
    assert spectrum.bands(RopeSpec()).count(KEPT) == 64
    assert spectrum.bands(RopeSpec(scaling=Linear(4.0))).count(DIVIDED) == 64


def test_ntk_bands_are_kept_blended_and_divided():
    assert spectrum.bands(RopeSpec(scaling=NtkAware(4.0))).runs == [(KEPT, 0, 0), (BLENDED, 1, 62), (DIVIDED, 63, 63)]


def test_dynamic_ntk_changes_nothing_up_to_the_trained_length():
    spec = RopeSpec(scaling=DynamicNtk(2.0))
    assert spectrum.bands(spec, length=4096).count(KEPT) == 64
    assert spectrum.bands(spec, length=8192).runs[-1] == (DIVIDED, 63, 63)


def test_correction_range_of_llama_2_is_20_to_46():
    assert Yarn(8.0).correction_range(RopeSpec(context=4096)) == (20, 46)
    assert RopeSpec().scaling.correction_range(RopeSpec()) is None


# facts from variants 4.5: d_extra of Liu et al.
@pytest.mark.parametrize(
    ("spec", "dimension"),
    [
        (RopeSpec(128, base=10_000.0, context=4096), 92),
        (RopeSpec(128, base=10_000.0, context=2048), 82),
        (RopeSpec(128, base=500_000.0, context=8192), 70),
        (RopeSpec(64, base=150_000.0, context=4096), 36),
        (RopeSpec(64, base=10_000.0, context=4096), 46),
        (RopeSpec(256, base=10_000.0, context=8192), 200),
    ],
)
def test_critical_dimension_of_known_models(spec, dimension):
    assert critical_dimension(spec) == dimension


@pytest.mark.parametrize("position", [0, 1, 4097, 131_071, 9_999_999])
def test_table_is_exact_at_any_position(position):
    inv_freq = RopeSpec(16, base=500_000.0).inv_freq()
    cos, sin = spectrum.table(inv_freq, [position])
    with mpmath.workdps(40):
        for i, frequency in enumerate(inv_freq):
            angle = mpmath.mpf(float(frequency)) * position
            assert abs(cos[0, i] - mpmath.cos(angle)) < 1e-8
            assert abs(sin[0, i] - mpmath.sin(angle)) < 1e-8


@given(st.integers(0, 5000), st.lists(st.integers(1, 400), min_size=1, max_size=6), st.floats(0, 7))
def test_bin_mean_is_the_mean_of_its_positions(start, widths, frequency):
    edges = np.cumsum([start, *widths])
    inv_freq = np.array([frequency, 1.0, 0.01, 0.0, 2 * np.pi])
    expected = [[np.exp(1j * f * np.arange(a, b)).mean() for a, b in itertools.pairwise(edges)] for f in inv_freq]
    np.testing.assert_allclose(spectrum.bin_mean(inv_freq, edges), expected, atol=1e-8)


def test_bin_of_many_turns_fades_without_moire():
    mean = spectrum.bin_mean([1.0], spectrum.bin_edges(0, 10_000_000, 800))
    assert np.abs(mean).max() < 2e-4


@pytest.mark.parametrize("edges", [[0], [0, 0], [3, 1], [0, 1.5], [0, np.nan], [0, np.inf]])
def test_edges_that_are_no_bins_are_refused(edges):
    with pytest.raises(ValueError, match="edges must be"):
        spectrum.bin_mean([1.0], edges)


def test_edges_cover_the_range_without_empty_bins():
    edges = spectrum.bin_edges(5, 12, 800)
    assert edges.tolist() == list(range(5, 13))
    assert spectrum.bin_edges(0, 10_000_000, 800)[[0, -1]].tolist() == [0, 10_000_000]


@for_each(list(catalog()))
def test_every_model_has_bands_that_cover_its_pairs(model):
    for spec in model_specs(model).values():
        found = spectrum.bands(spec, length=spec.target)
        assert sum(found.count(kind) for kind in range(len(spectrum.BAND_NAMES))) == spec.pairs


def test_factor_below_1_raises_frequencies():
    assert spectrum.bands(RopeSpec(scaling=Linear(0.5))).runs == [(SPED, 0, 63)]
    kinds = [kind for kind, _, _ in spectrum.bands(RopeSpec(scaling=Yarn(0.5))).runs]
    assert kinds == [KEPT, SPED]


def test_zero_frequency_pairs_have_their_own_band():
    assert spectrum.bands(RopeSpec(scaling=Proportional(0.25))).runs == [(KEPT, 0, 15), (STILL, 16, 63)]
    assert spectrum.bands(RopeSpec(scaling=Proportional(0.25, 4.0))).runs == [(DIVIDED, 0, 15), (STILL, 16, 63)]
    assert spectrum.bands(RopeSpec(scaling=Proportional(0.0))).runs == [(STILL, 0, 63)]


def test_longrope_blends_nothing():
    divisors = tuple(np.geomspace(0.5, 64.0, 64).tolist())
    spec = RopeSpec(target=131_072, scaling=LongRope((1.0,) * 64, divisors, factor=32.0))
    kinds = [kind for kind, _, _ in spectrum.bands(spec, length=131_072).runs]
    assert kinds == [SPED, KEPT, DIVIDED]
    assert spectrum.bands(spec, length=4096).runs == [(KEPT, 0, 63)]


def test_dynamic_ntk_factor_grows_with_the_length():
    spec = RopeSpec(target=32_768, scaling=DynamicNtk(2.0))
    assert spectrum.whole_factor(spec, length=32_768) == 15.0
    assert spec.plain_inv_freq[-1] / spec.inv_freq(32_768)[-1] == pytest.approx(15.0, rel=1e-12)


def test_the_peak_of_equal_values_does_not_depend_on_rounding():
    divided = np.array([0.0, 1.0, 40.0, 40.0, 40.0])
    for noise in np.random.default_rng(0).uniform(-1e-8, 1e-8, (20, 5)):
        assert spectrum.find_peak(np.log1p(divided) * (1 + noise)) == 2
    assert spectrum.find_peak([0.5, np.nan, 0.7, 0.6]) == 2
    assert spectrum.find_peak([0.0, 0.0]) == 0
