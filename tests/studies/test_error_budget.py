"""No request exceeds the budget; thinned curves are exact where dense, and name what they omit."""

import itertools

import numpy as np
import pytest

from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures import compared
from rope_viz.pages.attention import figures as attention
from rope_viz.pages.decay import figures as decay
from rope_viz.pages.decay import per_distance
from rope_viz.studies import linear_attention
from rope_viz.studies.decay import first_negative
from rope_viz.studies.scores import WORK, Thinning, curve, curve_envelope, scale_samples
from tests.offenders import for_each

SIZES = [4, 64, 128, 512, 4096]


def distances(thinning):
    return sum(len(part) for part in thinning.parts)


@for_each(itertools.product([1, 64, 256, 2048], [2, 5_000, 1_000_000, 10_000_000], [1, 10, 400]))
def test_thinned_range_respects_its_share_and_ends(case):
    pairs, stop, shares = case
    found = Thinning.for_curve(1, stop, pairs, shares=shares)
    assert distances(found) <= max(1025, WORK / (pairs * shares) + 1)
    joined = np.concatenate([np.asarray(part) for part in found.parts])
    assert joined[0] == 1
    assert stop - found.step <= joined[-1] < stop
    assert np.isin(np.diff(joined), (1, found.step)).all()
    assert bool(found.sentence()) == (len(joined) < stop - 1)


def test_curve_within_the_budget_is_not_thinned():
    """The default page: 64 pairs to a million distances, beside five methods."""
    assert Thinning.for_curve(1, 1 << 20, 64, shares=6).step == 1
    assert Thinning.for_curve(0, 10_000_000, 64).step == 1


@pytest.mark.parametrize("log", [True, False])
def test_thinned_curve_is_exact_when_dense_and_inside_elsewhere(log):
    spec = RopeSpec(head_dim=64, base=1e6)
    share = np.full(spec.pairs, 1 / spec.pairs)
    thinning = Thinning.for_curve(1, 300_000, spec.pairs, work=64e4)
    assert thinning.step > 10
    whole = curve_envelope(spec.inv_freq(), share, start=1, stop=300_000, columns=300, log=log)
    some = curve_envelope(spec.inv_freq(), share, start=1, stop=300_000, columns=300, log=log, thinning=thinning)
    np.testing.assert_array_equal(whole[0], some[0])
    dense = np.searchsorted(whole[0], thinning.dense) - 2
    np.testing.assert_allclose(whole[1][:dense], some[1][:dense], atol=1e-12)
    np.testing.assert_allclose(whole[2][:dense], some[2][:dense], atol=1e-12)
    assert np.isfinite(some[1]).all()
    # A column that keeps some of its distances has a range inside that of all of them; one narrower than a step has
    # its neighbour's value.
    wide = np.append(np.diff(whole[0]) > 2 * thinning.step, False)
    assert (some[1][wide] >= whole[1][wide] - 1e-12).all()
    assert (some[2][wide] <= whole[2][wide] + 1e-12).all()
    assert np.abs(whole[1] - some[1]).max() < 0.25


@pytest.mark.parametrize("base", [1e4, 1e5, 5e5])
def test_distance_found_by_steps_is_negative(base):
    spec = RopeSpec(head_dim=128, base=base)
    thinning = Thinning.for_curve(0, 2_000_000, spec.pairs, work=64 * 3e4)
    at = first_negative(spec.inv_freq(), 2_000_000, thinning=thinning)
    exact = first_negative(spec.inv_freq(), 2_000_000)
    share = np.full(spec.pairs, 1 / spec.pairs)
    assert curve(spec.inv_freq(), share, start=at, stop=at + 1)[0] < 0
    assert at == exact if exact < thinning.dense else at >= exact


@pytest.mark.parametrize("head_dim", SIZES)
def test_every_picture_of_any_head_size_respects_the_budget(head_dim):
    spec = RopeSpec(head_dim=head_dim, base=1e9, context=8192, target=10_000_000)
    every = compared.compared(spec, compared.alternatives(spec, list(compared.choices(spec))))
    where = decay.Range.from_length(10_000_000, None, log=True)
    thinning = where.thinning(spec.pairs, shares=len(every))
    assert distances(thinning) * spec.pairs * len(every) <= 1.01 * WORK
    bases = per_distance.choose_bases(spec, per_distance.BASES_LONGEST)
    looked = per_distance.thin_distances(spec.rotary_dim, per_distance.BASES_LONGEST, len(bases))
    assert distances(looked) * spec.pairs * len(bases) <= 3.1 * WORK
    assert (
        scale_samples(160, spec.pairs, least=40, usual=128)
        * scale_samples(12, spec.pairs, least=2, usual=128)
        * spec.pairs
        <= 260_000
    )


def test_comparison_over_the_budget_names_what_it_omits():
    spec = RopeSpec(head_dim=512, base=1e9, context=8192, target=10_000_000)
    every = decay.with_plain(compared.compared(spec, compared.alternatives(spec, list(compared.choices(spec)))))
    where = decay.Range.from_length(10_000_000, None, log=True)
    even = (np.full(spec.pairs, 1 / spec.pairs), np.zeros(spec.pairs), 0.0)
    figure, _ = decay.main("mean", every, where, even, "iid")
    said = [note.text for note in figure.layout.annotations if note.name == "left out"]
    assert said == [where.thinning(spec.pairs, shares=len(every)).sentence()]
    assert said[0].startswith("Of the distances beyond ")


def test_a_huge_head_is_not_timed(monkeypatch):
    asked = []
    monkeypatch.setattr(linear_attention, "measure", lambda spec, tokens, **options: asked.extend(tokens) or ())
    assert attention.timed(4096) == ()
    assert asked == []
