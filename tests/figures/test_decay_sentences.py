"""The numbers in the sentences of the Decay page, against float64 mathematics computed here."""

import cmath
import dataclasses
import itertools
import math

import numpy as np
import pytest

from rope_viz.pages.decay import words as decay
from rope_viz.studies import scores
from rope_viz.studies.vectors import random_vectors
from tests.figures.specs import SPECS, near, plain, scaled
from tests.offenders import for_each

# Specs that differ in what the sentences mention.
SOME = {
    name: SPECS[name]
    for name in (
        *("llama-3.1-8b", "qwen3-8b-yarn", "glm-4-9b-0414", "phi-4-mini", "gemma-4-full full_attention", "gpt-j-6b"),
        *("gemma-3-12b-global full_attention", "none, one pair", "dynamic", "p = 0.0", "p = 0.25", "Linear by 0.5"),
        *("yarn, partly rotated", "Linear by 1e+09", "attention 0.7", "attention 0", "attention -1e+09", "one token"),
    )
}
some = for_each(SOME)


def mean_cosine(spec, frequencies, apart):
    """Over the whole head: a dimension that does not rotate counts with 1."""
    return (sum(2.0 * math.cos(apart * each) for each in frequencies) + spec.head_dim - 2 * spec.pairs) / spec.head_dim


def first_below(spec, frequencies, limit):
    for apart in range(limit):
        if mean_cosine(spec, frequencies, apart) < -1e-12:
            return apart
    return None


@some
def test_mean_gives_the_first_negative_distances(spec):
    plain_at, scaled_at = (first_below(spec, each, 1024) for each in (plain(spec), scaled(spec)))
    sentence = decay.mean(spec, 1024)
    assert sentence.values["scaled"] == scaled_at
    if not np.array_equal(spec.plain_inv_freq, spec.inv_freq(spec.target)):
        assert sentence.values["plain"] == plain_at
    assert ("mean.no_limit" in sentence.entries) == (scaled_at is not None)
    assert sentence.values.get("count", 0) == spec.head_dim - 2 * spec.pairs


def turned(spec, x, position):
    half = spec.pairing == "half"
    out = list(x)
    for i, frequency in enumerate(scaled(spec)):
        a, b = (i, i + spec.pairs) if half else (2 * i, 2 * i + 1)
        z = complex(x[a], x[b]) * cmath.exp(1j * position * frequency)
        out[a], out[b] = z.real, z.imag
    return out


@some
def test_score_gives_the_score_and_roformers_bound(spec):
    q, k = (side[0].tolist() for side in random_vectors(spec.head_dim, seed=1))
    own = scores.parts(spec, q, k)
    exact = sum(a * b for a, b in zip(turned(spec, q, 700), turned(spec, k, 0), strict=True))
    rest = sum(a * b for a, b in zip(q[2 * spec.pairs :], k[2 * spec.pairs :], strict=True))
    values = decay.score(spec, 700, own).values
    # RoFormer's eq. 37 with h_i = q_i·conj(k_i), on what rotates; the rest adds its size.
    z = [complex(a, -b) for a, b in zip(*own[:2], strict=True)] + [0.0]
    step = max(abs(z[i + 1] - z[i]) for i in range(spec.pairs))
    partial = np.cumsum([cmath.exp(700j * each) for each in scaled(spec)])
    assert values["score"] == near(exact)
    assert values["bound"] == near(step * float(np.abs(partial).sum()) + abs(rest))
    assert abs(exact) <= values["bound"] * (1.0 + 1e-3)
    assert values.get("unrotated", 0.0) == near(rest)
    assert values.get("factor", 1.0) == near(spec.attention_factor(spec.target) ** 2)
    added = decay.pair_by_pair(spec, 700, own).values
    assert added["total"] == pytest.approx(exact, abs=6e-5)
    assert added.get("rotated", exact) == pytest.approx(exact - rest, abs=6e-5)


@some
def test_bound_gives_its_start_and_its_lowest_value(spec):
    sentence = decay.bound(spec, 4096)

    def mean_s(apart):
        return float(np.abs(np.cumsum([cmath.exp(1j * apart * each) for each in scaled(spec)])).mean())

    every = [mean_s(apart) for apart in range(0, 4096, 1 if spec.pairs <= 64 else 16)]
    assert sentence.values["start"] == near((spec.pairs + 1) / 2) == near(every[0])
    if "bound.flat" in sentence.entries:
        assert max(every) - min(every) < 1e-3 * every[0]
        return
    assert sentence.values["lowest"] == near(mean_s(sentence.values["at"]))
    assert min(every) < every[0]
    if "bound.wavers" in sentence.entries:
        assert any(later > sooner for sooner, later in itertools.pairwise(every))


@some
def test_entropy_tells_the_effect_of_the_attention_factor(spec):
    entries, factor, rotates = decay.entropy(spec).entries, spec.attention_factor(spec.target), any(scaled(spec))
    assert ("entropy.sharper" in entries) == (factor**2 > 1.0 + 1e-12 and rotates)
    assert ("entropy.flatter" in entries) == (factor**2 < 1.0 - 1e-12 and rotates)
    assert ("entropy.uniform" in entries) == (not rotates)


@pytest.mark.parametrize("name", ["llama-3.1-8b", "glm-4-9b-0414", "none, one pair"])
@pytest.mark.parametrize("length", [2, 1024])
def test_bases_gives_those_that_support_a_length(name, length):
    spec = SPECS[name]
    sentence = decay.bases(spec, length, quick=True)
    drawn = np.geomspace(1e3, 1e9, 61).tolist()
    holds = [first_below(spec, plain(dataclasses.replace(spec.plain(), base=base)), length) is None for base in drawn]
    switches = sum(a != b for a, b in itertools.pairwise(holds))
    assert ("bases.gaps" in sentence.entries) == (switches > 1)
    assert ("bases.all" in sentence.entries) == all(holds)
    assert ("bases.none" in sentence.entries) == (not any(holds))
    if "bases.from" in sentence.entries:
        assert sentence.values["first"] == near(drawn[holds.index(True)])
    assert sentence.values["at"] == first_below(spec, plain(spec), length)
    assert sentence.values["base"] == spec.base
