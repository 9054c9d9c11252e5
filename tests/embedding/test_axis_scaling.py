"""One axis beyond its grid, by its own numbers; tests/multi_axis/test_families.py compares with published functions."""

import math

import numpy as np
import pytest

from rope_viz.embedding.axes_spec import one_axis
from rope_viz.embedding.spec import RopeSpec
from rope_viz.studies.axis_extrapolation import ImageNtk, ImageYarn, Riflex
from tests.mean_cosines import mean_cosine

TIME = RopeSpec(head_dim=16, base=256.0, context=33, target=66)


def test_riflex_removes_the_repetition_of_hunyuan_video() -> None:
    plain = mean_cosine(one_axis(TIME), "position", [25, 33, 50])
    np.testing.assert_allclose(plain, [0.58, 0.03, 0.57], atol=5e-3)
    extended = RopeSpec(head_dim=16, base=256.0, context=33, target=66, scaling=Riflex(repeats=48))
    assert extended.scaling.slowed_pair(extended) == 4  # type: ignore[attr-defined]
    assert mean_cosine(one_axis(extended), "position", [50])[0] == pytest.approx(0.40, abs=5e-3)


def test_riflex_slows_one_pair_to_nine_tenths_of_a_turn() -> None:
    spec = RopeSpec(head_dim=16, base=256.0, context=33, target=66, scaling=Riflex(pair=4))
    changed = np.flatnonzero(spec.inv_freq() != TIME.inv_freq())
    assert changed.tolist() == [3]
    assert spec.inv_freq()[3] * 66 == pytest.approx(0.9 * 2.0 * math.pi)
    assert spec.inv_freq(100)[3] * 100 == pytest.approx(0.9 * 2.0 * math.pi)


def test_image_yarn_within_the_trained_side_is_plain() -> None:
    side = RopeSpec(head_dim=56, context=64, target=64, scaling=ImageYarn())
    np.testing.assert_array_equal(side.inv_freq(), side.plain_inv_freq)
    assert side.attention_factor() == 1.0


def test_image_yarn_without_noise_ends_as_trained() -> None:
    side = RopeSpec(head_dim=56, context=64, target=256, scaling=ImageYarn(noise=0.0))
    np.testing.assert_array_equal(side.inv_freq(), side.plain_inv_freq)
    early = RopeSpec(head_dim=56, context=64, target=256, scaling=ImageYarn(noise=1.0))
    np.testing.assert_array_equal(early.inv_freq(), RopeSpec(56, 0, 1e4, 64, 256, ImageYarn()).inv_freq())


def test_image_ntk_divides_the_last_pair_by_the_growth() -> None:
    side = RopeSpec(head_dim=56, context=64, target=128, scaling=ImageNtk())
    assert side.plain_inv_freq[-1] / side.inv_freq()[-1] == pytest.approx(2.0)
    late = RopeSpec(head_dim=56, context=64, target=128, scaling=ImageNtk(noise=0.0))
    np.testing.assert_allclose(late.inv_freq(), side.plain_inv_freq)


def test_inconsistent_knobs_are_named() -> None:
    with pytest.raises(ValueError, match="pair must be at most 8"):
        RopeSpec(head_dim=16, scaling=Riflex(pair=9))
    with pytest.raises(ValueError, match="noise must be at most 1"):
        RopeSpec(head_dim=16, scaling=ImageYarn(noise=1.5))
    with pytest.raises(ValueError, match="rotary_dim of at least 4"):
        RopeSpec(head_dim=2, scaling=ImageYarn())
