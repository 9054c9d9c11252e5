"""The score engine against mpmath, against transformers' own rotation, and against its own laws."""

import json
import subprocess
import sys
import tracemalloc
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rope_viz.embedding import exact_angles as phase
from rope_viz.embedding.scaling import Proportional
from rope_viz.embedding.spec import PAIRINGS, RopeSpec
from rope_viz.studies import scores

pytestmark = pytest.mark.float32_products

GOLDEN = json.loads((Path(__file__).parents[1] / "goldens" / "scores_transformers.json").read_text())
PLAIN = RopeSpec().inv_freq()
P_ROPE = RopeSpec(scaling=Proportional(share=0.25)).inv_freq()
RANDOM = np.random.default_rng(1)
A, B = RANDOM.normal(size=(2, 64))


def precise(inv_freq, a, b, distance):
    """The sum in 200-bit arithmetic on the float64 frequencies."""
    with mpmath.workprec(200):
        return float(
            mpmath.fsum(
                mpmath.mpf(x) * mpmath.cos(mpmath.mpf(w) * distance)
                + mpmath.mpf(y) * mpmath.sin(mpmath.mpf(w) * distance)
                for w, x, y in zip(inv_freq.tolist(), a.tolist(), b.tolist(), strict=True)
            )
        )


def test_the_constant_is_one_over_two_pi():
    with mpmath.workprec(400):
        assert int(mpmath.floor(mpmath.mpf(2) ** 256 / (2 * mpmath.pi))) == phase.INV_TWO_PI


@pytest.mark.parametrize("inv_freq", [PLAIN, P_ROPE, 5e5 ** (-np.arange(64) / 64)], ids=["plain", "p-rope", "5e5"])
def test_a_curve_of_ten_million_distances_is_exact(inv_freq):
    values = scores.curve(inv_freq, A, B, stop=10_000_001)
    for distance in [0, 1, 4095, 4096, 9_999_999, 10_000_000, *RANDOM.integers(0, 10_000_000, 30).tolist()]:
        assert values[distance] == pytest.approx(precise(inv_freq, A, B, distance), abs=2e-13)


@given(st.integers(-(2**32) + 1, 2**32 - 1), st.floats(-700, 7), st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_a_score_is_exact_at_any_distance_and_frequency(distance, exponent, seed):
    random = np.random.default_rng(seed)
    inv_freq, a, b = np.exp(exponent * random.random(5)), *random.normal(size=(2, 5))
    expected = precise(inv_freq, a, b, distance)
    assert scores.scores_at(inv_freq, a, b, [distance])[0] == pytest.approx(expected, abs=1e-14 * 5 * 4)


def test_angles_lose_nothing_at_large_distances():
    distances = [0, -1, 10_000_001, -(2**32) + 1, 2**32 - 1]
    found = scores.exact_angles(PLAIN, distances)
    with mpmath.workprec(200):
        for row, distance in zip(found, distances, strict=True):
            for angle, w in zip(row.tolist(), PLAIN.tolist(), strict=True):
                turns = (mpmath.mpf(angle) - mpmath.mpf(w) * distance) / (2 * mpmath.pi)
                assert abs(turns - mpmath.nint(turns)) * 2 * mpmath.pi < 1e-15


@given(st.integers(-3000, 3000), st.integers(0, 3000), st.integers(1, 97))
@settings(max_examples=80, deadline=None)
def test_a_range_is_its_distances_one_by_one(start, length, stride):
    wanted = np.arange(start, start + length, stride)
    values = scores.curve(PLAIN, A, B, start=start, stop=start + length, stride=stride)
    np.testing.assert_allclose(values, direct(wanted), rtol=0, atol=1e-10)


def direct(distances):
    """The sum as it is written; good to 1e-10 at these small distances."""
    angle = np.outer(distances, PLAIN)
    return np.cos(angle) @ A + np.sin(angle) @ B


@pytest.mark.parametrize("length", [1, 2, 31, 32, 33, 4095, 4096, 4097, 65_537])
def test_no_length_falls_between_blocks(length):
    values = scores.curve(PLAIN, A, B, stop=length)
    assert values.shape == (length,)
    np.testing.assert_allclose(values, direct(np.arange(length)), rtol=0, atol=1e-10)


def test_a_stride_may_span_the_whole_range():
    step = 2**31 - 1
    values = scores.curve(PLAIN, A, B, start=-(2**31), stop=2**31 - 1, stride=step)
    for value, distance in zip(values, range(-(2**31), 2**31 - 1, step), strict=True):
        assert value == pytest.approx(precise(PLAIN, A, B, distance), abs=1e-12)


def test_a_batch_is_its_curves():
    a, b = RANDOM.normal(size=(2, 3, 64))
    together = scores.curve(PLAIN, a, b, stop=5000)
    assert together.shape == (3, 5000)
    for row in range(3):
        np.testing.assert_array_equal(together[row], scores.curve(PLAIN, a[row], b[row], stop=5000))
    np.testing.assert_allclose(scores.scores_at(PLAIN, a, b, np.arange(5000)), together, rtol=0, atol=1e-12)


def test_zero_frequencies_give_a_constant_score():
    np.testing.assert_allclose(scores.curve(np.zeros(4), np.ones(4), np.ones(4), stop=1000), 4.0, rtol=1e-15)


def test_mean_cosine_has_the_published_values():
    for base, values in {
        1e4: {0: 1.0, 1: 0.97021381, 10: 0.66906286, 100: 0.47724148, 1000: 0.15902700, 4096: -0.05285334},
        5e5: {0: 1.0, 1: 0.97790922, 10: 0.76420523, 100: 0.61098868, 1000: 0.49226389, 4096: 0.38275295},
        1e6: {0: 1.0, 1: 0.97881430, 10: 0.77547128, 100: 0.58630074, 1000: 0.49112124, 4096: 0.27760319},
    }.items():
        found = scores.mean_cosine(RopeSpec(base=base).inv_freq(), 4097)
        assert (found.shape, found.dtype) == ((4097,), np.float64)
        for distance, value in values.items():
            assert found[distance] == pytest.approx(value, abs=5e-9)


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: f"{case['m']}-{case['n']}")
def test_the_score_is_that_of_transformers(case):
    for pairing in PAIRINGS:
        a, b = scores.coefficients(case["q"], case["k"], pairing=pairing)
        score = scores.scores_at(case["inv_freq"], a, b, [case["m"] - case["n"]])[0] * case["attention_factor"] ** 2
        assert score == pytest.approx(case[pairing], abs=1e-12)
        if pairing == "half" and "half_float32" in case:
            assert score == pytest.approx(case["half_float32"], abs=2e-5)


def test_contributions_add_up_to_the_score():
    parts = scores.contributions(PLAIN, A, B, 1_234_567)
    assert parts.sum() == pytest.approx(precise(PLAIN, A, B, 1_234_567), abs=1e-13)


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_mean_score_is_the_mean_over_the_diagonals(pairing):
    tokens, inv_freq = 40, 100.0 ** (-np.arange(3) / 3)
    q, k = RANDOM.normal(size=(2, tokens, 8))  # 6 dimensions rotate, 2 do not
    matrix = np.empty((tokens, tokens))
    for m in range(tokens):
        for n in range(tokens):
            a, b = scores.coefficients(q[m, :6], k[n, :6], pairing=pairing)
            angle = (m - n) * inv_freq
            matrix[m, n] = a @ np.cos(angle) + b @ np.sin(angle) + scores.unrotated_score(q[m], k[n], 6)
    expected = [np.diagonal(matrix, -distance).mean() for distance in range(tokens)]
    np.testing.assert_allclose(scores.mean_score(q, k, inv_freq, pairing=pairing), expected, rtol=0, atol=1e-12)


def test_the_even_parts_of_a_head_are_one_at_distance_0():
    for spec in (RopeSpec(head_dim=16, rotary_dim=4), RopeSpec(head_dim=65, rotary_dim=32), RopeSpec()):
        a, b, unrotated = scores.even_parts(spec)
        assert a.sum() + unrotated == pytest.approx(1.0, abs=1e-15)
        assert unrotated == pytest.approx((spec.head_dim - 2 * spec.pairs) / spec.head_dim, abs=1e-15)
        assert not b.any()


@pytest.mark.parametrize(
    ("start", "stop", "log"), [(0, 300_001, False), (7, 300_001, True), (9_000_000, 9_000_200, False)]
)
def test_the_envelope_of_a_curve_holds_every_distance(start, stop, log):
    x, low, high = scores.curve_envelope(PLAIN, A, B, start=start, stop=stop, columns=700, log=log)
    values = scores.curve(PLAIN, A, B, start=start, stop=stop)
    assert low.min() == pytest.approx(values.min(), abs=1e-12)
    assert high.max() == pytest.approx(values.max(), abs=1e-12)
    assert np.all(np.diff(x) > 0)
    if stop - start <= 700:
        np.testing.assert_allclose(low, values, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(low, high)
        np.testing.assert_array_equal(x, np.arange(start, stop))


def test_memory_is_that_of_the_result_and_a_block():
    tracemalloc.start()
    try:
        result = scores.curve(PLAIN, A, B, stop=1 << 22)
        full = tracemalloc.get_traced_memory()[1] - result.nbytes
        del result
        tracemalloc.reset_peak()
        scores.curve_envelope(PLAIN, A, B, stop=1 << 22, columns=2000)
        blockwise = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert full < 40e6
    assert blockwise < 15e6


def test_torch_gives_the_same_curve():
    pytest.importorskip("torch")
    for stop in (1, 4097, 70_001):
        ours = scores.curve(PLAIN, A, B, stop=stop)
        np.testing.assert_allclose(scores.curve(PLAIN, A, B, stop=stop, backend="torch"), ours, rtol=0, atol=1e-12)


@pytest.mark.parametrize("pairs", [1, 3, 64, 256])
def test_two_float32_products_stay_within_their_bound(pairs):
    pytest.importorskip("torch")
    angle = RANDOM.uniform(-3, 3, size=(pairs, 500))
    left, right = RANDOM.normal(size=(40, 2 * pairs)), np.concatenate([np.cos(angle), np.sin(angle)])
    out = np.empty((40, 500))
    scores.split_product(left, right, out, "cpu")
    error, terms = np.abs(out - left @ right).max(), 2 * pairs
    bits = (24 - int(np.ceil(np.log2(terms)))) // 2
    assert error < terms**2 * np.abs(left).max() * 2.0 ** (-22 - bits)
    assert error < 2e-9 * terms * np.abs(left).max()


def test_torch_is_imported_only_on_request():
    code = (
        "import sys; from rope_viz.studies import decay, scores; scores.curve([1.0], [1.0], stop=9); "
        "print(scores.available_backends()[0], 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["('numpy',", "'cpu')", "False"]


def test_every_listed_backend_computes():
    for backend, device in scores.available_backends(devices=True):
        found = scores.curve(PLAIN, A, B, stop=300, backend=backend, device=device)
        np.testing.assert_allclose(found, direct(np.arange(300)), rtol=0, atol=1e-6)


BAD = {
    "nan frequency": lambda: scores.curve([np.nan], [1.0], stop=4),
    "huge frequency": lambda: scores.curve([1e300], [1.0], stop=4),
    "no frequency": lambda: scores.mean_cosine([], 4),
    "frequencies of a matrix": lambda: scores.mean_cosine(np.ones((2, 2)), 4),
    "infinite coefficient": lambda: scores.curve([1.0], [np.inf], stop=4),
    "words": lambda: scores.curve(["x"], [1.0], stop=4),
    "too few coefficients": lambda: scores.curve([1.0, 2.0], [1.0], stop=4),
    "unlike coefficients": lambda: scores.curve([1.0], [1.0], [[1.0]], stop=4),
    "negative length": lambda: scores.mean_cosine([1.0], -1),
    "fractional length": lambda: scores.mean_cosine([1.0], 1.5),
    "too many distances": lambda: scores.curve([1.0], [1.0], stop=(1 << 26) + 1),
    "too many in a batch": lambda: scores.curve([1.0], np.ones((2, 1)), stop=(1 << 25) + 1),
    "backward range": lambda: scores.curve([1.0], [1.0], start=5, stop=4),
    "stride of zero": lambda: scores.curve([1.0], [1.0], stop=4, stride=0),
    "fractional distance": lambda: scores.scores_at([1.0], [1.0], None, [0.5]),
    "distance too far": lambda: scores.scores_at([1.0], [1.0], None, [2**32]),
    "nan distance": lambda: scores.scores_at([1.0], [1.0], None, [np.nan]),
    "unknown backend": lambda: scores.curve([1.0], [1.0], stop=4, backend="jax"),
    "numpy on a device": lambda: scores.curve([1.0], [1.0], stop=4, device="cuda"),
    "unknown device": lambda: scores.curve([1.0], [1.0], stop=4, backend="torch", device="tpu"),
    "odd head": lambda: scores.coefficients([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]),
    "unlike q and k": lambda: scores.coefficients([1.0, 2.0], [1.0, 2.0, 3.0, 4.0]),
    "unknown pairing": lambda: scores.coefficients([1.0, 2.0], [1.0, 2.0], pairing="both"),
    "no columns": lambda: scores.curve_envelope([1.0], [1.0], stop=4, columns=0),
    "logarithm of zero": lambda: scores.curve_envelope([1.0], [1.0], stop=4, columns=2, log=True),
    "short sequence head": lambda: scores.mean_score(np.ones((4, 2)), np.ones((4, 2)), [1.0, 0.1]),
}


@pytest.mark.parametrize("call", BAD.values(), ids=BAD.keys())
def test_invalid_arguments_are_refused(call):
    with pytest.raises(ValueError, match=r"must|at most|takes"):
        call()
