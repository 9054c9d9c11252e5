"""Sections, allocations and bases are recovered from the weights of a rotation, and rebuilt from them."""

import numpy as np
import pytest

from rope_viz.embedding.axes_spec import (
    THW,
    assign_sections,
    interleave_sections,
    ladder_per_axis,
    mix_axes,
    shared_ladder,
)
from rope_viz.embedding.axis_sections import Ladder, analyse_spec, assign_axes, find_ladder, rebuild_spec
from rope_viz.embedding.scaling import Yarn
from rope_viz.embedding.spec import RopeSpec
from rope_viz.multi_axis.catalog import axes_catalog, model_parts
from tests.offenders import for_each

QWEN2 = shared_ladder(RopeSpec(128, 128, 1e6), assign_sections([16, 24, 24], 64))
QWEN3 = shared_ladder(RopeSpec(128, 128, 5e6), interleave_sections([24, 20, 20], 64))
HUNYUAN = ladder_per_axis([RopeSpec(d, d, 256.0) for d in (16, 56, 56)], THW, pairing="interleaved")


def test_sections_and_bases_of_published_models_are_recovered():
    found = analyse_spec(model_parts("qwen2-vl-7b")["text"])
    assert (found.shared, dict(found.counts), found.way) == (True, {"t": 16, "h": 24, "w": 24}, "sections")
    assert found.ladders[""].base == 1_000_000.0
    found = analyse_spec(model_parts("qwen3-vl-8b")["text"])
    assert (found.way, found.ladders[""].base) == ("interleaved", 5_000_000.0)
    found = analyse_spec(model_parts("ernie-4.5-vl-28b")["text"])
    assert (found.way, dict(found.counts)) == ("in turn", {"t": 20, "h": 22, "w": 22})
    found = analyse_spec(model_parts("hunyuan-video")["transformer"])
    assert (found.shared, dict(found.counts)) == (False, {"t": 8, "h": 28, "w": 28})
    assert {axis: each.base for axis, each in found.ladders.items()} == {"t": 256.0, "h": 256.0, "w": 256.0}


def test_directions_single_axis_and_shears_have_no_anatomy():
    assert analyse_spec(mix_axes([[1.0, 0.5], [0.2, 0.1]], ("h", "w"))) is None
    assert analyse_spec(model_parts("gemma-4")["text full_attention"]) is None
    assert analyse_spec(model_parts("v-jepa2-vit-l")["vision"]) is None


@for_each(list(axes_catalog()))
def test_rebuilding_without_a_change_is_the_identity(id):
    for spec in model_parts(id).values():
        if analyse_spec(spec) is not None:
            assert rebuild_spec(spec) == spec
            assert rebuild_spec(spec, counts=dict(analyse_spec(spec).counts)) == spec or analyse_spec(spec).way == "own"


def test_dragged_sections_match_the_allocation():
    moved = rebuild_spec(QWEN2, counts={"t": 20, "h": 20, "w": 24})
    assert moved == shared_ladder(RopeSpec(128, 128, 1e6), assign_sections([20, 20, 24], 64))
    moved = rebuild_spec(QWEN2, way="interleaved", counts={"t": 24, "h": 20, "w": 20}, bases={"": 5e6})
    np.testing.assert_allclose(moved.weights, QWEN3.weights, rtol=1e-12)
    moved = rebuild_spec(QWEN3, way="sections", counts={"t": 16, "h": 24, "w": 24})
    assert analyse_spec(moved).way == "sections"


def test_axis_with_more_pairs_gets_a_finer_ladder():
    moved = rebuild_spec(HUNYUAN, counts={"t": 16, "h": 24, "w": 24}, bases={"t": 10_000.0})
    parts = [RopeSpec(32, 32, 10_000.0), RopeSpec(48, 48, 256.0), RopeSpec(48, 48, 256.0)]
    np.testing.assert_allclose(moved.weights, ladder_per_axis(parts, THW, pairing="interleaved").weights, rtol=1e-12)


def test_scaled_frequencies_survive_a_new_allocation():
    spec = RopeSpec(128, 128, 1e6, 32_768, 131_072, Yarn(factor=4.0))
    yarn = shared_ladder(spec, assign_sections([16, 24, 24], 64))
    assert analyse_spec(yarn).ladders == {}
    moved = rebuild_spec(yarn, way="interleaved", counts={"t": 24, "h": 20, "w": 20})
    np.testing.assert_array_equal(moved.weights.sum(axis=1), spec.inv_freq())
    with pytest.raises(ValueError, match="no ladder"):
        rebuild_spec(yarn, bases={"": 5e6})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"counts": {"t": 1, "h": 2, "w": 3}}, "add up to the 64 pairs"),
        ({"counts": {"t": 16, "h": 24, "w": 24, "x": 0}}, "add up"),
        ({"counts": {"t": -1, "h": 41, "w": 24}}, "whole numbers"),
        ({"bases": {"": 0.5}}, "greater than 1"),
        ({"bases": {"w": 10.0}}, "no ladder"),
    ],
)
def test_impossible_allocation_is_refused_with_the_reason(changes, message):
    with pytest.raises(ValueError, match=message):
        rebuild_spec(QWEN2, **changes)


def test_ladder_is_recovered_from_its_frequencies():
    assert find_ladder(Ladder(6.25, 100.0, 16).frequencies) == Ladder(6.25, 100.0, 16)
    assert find_ladder(np.array([1.0])) is None
    assert find_ladder(np.array([1.0, 0.5, 0.4])) is None
    assert find_ladder(np.array([0.5, 1.0])) is None


def test_alternating_allocation_needs_two_equal_sections():
    assert assign_axes("in turn", [20, 22, 22])[:4] == [1, 2, 1, 2]
    assert assign_axes("in turn", [20, 30, 14]) == []
    assert assign_axes("interleaved", [0, 32, 32]) == []
