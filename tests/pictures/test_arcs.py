"""The arcs of Rotation against exact arithmetic, and the drawn rings against the arcs."""

import dataclasses
from decimal import Decimal, getcontext

import numpy as np
import pytest

from rope_viz.embedding.scaling import Linear, NtkAware
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.catalog import model_specs
from rope_viz.pages.rotation import seen_arcs as arcs

PLAIN = RopeSpec(head_dim=64, base=10_000.0, context=4096, target=16_384)
PI = Decimal("3.14159265358979323846264338327950288419716939937510")


def turns_of(base, head_dim, pair, length, divisor=1):
    """Turns of a pair over a length in 40 digits."""
    getcontext().prec = 40
    exponent = Decimal(-2 * pair) / Decimal(head_dim)
    return (Decimal(base).ln() * exponent).exp() / divisor * length / (2 * PI)


@pytest.mark.parametrize(("scaling", "divisor"), [(None, 1), (Linear(factor=4.0), 4)])
def test_arcs_are_those_of_exact_arithmetic(scaling, divisor):
    spec = PLAIN if scaling is None else dataclasses.replace(PLAIN, scaling=scaling)
    found = arcs.find_arcs(spec)
    for pair in range(spec.pairs):
        seen = min(Decimal(1), turns_of(10_000, 64, pair, 4096))
        reached = min(Decimal(1), turns_of(10_000, 64, pair, 16_384, divisor))
        assert found.seen[pair] == pytest.approx(float(seen), rel=1e-13)
        assert found.reached[pair] == pytest.approx(float(reached), rel=1e-13)
        assert found.new[pair] == pytest.approx(float(max(reached - seen, Decimal(0))), rel=1e-12, abs=1e-12)


def test_unscaled_pairs_enter_what_longer_texts_reach():
    """Distance by distance: no angle is beyond an arc that is not whole, and the last one ends it."""
    found = arcs.find_arcs(PLAIN)
    for pair in np.flatnonzero(found.seen < 1):
        angles = np.arange(PLAIN.target) * float(10_000 ** (-2 * pair / 64)) % (2 * np.pi)
        seen, later = angles[: PLAIN.context] / (2 * np.pi), angles[PLAIN.context :] / (2 * np.pi)
        assert found.seen[pair] - 1e-3 < seen.max() <= found.seen[pair]
        assert (found.new[pair] > 0) == bool((later > found.seen[pair]).any())


def test_linear_interpolation_enters_no_new_angle_and_ntk_some():
    assert not arcs.find_arcs(dataclasses.replace(PLAIN, scaling=Linear(factor=4.0))).new.any()
    ntk = arcs.find_arcs(dataclasses.replace(PLAIN, scaling=NtkAware(factor=4.0)))
    assert ntk.new.any()
    assert ntk.new[-1] == 0


def test_rings_have_the_area_of_their_arcs():
    """The area of a part of a ring is its share of a turn times π(R² − r²)."""
    spec = PLAIN
    found = arcs.find_arcs(spec)
    inner, outer = arcs.find_radii(found)
    grey = arcs.draw(spec).data[0]
    corners = np.column_stack([grey.x, grey.y])
    gaps = np.flatnonzero(np.isnan(corners[:, 0]))
    areas = []
    for start, stop in zip([0, *(gaps[:-1] + 1)], gaps, strict=True):
        x, y = corners[start:stop].T
        areas.append(abs(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1))) / 2)
    assert areas == pytest.approx(found.seen * np.pi * (outer**2 - inner**2), rel=5e-3)
    assert (inner[1:] >= outer[:-1]).all()


def test_the_file_has_what_is_drawn_and_the_sentence_counts_it():
    spec = model_specs("llama-3.1-8b")[""]
    found = arcs.find_arcs(spec)
    table = arcs.draw(spec).table()
    np.testing.assert_array_equal(table["seen in training (turns)"], found.seen)
    np.testing.assert_array_equal(table["new (turns)"], found.new)
    values = arcs.describe(spec).values
    assert values["whole"] == int((found.seen >= 1).sum())
    assert values.get("count", 0) == int((found.new > 0).sum())
    assert ("new" in str(arcs.describe(spec))) is bool(found.new.any())
