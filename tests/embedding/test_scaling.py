"""Laws that every scaling method obeys, and the published numbers of single ones.

Numbers: YaRN paper (arXiv 2309.00071), equations 16 to 22; Llama 3.1 (meta-llama/llama-models at a9c89c4); gpt-oss
(openai/gpt-oss at 7b58334); transformers 5.23.0 `modeling_rope_utils`.
"""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from mpmath import mp, mpf

from rope_viz.embedding import spectrum
from rope_viz.embedding.scaling import (
    LABELS,
    METHODS,
    DynamicNtk,
    Llama3,
    LongRope,
    NtkAware,
    NtkByParts,
    PaperYarn,
    Proportional,
    Yarn,
    correction_dim,
    mscale,
    parse_factors,
    turns,
)
from rope_viz.embedding.spec import FloatArray, RopeSpec, Scaling

GOLDENS = Path(__file__).parents[1] / "goldens"

LLAMA_2 = RopeSpec(128, base=1e4, context=4096, target=32768)
FACTORED = [name for name, method in METHODS.items() if "factor" in {f.name for f in dataclasses.fields(method)}]
FACTORS = st.floats(1.0, 200.0)
SPECS = st.builds(
    RopeSpec,
    head_dim=st.integers(2, 128).map(lambda half: 2 * half),
    base=st.floats(1.5, 1e9),
    context=st.integers(1, 1_000_000),
)


def scaled(spec: RopeSpec, name: str, **knobs: Any) -> RopeSpec:
    return dataclasses.replace(spec, scaling=METHODS[name](**knobs))


@pytest.mark.parametrize("name", METHODS)
def test_a_method_has_its_name_and_a_label(name: str) -> None:
    assert METHODS[name]().name == name
    assert LABELS[name]


def test_methods_with_equal_knobs_have_different_cache_keys() -> None:
    seen = [dataclasses.asdict(METHODS[name]()) for name in METHODS]
    same = [dataclasses.asdict(METHODS[name](factor=4.0)) for name in FACTORED]
    for group in (seen, same):
        assert all(a != b for i, a in enumerate(group) for b in group[:i])


@pytest.mark.parametrize("name", FACTORED)
@given(spec=SPECS, length=st.integers(1, 4_000_000))
def test_factor_one_is_plain(name: str, spec: RopeSpec, length: int) -> None:
    knobs = {"share": 1.0} if name == "proportional" else {}
    found = scaled(spec, name, factor=1.0, **knobs)
    expected = spec.plain_inv_freq
    if name == "dynamic":
        # Its formula grows with the length whatever the factor, so factor 1 is plain only up to the trained length.
        length = min(length, spec.context)
    np.testing.assert_allclose(found.inv_freq(length), expected, rtol=1e-12)
    assert found.attention_factor(length) == 1.0


@pytest.mark.parametrize("name", METHODS)
@given(spec=SPECS, factor=FACTORS, length=st.integers(1, 4_000_000))
def test_factor_never_raises_a_frequency(name: str, spec: RopeSpec, factor: float, length: int) -> None:
    found = scaled(spec, name, **({"factor": factor} if name in FACTORED else {}))
    ratio = found.inv_freq(length) / spec.plain_inv_freq
    assert (ratio <= 1 + 1e-12).all() or not found.scaling.extends
    assert (ratio >= 0).all()
    if name in FACTORED and name not in ("dynamic", "proportional"):
        assert (ratio >= (1 - 1e-12) / factor).all()


@pytest.mark.parametrize("name", METHODS)
def test_frequencies_are_read_only(name: str) -> None:
    found = scaled(LLAMA_2, name).inv_freq()
    assert found.dtype == np.float64
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 2.0


@given(spec=SPECS.filter(lambda spec: spec.rotary_dim > 2), factor=FACTORS)
def test_ntk_divides_only_the_last_pair_by_the_whole_factor(spec: RopeSpec, factor: float) -> None:
    ratio = spec.plain_inv_freq / scaled(spec, "ntk", factor=factor).inv_freq()
    assert ratio[0] == 1.0
    assert ratio[-1] == pytest.approx(factor, rel=1e-11)


# b' = b·s^(d/(d−2)), d = 128, b = 10000, YaRN paper equation 16.
NTK_BASES = {2: 20221.2617, 4: 40889.9424, 8: 82684.6226, 16: 167198.7392}


@pytest.mark.parametrize(("factor", "base"), NTK_BASES.items())
def test_ntk_equals_plain_rope_with_a_larger_base(factor: int, base: float) -> None:
    found = scaled(LLAMA_2, "ntk", factor=factor).inv_freq()
    np.testing.assert_allclose(found, base ** (-np.arange(64) / 64), rtol=1e-8)


# transformers' effective factor at length s·L is s² − s + 1, so s = 2 at 4096·2 and at 4096·4.
DYNAMIC_BASES = {4096: 10000.0, 8192: 30527.74, 16384: 72195.86}


@pytest.mark.parametrize(("length", "base"), DYNAMIC_BASES.items())
def test_dynamic_ntk_grows_its_base_with_the_length(length: int, base: float) -> None:
    found = scaled(LLAMA_2, "dynamic", factor=2.0).inv_freq(length)
    np.testing.assert_allclose(found, base ** (-np.arange(64) / 64), rtol=2e-7)


def test_dynamic_ntk_is_plain_at_start() -> None:
    np.testing.assert_array_equal(scaled(LLAMA_2, "dynamic", factor=8.0).inv_freq(), LLAMA_2.plain_inv_freq)


@given(spec=SPECS, factor=FACTORS)
def test_llama_3_is_the_papers_ramp_from_one_to_four_turns(spec: RopeSpec, factor: float) -> None:
    llama = scaled(spec, "llama3", factor=factor)
    paper = dataclasses.replace(spec, scaling=NtkByParts(factor=factor, alpha=1.0, beta=4.0))
    np.testing.assert_array_equal(llama.inv_freq(), paper.inv_freq())
    assert llama.attention_factor() == 1.0


@given(spec=SPECS, slow=st.floats(0.2, 4.0), width=st.floats(1.5, 100.0))
def test_the_released_ramp_is_logarithmic_in_turns(spec: RopeSpec, slow: float, width: float) -> None:
    method = Yarn(4.0, beta_fast=slow * width, beta_slow=slow, truncate=False)
    low, high = correction_dim(spec, slow * width), correction_dim(spec, slow)
    # Elsewhere the clamp of the released code moves the ends of the ramp.
    assume(low >= 0 and high <= spec.rotary_dim - 1)
    expected = np.clip(np.log(turns(spec) / slow) / np.log(width), 0.0, 1.0)
    np.testing.assert_allclose(dataclasses.replace(spec, scaling=method).scaling.kept_share(spec), expected, atol=1e-9)


def bands(spec: RopeSpec) -> tuple[int, int, int]:
    """How many pairs are kept, blended and divided."""
    kept: Any = spec.scaling.kept_share(spec)  # type: ignore[attr-defined]
    return int((kept == 1).sum()), int(((kept > 0) & (kept < 1)).sum()), int((kept == 0).sum())


def test_llama_3_band_counts() -> None:
    large = RopeSpec(128, base=5e5, context=8192, target=131072, scaling=Llama3(8.0))
    small = RopeSpec(64, base=5e5, context=8192, target=131072, scaling=Llama3(32.0))
    assert bands(large) == (29, 6, 29)
    assert bands(small) == (15, 3, 14)


def test_correction_range_of_llama_2() -> None:
    assert Yarn(8.0).correction_range(LLAMA_2) == (20, 46)
    low, high = Yarn(8.0, truncate=False).correction_range(LLAMA_2)
    assert (low, high) == (pytest.approx(20.944, abs=5e-4), pytest.approx(45.027, abs=5e-4))


def test_correction_range_of_gpt_oss_is_not_rounded() -> None:
    spec = RopeSpec(64, base=150000.0, context=4096, target=131072)
    low, high = Yarn(32.0, truncate=False).correction_range(spec)
    assert (low, high) == (pytest.approx(8.0927791, abs=5e-8), pytest.approx(17.3980245, abs=5e-8))


# d = 128, b = 10000, L = 4096, s = 8: pair, turns, γ of the paper, γ released, θ′ of the paper, θ′ released.
RAMPS = (
    (0, 651.8986, 1.0, 1.0, 1.000000000e00, 1.000000000e00),
    (16, 65.1899, 1.0, 1.0, 1.000000000e-01, 1.000000000e-01),
    (20, 36.6590, 1.0, 1.0, 5.623413252e-02, 5.623413252e-02),
    (21, 31.7453, 0.991785, 0.961538, 4.834673077e-02, 4.705791950e-02),
    (22, 27.4903, 0.854527, 0.923077, 3.680192418e-02, 3.933130849e-02),
    (24, 20.6148, 0.632737, 0.846154, 2.146063374e-02, 2.736586437e-02),
    (28, 11.5926, 0.341696, 0.692308, 7.539621887e-03, 1.299511877e-02),
    (32, 6.5190, 0.178032, 0.538462, 2.807778439e-03, 5.961538462e-03),
    (36, 3.6659, 0.085997, 0.384615, 1.126071915e-03, 2.595421501e-03),
    (40, 2.0615, 0.034241, 0.230769, 4.900305207e-04, 1.033821543e-03),
    (44, 1.1593, 0.005137, 0.076923, 2.302786191e-04, 3.419768096e-04),
    (45, 1.0039, 0.000125, 0.038462, 1.926592895e-04, 2.443152662e-04),
    (46, 0.8693, 0.0, 0.0, 1.666901790e-04, 1.666901790e-04),
    (63, 0.0753, 0.0, 0.0, 1.443477481e-05, 1.443477481e-05),
)


@pytest.mark.parametrize("row", RAMPS, ids=lambda row: f"pair-{row[0]}")
def test_both_ramps_give_the_tabled_numbers(row: tuple[int, float, float, float, float, float]) -> None:
    pair, expected_turns, paper_share, released_share, paper_freq, released_freq = row
    paper, released = PaperYarn(8.0), Yarn(8.0)
    assert turns(LLAMA_2)[pair] == pytest.approx(expected_turns, abs=6e-5)
    assert paper.kept_share(LLAMA_2)[pair] == pytest.approx(paper_share, abs=6e-7)
    assert released.kept_share(LLAMA_2)[pair] == pytest.approx(released_share, abs=6e-7)
    assert paper.inv_freq(LLAMA_2)[pair] == pytest.approx(paper_freq, rel=6e-10)
    assert released.inv_freq(LLAMA_2)[pair] == pytest.approx(released_freq, rel=6e-10)


def test_the_two_ramps_differ_most_at_pair_36() -> None:
    ratio = Yarn(8.0).inv_freq(LLAMA_2) / PaperYarn(8.0).inv_freq(LLAMA_2)
    assert (ratio.argmax(), ratio.argmin()) == (36, 21)
    assert (ratio.max(), ratio.min()) == (pytest.approx(2.3048, abs=5e-5), pytest.approx(0.9733, abs=5e-5))


# Squares: by what logits are multiplied.
SQUARES = {4: 1.2965, 8: 1.4591, 16: 1.6314, 32: 1.8133, 40: 1.8739}


@pytest.mark.parametrize(("factor", "square"), SQUARES.items())
def test_yarns_attention_factor(factor: int, square: float) -> None:
    assert scaled(LLAMA_2, "yarn", factor=factor).attention_factor() ** 2 == pytest.approx(square, abs=6e-5)
    assert scaled(LLAMA_2, "yarn-paper", factor=factor).attention_factor() == mscale(factor)


def test_yarns_attention_factor_can_be_given_or_be_a_ratio() -> None:
    assert Yarn(40.0, mscale=0.707, mscale_all_dim=0.707).attention_factor(LLAMA_2) == 1.0
    expected = (0.1 * 2 * math.log(40) + 1) / (0.1 * math.log(40) + 1)
    assert Yarn(40.0, mscale=2.0, mscale_all_dim=1.0).attention_factor(LLAMA_2) == pytest.approx(expected, rel=1e-15)
    # Both must be there and not zero; alone they are ignored, as in the released code.
    assert Yarn(40.0, mscale=0.5).attention_factor(LLAMA_2) == mscale(40.0)
    assert Yarn(40.0, mscale=1.0, mscale_all_dim=0.0).attention_factor(LLAMA_2) == mscale(40.0)
    assert Yarn(40.0, attention=1.5, mscale=2.0, mscale_all_dim=1.0).attention_factor(LLAMA_2) == 1.5


def test_longrope_changes_lists_beyond_the_trained_length() -> None:
    short, long = (1.0, 1.5, 2.0, 2.5), (1.0, 4.0, 9.0, 16.0)
    spec = RopeSpec(8, context=4096, target=131072, scaling=LongRope(short, long))
    np.testing.assert_allclose(spec.inv_freq(), spec.plain_inv_freq / short, rtol=1e-15)
    np.testing.assert_array_equal(spec.inv_freq(4096), spec.inv_freq())
    np.testing.assert_allclose(spec.inv_freq(4097), spec.plain_inv_freq / long, rtol=1e-15)
    # √(1 + ln 32 / ln 4096), Phi-3-mini-128k.
    assert spec.attention_factor() == pytest.approx(1.1902380714238083, rel=1e-15)


def test_longrope_takes_the_lists_of_a_config() -> None:
    listed = RopeSpec(8, scaling=LongRope([1.0] * 4, np.full(4, 2.0)))  # type: ignore[arg-type]
    assert listed == RopeSpec(8, scaling=LongRope((1.0,) * 4, (2.0,) * 4))
    np.testing.assert_array_equal(listed.inv_freq(8192), listed.plain_inv_freq / 2)
    with pytest.raises(ValueError, match="short_factor must be a list of numbers, got 2"):
        LongRope(2)  # type: ignore[arg-type]


def test_custom_method_may_hold_mutable_values() -> None:
    class Mine(Scaling):
        """No dataclass: two of them are equal, whatever they hold."""

        def __init__(self, divisors: list[float]) -> None:
            object.__setattr__(self, "divisors", divisors)

        def inv_freq(self, spec: RopeSpec, length: int | None = None) -> FloatArray:
            return spec.plain_inv_freq / self.divisors  # type: ignore[attr-defined, no-any-return]

    for divisor in (2.0, 4.0):
        spec = RopeSpec(8, scaling=Mine([divisor] * 4))
        np.testing.assert_array_equal(spec.inv_freq(), spec.plain_inv_freq / divisor)


def test_proportional_rotates_only_the_fastest_pairs() -> None:
    spec = RopeSpec(512, base=1e6, context=131072, scaling=Proportional(share=0.25))
    assert (spec.inv_freq()[:64] == spec.plain_inv_freq[:64]).all()
    assert (spec.inv_freq()[64:] == 0).all()


@pytest.mark.parametrize(("base", "dim"), [(1e4, 128), (5e5, 128), (150000.0, 64), (1e7, 64)])
def test_plain_frequencies_are_exact_to_the_last_bits_of_float64(base: float, dim: int) -> None:
    with mp.workdps(40):
        exact = [float(mpf(base) ** (mpf(-2 * i) / dim)) for i in range(dim // 2)]
    np.testing.assert_allclose(RopeSpec(dim, base=base).inv_freq(), exact, rtol=4e-16)


def test_yarn_agrees_with_forty_digits() -> None:
    with mp.workdps(40):
        for pair in range(64):
            plain = mpf(10000) ** (mpf(-pair) / 64)
            kept = 1 - min(max(mpf(pair - 20) / 26, 0), 1)
            exact = float(plain / 8 * (1 - kept) + plain * kept)
            assert Yarn(8.0).inv_freq(LLAMA_2)[pair] == pytest.approx(exact, rel=1e-15)


@pytest.mark.parametrize(
    ("method", "field"),
    [
        (NtkAware(0.0), "factor"),
        (DynamicNtk(float("nan")), "factor"),
        (Yarn(beta_fast=-1.0), "beta_fast"),
        (Yarn(attention="x"), "attention_factor"),  # type: ignore[arg-type]
        (Llama3(low_freq_factor=0.0), "low_freq_factor"),
        (NtkByParts(alpha=float("inf")), "alpha"),
        (Proportional(share=1.5), "share"),
        (LongRope((1.0,), ()), "short_factor"),
        (LongRope((), (1.0,) * 63 + (0.0,)), "long_factor"),
    ],
)
def test_a_wrong_knob_is_named(method: Scaling, field: str) -> None:
    with pytest.raises(ValueError, match=field):
        RopeSpec(128, scaling=method)


def test_ntk_needs_two_pairs() -> None:
    with pytest.raises(ValueError, match="needs rotary_dim of at least 4"):
        RopeSpec(2, scaling=NtkAware(2.0))


def test_factors_are_read_from_text() -> None:
    assert parse_factors("[1, 2.5\n3]") == (1.0, 2.5, 3.0)
    with pytest.raises(ValueError, match="got 'two'"):
        parse_factors("1, two")


COPE = json.loads((GOLDENS / "cope.json").read_text())["rows"]


@pytest.mark.parametrize("row", COPE, ids=lambda row: f"{row['head_dim']}-{row['base']:g}")
def test_cope_fades_pairs_as_its_published_code_does(row: dict[str, Any]) -> None:
    spec = RopeSpec(head_dim=row["head_dim"], base=row["base"], context=row["context"])
    found = scaled(spec, "cope", clipped=row["clipped"])
    # torch's float32 cosine near π leaves 1e-15 of a frequency.
    np.testing.assert_allclose(found.inv_freq(), row["inv_freq"], rtol=2e-5, atol=1e-12)
    assert found.attention_factor() == row["attention_factor"]
    assert found.inv_freq()[-1] == 0.0


def test_cope_fades_pairs_with_unseen_angles_by_default() -> None:
    # Llama 3 8B: 64 · log(8192 / 2π) / log(500000) = 34.98, so pairs 35 to 63 do not complete a turn.
    spec = RopeSpec(head_dim=128, base=500_000.0, context=8192, scaling=METHODS["cope"]())
    kept, faded, still = spectrum.KEPT, spectrum.BLENDED, spectrum.STILL
    assert spectrum.bands(spec).kind.tolist() == [kept] * 36 + [faded] * 27 + [still]


def test_attention_weight_replaces_the_tenth_of_the_paper() -> None:
    found = scaled(LLAMA_2, "yarn", factor=8.0, attention_weight=0.07)
    assert found.attention_factor() == pytest.approx(0.07 * math.log(8.0) + 1.0, rel=1e-15)
    np.testing.assert_array_equal(found.inv_freq(), scaled(LLAMA_2, "yarn", factor=8.0).inv_freq())
    assert scaled(LLAMA_2, "yarn", factor=8.0, attention_weight=0.0).attention_factor() == 1.0
    assert scaled(LLAMA_2, "yarn", factor=8.0, attention_weight=0.07, attention=1.5).attention_factor() == 1.5


RESONANCE = json.loads((GOLDENS / "resonance.json").read_text())["rows"]


@pytest.mark.parametrize("row", RESONANCE, ids=lambda row: f"{row['head_dim']}-{row['base']:g}")
def test_resonance_rounds_wavelengths_as_its_published_code_does(row: dict[str, Any]) -> None:
    found = scaled(RopeSpec(head_dim=row["head_dim"], base=row["base"]), "resonance")
    np.testing.assert_allclose(found.inv_freq(), row["inv_freq"], rtol=2e-7)
    np.testing.assert_allclose(spectrum.wavelength(found.inv_freq()), row["wavelengths"], rtol=1e-15)
    assert found.attention_factor() == 1.0


def test_resonance_turns_the_first_pair_faster() -> None:
    assert scaled(LLAMA_2, "resonance").inv_freq()[0] == 2 * math.pi / 6
