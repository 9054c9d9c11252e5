"""MusicFlamingo: audio features rotated by their window and by their frame in it, times the seconds.

`MusicFlamingoRotaryEmbedding` of transformers 5.23.0 rotates the encoder's features, not q and k.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rope_viz.embedding.axes_spec import AxesSpec, ladder_per_axis
from rope_viz.embedding.position_ids import Positions, require_token_count
from rope_viz.models.config_reader import ConfigReader
from rope_viz.models.several_axes.vision import ladder, partial_factor

MUSIC_AXES = ("seconds×window", "seconds×frame")


def musicflamingo(config: Mapping[str, Any]) -> AxesSpec:
    """Return the rotation of MusicFlamingo: two copies of the rotating part of the width."""
    settings = ConfigReader(config)
    width = settings.size("head_dim", "hidden_size", default=1280)
    one = ladder(int(width * partial_factor(settings, 0.2)), settings.base(1200.0))
    return ladder_per_axis([one, one], MUSIC_AXES, pairing="interleaved", head_dim=max(width, 4 * one.pairs))


def music_positions(settings: ConfigReader) -> Positions:
    """MusicFlamingo: −2π·seconds·window/length and −2π·seconds·2π·frame/length; `tokens` are (window, frame)."""
    length = settings.number("max_position_embeddings", default=settings.base(1200.0), above=0.0)
    frames = settings.size("frames_per_window", default=750)
    step = 4.0 * settings.number("audio_frame_step", default=0.01, above=0.0, most=1e6)
    starts = np.array(settings.numbers("window_starts_seconds", default=(0.0,)))
    require_token_count(len(starts), frames)
    index = np.arange(frames)
    seconds = starts[:, None] + index * step if settings.value("timestamps") is None else settings.array("timestamps")
    if seconds.shape != (len(starts), frames):
        raise ValueError(f"timestamps must be one row per window of {frames} seconds, got shape {seconds.shape}")
    turn, window = -2.0 * math.pi * seconds, np.round(starts / (step * frames))[:, None]
    values = np.stack([turn * window / length, turn * 2.0 * math.pi * index / length], axis=-1)
    return Positions(values.reshape(-1, 2), MUSIC_AXES)
