"""A head of which only a part rotates: its score is that of the whole head, and there is one mean cosine for all."""

import math

import numpy as np
import pytest

from rope_viz.advice.lint import check
from rope_viz.advice.plan import extend
from rope_viz.embedding.scaling import Yarn
from rope_viz.embedding.spec import PAIRINGS, RopeSpec
from rope_viz.figures import compared
from rope_viz.models.catalog import catalog, model_specs
from rope_viz.pages.decay import figures as decay
from rope_viz.pages.decay import per_distance, words
from rope_viz.studies import scores
from rope_viz.studies.decay import distribution, feasible_bases
from rope_viz.studies.vectors import random_vectors

HALF = RopeSpec(head_dim=128, rotary_dim=64)
GLM = model_specs("glm-4-9b-0414")[""]
WHERE = decay.Range.from_length(4096, None, log=False)


def seed(spec, number=0):
    q, k = random_vectors(spec.head_dim, seed=number)
    return q[0], k[0]


def turned(spec, x, position):
    """`x` rotated dimension by dimension in float64, as the papers write it."""
    out = x.copy()
    for pair in range(spec.pairs):
        first, second = (2 * pair, 2 * pair + 1) if spec.pairing == "interleaved" else (pair, pair + spec.pairs)
        angle = position * float(spec.inv_freq(spec.target)[pair])
        out[first] = x[first] * math.cos(angle) - x[second] * math.sin(angle)
        out[second] = x[first] * math.sin(angle) + x[second] * math.cos(angle)
    return out


def rotated_score(spec, q, k, apart):
    return float(turned(spec, q, 5 + apart) @ turned(spec, k, 5))


def mean_cosine(spec, apart):
    """The score of the vector of ones with itself over that at distance 0: every dimension carries as much."""
    ones = np.ones(spec.head_dim)
    return rotated_score(spec, ones, ones, apart) / spec.head_dim


PARTLY = [
    RopeSpec(head_dim=128, rotary_dim=64, pairing=pairing, scaling=method)
    for pairing in PAIRINGS
    for method in (RopeSpec().scaling, Yarn(factor=4.0))
]
PARTLY += [RopeSpec(head_dim=head_dim, rotary_dim=rotary_dim) for head_dim, rotary_dim in ((96, 24), (65, 32), (8, 3))]
SMALL = [RopeSpec(head_dim=head_dim, rotary_dim=rotary_dim) for head_dim, rotary_dim in ((64, 48), (8, 6), (128, 64))]


def test_the_published_case_of_a_half_rotated_head():
    q, k = seed(HALF)
    values = words.score(HALF, 1000, scores.parts(HALF, q, k)).values
    assert rotated_score(HALF, q, k, 1000) == pytest.approx(4.633, abs=5e-4)
    assert values["score"] == pytest.approx(4.633, abs=5e-4)
    assert values["count"] == 64


@pytest.mark.parametrize("spec", PARTLY, ids=str)
def test_every_score_is_q_times_k_after_rotation(spec):
    q, k = seed(spec, 3)
    parts = scores.parts(spec, q, k)
    expected = [rotated_score(spec, q, k, apart) for apart in (0, 1, 17, 1000)]
    where = decay.Range.from_length(4096, (0.0, 990.0), log=False)  # as many distances as columns: each on its own
    fig, _ = decay.main("own", compared.compared(spec, []), where, parts, "iid")
    assert [fig.data[0].y[apart] for apart in (0, 1, 17)] == pytest.approx(expected[:3], abs=1e-9)
    whole, _ = decay.main("own", compared.compared(spec, []), WHERE, parts, "iid")
    low, high = np.min(whole.data[0].y), np.max(whole.data[0].y)
    assert low - 1e-9 <= min(expected)
    assert max(expected) <= high + 1e-9
    assert whole.layout.yaxis.range[0] <= low <= high <= whole.layout.yaxis.range[1]
    bars = per_distance.contributions(spec, 1000, parts, pin=None)
    assert bars.data[1].y[-1] == pytest.approx(expected[3], abs=1e-9)
    assert sum(bars.data[0].y) + parts[2] == pytest.approx(expected[3], abs=1e-9)
    assert per_distance.total(spec, 1000, parts) == pytest.approx(expected[3], abs=1e-9)
    assert words.pair_by_pair(spec, 1000, parts).values["total"] == pytest.approx(expected[3], abs=1e-9)
    values = words.score(spec, 1000, parts).values
    assert values["score"] == pytest.approx(expected[3], abs=1e-9)
    assert abs(expected[3]) <= values["bound"]


@pytest.mark.parametrize("spec", PARTLY, ids=str)
def test_a_whole_sequence_is_scored_over_the_whole_head(spec):
    q, k = np.random.default_rng(0).standard_normal((2, 12, spec.head_dim))
    fig, _ = decay.main("own", compared.compared(spec, []), WHERE, scores.parts(spec, q[0], k[0]), "iid", (q, k))
    for apart in (0, 3, 11):
        of = [turned(spec, q[m], m) @ turned(spec, k[m - apart], m - apart) for m in range(apart, 12)]
        assert fig.data[-1].y[apart] == pytest.approx(np.mean(of), abs=1e-10)


@pytest.mark.parametrize("spec", PARTLY, ids=str)
def test_random_vectors_fill_the_whole_head(spec):
    still = spec.head_dim - 2 * spec.pairs
    far = [0, 1000]
    copies = [spec.head_dim * mean_cosine(spec, apart) for apart in far]
    for kind, expected in (("iid", [0, 0]), ("noisy-copy", copies)):
        found = distribution(spec.inv_freq(spec.target), far, kind=kind, samples=8000, unrotated=still)
        np.testing.assert_allclose(found.expected, expected, rtol=0, atol=1e-9)
        assert np.all(np.abs(found.mean - expected) < 4.5 * found.standard_error)
        fig, _ = decay.main("random", compared.compared(spec, []), WHERE, scores.even_parts(spec), kind)
        assert fig.data[-1].y[0] == pytest.approx(expected[0], abs=1e-9)
    # Independent normal numbers: the variance of q·k is the number of dimensions.
    spread = distribution(spec.inv_freq(), [0], samples=20_000, unrotated=still, levels=(15.8655, 84.1345)).percentiles
    assert np.ptp(spread) / 2 == pytest.approx(math.sqrt(spec.head_dim), rel=0.06)


@pytest.mark.parametrize("spec", PARTLY, ids=str)
def test_the_mean_cosine_is_over_the_whole_head(spec):
    fig, _ = decay.main("mean", compared.compared(spec, []), decay.Range.from_length(512, None, log=False), (), "iid")
    for apart in (0, 1, 100, 511):
        drawn, total = fig.data[0].y[apart], per_distance.total(spec, apart, scores.even_parts(spec))
        assert (drawn, total) == pytest.approx((mean_cosine(spec, apart),) * 2, abs=1e-12)


def first_below(spec, limit):
    curve = [mean_cosine(spec, apart) for apart in range(limit)]
    return next((apart for apart, value in enumerate(curve) if value < -1e-12), None)


@pytest.mark.parametrize("spec", SMALL, ids=str)
def test_every_page_has_the_same_first_negative_distance(spec):
    limit = 800
    expected = first_below(spec, limit)
    assert decay.first_negative(spec, limit) == expected
    assert extend.first_negative_distance(spec, limit) == expected
    assert extend.measure_methods(spec, limit)[0].first_negative == expected
    config = {
        "hidden_size": 4 * spec.head_dim,
        "num_attention_heads": 4,
        "max_position_embeddings": limit,
        "partial_rotary_factor": spec.rotary_dim / spec.head_dim,
    }
    found = [finding.message for finding in check(config) if finding.rule == "base-too-small"]
    assert words.mean(spec, limit).values["scaled"] == expected
    if expected is None:
        assert not found
    else:
        assert f"at distance {expected:,}," in found[0]


def test_no_page_gives_glm_4_a_negative_distance():
    sentence = words.mean(GLM, 32_768)
    assert (sentence.values["scaled"], sentence.values["count"]) == (None, 64)
    assert {"bases.all", "bases.holds"} <= set(words.bases(GLM, 8192, quick=True).entries)
    assert extend.first_negative_distance(GLM, GLM.context) is None
    assert not [one for one in check(catalog()["glm-4-9b-0414"].config) if one.rule == "base-too-small"]
    # Among the rotated pairs alone it would be 725, the number of a head of 64.
    assert extend.first_negative_distance(RopeSpec(head_dim=64, context=32_768), 32_768) == 725


def test_bases_are_judged_for_the_head_as_it_rotates():
    grid = np.array([1e3, 1e4, 1e5])
    spec = RopeSpec(head_dim=64, rotary_dim=48)
    expected = [first_below(RopeSpec(head_dim=64, rotary_dim=48, base=base), 400) is None for base in grid.tolist()]
    assert feasible_bases(64, 400, grid, rotary_dim=48).tolist() == expected
    assert per_distance.find_feasible(spec, 400, quick=True)[[0, 10, 20]].tolist() == expected
    assert feasible_bases(64, 400, grid, rotary_dim=32).all()


def test_what_is_exactly_zero_is_not_negative():
    # One pair of two: the mean cosine is (cos Δ + 1)/2, which nears 0 where Δ nears an odd multiple of π.
    assert decay.first_negative(RopeSpec(head_dim=4, rotary_dim=2), 1 << 20) is None
