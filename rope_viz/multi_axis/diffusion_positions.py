"""Positions of what a diffusion transformer sees: text and the latents of an image or a video, with its references.

The grid comes from the pipeline, not from the transformer's config: `grid` in patches, or `latents` over `patch_size`;
`shapes` are several images. `text` is a number of tokens, `references` are further grids. diffusers 0.42.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from rope_viz.embedding.axes_spec import THW
from rope_viz.embedding.position_ids import Positions, centred, grid, line, product, require_tokens, spaced
from rope_viz.embedding.spec import FloatArray, shorten
from rope_viz.models.config_reader import ConfigReader
from rope_viz.multi_axis.diffusion import FRAME, THWL, canonical
from rope_viz.multi_axis.grid_positions import WH, shape_of, sides_of, two_sides
from rope_viz.multi_axis.ltx_positions import ltx, ltx2
from rope_viz.multi_axis.prompt_positions import entries, three, tokens_of

Lay: TypeAlias = Callable[[ConfigReader], Positions]

IMAGE_OFFSET = 65536.0  # where Ideogram 4's images begin
FRAME_RESCALE = 5.0 / 3.0  # MiniMax-H3: rotary units per frame
FRAMES_PER_LATENT = (1, 4, 4, 4, 4)
SPATIAL_SCALE = 32.0


def diffusion_positions(kind: str, config: Mapping[str, Any]) -> Positions:
    """Where text and latents stand, by the name of the model or of its class."""
    given = ConfigReader(config)
    if given.value("positions") is not None:
        return Positions(given.array("positions"), axes_of(canonical(kind)))
    return LAID.get(canonical(kind), from_zero)(given)


def axes_of(name: str) -> tuple[str, ...]:
    """The names of a model's axes."""
    special = {**dict.fromkeys(("flux2", "flux3"), THWL), **dict.fromkeys(("cogview4", "glmimage"), ("h", "w"))}
    return special.get(name, FRAME if name.startswith(("qwenimage", "nucleus")) else THW)


def from_zero(given: ConfigReader) -> Positions:
    """Frames, rows and columns from 0 (HunyuanVideo, Wan, GLM-Image); two axes where the grid has two."""
    sides = sides_of(given)
    if len(sides) == 2 and given.value("frames", "frame_indices", "num_frames") is None:
        return Positions(grid(*sides), ("h", "w"))
    frames, rows, columns = shape_of(given)
    times = given.value("frame_indices")
    if times is not None:
        return Positions(product(given.numbers("frame_indices"), np.arange(rows), np.arange(columns)), THW)
    return Positions(grid(frames, rows, columns), THW)


def chronoedit(given: ConfigReader) -> Positions:
    """ChronoEdit: as Wan, but two frames stand `temporal_skip_len` − 1 apart."""
    frames, rows, columns = shape_of(given)
    skip = given.size("temporal_skip_len", "rope_temporal_skip_len", default=8)
    times = [0.0, skip - 1.0] if frames == 2 else np.arange(frames).tolist()
    return Positions(product(times, np.arange(rows), np.arange(columns)), THW)


def pictures(given: ConfigReader, name: str = "references") -> list[tuple[int, int]]:
    """Further grids, (rows, columns) each."""
    value = given.value(name) or []
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"{name} must be a list of [rows, columns], got {shorten(value)}")
    found = [ConfigReader({name: part}).sizes(name, count=2) for part in value]
    return [(rows, columns) for rows, columns in found]


def flat(given: ConfigReader) -> tuple[int, int]:
    """Rows and columns of the one image."""
    sides = sides_of(given)[-2:]
    return sides[0], sides[1]


def flux(given: ConfigReader) -> Positions:
    """FLUX.1: text at the origin, the image (0, row, column), Kontext's reference at t = 1."""
    rows, columns = flat(given)
    blocks = [np.zeros((text(given), 3)), product([0.0], np.arange(rows), np.arange(columns))]
    blocks += [product([1.0], np.arange(high), np.arange(wide)) for high, wide in pictures(given)]
    return Positions(np.concatenate(blocks), THW)


def flux2(given: ConfigReader) -> Positions:
    """FLUX.2: text counts on the last axis, references stand at t = 10, 20, …"""
    rows, columns = flat(given)
    step = given.number("scale", default=10.0)
    words = np.zeros((text(given), 4))
    words[:, 3] = np.arange(len(words))
    blocks = [words, product([0.0], np.arange(rows), np.arange(columns), [0.0])]
    for k, (high, wide) in enumerate(pictures(given)):
        blocks.append(product([step * (k + 1)], np.arange(high), np.arange(wide), [0.0]))
    return Positions(np.concatenate(blocks), THWL)


def text(given: ConfigReader) -> int:
    """How many text tokens there are."""
    words = given.size("text", "text_len", "caption", "max_txt_seq_len", default=0, least=0)
    require_tokens(words)
    return words


def ovis(given: ConfigReader) -> Positions:
    """Ovis-Image: text (0, n, n), image (0, row, column)."""
    rows, columns = flat(given)
    words = line(text(given))
    words[:, 0] = 0.0
    return Positions(np.concatenate([words, product([0.0], np.arange(rows), np.arange(columns))]), THW)


def longcat(given: ConfigReader) -> Positions:
    """LongCat-Image: text (0, n, n), image from (1, 512, 512): the tokenizer's length, whatever the text's."""
    rows, columns = flat(given)
    start = given.number("tokenizer_max_length", "start", default=512.0)
    words = line(text(given))
    words[:, 0] = 0.0
    blocks = [words, product([1.0], start + np.arange(rows), start + np.arange(columns))]
    blocks += [product([2.0], start + np.arange(high), start + np.arange(wide)) for high, wide in pictures(given)]
    return Positions(np.concatenate(blocks), THW)


def lumina2(given: ConfigReader) -> Positions:
    """Lumina 2: caption (n, 0, 0), image (caption's length, row, column)."""
    return captioned(given, text(given), 0.0)


def z_image(given: ConfigReader) -> Positions:
    """Z-Image: the caption counts t from 1 and is padded to a multiple of 32; the image stands behind it."""
    multiple = given.size("multiple", default=32)
    return captioned(given, -(-text(given) // multiple) * multiple, 1.0)


def captioned(given: ConfigReader, words: int, start: float) -> Positions:
    """A caption along the first axis, then the image at the next place of it."""
    rows, columns = flat(given)
    frames = given.size("frames", default=1)
    caption = np.zeros((words, 3))
    caption[:, 0] = start + np.arange(words)
    image = product(start + words + np.arange(frames), np.arange(rows), np.arange(columns))
    return Positions(np.concatenate([caption, image]), THW)


def ernie_image(given: ConfigReader) -> Positions:
    """ERNIE-Image: the image (text's length, row, column) first, then the text (n, 0, 0)."""
    laid = lumina2(given).values
    words = text(given)
    return Positions(np.concatenate([laid[words:], laid[:words]]), THW)


def hidream(given: ConfigReader) -> Positions:
    """HiDream: image (0, row, column), then text at the origin."""
    rows, columns = flat(given)
    image = product([0.0], np.arange(rows), np.arange(columns))
    return Positions(np.concatenate([image, np.zeros((text(given), 3))]), THW)


def cogvideox(given: ConfigReader) -> Positions:
    """CogVideoX 1.0: the grid spread over the trained one and cropped, fractional steps; 1.5 ("slice") from 0."""
    frames, rows, columns = shape_of(given)
    if given.choice("grid_type", options=("linspace", "slice")) == "slice":
        return Positions(grid(frames, rows, columns), THW)
    trained = given.sizes("base_grid", default=(30, 45), count=2)
    return Positions(product(np.arange(frames), *cropped_sides(given, rows, columns, *trained)), THW)


def hunyuan_dit(given: ConfigReader) -> Positions:
    """HunyuanDiT: the grid spread over a trained square and cropped; columns are the first axis."""
    rows, columns = two_sides(given)
    side = given.size("base_size", default=32)
    return Positions(product(*cropped_sides(given, rows, columns, side, side))[:, ::-1], WH)


def cropped_sides(given: ConfigReader, rows: int, columns: int, high: int, wide: int) -> list[FloatArray]:
    """Return rows and columns spread over the corners that the config names.

    Without corners the grid is resized to fit into the trained one of `high` × `wide` patches, and centred.
    """
    if given.value("crops_coords") is None:
        tall = rows / columns > high / wide
        new = (high, round(high / rows * columns)) if tall else (round(wide / columns * rows), wide)
        first = [round((high - new[0]) / 2.0), round((wide - new[1]) / 2.0)]
        corners = np.array([first, [first[0] + new[0], first[1] + new[1]]], dtype=np.float64)
    else:
        corners = given.array("crops_coords")
    if corners.shape != (2, 2):
        found = shorten(given.value("crops_coords"))
        raise ValueError(f"crops_coords must be [[top, left], [bottom, right]], got {found}")
    return [spaced(start, stop, side) for start, stop, side in zip(*corners, (rows, columns), strict=True)]


def cogview4(given: ConfigReader) -> Positions:
    """CogView 4: rows and columns stretched to 256 whole steps, ⌊row·256/H⌋."""
    rows, columns = two_sides(given)
    onto = given.sizes("rope_axes_dim", default=(256, 256), count=2)
    return Positions(product(np.arange(rows) * onto[0] // rows, np.arange(columns) * onto[1] // columns), ("h", "w"))


def kandinsky(given: ConfigReader) -> Positions:
    """Kandinsky: frames, rows and columns divided by `scale_factor`."""
    shape = shape_of(given)
    scale = given.numbers("scale_factor", default=(1.0, 1.0, 1.0), count=3, above=0.0)
    return Positions(product(*(np.arange(side) / part for side, part in zip(shape, scale, strict=True))), THW)


def cosmos(given: ConfigReader) -> Positions:
    """Cosmos 1: time in units of 1/24 s (`base_fps`) where the frame rate is known."""
    frames, rows, columns = shape_of(given)
    fps = given.number("fps", above=0.0)
    step = 1.0 if fps is None else given.number("base_fps", default=24.0) / fps
    return Positions(product(np.arange(frames) * step, np.arange(rows), np.arange(columns)), THW)


def mochi(given: ConfigReader) -> Positions:
    """Mochi: rows and columns centred and scaled to an area of 192²."""
    frames, rows, columns = shape_of(given)
    area = given.number("base_height", default=192.0, above=0.0) * given.number("base_width", default=192.0, above=0.0)
    scale = math.sqrt(area / (rows * columns))
    sides = [(np.arange(side) + 0.5 - side / 2.0) * scale for side in (rows, columns)]
    return Positions(product(np.arange(frames), *sides), THW)


def qwen_image(given: ConfigReader) -> Positions:
    """Qwen-Image: image k at frame k, centred; text on all axes from half the longer side of the largest."""
    shapes = shapes_of(given)
    blocks = [
        product(k + np.arange(frames), *sided(given, rows, columns)) for k, (frames, rows, columns) in enumerate(shapes)
    ]
    return behind(blocks, given, reach(given, shapes))


def qwen_layered(given: ConfigReader) -> Positions:
    """Qwen-Image Layered: the last image is the condition, at frame −1."""
    shapes = shapes_of(given)
    blocks = []
    for k, (frames, rows, columns) in enumerate(shapes):
        times = k + np.arange(frames) if k < len(shapes) - 1 else -np.ones(frames)
        blocks.append(product(times, *sided(given, rows, columns)))
    return behind(blocks, given, max(reach(given, shapes), len(shapes) - 1))


def shapes_of(given: ConfigReader) -> list[tuple[int, int, int]]:
    """The images as (frames, rows, columns)."""
    many = given.value("shapes", "img_shapes", "video_fhw")
    if many is None:
        return [shape_of(given)]
    if not isinstance(many, (list, tuple)) or not many:
        raise ValueError(f"shapes must be a list of [frames, rows, columns], got {shorten(many)}")
    found = [ConfigReader({"shapes": part}).sizes("shapes", count=3) for part in many]
    for one in found:
        require_tokens(*one)
    return [(one[0], one[1], one[2]) for one in found]


def sided(given: ConfigReader, rows: int, columns: int) -> tuple[FloatArray, FloatArray]:
    """Rows and columns, centred unless `scale_rope` is false."""
    if given.flag("scale_rope", default=True):
        return centred(rows), centred(columns)
    return np.arange(rows, dtype=np.float64), np.arange(columns, dtype=np.float64)


def reach(given: ConfigReader, shapes: list[tuple[int, int, int]]) -> int:
    """Where text begins: the half (or whole) longer side of the largest image."""
    part = 2 if given.flag("scale_rope", default=True) else 1
    return max(max(rows // part, columns // part) for _, rows, columns in shapes)


def behind(blocks: list[FloatArray], given: ConfigReader, start: int) -> Positions:
    """Images, then text from `start` on on all axes; `tokens` and `text_tokens` pick of each."""
    images = np.concatenate(blocks)
    words = line(text(given), float(start))
    if given.value("tokens") is not None and given.value("text_tokens") is not None:
        images = picked(images, given, "tokens")
        words = picked(words, given, "text_tokens")
    return Positions(np.concatenate([images, words]), FRAME)


def picked(rows: FloatArray, given: ConfigReader, name: str) -> FloatArray:
    """The rows whose numbers stand under a key."""
    index = given.sizes(name, least=0)
    if index and max(index) >= len(rows):
        raise ValueError(f"{name} must be from 0 to {len(rows) - 1}, got {shorten(index)}")
    return rows[index]


def qwen_image21(given: ConfigReader) -> Positions:
    """Qwen-Image 2.1: one stream; text n on all axes, an image at frame n and centred, the next text its side behind.

    `layout` is a list of ["text", n] and ["image", [rows, columns]]; else `text`, then the images of `shapes`.
    """
    shapes = () if given.value("layout") is not None else shapes_of(given)
    layout: list[tuple[str, Any]] = [("text", text(given)), *(("image", list(shape)) for shape in shapes)]
    if given.value("layout") is not None:
        layout = entries(given)
    blocks, place = [np.zeros((0, 3))], 0
    for kind, size in layout:
        if kind in ("text", "audio"):
            blocks.append(line(tokens_of(size), float(place)))
            place += tokens_of(size)
        else:
            _, rows, columns = three(size)
            blocks.append(product([float(place)], centred(rows), centred(columns)))
            place += max(rows, columns)
    return Positions(np.concatenate(blocks), FRAME)


def ideogram4(given: ConfigReader) -> Positions:
    """Ideogram 4: text counts on all axes, the image (0, row, column) + 65536."""
    rows, columns = flat(given)
    image = product([0.0], np.arange(rows), np.arange(columns)) + given.number("offset", default=IMAGE_OFFSET)
    return Positions(np.concatenate([line(text(given)), image]), THW)


def minimax_h3(given: ConfigReader) -> Positions:
    """MiniMax-H3: text (n, 0, 0), keyframes, sound, then video in steps of 5/3 and 20/3; space over an area of 32².

    `frames` are latent frames, `latents` their rows and columns, `patch` what becomes one token. Sound stands at row 0
    and at either edge, one edge a channel, one unit of time each.
    """
    words, frames = text(given), given.size("frames", default=1)
    rows, columns = given.sizes("latents", count=2)
    patch = given.sizes("patch", "patch_size", default=(2, 2))[-2:]
    if len(patch) != 2 or min(rows // patch[0], columns // patch[1]) < 1:
        raise ValueError(f"patch must be rows and columns no larger than the latents, got {shorten(patch)}")
    require_tokens(frames, rows // patch[0], columns // patch[1])
    area = math.sqrt(rows * columns)
    high, wide = (aspect(side, step, area) for side, step in zip((rows, columns), patch, strict=True))
    caption = np.zeros((words, 3))
    caption[:, 0] = np.arange(words)
    spans = [FRAME_RESCALE * FRAMES_PER_LATENT[k % len(FRAMES_PER_LATENT)] for k in range(frames)]
    times = words + np.concatenate([[0.0], np.cumsum(spans[:-1])])
    blocks = [caption]
    anchors = given.value("keyframe_anchors") or ()
    if not isinstance(anchors, (list, tuple)):
        raise ValueError(f'keyframe_anchors must be a list of "first" and "last", got {shorten(anchors)}')
    for anchor in anchors:
        blocks.append(product([float(words) if anchor == "first" else words + sum(spans) - FRAME_RESCALE], high, wide))
    sound = given.size("audio_latents", default=0, least=0)
    channels = given.size("audio_channels", default=2)
    for channel in range(channels if sound else 0):
        block = np.zeros((sound, 3))
        block[:, 0] = words + np.arange(sound)
        block[:, 2] = wide[0] if channel == 0 else wide[-1]
        blocks.append(block)
    return Positions(np.concatenate([*blocks, product(times, high, wide)]), THW)


def aspect(side: int, step: int, area: float) -> FloatArray:
    """One axis of MiniMax-H3's space: centred at 16, a square spans 0 … 32, the right end left out."""
    ratio = side / area
    left = (1.0 - ratio) / 2.0
    return np.linspace(left, left + ratio, side // step, endpoint=False) * SPATIAL_SCALE


LAID: dict[str, Lay] = {
    **dict.fromkeys(("flux", "flux1", "chroma", "fluxkontext", "bria", "briafibo", "krea2"), flux),
    **dict.fromkeys(("flux2", "flux3"), flux2),
    "chronoedit": chronoedit,
    "ovisimage": ovis,
    "longcatimage": longcat,
    "lumina2": lumina2,
    **dict.fromkeys(("zimage", "briafibo2"), z_image),
    "ernieimage": ernie_image,
    **dict.fromkeys(("hidreamimage",), hidream),
    **dict.fromkeys(("cogvideox", "consisid", "easyanimate", "allegro"), cogvideox),
    "hunyuandit": hunyuan_dit,
    "cogview4": cogview4,
    **dict.fromkeys(("kandinsky5", "kandinsky6", "kandinsky6sr"), kandinsky),
    "cosmos": cosmos,
    "mochi": mochi,
    "ltxvideo": ltx,
    **dict.fromkeys(("ltx2", "ltx2video"), ltx2),
    **dict.fromkeys(("qwenimage", "qwenimageedit", "nucleusmoeimage"), qwen_image),
    "qwenimagelayered": qwen_layered,
    "qwenimage21": qwen_image21,
    "ideogram4": ideogram4,
    "minimaxh3": minimax_h3,
}
