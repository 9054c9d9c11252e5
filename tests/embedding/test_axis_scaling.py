"""One axis beyond its grid, by its own numbers; tests/multi_axis/test_families.py compares with published functions."""

import math

import numpy as np
import pytest

from rope_viz.embedding.axes_spec import one_axis
from rope_viz.embedding.spec import RopeSpec
from rope_viz.studies.axis_extrapolation import ImageYarn, nearest_pair, slow_pair
from tests.mean_cosines import mean_cosine

TIME = RopeSpec(head_dim=16, base=256.0, context=33, target=66)


def test_riflex_removes_the_repetition_of_hunyuan_video() -> None:
    plain = mean_cosine(one_axis(TIME), "position", [25, 33, 50])
    np.testing.assert_allclose(plain, [0.58, 0.03, 0.57], atol=5e-3)
    assert nearest_pair(TIME.inv_freq(), 48) == 3
    extended = slow_pair(TIME.inv_freq(), 3, 66)
    assert np.cos(50 * extended).mean() == pytest.approx(0.40, abs=5e-3)


def test_riflex_slows_one_pair_to_nine_tenths_of_a_turn() -> None:
    extended = slow_pair(TIME.inv_freq(), 3, 66)
    assert np.flatnonzero(extended != TIME.inv_freq()).tolist() == [3]
    assert extended[3] * 66 == pytest.approx(0.9 * 2.0 * math.pi)


def test_image_yarn_within_the_trained_side_is_plain() -> None:
    side = RopeSpec(head_dim=56, context=64, target=64, scaling=ImageYarn())
    np.testing.assert_array_equal(side.inv_freq(), side.plain_inv_freq)
    assert side.attention_factor() == 1.0


def test_inconsistent_sizes_are_named() -> None:
    with pytest.raises(ValueError, match="rotary_dim of at least 4"):
        RopeSpec(head_dim=2, scaling=ImageYarn())
