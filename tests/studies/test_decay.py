"""The theory of decay against the tables of the papers, mpmath and direct sums."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rope_viz.embedding.scaling import Linear, Proportional
from rope_viz.embedding.spec import RopeSpec
from rope_viz.studies import decay, scores
from rope_viz.studies.vectors import KINDS, random_vectors

PLAIN = RopeSpec().inv_freq()
RANDOM = np.random.default_rng(2)


def plain(head_dim, base):
    return RopeSpec(head_dim=head_dim, base=base).inv_freq()


# Mean |S_j| of RoFormer 3.4.3 at the distances below, computed in float64 apart from this project.
DISTANCES = (0, 1, 2, 10, 50, 100, 250, 1000, 4096)
S_CURVES = {
    (128, 1e4): (32.5, 31.538166, 28.955988, 17.954137, 12.629452, 10.227330, 6.548179, 4.470761, 4.882792),
    (64, 1e4): (16.5, 15.947764, 14.484515, 8.814334, 5.733077, 7.465277, 3.668700, 4.089691, 5.287076),
    (128, 5e5): (32.5, 31.646852, 29.406197, 20.885685, 15.735039, 13.708787, 11.434393, 10.200188, 7.164544),
    (128, 1e6): (32.5, 31.663850, 29.475174, 21.288634, 17.501928, 13.532760, 13.759129, 12.500698, 5.614539),
}


@pytest.mark.parametrize("case", S_CURVES, ids=str)
def test_the_s_curve_is_that_of_roformer(case):
    found = decay.s_curve(plain(*case), stop=4097)
    np.testing.assert_allclose(found[list(DISTANCES)], S_CURVES[case], rtol=0, atol=6e-7)


def test_the_s_curve_of_a_range_is_the_definition_there():
    start = 9_999_900
    found = decay.s_curve(PLAIN, start=start, stop=start + 1100)
    for distance in (start, start + 1023, start + 1024, start + 1099):
        with mpmath.workprec(120):
            partial, total = mpmath.mpc(0), mpmath.mpf(0)
            for w in PLAIN.tolist():
                partial += mpmath.expj(mpmath.mpf(w) * distance)
                total += abs(partial)
            assert found[distance - start] == pytest.approx(float(total / 64), abs=1e-11)


@given(st.integers(0, 2**32), st.integers(0, 100_000))
@settings(max_examples=40, deadline=None)
def test_no_score_passes_its_bound(seed, start):
    q, k = random_vectors(128, seed=seed)
    a, b = scores.coefficients(q[0], k[0])
    score = scores.curve(PLAIN, a, b, start=start, stop=start + 500)
    bound = decay.score_bound(a, b, decay.s_curve(PLAIN, start=start, stop=start + 500))
    assert np.all(np.abs(score) <= bound)


def test_the_bound_counts_the_step_to_zero_after_the_last_pair():
    # h = (0, 5): the largest step is the last one, from 5 to h_2 = 0.
    assert decay.score_bound([4.0, 5.0], [0.0, 0.0], [1.0]) == pytest.approx(5.0 * 2)


FIRST_NEGATIVE = {
    (32, 1e4): 474,
    (64, 1e4): 725,
    (128, 1e4): 1707,
    (256, 1e4): 2653,
    (128, 5e5): 18_438,
    (128, 1e6): 27_115,
    (128, 1e7): 144_660,
    (64, 5e4): 1932,
    (64, 1.5e5): 2774,
    (256, 1e6): 71_627,
    (128, 1.2e4): 1554,
    (128, 2.7e4): 4079,
    (128, 2.3e5): 12_865,
    (128, 3.1e5): 12_223,
    (128, 6.4e5): 27_685,
    (128, 4.9e6): 125_573,
}


@pytest.mark.parametrize("case", FIRST_NEGATIVE, ids=str)
def test_the_mean_cosine_first_turns_negative_where_published(case):
    expected = FIRST_NEGATIVE[case]
    assert decay.first_negative(plain(*case), 1 << 20) == expected
    assert decay.first_negative(plain(*case), expected) is None
    assert decay.first_negative(plain(*case), expected + 1) == expected


def test_a_head_rotated_by_half_or_less_never_turns_negative():
    for share in (0.0, 0.25, 0.5):
        spec = RopeSpec(scaling=Proportional(share=share))
        assert decay.first_negative(spec.inv_freq(), 200_000) is None
    assert decay.first_negative(RopeSpec(rotary_dim=64).inv_freq(), 200_000, unrotated=0.5) is None


def test_the_search_reaches_past_ten_million():
    # Slower by 10,000 the curve is the same one, 10,000 times longer: it turns where the plain one does.
    slow = RopeSpec(scaling=Linear(factor=10_000.0)).inv_freq()
    found = decay.first_negative(slow, 20_000_000)
    assert found is not None
    assert 1706 * 10_000 < found <= 1707 * 10_000


def test_feasible_bases_are_not_an_interval():
    bases = [4.3e3, 1.2e4, 1.6e4]
    assert decay.feasible_bases(128, 1024, [4.3e3]).tolist() == [True]
    assert decay.feasible_bases(128, 2048, bases).tolist() == [False, False, True]
    assert decay.feasible_bases(128, 4096, [2.7e4]).tolist() == [False]
    assert decay.feasible_bases(128, 8192, [8.37e4, 8.4e4, 3.94e5, 5e5]).tolist() == [False, True, False, True]
    assert decay.feasible_bases(128, 32_768, [6.3e5, 6.4e5]).tolist() == [True, False]


@pytest.mark.parametrize("kind", KINDS)
def test_the_mean_over_random_vectors_is_what_theory_expects(kind):
    distances = [0, 1, 10, 100, 1000, 100_000]
    found = decay.distribution(PLAIN, distances, kind=kind, sigma=0.7, noise=0.5, samples=20_000, seed=3)
    total = 64 * scores.scores_at(PLAIN, np.full(64, 1 / 64), None, distances)
    theory = 2 * 0.7**2 * total if kind == "noisy-copy" else np.zeros(6)
    np.testing.assert_allclose(found.expected, theory, rtol=0, atol=1e-10)
    assert np.all(np.abs(found.mean - theory) < 4.5 * found.standard_error)
    assert np.all(np.diff(found.percentiles, axis=0) > 0)
    assert found.percentiles.shape == (5, 6)


def test_independent_vectors_spread_alike_at_every_distance():
    # The variance of the score is head_dim·σ⁴ at every distance.
    found = decay.distribution(PLAIN, np.arange(0, 100_000, 9973), samples=20_000, sigma=1.5)
    spread = found.standard_error * math.sqrt(20_000)
    np.testing.assert_allclose(spread, math.sqrt(128) * 1.5**2, rtol=0.03)


def softmax_entropy(logits):
    """Entropy by its definition, in 60 digits."""
    with mpmath.workdps(60):
        raised = [mpmath.exp(mpmath.mpf(v)) for v in logits]
        total = mpmath.fsum(raised)
        return float(-mpmath.fsum(r / total * mpmath.log(r / total) for r in raised))


@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 1e4])
def test_the_entropy_of_every_prefix_is_that_of_its_softmax(scale):
    logits = scale * RANDOM.normal(size=60)
    found = decay.attention_entropy(logits)
    np.testing.assert_allclose(found, [softmax_entropy(logits[: n + 1].tolist()) for n in range(60)], atol=1e-11)


@pytest.mark.parametrize("step", [3.0, 499.0, 501.0, 700.0, 1e6])
def test_entropy_survives_logits_that_climb_or_fall(step):
    np.testing.assert_allclose(
        decay.attention_entropy(step * np.arange(20.0))[1:], softmax_entropy([0, step]), atol=0.2
    )
    logits = np.concatenate([step * np.arange(20.0), np.full(5, step * 19)])
    assert decay.attention_entropy(logits)[-1] == pytest.approx(softmax_entropy(logits.tolist()), abs=1e-11)
    assert decay.attention_entropy(-logits)[-1] == pytest.approx(softmax_entropy((-logits).tolist()), abs=1e-11)


def test_equal_logits_spread_attention_evenly():
    np.testing.assert_allclose(decay.attention_entropy(np.full(5000, 7.0)), np.log(np.arange(1, 5001)), atol=1e-11)


def test_attention_factor_is_squared_for_rotated_dims_only():
    logits = decay.attention_logits([2.0, 4.0], head_dim=16, attention_factor=1.5, unrotated=3.0)
    np.testing.assert_allclose(logits, [(2 * 2.25 + 3) / 4, (4 * 2.25 + 3) / 4])


BAD = {
    "bound of a batch": lambda: decay.score_bound(np.ones((2, 2)), np.ones((2, 2)), [1.0]),
    "bound of nothing": lambda: decay.score_bound([], [], [1.0]),
    "infinite logits": lambda: decay.attention_entropy([1.0, -np.inf]),
    "matrix of logits": lambda: decay.attention_entropy(np.ones((2, 2))),
    "too many samples": lambda: decay.distribution(PLAIN, np.arange(2000), samples=1 << 16),
    "one sample": lambda: decay.distribution(PLAIN, [1], samples=1),
    "unknown kind": lambda: decay.distribution(PLAIN, [1], kind="levy"),
    "level past 100": lambda: decay.distribution(PLAIN, [1], levels=[101.0]),
    "base of one": lambda: decay.feasible_bases(128, 100, [1.0]),
    "odd head": lambda: decay.feasible_bases(127, 100, [1e4]),
    "negative limit": lambda: decay.first_negative(PLAIN, -1),
    "limit without end": lambda: decay.first_negative(PLAIN, 1 << 40),
}


@pytest.mark.parametrize("call", BAD.values(), ids=BAD.keys())
def test_meaningless_arguments_are_refused(call):
    with pytest.raises(ValueError, match=r"must|takes"):
        call()
