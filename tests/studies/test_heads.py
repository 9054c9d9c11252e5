"""The statistics of a head match direct sums over all queries and keys."""

import dataclasses

import numpy as np
import pytest

from rope_viz.embedding.scaling import Yarn
from rope_viz.embedding.spec import RopeSpec
from rope_viz.studies import correlation, heads

pytestmark = pytest.mark.float32_products

RANDOM = np.random.default_rng(11)
turning = heads.Turning.from_spec
SPECS = {
    "half": RopeSpec(head_dim=16, context=64),
    "interleaved": RopeSpec(head_dim=16, context=64, pairing="interleaved"),
    "partial": RopeSpec(head_dim=16, rotary_dim=8, context=64),
    "scaled": RopeSpec(head_dim=16, context=64, scaling=Yarn(factor=4.0)),
    "odd": RopeSpec(head_dim=13, rotary_dim=6, context=64),
}


def taken(spec, tokens=90, count=4, keys=2, **options):
    q = RANDOM.normal(size=(count, tokens, spec.head_dim)) + RANDOM.normal(size=(count, 1, spec.head_dim))
    k = RANDOM.normal(size=(keys, tokens, spec.head_dim)) + RANDOM.normal(size=(keys, 1, spec.head_dim))
    return heads.Heads(q, k, pairing=spec.pairing, scale=spec.head_dim**-0.5, **options)


def matrix(position, spec):
    """R_m by its definition, the dimensions past the rotated ones left alone."""
    out = np.eye(spec.head_dim)
    for pair, inv_freq in enumerate(spec.inv_freq()):
        i, j = (2 * pair, 2 * pair + 1) if spec.pairing == "interleaved" else (pair, pair + spec.pairs)
        cos, sin = np.cos(position * inv_freq), np.sin(position * inv_freq)
        out[[i, i, j, j], [i, j, i, j]] = cos, -sin, sin, cos
    gain = np.ones(spec.head_dim)
    gain[: 2 * spec.pairs] = spec.attention_factor()
    return gain[:, None] * out


def all_logits(found, spec):
    """(heads, tokens, tokens), every one a product of two rotated vectors."""
    turns = [matrix(m, spec) for m in range(found.tokens)]
    q = np.einsum("mij,hmj->hmi", turns, found.q)
    k = np.einsum("mij,hmj->hmi", turns, found.k).repeat(len(found.q) // len(found.k), axis=0)
    return found.scale * np.einsum("hmi,hni->hmn", q, k)


@pytest.mark.parametrize("name", SPECS)
def test_the_mean_logit_is_the_mean_of_every_diagonal(name):
    spec = SPECS[name]
    found = taken(spec)
    every = all_logits(found, spec)
    wanted = [[np.diagonal(one, -distance).mean() for distance in range(90)] for one in every]
    np.testing.assert_allclose(heads.mean_logit(found, turning(spec)), wanted, atol=1e-12)


@pytest.mark.parametrize("tokens", [1, 2, 3, 255, 256, 257, 1000])
def test_the_mean_logit_is_right_at_every_length(tokens):
    found, spec = taken(SPECS["half"], tokens, count=1, keys=1), SPECS["half"]
    q, k = (x[0, :, :8] + 1j * x[0, :, 8:] for x in (found.q, found.k))
    rotation = np.exp(1j * np.outer(np.arange(tokens), spec.inv_freq()))
    every = ((q * rotation) @ (k * rotation).conj().T).real
    wanted = [np.diagonal(every, -distance).mean() for distance in range(tokens)]
    np.testing.assert_allclose(correlation.mean_logits(found.q, found.k, spec.inv_freq())[0], wanted, atol=1e-11)


def test_threads_change_nothing():
    found, spec = taken(SPECS["partial"], 500), SPECS["partial"]
    one, many = (correlation.mean_logits(found.q, found.k, spec.inv_freq(), threads=n) for n in (1, 5))
    np.testing.assert_allclose(one, many, atol=1e-13)


def test_a_late_distance_is_as_exact_as_an_early_one():
    tokens = 6000
    q, k = np.zeros((2, 1, tokens, 4), dtype=np.float32)
    q[0, -1], k[0, 0] = (1, 2, 3, 4), (4, 3, 2, 1)
    inv_freq = np.array([1.0, 0.01])
    first, second = 1 + 3j, 2 + 4j
    angle = (tokens - 1) * inv_freq
    wanted = (first * (4 - 2j) * np.exp(1j * angle[0])).real + (second * (3 - 1j) * np.exp(1j * angle[1])).real
    assert correlation.mean_logits(q, k, inv_freq)[0, -1] == pytest.approx(wanted, abs=1e-10)


@pytest.mark.parametrize("name", SPECS)
def test_attention_is_the_softmax_of_all_logits(name):
    spec = SPECS[name]
    for options in ({}, {"window": 7}, {"cap": 0.5}):
        found = taken(spec, **options)
        every = all_logits(found, spec)
        if "cap" in options:
            every = 0.5 * np.tanh(every / 0.5)
        distance = np.arange(90)[:, None] - np.arange(90)
        every[:, (distance < 0) | (distance >= options.get("window", 90))] = -np.inf
        powers = np.exp(every)
        wanted = powers / powers.sum(axis=2, keepdims=True)
        rows = np.array([0, 1, 50, 89])
        for head in range(4):
            np.testing.assert_allclose(heads.weights(found, head, rows, turning(spec)), wanted[head][rows], atol=1e-12)


def test_attention_sink_takes_its_share():
    found = taken(SPECS["half"], sinks=np.array([0.3, -1.0, 2.0, -np.inf]))
    without = dataclasses.replace(found, sinks=None)
    rows = np.arange(90)
    for head, sink in enumerate(found.sinks):
        total = np.exp(heads.logits(found, head, rows, turning(SPECS["half"]))).sum(axis=1)
        part = np.exp(sink) / (total + np.exp(sink))
        wanted = heads.weights(without, head, rows, turning(SPECS["half"])) * (1 - part)[:, None]
        np.testing.assert_allclose(heads.weights(found, head, rows, turning(SPECS["half"])), wanted, atol=1e-12)


def test_attention_by_distance_sums_what_every_query_gives():
    spec, found = SPECS["half"], taken(SPECS["half"], 40)
    every = heads.weights(found, 1, np.arange(40), turning(spec))
    wanted = [np.diagonal(every, -distance).mean() for distance in range(40)]
    np.testing.assert_allclose(heads.attention_by_distance(found, 1, turning(spec)), wanted, atol=1e-12)


@pytest.mark.parametrize("name", ["half", "partial", "odd"])
def test_contributions_are_the_gain_of_the_attended_logits(name):
    spec, found = SPECS[name], taken(SPECS[name], 30)
    every, given = all_logits(found, spec)[2], heads.weights(found, 2, np.arange(30), turning(spec))
    wanted = np.mean([given[m] @ every[m] - every[m, : m + 1].mean() for m in range(30)])
    parts = heads.contributions(found, 2, turning(spec))
    assert parts.shape == ((spec.head_dim + 1) // 2,)
    assert parts.sum() == pytest.approx(wanted)


def test_strength_bounds_and_energy_shares_match_the_vectors():
    spec, found = SPECS["interleaved"], taken(SPECS["interleaved"])
    said = heads.pair_statistics(found, spec.pairs)
    q, k = (x.reshape(*x.shape[:2], 8, 2) for x in (found.q, found.k))
    size_q, size_k = (np.linalg.norm(x, axis=3) for x in (q, k))
    for head in range(4):
        products = size_q[head][:, None] * size_k[head // 2][None]
        np.testing.assert_allclose(said.strength[head], products.mean(axis=(0, 1)) / 4)
        np.testing.assert_allclose(said.energy_q[head], (q[head] ** 2).sum(axis=(0, 2)) / (q[head] ** 2).sum())
        np.testing.assert_allclose(
            said.energy_k[head], (k[head // 2] ** 2).sum(axis=(0, 2)) / (k[head // 2] ** 2).sum()
        )
        assert np.abs(all_logits(found, spec)[head]).mean() <= said.strength[head].sum() + 1e-12


def test_phase_is_where_the_mean_score_of_a_pair_is_largest():
    spec = SPECS["half"]
    q, k = np.zeros((2, 1, 50, 16))
    q[0, :, 3], k[0, :, 3], k[0, :, 11] = 1.0, np.cos(0.7), np.sin(0.7)  # the key of pair 3 is turned by 0.7
    said = heads.pair_statistics(heads.Heads(q, k), spec.pairs)
    angle = np.linspace(-np.pi, np.pi, 20_001)
    scores = (np.exp(1j * angle) * (1.0 + 0j) * np.conj(np.exp(0.7j))).real
    assert said.phase[0, 3] == pytest.approx(angle[scores.argmax()], abs=1e-3)
    assert said.steady[0, 3] == pytest.approx(1.0)
    assert said.steady[0, 0] == 0.0


def test_equal_tokens_are_positional_and_random_ones_are_not():
    spec = SPECS["half"]
    same = heads.Heads(
        np.tile(RANDOM.normal(size=(1, 1, 16)), (1, 300, 1)), np.tile(RANDOM.normal(size=16), (1, 300, 1))
    )
    noise = heads.Heads(RANDOM.normal(size=(1, 300, 16)), RANDOM.normal(size=(1, 300, 16)))
    assert heads.positional_share(same, turning(spec))[0] == pytest.approx(1.0)
    assert heads.positional_share(noise, turning(spec))[0] < 0.1
    nothing = heads.Heads(np.zeros((1, 9, 16)), np.zeros((1, 9, 16)))
    assert heads.positional_share(nothing, turning(spec))[0] == 0.0


def test_scaling_moves_only_what_it_scales():
    spec, found = SPECS["half"], taken(SPECS["half"])
    same = dataclasses.replace(spec, scaling=Yarn(factor=1.0))
    np.testing.assert_allclose(
        heads.mean_logit(found, turning(spec)), heads.mean_logit(found, turning(same)), atol=1e-12
    )
    other = dataclasses.replace(spec, scaling=Yarn(factor=8.0))
    assert np.abs(heads.mean_logit(found, turning(spec)) - heads.mean_logit(found, turning(other))).max() > 0.01


@pytest.mark.parametrize(
    ("q", "k", "said"),
    [
        (np.ones((2, 3)), np.ones((2, 3)), "q and k must be"),
        (np.ones((2, 3, 4)), np.ones((2, 5, 4)), "q and k must be"),
        (np.ones((3, 3, 4)), np.ones((2, 3, 4)), "3 query heads cannot share 2"),
        (np.ones((1, 3, 2)), np.ones((1, 3, 2)), "at least the 4 dimensions"),
        (np.full((1, 3, 4), np.nan), np.ones((1, 3, 4)), "q must hold finite"),
        (np.ones((1, 3, 4)), np.ones((1, 3, 4), dtype=int), "k must hold finite"),
        (np.ones((1, 0, 4)), np.ones((1, 0, 4)), "q and k must be"),
    ],
)
def test_heads_that_do_not_fit_are_refused(q, k, said):
    with pytest.raises(ValueError, match=said):
        correlation.mean_logits(q, k, [1.0, 0.1])
