"""Positions of LTX's clips: fractions of so many seconds and pixels, from −1 to 1, for film and for sound.

`LTXVideoRotaryPosEmbed` and `LTX2AudioVideoRotaryPosEmbed` of diffusers 0.42.1.
"""

from __future__ import annotations

import numpy as np

from rope_viz.embedding.axes_spec import THW
from rope_viz.embedding.position_ids import Positions, product, require_tokens
from rope_viz.embedding.spec import FloatArray
from rope_viz.models.config_reader import ConfigReader
from rope_viz.multi_axis.grid_positions import shape_of


def ltx(given: ConfigReader) -> Positions:
    """LTX: 2·fraction − 1 of 20 s and 2048 pixels a side, each index times `rope_interpolation_scale`."""
    shape = shape_of(given)
    scale = given.numbers("rope_interpolation_scale", default=(1.0, 1.0, 1.0), count=3)
    base = given.numbers("base", default=(20.0, 2048.0, 2048.0), count=3, above=0.0)
    patch = [given.number("patch_size_t", default=1.0), *[given.number("patch_size", default=1.0)] * 2]
    if given.value("rope_interpolation_scale") is None:
        steps = [1.0, 1.0, 1.0]
    else:
        steps = [s * p / b for s, p, b in zip(scale, patch, base, strict=True)]
    fractions = [np.arange(side) * step for side, step in zip(shape, steps, strict=True)]
    return Positions(2.0 * product(*fractions) - 1.0, THW)


def ltx2(given: ConfigReader) -> Positions:
    """LTX-2: the middle of every patch in seconds and pixels, as a fraction of 20 s and 2048 pixels a side.

    A latent frame stands for `scale_factors[0]` frames, the first for one. Sound (`modality` "audio") has time alone:
    its latents stand for as many hops of the spectrogram.
    """
    scale = given.numbers("scale_factors", "vae_scale_factors", default=(8.0, 32.0, 32.0), count=3)
    causal = given.number("causal_offset", default=1.0)
    step = given.size("patch_size_t", default=1)
    seconds = given.number("base_num_frames", default=20.0, above=0.0)
    if given.choice("modality", options=("video", "audio"), default="video") == "audio":
        frames = given.size("audio_latents", "frames", "num_frames", default=given.value("grid") and shape_of(given)[0])
        hop, rate = (
            given.number("hop_length", default=160.0),
            given.number("sampling_rate", default=16_000.0, above=0.0),
        )
        shift = given.number("shift", default=0.0)
        require_tokens(frames)
        time = middles(frames, step, scale[0], causal, shift) * (hop / rate)
        return Positions((2.0 * time / seconds - 1.0)[:, None], ("t",))
    frames, rows, columns = shape_of(given)
    patch = given.size("patch_size", default=1)
    fps = given.number("fps", "frame_rate", default=24.0, above=0.0)
    time = middles(frames, step, scale[0], causal) / fps / seconds
    sides = [
        (np.arange(0, side, patch) + patch / 2.0) * factor / given.number(name, default=2048.0, above=0.0)
        for side, factor, name in ((rows, scale[1], "base_height"), (columns, scale[2], "base_width"))
    ]
    return Positions(2.0 * product(time, *sides) - 1.0, THW)


def middles(frames: int, step: int, scale: float, causal: float, shift: float = 0.0) -> FloatArray:
    """The middle of every latent frame in frames, whose start and end are moved back and kept from being negative."""
    starts = shift + np.arange(0, frames, step)
    ends = starts + step
    both = [np.maximum(edge * scale + causal - scale, 0.0) for edge in (starts, ends)]
    return np.asarray((both[0] + both[1]) / 2.0, dtype=np.float64)
