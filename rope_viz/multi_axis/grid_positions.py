"""Positions over an image's or a video's grid, as vision towers number their patches.

A grid is given in patches: `grid` [rows, columns] or [frames, rows, columns], `grid_thw` as a list of images and
videos, or `image` in pixels with `patch_size`. `tokens` picks some of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from rope_viz.embedding.axes_spec import THW
from rope_viz.embedding.position_ids import Positions, grid, merge_order, product, require_tokens, squeezed
from rope_viz.embedding.spec import FloatArray, require_number, shorten
from rope_viz.models.config_reader import MAX_SIDE, ConfigReader
from rope_viz.multi_axis.vision import tower_name

Lay: TypeAlias = Callable[[ConfigReader], Positions]

HW, WH = ("h", "w"), ("w", "h")


def vision_positions(kind: str, config: Mapping[str, Any]) -> Positions:
    """Where the patches of a vision tower stand, from a config that names a grid."""
    name = tower_name(kind)
    given = ConfigReader(config)
    return LAID.get(name, patched(name))(given)


def patched(name: str) -> Lay:
    """Towers that number patches by row and column, in the order of their merge blocks."""

    def lay(given: ConfigReader) -> Positions:
        start = 1.0 if name in FROM_ONE else 0.0
        merge = 1 if name in RASTER else given.size("spatial_merge_size", default=MERGE.get(name, 2))
        values = patch_order(given, merge, timed=name in TIMED) + start
        if name in COLUMNS_FIRST:
            return Positions(values[:, ::-1], WH)
        return Positions(values, THW if name in TIMED else HW)

    return lay


# Classes that count from 1, that read patches row by row, whose columns come first, with time as an axis of its own.
FROM_ONE = ("muse_spark", "muse_glimmer", "inkling2", "perception_encoder")
RASTER = (
    "step3p7",
    "paddleocr_vl",
    "kimi_k25",
    "kimi_vl",
    "moonvit",
    "pixtral",
    "gemma4",
    "perception_encoder",
    "mlcd",
)
COLUMNS_FIRST = ("muse_spark", "muse_glimmer", "gemma4", "perception_encoder")
TIMED = ("minimax_m3_vl",)
MERGE = {"glm_image": 1, "video_llama_3": 1}


def patch_order(given: ConfigReader, merge: int, *, timed: bool = False) -> FloatArray:
    """(row, column) of the patches of all grids, or (time, row, column) with `timed`, in merge-block order."""
    blocks = []
    found = grids(given)
    merges = given.sizes("merge_sizes", count=len(found)) if given.value("merge_sizes") is not None else []
    for index, (frames, rows, columns) in enumerate(found):
        side = merges[index] if merges else merge
        require_tokens(frames, rows, columns)
        each = merge_order(rows, columns, side)
        time = np.repeat(np.arange(frames, dtype=np.float64), len(each))
        tiled = np.tile(each, (frames, 1))
        blocks.append(np.column_stack([time, tiled]) if timed else tiled)
    return np.concatenate(blocks)


def grids(given: ConfigReader) -> list[tuple[int, int, int]]:
    """Every grid as (frames, rows, columns)."""
    many = given.value("grid_thw", "image_grid_thw", "video_grid_thw", "grids")
    if many is not None:
        if not isinstance(many, (list, tuple)) or not many:
            raise ValueError(f"grid_thw must be a list of [frames, rows, columns], got {shorten(many)}")
        found = [ConfigReader({"grid_thw": part}).sizes("grid_thw", count=3) for part in many]
        return [(one[0], one[1], one[2]) for one in found]
    sides = sides_of(given)
    return [(sides[0], sides[1], sides[2]) if len(sides) == 3 else (1, sides[0], sides[1])]


def sides_of(given: ConfigReader, name: str = "grid") -> list[int]:
    """The sides of the one grid: named, or from pixels and the patch size; one number is a square."""
    sides = written_sides(given, name)
    if len(sides) not in (2, 3):
        raise ValueError(f"grid must be rows and columns, with frames in front for video, got {shorten(sides)}")
    if min(sides) < 1:
        raise ValueError(f"the image must be at least one patch on every side, its grid is {shorten(sides)}")
    require_tokens(*sides)
    return sides


def two_sides(given: ConfigReader) -> tuple[int, int]:
    """Rows and columns of the one grid."""
    sides = sides_of(given)
    if len(sides) != 2:
        raise ValueError(f"grid must be rows and columns, got {shorten(sides)}")
    return sides[0], sides[1]


def written_sides(given: ConfigReader, name: str) -> list[int]:
    """The sides as a config writes them."""
    value = given.value(name, "feat_shape", "grid_size")
    if value is not None:
        if isinstance(value, (int, float)):
            return [given.required(name, "feat_shape", "grid_size")] * 2
        return given.sizes(name, "feat_shape", "grid_size")
    if given.value("image", "image_size") is not None:
        image = given.sizes("image", "image_size", count=2)
        patch = given.sizes("patch_size", default=(16, 16), count=2)
        return [side // each for side, each in zip(image, patch, strict=True)]
    if given.value("latents") is not None:
        value = given.sizes("latents")
        patch = given.value("patch_size", "patch")
        if isinstance(patch, (int, float)):
            patch = [given.required("patch_size", "patch")]
        else:
            patch = given.sizes("patch_size", "patch", default=[1])
        if not 2 <= len(value) <= 3 or not 1 <= len(patch) <= 3:
            raise ValueError(f"latents must be rows and columns, with frames in front for video, got {shorten(value)}")
        sizes = over(patch, len(value))
        if len(patch) < len(value) == 3:
            sizes[0] = given.size("patch_size_t", default=1)
        return [side // each for side, each in zip(value, sizes, strict=True)]
    raise ValueError("grid is missing: expected the rows and columns of patches")


def shape_of(given: ConfigReader) -> tuple[int, int, int]:
    """(frames, rows, columns) of the latents."""
    sides = sides_of(given)
    frames = sides[0] if len(sides) == 3 else given.size("frames", "num_frames", default=1)
    require_tokens(frames, *sides[-2:])
    return frames, sides[-2], sides[-1]


def over(patch: list[int], count: int) -> list[int]:
    """A patch size per side: one number is for rows and columns, and time has 1."""
    if len(patch) == 1:
        return [1] * (count - 2) + patch * 2
    return [1] * (count - len(patch)) + patch if len(patch) < count else patch[-count:]


def order_of_patches(given: ConfigReader) -> Positions:
    """The order in which a merging tower reads its patches, with time in front if asked for."""
    timed = given.flag("include_temporal")
    return Positions(patch_order(given, given.size("spatial_merge_size", default=1), timed=timed), THW if timed else HW)


def sam3(given: ConfigReader) -> Positions:
    """SAM 3: a window's own grid, or the whole image squeezed onto it in a global layer (`layer_window` 0)."""
    window = given.size("window_size", default=24, least=0)
    layer = given.size("layer_window", default=window, least=0)
    if layer:
        require_number(layer, "layer_window", most=MAX_SIDE)
        rows = columns = layer
    else:
        columns, rows = two_sides(ConfigReader({**given.config, "grid": None}, {"image_size": 1008, "patch_size": 14}))
    scale = np.float32(window / columns)
    values = grid(rows, columns)[:, ::-1].astype(np.float32) * scale
    return Positions(values.astype(np.float64), WH)


def memory(given: ConfigReader) -> Positions:
    """SAM 2's memory attention: queries on their grid, EdgeTAM's keys on a smaller one (`is_key`)."""
    key = given.flag("is_key")
    names = ("memory_attention_rope_k_sizes",) if key else ("memory_attention_rope_feat_sizes", "grid")
    columns, rows = given.sizes(*names, default=(16, 16) if key else (64, 64), count=2)
    return Positions(grid(rows, columns)[:, ::-1], WH)


def llama4(given: ConfigReader) -> Positions:
    """Llama 4: columns and rows from 1; the class token, the last, is not turned."""
    rows, columns = two_sides(ConfigReader(given.config, {"image_size": 448, "patch_size": 14}))
    return Positions(np.concatenate([grid(rows, columns, start=1.0)[:, ::-1], np.zeros((1, 2))]), WH)


def dinov3(given: ConfigReader) -> Positions:
    """DINOv3: patch centres in −1 … 1 of each side, or of the shorter or the longer one (`normalize_coords`)."""
    return timm(ConfigReader({"grid_type": "centered", **given.config, "grid": sides_of(given)}))


def vjepa2(given: ConfigReader) -> Positions:
    """V-JEPA 2: frame, row and column of the tokens of a square grid."""
    side = given.value("grid")
    patch = given.size("patch_size", default=16)
    edge = (
        given.required("grid")
        if isinstance(side, (int, float))
        else given.size("crop_size", "image_size", default=256) // patch
    )
    frames = given.size("frames_per_clip", default=64) // given.size("tubelet_size", default=2)
    if min(edge, frames) < 1:
        raise ValueError("a clip must have at least one patch on every side: raise crop_size or frames_per_clip")
    return Positions(grid(frames, edge, edge), THW)


def efficientloftr(given: ConfigReader) -> Positions:
    """EfficientLoFTR: rows and columns from 1, of features after aggregation."""
    if given.value("grid") is None and given.value("features") is not None:
        kernel = given.size("q_aggregation_kernel_size", default=4)
        stride = given.size("q_aggregation_stride", default=4)
        rows, columns = ((side - kernel) // stride + 1 for side in given.sizes("features", count=2, least=kernel))
    else:
        rows, columns = given.sizes("grid", count=2)
    return Positions(grid(rows, columns, start=1.0), HW)


def timm(given: ConfigReader) -> Positions:
    """timm's grids: by index (with an offset), in −1 … 1 by pixel or by centre, squeezed onto a reference grid."""
    shape = sides_of(given)
    pixels = given.flag("in_pixels")
    kind = given.choice("grid_type", options=("index", "pixel", "centered"), default="pixel" if pixels else "index")
    offset = given.number("grid_offset", default=0.0)
    sides: list[Any] = []
    most = {"min": min(shape), "max": max(shape)}
    over_side = most.get(given.choice("normalize_coords", options=("separate", "min", "max"), default="separate"))
    for side in shape:
        if kind == "pixel":
            sides.append(-1.0 + 2.0 * np.arange(side) / max(side - 1, 1))
        elif kind == "centered":
            sides.append((np.arange(side) + 0.5 + offset) / (over_side or side))
        else:
            sides.append(np.arange(side) + offset)
    reference = given.value("ref_feat_shape")
    if reference is not None:
        wanted = given.sizes("ref_feat_shape", count=len(shape))
        sides = [part / side * onto for part, side, onto in zip(sides, shape, wanted, strict=True)]
    values = product(*sides)
    values = 2.0 * values - 1.0 if kind == "centered" else values
    if given.choice("grid_indexing", options=("ij", "xy"), default="ij") == "xy":
        order = [1, 0, *range(2, len(shape))]
        return Positions(values[:, order], ("w", "h", *(f"axis {k}" for k in range(2, len(shape)))))
    return Positions(values, HW if len(shape) == 2 else THW[: len(shape)])


def timm_mrope(given: ConfigReader) -> Positions:
    """timm's M-RoPE: row and column of a grid, time at 0."""
    rows, columns = two_sides(given)
    return Positions(product([0.0], np.arange(rows), np.arange(columns)), THW)


def mixed(given: ConfigReader) -> Positions:
    """RoPE-Mixed: column and row by index."""
    return timm(ConfigReader({"grid_indexing": "xy", **given.config, "in_pixels": False}))


def squeezed_onto(given: ConfigReader) -> Positions:
    """Rows and columns squeezed onto the grid of pre-training (EVA-02)."""
    rows, columns = two_sides(given)
    onto = given.sizes("ref_feat_shape", default=(rows, columns), count=2)
    return Positions(product(squeezed(rows, onto[0]), squeezed(columns, onto[1])), HW)


def music_positions(given: ConfigReader) -> Positions:
    """MusicFlamingo: −2π·seconds·window/length and −2π·seconds·2π·frame/length; `tokens` are (window, frame)."""
    length = given.number("max_position_embeddings", default=given.base(1200.0), above=0.0)
    frames = given.size("frames_per_window", default=750)
    step = given.number("audio_frame_step", default=0.01, above=0.0, most=1e6)
    starts = given.numbers("window_starts_seconds", default=(0.0,))
    window = step * 4.0 * frames
    seconds = None if given.value("timestamps") is None else given.array("timestamps")
    if seconds is not None and seconds.shape != (len(starts), frames):
        raise ValueError(f"timestamps must be one row per window of {frames} seconds, got shape {seconds.shape}")
    require_tokens(len(starts), frames)
    blocks = []
    for k, start in enumerate(starts):
        times = start + np.arange(frames) * step * 4.0 if seconds is None else seconds[k]
        turn = -2.0 * math.pi * times
        blocks.append(
            np.column_stack([turn * round(start / window) / length, turn * 2.0 * math.pi * np.arange(frames) / length])
        )
    return Positions(np.concatenate(blocks), ("seconds×window", "seconds×frame"))


LAID: dict[str, Lay] = {
    "patch-order": order_of_patches,
    "sam3": sam3,
    **dict.fromkeys(("sam2_video", "edgetam_video", "sam3_tracker_video"), memory),
    "llama4": llama4,
    "dinov3_vit": dinov3,
    "vjepa2": vjepa2,
    "efficientloftr": efficientloftr,
    "timm-axial": timm,
    "timm-mrope": timm_mrope,
    "rope-mixed": mixed,
}
