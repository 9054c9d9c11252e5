"""MusicFlamingo: the features of sound turned by the window they lie in and by their frame in it, times the seconds.

`MusicFlamingoRotaryEmbedding` of transformers 5.23.0. It turns the encoder's features, not q and k: absolute, not
relative.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rope_viz.embedding.axes_spec import AxesSpec, ladder_per_axis
from rope_viz.models.config_reader import ConfigReader
from rope_viz.multi_axis.vision import ladder

MUSIC_AXES = ("seconds×window", "seconds×frame")


def musicflamingo(config: Mapping[str, Any]) -> AxesSpec:
    """MusicFlamingo: the share of the width that turns, twice; it turns the features, not q and k."""
    given = ConfigReader(config)
    inner = given.part("rope_parameters")
    share = inner.number("partial_rotary_factor", default=given.number("partial_rotary_factor", default=0.2))
    width = given.size("head_dim", "hidden_size", default=1280)
    one = ladder(int(width * share), given.base(1200.0))
    return ladder_per_axis([one, one], MUSIC_AXES, pairing="interleaved", head_dim=max(width, 4 * one.pairs))
