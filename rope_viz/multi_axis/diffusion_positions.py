"""Positions of a diffusion transformer's input: text, latents of an image or a video, and reference images.

The grid comes from the pipeline, not from the transformer's config: `grid` in patches, or `latents` over `patch_size`;
`shapes` are several images. `text` is a number of tokens, `references` are further grids. diffusers 0.42.1.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rope_viz.embedding.axes_spec import THW
from rope_viz.embedding.position_ids import (
    Positions,
    centred_positions,
    combine_coordinates,
    lay_out_grid,
    line_positions,
    require_token_count,
    spaced_positions,
)
from rope_viz.embedding.spec import FloatArray, short_repr
from rope_viz.models import TEXTS
from rope_viz.models.config_reader import ConfigReader
from rope_viz.models.several_axes.diffusion import FRAME, THWL, require_rule
from rope_viz.models.several_axes.learned_directions import HW, WH
from rope_viz.multi_axis.grid_positions import Lay, pick_tokens, read_listed_grids, read_shape, read_sides
from rope_viz.multi_axis.prompt_positions import read_entries, read_three_sides, read_tokens

IMAGE_OFFSET = 65536.0  # where Ideogram 4's images begin
FRAME_RESCALE = 5.0 / 3.0  # MiniMax-H3: rotary units per frame
FRAMES_PER_LATENT = (1, 4, 4, 4, 4)
SPATIAL_SCALE = 32.0


def diffusion_positions(kind: str, config: Mapping[str, Any]) -> Positions:
    """Return the positions of text and latents, given the name of the model or its class."""
    settings, name = ConfigReader(config), require_rule(kind)
    if settings.value("positions") is None:
        return LAID.get(name, grid_from_zero)(settings)
    special = {**dict.fromkeys(("flux2", "flux3"), THWL), **dict.fromkeys(("cogview4", "glmimage"), HW)}
    usual = FRAME if name.startswith(("qwenimage", "nucleus")) else THW
    return Positions(settings.array("positions"), special.get(name, usual))


def grid_from_zero(settings: ConfigReader) -> Positions:
    """Frames, rows and columns from 0 (HunyuanVideo, Wan, GLM-Image); two axes if the grid has two."""
    sides = read_sides(settings)
    if len(sides) == 2 and settings.value("frames", "frame_indices", "num_frames") is None:
        return Positions(lay_out_grid(*sides), HW)
    frames, rows, columns = read_shape(settings)
    times = settings.numbers("frame_indices", default=list(range(frames)))
    return Positions(combine_coordinates(times, np.arange(rows), np.arange(columns)), THW)


def chronoedit(settings: ConfigReader) -> Positions:
    """ChronoEdit: as Wan, but two frames are `temporal_skip_len` − 1 apart."""
    frames, rows, columns = read_shape(settings)
    skip = settings.size("temporal_skip_len", "rope_temporal_skip_len", default=8)
    times = np.arange(frames) * (skip - 1.0 if frames == 2 else 1.0)
    return Positions(combine_coordinates(times, np.arange(rows), np.arange(columns)), THW)


def count_text_tokens(settings: ConfigReader) -> int:
    """Return the number of text tokens."""
    count = settings.size("text", "text_len", "caption", "max_txt_seq_len", default=0, least=0)
    require_token_count(count)
    return count


def place_text(count: int, *counted: int, start: float = 0.0, axes: int = 3) -> FloatArray:
    """Return text positions (count, axes): start, start + 1, … on the `counted` axes, 0 on the others."""
    block = np.zeros((count, axes))
    block[:, counted] = start + np.arange(count)[:, None]
    return block


def place_image(settings: ConfigReader, time: float = 0.0, start: float = 0.0) -> FloatArray:
    """Return positions of the image at this `time`, with rows and columns from `start`."""
    return combine_coordinates([time], *(start + np.arange(side) for side in read_sides(settings)[-2:]))


def place_references(settings: ConfigReader, time: float, start: float = 0.0, step: float = 0.0) -> list[FloatArray]:
    """Return positions of the reference images, `step` apart in time."""
    shapes = read_listed_grids(settings, "references", count=2) if settings.value("references") else []
    return [
        combine_coordinates([time + step * k], *(start + np.arange(side) for side in each))
        for k, each in enumerate(shapes)
    ]


def join_blocks(*blocks: FloatArray, axes: tuple[str, ...] = THW) -> Positions:
    """Return the positions of these blocks of tokens, concatenated."""
    return Positions(np.concatenate(blocks), axes)


def flux(settings: ConfigReader) -> Positions:
    """FLUX.1: text at the origin, the image (0, row, column), Kontext's reference at t = 1."""
    return join_blocks(place_text(count_text_tokens(settings)), place_image(settings), *place_references(settings, 1.0))


def flux2(settings: ConfigReader) -> Positions:
    """FLUX.2: text counts on the last axis, references are at t = 10, 20, …"""
    step = settings.number("scale", default=10.0)
    pictures = [place_image(settings), *place_references(settings, step, step=step)]
    last = [np.column_stack([each, np.zeros(len(each))]) for each in pictures]
    return join_blocks(place_text(count_text_tokens(settings), 3, axes=4), *last, axes=THWL)


def ovis(settings: ConfigReader) -> Positions:
    """Ovis-Image: text (0, n, n), image (0, row, column)."""
    return join_blocks(place_text(count_text_tokens(settings), 1, 2), place_image(settings))


def longcat(settings: ConfigReader) -> Positions:
    """LongCat-Image: text (0, n, n), image from (1, 512, 512): 512 is the tokenizer's length, not that of the text."""
    start = settings.number("tokenizer_max_length", "start", default=512.0)
    return join_blocks(
        place_text(count_text_tokens(settings), 1, 2),
        place_image(settings, 1.0, start),
        *place_references(settings, 2.0, start),
    )


def lumina2(settings: ConfigReader) -> Positions:
    """Lumina 2: caption (n, 0, 0), image (caption's length, row, column)."""
    return join_blocks(*place_caption_and_image(settings, count_text_tokens(settings), 0.0))


def z_image(settings: ConfigReader) -> Positions:
    """Z-Image: the caption counts t from 1 and is padded to a multiple of 32; the image follows it."""
    multiple = settings.size("multiple", default=32)
    return join_blocks(*place_caption_and_image(settings, -(-count_text_tokens(settings) // multiple) * multiple, 1.0))


def place_caption_and_image(settings: ConfigReader, count: int, start: float) -> tuple[FloatArray, FloatArray]:
    """Return positions of a caption along the first axis, then of the image at the next position of that axis."""
    times = start + count + np.arange(settings.size("frames", default=1))
    return place_text(count, 0, start=start), combine_coordinates(
        times, *(np.arange(side) for side in read_sides(settings)[-2:])
    )


def ernie_image(settings: ConfigReader) -> Positions:
    """ERNIE-Image: the image (text's length, row, column) first, then the text (n, 0, 0)."""
    return join_blocks(*reversed(place_caption_and_image(settings, count_text_tokens(settings), 0.0)))


def hidream(settings: ConfigReader) -> Positions:
    """HiDream: image (0, row, column), then text at the origin."""
    return join_blocks(place_image(settings), place_text(count_text_tokens(settings)))


def ideogram4(settings: ConfigReader) -> Positions:
    """Ideogram 4: text counts on all axes, the image (0, row, column) + 65536."""
    offset = settings.number("offset", default=IMAGE_OFFSET)
    return join_blocks(place_text(count_text_tokens(settings), 0, 1, 2), place_image(settings, offset, offset))


def cogvideox(settings: ConfigReader) -> Positions:
    """CogVideoX 1.0: the trained grid, cropped and resampled in fractional steps; 1.5 ("slice"): from 0."""
    frames, rows, columns = read_shape(settings)
    if settings.choice("grid_type", options=("linspace", "slice")) == "slice":
        return Positions(lay_out_grid(frames, rows, columns), THW)
    trained = settings.sizes("base_grid", default=(30, 45), count=2)
    return Positions(combine_coordinates(np.arange(frames), *cropped_sides(settings, rows, columns, *trained)), THW)


def hunyuan_dit(settings: ConfigReader) -> Positions:
    """HunyuanDiT: a trained square, cropped and resampled; columns are the first axis."""
    rows, columns = read_sides(settings, 2)
    side = settings.size("base_size", default=32)
    return Positions(combine_coordinates(*cropped_sides(settings, rows, columns, side, side))[:, ::-1], WH)


def cropped_sides(settings: ConfigReader, rows: int, columns: int, high: int, wide: int) -> list[FloatArray]:
    """Return rows and columns, evenly spaced between the crop corners in the config.

    Without corners the grid is resized to fit into the trained one of `high` × `wide` patches, and centred.
    """
    if settings.value("crops_coords") is None:
        tall = rows / columns > high / wide
        new = (high, round(high / rows * columns)) if tall else (round(wide / columns * rows), wide)
        first = [round((high - new[0]) / 2.0), round((wide - new[1]) / 2.0)]
        corners = np.array([first, [first[0] + new[0], first[1] + new[1]]], dtype=np.float64)
    else:
        corners = settings.array("crops_coords")
    if corners.shape != (2, 2):
        found = short_repr(settings.value("crops_coords"))
        raise ValueError(TEXTS("grid.crops", found=found))
    return [spaced_positions(start, stop, side) for start, stop, side in zip(*corners, (rows, columns), strict=True)]


def cogview4(settings: ConfigReader) -> Positions:
    """CogView 4: rows and columns stretched to 256 whole steps, ⌊row·256/H⌋."""
    rows, columns = read_sides(settings, 2)
    onto = settings.sizes("rope_axes_dim", default=(256, 256), count=2)
    return Positions(
        combine_coordinates(np.arange(rows) * onto[0] // rows, np.arange(columns) * onto[1] // columns), HW
    )


def kandinsky(settings: ConfigReader) -> Positions:
    """Kandinsky: frames, rows and columns divided by `scale_factor`."""
    shape = read_shape(settings)
    scale = settings.numbers("scale_factor", default=(1.0, 1.0, 1.0), count=3, above=0.0)
    return Positions(
        combine_coordinates(*(np.arange(side) / part for side, part in zip(shape, scale, strict=True))), THW
    )


def cosmos(settings: ConfigReader) -> Positions:
    """Cosmos 1: time in units of 1/24 s (`base_fps`) if the frame rate is known."""
    frames, rows, columns = read_shape(settings)
    fps = settings.number("fps", above=0.0)
    step = 1.0 if fps is None else settings.number("base_fps", default=24.0) / fps
    return Positions(combine_coordinates(np.arange(frames) * step, np.arange(rows), np.arange(columns)), THW)


def mochi(settings: ConfigReader) -> Positions:
    """Mochi: rows and columns centred and scaled to an area of 192²."""
    frames, rows, columns = read_shape(settings)
    area = settings.number("base_height", default=192.0, above=0.0) * settings.number(
        "base_width", default=192.0, above=0.0
    )
    scale = math.sqrt(area / (rows * columns))
    sides = [(np.arange(side) + 0.5 - side / 2.0) * scale for side in (rows, columns)]
    return Positions(combine_coordinates(np.arange(frames), *sides), THW)


def qwen_image(settings: ConfigReader, *, layered: bool = False) -> Positions:
    """Qwen-Image: image k at frame k, centred; text on all axes from half the longer side of the largest.

    With `layered` the last image is the condition, at frame −1. `tokens` and `text_tokens` pick rows of each part.
    """
    shapes, scaled = read_shapes(settings), settings.flag("scale_rope", default=True)
    start = max(side // (2 if scaled else 1) for shape in shapes for side in shape[1:])
    blocks = []
    for k, (frames, *sides) in enumerate(shapes):
        condition = layered and k == len(shapes) - 1
        times = np.full(frames, -1.0) if condition else k + np.arange(frames)
        blocks.append(
            combine_coordinates(times, *(centred_positions(side) if scaled else np.arange(side) for side in sides))
        )
    images, count = np.concatenate(blocks), count_text_tokens(settings)
    following = place_text(count, 0, 1, 2, start=max(start, len(shapes) - 1) if layered else start)
    tokens, text_rows = settings.value("tokens"), settings.value("text_tokens")
    if tokens is not None and text_rows is not None:
        images, following = pick_tokens(images, tokens), pick_tokens(following, text_rows, "text_tokens")
    return join_blocks(images, following, axes=FRAME)


def read_shapes(settings: ConfigReader) -> list[tuple[int, ...]]:
    """Return the images as (frames, rows, columns)."""
    names = ("shapes", "img_shapes", "video_fhw")
    return [read_shape(settings)] if settings.value(*names) is None else read_listed_grids(settings, *names)


def qwen_image21(settings: ConfigReader) -> Positions:
    """Qwen-Image 2.1: one stream; text n on all axes, an image centred at frame n, the next text its longer side later.

    `layout` is a list of ["text", n] and ["image", [rows, columns]]; else `text`, then the images of `shapes`.
    """
    layout: list[tuple[str, Any]]
    if settings.value("layout") is not None:
        layout = read_entries(settings)
    else:
        layout = [("text", count_text_tokens(settings)), *(("image", list(shape)) for shape in read_shapes(settings))]
    blocks, place = [np.zeros((0, 3))], 0
    for kind, size in layout:
        if kind in ("text", "audio"):
            blocks.append(line_positions(read_tokens(size), float(place)))
            place += read_tokens(size)
        else:
            _, rows, columns = read_three_sides(size)
            blocks.append(combine_coordinates([float(place)], centred_positions(rows), centred_positions(columns)))
            place += max(rows, columns)
    return join_blocks(*blocks, axes=FRAME)


def minimax_h3(settings: ConfigReader) -> Positions:
    """MiniMax-H3: text (n, 0, 0), keyframes, audio, then video in steps of 5/3 and 20/3; space over an area of 32².

    `frames` are latent frames, `latents` their rows and columns, `patch` what becomes one token. Audio is at row 0 and
    at either edge, one edge a channel, one unit of time each.
    """
    count, frames = count_text_tokens(settings), settings.size("frames", default=1)
    latents = settings.sizes("latents", count=2)
    patch = settings.sizes("patch", "patch_size", default=(2, 2))[-2:]
    if len(patch) != 2 or any(side < step for side, step in zip(latents, patch, strict=True)):
        raise ValueError(TEXTS("grid.patch", patch=short_repr(patch)))
    require_token_count(frames, *(side // step for side, step in zip(latents, patch, strict=True)))
    area = math.sqrt(math.prod(latents))
    high, wide = (scale_side(side, step, area) for side, step in zip(latents, patch, strict=True))
    spans = [FRAME_RESCALE * FRAMES_PER_LATENT[k % len(FRAMES_PER_LATENT)] for k in range(frames)]
    blocks = [place_text(count, 0)]
    anchors = settings.value("keyframe_anchors") or ()
    if not isinstance(anchors, (list, tuple)):
        raise ValueError(TEXTS("grid.anchors", anchors=short_repr(anchors)))
    for anchor in anchors:
        blocks.append(
            combine_coordinates([float(count) if anchor == "first" else count + sum(spans) - FRAME_RESCALE], high, wide)
        )
    audio = settings.size("audio_latents", default=0, least=0)
    for channel in range(settings.size("audio_channels", default=2) if audio else 0):
        block = place_text(audio, 0, start=count)
        block[:, 2] = wide[0] if channel == 0 else wide[-1]
        blocks.append(block)
    return join_blocks(*blocks, combine_coordinates(count + np.cumsum([0.0, *spans[:-1]]), high, wide))


def scale_side(side: int, step: int, area: float) -> FloatArray:
    """Return one spatial axis of MiniMax-H3: centred at 16; a square spans 0 … 32, without the right end."""
    ratio = side / area
    left = (1.0 - ratio) / 2.0
    return np.linspace(left, left + ratio, side // step, endpoint=False) * SPATIAL_SCALE


def ltx(settings: ConfigReader) -> Positions:
    """LTX: 2·fraction − 1 of 20 s and 2048 pixels a side, each index times `rope_interpolation_scale`."""
    shape = read_shape(settings)
    scale = settings.numbers("rope_interpolation_scale", default=(1.0, 1.0, 1.0), count=3)
    base = settings.numbers("base", default=(20.0, 2048.0, 2048.0), count=3, above=0.0)
    patch = [settings.number("patch_size_t", default=1.0), *[settings.number("patch_size", default=1.0)] * 2]
    steps = [s * p / b for s, p, b in zip(scale, patch, base, strict=True)]
    steps = [1.0] * 3 if settings.value("rope_interpolation_scale") is None else steps
    fractions = [np.arange(side) * step for side, step in zip(shape, steps, strict=True)]
    return Positions(2.0 * combine_coordinates(*fractions) - 1.0, THW)


def ltx2(settings: ConfigReader) -> Positions:
    """LTX-2: the middle of every patch in seconds and pixels, as a fraction of 20 s and 2048 pixels a side.

    A latent frame is `scale_factors[0]` frames, the first is one. `modality` "audio" has time alone, in as many hops.
    """
    scale = settings.numbers("scale_factors", "vae_scale_factors", default=(8.0, 32.0, 32.0), count=3)
    causal = settings.number("causal_offset", default=1.0)
    step = settings.size("patch_size_t", default=1)
    seconds = settings.number("base_num_frames", default=20.0, above=0.0)
    if settings.choice("modality", options=("video", "audio")) == "audio":
        frames = settings.size("audio_latents", "frames", "num_frames") or read_shape(settings)[0]
        hop = settings.number("hop_length", default=160.0)
        rate = settings.number("sampling_rate", default=16_000.0, above=0.0)
        shift = settings.number("shift", default=0.0)
        require_token_count(frames)
        time = find_middles(frames, step, scale[0], causal, shift) * (hop / rate)
        return Positions((2.0 * time / seconds - 1.0)[:, None], ("t",))
    frames, rows, columns = read_shape(settings)
    patch = settings.size("patch_size", default=1)
    fps = settings.number("fps", "frame_rate", default=24.0, above=0.0)
    time = find_middles(frames, step, scale[0], causal) / fps / seconds
    sides = [
        (np.arange(0, side, patch) + patch / 2.0) * factor / settings.number(name, default=2048.0, above=0.0)
        for side, factor, name in ((rows, scale[1], "base_height"), (columns, scale[2], "base_width"))
    ]
    return Positions(2.0 * combine_coordinates(time, *sides) - 1.0, THW)


def find_middles(frames: int, step: int, scale: float, causal: float, shift: float = 0.0) -> FloatArray:
    """Return the middle of every latent frame, in frames; start and end are shifted back, but not below 0."""
    starts = shift + np.arange(0, frames, step)
    edges = [np.maximum(edge * scale + causal - scale, 0.0) for edge in (starts, starts + step)]
    return np.asarray((edges[0] + edges[1]) / 2.0, dtype=np.float64)


LAID: dict[str, Lay] = {
    **dict.fromkeys(("flux", "flux1", "chroma", "fluxkontext", "bria", "briafibo", "krea2"), flux),
    **dict.fromkeys(("flux2", "flux3"), flux2),
    "chronoedit": chronoedit,
    "ovisimage": ovis,
    "longcatimage": longcat,
    "lumina2": lumina2,
    **dict.fromkeys(("zimage", "briafibo2"), z_image),
    "ernieimage": ernie_image,
    "hidreamimage": hidream,
    **dict.fromkeys(("cogvideox", "consisid", "easyanimate", "allegro"), cogvideox),
    "hunyuandit": hunyuan_dit,
    "cogview4": cogview4,
    **dict.fromkeys(("kandinsky5", "kandinsky6", "kandinsky6sr"), kandinsky),
    "cosmos": cosmos,
    "mochi": mochi,
    "ltxvideo": ltx,
    **dict.fromkeys(("ltx2", "ltx2video"), ltx2),
    **dict.fromkeys(("qwenimage", "qwenimageedit", "nucleusmoeimage"), qwen_image),
    "qwenimagelayered": functools.partial(qwen_image, layered=True),
    "qwenimage21": qwen_image21,
    "ideogram4": ideogram4,
    "minimaxh3": minimax_h3,
}
