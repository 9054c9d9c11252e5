"""The bases that lengths need agree with the table of Men et al. as it was checked, and its trap is avoided."""

import numpy as np
import pytest

from rope_viz.embedding.spec import RopeSpec
from rope_viz.pages.decay import base_lengths

SMALLEST = {1024: 4294, 2048: 11590, 4096: 26955, 8192: 83780, 16384: 231700}
"""{length: smallest base that holds it, heads of 128}, on a finer grid than that of the curve."""
NEGATIVE = {1.2e4: 1554, 2.7e4: 4079, 2.3e5: 12865, 3.1e5: 12223, 6.4e5: 27685, 4.9e6: 125573, 1e4: 1707, 5e5: 18438}
"""{base: first negative distance}: rounded entries of the paper's table that fail, and Llama 2's and 3.1's bases."""


@pytest.mark.parametrize("base", NEGATIVE)
def test_a_base_reaches_its_first_negative_distance(base):
    assert base_lengths.find_reach(128, 128, base) == NEGATIVE[base]


def test_reach_ends_where_the_sum_turns_negative():
    theta = 1e4 ** (-np.arange(64) / 64)
    sums = np.cos(np.arange(2000)[:, None] * theta).sum(axis=1)
    assert base_lengths.find_reach(128, 128, 1e4) == int(np.flatnonzero(sums < 0)[0])


@pytest.mark.parametrize("length", SMALLEST)
def test_the_smallest_base_of_the_table_holds_its_length(length):
    assert base_lengths.find_reach(128, 128, SMALLEST[length]) >= length
    assert base_lengths.find_reach(128, 128, 0.9 * SMALLEST[length]) < length


@pytest.mark.slow
def test_the_curve_ends_a_little_above_the_table():
    """Islands of bases that hold may be narrower than the steps of the curve, so it is never below the table."""
    reaches = base_lengths.find_reaches(128, 128)
    found = base_lengths.find_smallest(reaches, np.array(list(SMALLEST)))
    for base, expected in zip(found, SMALLEST.values(), strict=True):
        assert expected * (1 - 1e-3) <= base <= 1.2 * expected
    # Bases up to 3.9e5 still fail for 8k, although 83,780 holds it.
    bases = base_lengths.list_bases()
    assert (reaches[(bases > 9e4) & (bases < 4e5)] < 8192).any()


@pytest.mark.slow
def test_models_hold_their_length_or_not():
    found = {one.name: one for one in base_lengths.find_models(128, 128)}
    assert not found["Llama 2 7B"].holds
    assert found["Llama 3 8B"].holds
    drawn = base_lengths.draw(RopeSpec(head_dim=128, base=1e4, context=4096))
    points = [len(trace.x) for trace in drawn.data[-2:]]
    assert sum(points) == len(found)
    assert points[0] == sum(one.holds for one in found.values())


def test_half_of_an_unrotated_head_has_no_bound():
    assert "every base" in base_lengths.explain_no_bound(RopeSpec(head_dim=128, rotary_dim=64))
    assert "256 dimensions" in base_lengths.explain_no_bound(RopeSpec(head_dim=512))
    assert base_lengths.explain_no_bound(RopeSpec(head_dim=128)) == ""
