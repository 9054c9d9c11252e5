"""The numbers in the sentences of the Attention page, against float64 mathematics computed here."""

import math

import numpy as np
import pytest

from rope_viz.embedding.scaling import DynamicNtk, Linear, Proportional, Yarn
from rope_viz.embedding.spec import RopeSpec
from rope_viz.pages.attention import words as attention
from rope_viz.pages.attention.figures import linear, timed
from rope_viz.studies.attention import DEFAULT_SENTENCE, embed, project
from rope_viz.studies.linear_attention import operations
from tests.figures.specs import plain
from tests.offenders import for_each

SMALL = RopeSpec(head_dim=32, context=512)
SPECS = {
    "plain": SMALL,
    "partly rotated": RopeSpec(head_dim=32, rotary_dim=16, context=512, target=2048, scaling=Yarn(4.0)),
    "one pair": RopeSpec(head_dim=8, rotary_dim=2, context=512),
    "zero frequency": RopeSpec(head_dim=32, context=512, scaling=Proportional(0.0)),
    "some of zero frequency": RopeSpec(head_dim=32, context=512, scaling=Proportional(0.25)),
    "higher frequency": RopeSpec(head_dim=32, context=512, scaling=Linear(0.5)),
    "dynamic": RopeSpec(head_dim=32, context=512, target=4096, scaling=DynamicNtk(2.0)),
    "attention factor 0": RopeSpec(head_dim=32, context=512, scaling=Yarn(4.0, attention=0.0)),
    "attention factor below 0": RopeSpec(head_dim=32, context=512, scaling=Yarn(4.0, attention=-2.0)),
    "attention factor too large": RopeSpec(head_dim=32, context=512, scaling=Yarn(4.0, attention=1e9)),
}
every = for_each(SPECS)
JANE = (0, 8)  # the places of the word that occurs twice in the default sentence


def score_matrix(spec, positions, *, sinusoidal=False):
    """Scores of the default sentence with unscaled RoPE, or with the sinusoidal encoding added."""
    x = embed(DEFAULT_SENTENCE, spec.head_dim)
    if sinusoidal:
        angles = [[at / 10_000 ** (2 * t / spec.head_dim) for t in range(spec.head_dim // 2)] for at in positions]
        x = x + np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(x.shape)
    q, k = project(x, "q", spec.head_dim), project(x, "k", spec.head_dim)
    if not sinusoidal:
        q, k = (np.stack([turned(spec, row, at) for row, at in zip(side, positions, strict=True)]) for side in (q, k))
    return q @ k.T / math.sqrt(spec.head_dim)


def turned(spec, x, position):
    half, out = spec.pairing == "half", x.copy()
    for i, frequency in enumerate(plain(spec)):
        a, b = (i, i + spec.pairs) if half else (2 * i, 2 * i + 1)
        cos, sin = math.cos(position * frequency), math.sin(position * frequency)
        out[a], out[b] = x[a] * cos - x[b] * sin, x[a] * sin + x[b] * cos
    return out


@every
def test_repetition_gives_the_difference_of_the_two_rows(spec):
    values = attention.describe_repetition(spec, DEFAULT_SENTENCE, offset=0, causal=False).values
    first, second = (score_matrix(spec, np.arange(12))[row] for row in JANE)
    assert values["word"] == "**Jane**"
    assert values["rows_none"] == pytest.approx(0.0, abs=1e-12)
    assert values["rows_rope"] == pytest.approx(np.abs(first - second).max(), rel=1e-9)


def test_repetition_names_the_effect_of_the_causal_mask():
    sentence = attention.describe_repetition(SMALL, DEFAULT_SENTENCE, offset=0, causal=True)
    assert "repetition.masked" in sentence.entries
    assert sentence.values["rows_masked"] > 1e-3
    assert attention.describe_repetition(SMALL, "all words differ", offset=0, causal=True).entries == (
        "repetition.none",
        "repetition.write",
    )


@every
@pytest.mark.parametrize("offset", [4096, 1_000_000])
def test_move_gives_the_change_of_the_scores(spec, offset):
    values = attention.describe_move(spec, DEFAULT_SENTENCE, offset=offset, causal=False).values
    start, end = (score_matrix(spec, at + np.arange(12), sinusoidal=True) for at in (0, offset))
    assert values["move_sinusoidal"] == pytest.approx(np.abs(end - start).max(), rel=1e-6)
    assert values["move_rope"] < 1e-8 < 1e-3 < values["move_sinusoidal"]
    assert attention.describe_move(spec, DEFAULT_SENTENCE, offset=0, causal=False).entries == ("move.try",)


@every
def test_products_are_the_mean_times_the_factor(spec):
    values = attention.compare_products(spec, offset=100).values
    product = sum(math.sin(103 * w) * math.sin(100 * w) + math.cos(103 * w) * math.cos(100 * w) for w in plain(spec))
    mean = sum(math.cos(3 * w) for w in plain(spec)) / spec.pairs
    assert values["factor"] * mean == pytest.approx(product, abs=1e-9)
    assert values["error"] < 1e-9


@every
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("spacing", [1, 700])
def test_linear_attention_gives_its_negative_share_and_sums(spec, causal, spacing):
    sentence = attention.describe_linear_weights(spec, DEFAULT_SENTENCE, spacing=spacing, causal=causal)
    weights = linear(spec, DEFAULT_SENTENCE, spacing, causal).weights
    visible = np.tri(len(weights), dtype=bool) if causal else np.ones_like(weights, dtype=bool)
    negative = np.count_nonzero(weights[visible] < 0.0) / np.count_nonzero(visible)
    assert sentence.values["negative"] == pytest.approx(negative)
    assert ("linear.none_negative" in sentence.entries) == (negative == 0.0)
    sums = weights.sum(axis=1)
    assert (sentence.values["low"], sentence.values["high"]) == pytest.approx((sums.min(), sums.max()))
    if "linear.equal_sums" in sentence.entries:
        assert np.ptp(sums) < 0.01


@pytest.mark.parametrize("head_dim", [2, 64, 512])
@pytest.mark.parametrize("causal", [False, True])
def test_state_is_less_work_from_the_named_length_on(head_dim, causal):
    sentence = attention.compare_costs(RopeSpec(head_dim=head_dim), causal=causal, shown="operations", live=False)
    cross = sentence.values["crossover"]
    before, after = (operations(n, head_dim, head_dim, causal=causal) for n in (cross - 1 or 1, cross))
    assert after.state < after.pairs
    assert cross == 1 or before.state >= before.pairs


def test_measured_costs_are_those_of_the_longest_run():
    sentence = attention.compare_costs(RopeSpec(head_dim=8), causal=True, shown="time", live=False)
    last = timed(8)[-1]
    assert sentence.values["tokens"] == last.tokens
    assert (sentence.values["pairs_seconds"], sentence.values["state_seconds"]) == (last.pairs, last.state)
    too_large = attention.compare_costs(RopeSpec(head_dim=4096), causal=True, shown="time", live=False)
    assert "costs.too_large" in too_large.entries
