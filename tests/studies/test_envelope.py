"""The envelope against minima and maxima taken column by column."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rope_viz.studies.scores import column_edges, envelope, reduce_block


@given(st.integers(1, 3000), st.integers(1, 700), st.integers(1, 10_000_000), st.booleans(), st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_each_column_holds_the_extremes_of_its_positions(n, columns, start, log, seed):
    values = np.random.default_rng(seed).normal(size=n)
    edges = column_edges(start, start + n, columns, log=log)
    x, low, high = envelope(values, columns, start=start, log=log)
    parts = [values[first - start : last - start] for first, last in pairwise(edges)]
    assert (edges[0], edges[-1]) == (start, start + n)
    assert len(parts) <= columns
    np.testing.assert_array_equal(low, [part.min() for part in parts])
    np.testing.assert_array_equal(high, [part.max() for part in parts])
    assert np.all((edges[:-1] <= x) & (x < edges[1:]))


@given(st.integers(1, 2000), st.integers(1, 300), st.lists(st.integers(0, 2000), max_size=8), st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_blocks_give_the_envelope_of_the_whole(n, columns, cuts, seed):
    values = np.random.default_rng(seed).normal(size=n)
    edges = column_edges(0, n, columns)
    low, high = np.full(len(edges) - 1, np.inf), np.full(len(edges) - 1, -np.inf)
    borders = sorted({0, n, *(cut for cut in cuts if cut < n)})
    for first, last in pairwise(borders):
        reduce_block(values[first:last], edges - first, low, high)
    _, whole_low, whole_high = envelope(values, columns)
    np.testing.assert_array_equal(low, whole_low)
    np.testing.assert_array_equal(high, whole_high)


def test_a_single_spike_is_never_lost():
    values = np.zeros(1_000_003)
    values[777_777] = 5.0
    x, low, high = envelope(values, 1500)
    assert high.max() == 5.0
    assert abs(x[high.argmax()] - 777_777) <= 1_000_003 / 1500
    assert low.max() == 0.0


def test_few_values_are_drawn_one_by_one():
    x, low, high = envelope([3.0, -1.0, 2.0], 100, start=9_000_000)
    np.testing.assert_array_equal(x, [9_000_000, 9_000_001, 9_000_002])
    np.testing.assert_array_equal(low, [3.0, -1.0, 2.0])
    np.testing.assert_array_equal(high, low)


def test_columns_of_a_logarithmic_axis_grow_with_the_distance():
    widths = np.diff(column_edges(1, 1_000_001, 600, log=True))
    assert widths[0] == 1
    assert widths[-1] == pytest.approx(1_000_000 * (1 - 1e6 ** (-1 / 600)), rel=0.05)


@pytest.mark.parametrize(
    ("values", "columns", "options"),
    [([], 5, {}), ([[1.0]], 5, {}), ([1.0], 0, {}), ([1.0], 1 << 20, {}), ([1.0], 5, {"log": True})],
)
def test_invalid_envelope_arguments_are_refused(values, columns, options):
    with pytest.raises(ValueError, match="must"):
        envelope(values, columns, **options)
