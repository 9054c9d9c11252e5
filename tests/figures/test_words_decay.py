"""The numbers in sentences about the score by distance, over enough specs, against float64 done here anew."""

import cmath
import dataclasses
import itertools
import math
import re

import numpy as np
import pytest

from rope_viz.figures import theme
from rope_viz.figures.words import decay
from rope_viz.studies import scores
from rope_viz.studies.vectors import random_vectors
from tests.figures.wording import (
    NUMBER,
    SPECS,
    found,
    near,
    plain,
    scaled,
    value,
)

# Enough of them for the sentences that take longer: those that differ in what the sentence speaks of.
SOME = {
    name: SPECS[name]
    for name in (
        *("llama-3.1-8b", "qwen3-8b-yarn", "glm-4-9b-0414", "phi-4-mini", "gemma-4-full full_attention", "gpt-j-6b"),
        *("gemma-3-12b-global full_attention", "none, one pair", "dynamic", "p = 0.0", "p = 0.25", "Linear by 0.5"),
        *("yarn, partly rotated", "Linear by 1e+09", "attention 0.7", "attention 0", "attention -1e+09", "one token"),
    )
}
some = pytest.mark.parametrize("spec", SOME.values(), ids=SOME)


def mean_cosine(spec, frequencies, apart):
    """Over the whole head: a dimension that does not rotate counts with 1."""
    return (sum(2.0 * math.cos(apart * each) for each in frequencies) + spec.head_dim - 2 * spec.pairs) / spec.head_dim


def first_below(spec, frequencies, limit):
    for apart in range(limit):
        if mean_cosine(spec, frequencies, apart) < -1e-12:
            return apart
    return None


@some
def test_where_the_mean_cosine_turns_negative(spec):
    limit = 1024
    expected = [first_below(spec, each, limit) for each in (plain(spec), scaled(spec))]
    text = decay.mean(spec, limit)
    same = np.array_equal(spec.plain_inv_freq, spec.inv_freq(spec.target))
    said = [
        None if match[1] is None else value(match[1])
        for match in re.finditer(rf"stays at or above 0 below 1k|first falls below 0 at \*\*({NUMBER})\*\*", text)
    ]
    assert said == (expected[1:] if same else expected)
    assert ("no longer preferred" in text) == (same and expected[1] is not None)
    assert ("count" in text) == (spec.head_dim > 2 * spec.pairs)


def turned(spec, x, position):
    half = spec.pairing == "half"
    out = list(x)
    for i, frequency in enumerate(scaled(spec)):
        a, b = (i, i + spec.pairs) if half else (2 * i, 2 * i + 1)
        z = complex(x[a], x[b]) * cmath.exp(1j * position * frequency)
        out[a], out[b] = z.real, z.imag
    return out


@some
def test_the_score_of_ones_own_vectors(spec):
    q, k = (side[0].tolist() for side in random_vectors(spec.head_dim, seed=1))
    own = scores.parts(spec, q, k)
    exact = sum(a * b for a, b in zip(turned(spec, q, 700), turned(spec, k, 0), strict=True))
    rest = sum(a * b for a, b in zip(q[2 * spec.pairs :], k[2 * spec.pairs :], strict=True))
    text = decay.score(spec, 700, own)
    score, most = found(r"The score .* At # it is \*\*#\*\*; RoFormer's bound allows # there.*", text)[1:]
    assert score == near(exact)
    # RoFormer's eq. 37 with h_i = q_i·conj(k_i), on what rotates; the rest adds its size.
    z = [complex(a, -b) for a, b in zip(*own[:2], strict=True)] + [0.0]
    step = max(abs(z[i + 1] - z[i]) for i in range(spec.pairs))
    partial = np.cumsum([cmath.exp(700j * each) for each in scaled(spec)])
    assert most == near(step * float(np.abs(partial).sum()) + abs(rest))
    assert abs(exact) <= most * (1.0 + 1e-3)
    if spec.head_dim > 2 * spec.pairs:
        assert value(re.search(rf"({NUMBER}) of it, at every distance", text)[1]) == near(rest)
    factor = spec.attention_factor(spec.target) ** 2
    times = re.search(rf"what rotates by ({NUMBER})\.", text)
    assert (times is None) == (theme.digits(factor) == "1")
    assert times is None or value(times[1]) == near(factor)
    sums = [value(each) for each in re.findall(rf"{NUMBER}", decay.pair_by_pair(spec, 700, own))]
    assert sums[-1] == pytest.approx(exact, abs=6e-5)
    if spec.head_dim > 2 * spec.pairs:
        assert [sums[2] if spec.pairs > 1 else sums[1], sums[-2]] == pytest.approx([exact - rest, rest], abs=6e-5)


@some
def test_roformers_bound_falls_where_it_is_said_to(spec):
    text = decay.bound(spec, 4096)

    def mean_s(apart):
        return float(np.abs(np.cumsum([cmath.exp(1j * apart * each) for each in scaled(spec)])).mean())

    every = [mean_s(apart) for apart in range(4096)] if spec.pairs <= 64 else [mean_s(d) for d in range(0, 4096, 16)]
    if "does not fall here" in text:
        assert max(every) - min(every) < 1e-3 * every[0]
        assert found(r".*mean \|S\| is # at every distance.*", text) == [near((spec.pairs + 1) / 2)]
        return
    start, low, where = found(r".*mean \|S\| is # at distance 0 and # at #\. .*", text)
    assert start == near(mean_s(0))
    assert low == near(mean_s(where))
    assert min(every) < every[0]
    if "not steadily" in text:
        assert any(later > sooner for sooner, later in itertools.pairwise(every))


@some
def test_entropy_says_what_the_attention_factor_does(spec):
    text, factor = decay.entropy(spec), spec.attention_factor(spec.target)
    assert ("sharper" in text) == (factor**2 > 1.0 + 1e-12 and any(scaled(spec)))
    assert ("flatter" in text) == (factor**2 < 1.0 - 1e-12 and any(scaled(spec)))
    assert ("so it is uniform" in text) == (not any(scaled(spec)))
    if "attention factor" in text:
        assert found(".*factor # makes.*", text) == [near(factor)]


@pytest.mark.parametrize("name", ["llama-3.1-8b", "glm-4-9b-0414", "none, one pair"])
@pytest.mark.parametrize("length", [2, 1024])
def test_bases(name, length):
    spec = SPECS[name]
    text = decay.bases(spec, length, quick=True)
    drawn = np.geomspace(1e3, 1e9, 61).tolist()
    holds = [first_below(spec, plain(dataclasses.replace(spec.plain(), base=base)), length) is None for base in drawn]
    switches = sum(a != b for a, b in itertools.pairwise(holds))
    assert ("**gaps**" in text) == (switches > 1)
    assert ("All bases" in text) == all(holds)
    assert ("None from" in text) == (not any(holds))
    if "All from" in text:
        assert found(r".*All from # on do\..*", text) == [near(drawn[holds.index(True)])]
    at = first_below(spec, plain(spec), length)
    assert ("holds it" in text) == (at is None)
    assert at is None or found(r".*turns negative at #\..*", text) == [at]
    assert found(r".*below #\. .*This model's base, #, .*", text) == [length, near(spec.base)]
