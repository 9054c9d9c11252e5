"""Positions over an image's or a video's grid, as vision towers number their patches.

A grid is given in patches: `grid` [rows, columns] or [frames, rows, columns], `grid_thw` as a list of images and
videos, or `image` in pixels with `patch_size`. `tokens` picks some of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from rope_viz.embedding.axes_spec import THW
from rope_viz.embedding.position_ids import (
    Positions,
    combine_coordinates,
    lay_out_grid,
    merge_order,
    require_token_count,
)
from rope_viz.embedding.spec import FloatArray, short_repr
from rope_viz.models import TEXTS
from rope_viz.models.config_reader import MAX_SIDE, ConfigReader
from rope_viz.models.several_axes.learned_directions import HW, WH
from rope_viz.models.several_axes.vision import tower_name

Lay: TypeAlias = Callable[[ConfigReader], Positions]

# Classes that count from 1; that read patches row by row; that put columns first.
FROM_ONE = ("muse_spark", "muse_glimmer", "inkling2", "perception_encoder")
RASTER = tuple("step3p7 paddleocr_vl kimi_k25 kimi_vl moonvit pixtral gemma4 perception_encoder mlcd".split())
COLUMNS_FIRST = ("muse_spark", "muse_glimmer", "gemma4", "perception_encoder")


def vision_positions(kind: str, config: Mapping[str, Any]) -> Positions:
    """Return the positions of a vision tower's patches, from a config with a grid."""
    name, settings = tower_name(kind), ConfigReader(config)
    if name in LAID:
        return LAID[name](settings)
    timed = name == "minimax_m3_vl"
    usual = 1 if name in ("glm_image", "video_llama_3") else 2
    merge = 1 if name in RASTER else settings.size("spatial_merge_size", default=usual)
    values = patch_order(settings, merge, timed=timed) + float(name in FROM_ONE)
    if name in COLUMNS_FIRST:
        return Positions(values[:, ::-1], WH)
    return Positions(values, THW if timed else HW)


def patch_order(settings: ConfigReader, merge: int, *, timed: bool = False) -> FloatArray:
    """Return (row, column) of the patches of all grids, or (time, row, column), in the order of merge blocks."""
    found = read_grids(settings)
    merges = settings.sizes("merge_sizes", default=[merge] * len(found), count=len(found))
    blocks = []
    for (frames, rows, columns), side in zip(found, merges, strict=True):
        each = merge_order(rows, columns, side)
        blocks.append(np.column_stack([np.repeat(np.arange(frames), len(each)), np.tile(each, (frames, 1))]))
    return np.concatenate(blocks)[:, 0 if timed else 1 :]


def pick_tokens(values: FloatArray, tokens: Any, name: str = "tokens", frames: int | None = None) -> FloatArray:
    """Return the rows of `tokens`: indices, or pairs (window, frame) where a window has `frames` frames."""
    try:
        rows = [token[0] * frames + token[1] if isinstance(token, (list, tuple)) else token for token in tokens]
        index = np.asarray(rows) if rows else np.zeros(0, dtype=np.int64)
        is_index = index.ndim == 1 and index.dtype.kind in "iu"
        if is_index and (not index.size or 0 <= index.min() <= index.max() < len(values)):
            return np.asarray(values[index], dtype=np.float64)
    except (TypeError, ValueError, IndexError):
        pass
    raise ValueError(TEXTS("grid.tokens", name=name, last=len(values) - 1, tokens=short_repr(tokens)))


def read_grids(settings: ConfigReader) -> list[tuple[int, ...]]:
    """Return every grid as (frames, rows, columns)."""
    names = ("grid_thw", "image_grid_thw", "video_grid_thw", "grids")
    if settings.value(*names) is not None:
        return read_listed_grids(settings, *names)
    sides = read_sides(settings)
    return [(*[1] * (3 - len(sides)), *sides)]


def read_listed_grids(settings: ConfigReader, *names: str, count: int = 3) -> list[tuple[int, ...]]:
    """Return the grids that a config lists, `count` sides each."""
    many = settings.value(*names)
    if not isinstance(many, (list, tuple)) or not many:
        order = "[frames, rows, columns]" if count == 3 else "[rows, columns]"
        raise ValueError(TEXTS("grid.list", name=names[0], order=order, got=short_repr(many)))
    found = [tuple(ConfigReader({names[0]: part}).sizes(names[0], count=count)) for part in many]
    for sides in found:
        require_token_count(*sides)
    return found


def read_sides(settings: ConfigReader, most: int = 3) -> list[int]:
    """Return the sides of the grid: as in the config, or from pixels or latents and a patch size."""
    sides = read_written_sides(settings)
    if not 2 <= len(sides) <= most:
        raise ValueError(TEXTS("grid.sides", sides=short_repr(sides)))
    if min(sides) < 1:
        raise ValueError(TEXTS("grid.small", sides=short_repr(sides)))
    require_token_count(*sides)
    return sides


def read_written_sides(settings: ConfigReader) -> list[int]:
    """Return the sides in the config; a single number means a square."""
    grid_names, patch_names = ("grid", "feat_shape", "grid_size"), ("patch_size", "patch")
    if settings.value(*grid_names) is not None:
        return settings.sizes(*grid_names, count=2 if isinstance(settings.value(*grid_names), (int, float)) else None)
    if settings.value("image", "image_size") is not None:
        image = settings.sizes("image", "image_size", count=2)
        patch = settings.sizes("patch_size", default=(16, 16), count=2)
        return [side // each for side, each in zip(image, patch, strict=True)]
    if settings.value("latents") is None:
        raise ValueError(TEXTS("grid.missing"))
    sides = settings.sizes("latents")
    single = isinstance(settings.value(*patch_names), (int, float))
    patch = settings.sizes(*patch_names, default=[1], count=1 if single else None)
    if not 2 <= len(sides) <= 3 or not 1 <= len(patch) <= 3:
        raise ValueError(TEXTS("grid.latents", sides=short_repr(sides)))
    # A single number means rows and columns; time has its own key.
    full = [1, *(patch * 2 if len(patch) == 1 else patch)][-len(sides) :]
    if len(patch) < len(sides) == 3:
        full[0] = settings.size("patch_size_t", default=1)
    return [side // each for side, each in zip(sides, full, strict=True)]


def read_shape(settings: ConfigReader) -> tuple[int, int, int]:
    """Return (frames, rows, columns) of the latents."""
    sides = read_sides(settings)
    frames = sides[0] if len(sides) == 3 else settings.size("frames", "num_frames", default=1)
    require_token_count(frames, *sides[-2:])
    return frames, sides[-2], sides[-1]


def read_patch_order(settings: ConfigReader) -> Positions:
    """Return the order in which a merging tower reads its patches, with time first by `include_temporal`."""
    timed = settings.flag("include_temporal")
    return Positions(
        patch_order(settings, settings.size("spatial_merge_size", default=1), timed=timed), THW if timed else HW
    )


def sam3(settings: ConfigReader) -> Positions:
    """SAM 3: a window's own grid, or the whole image interpolated onto it in a global layer (`layer_window` 0)."""
    window = settings.size("window_size", default=24, least=0)
    rows = columns = settings.size("layer_window", default=window, least=0, most=MAX_SIDE)
    if not columns:
        usual = {"image_size": 1008, "patch_size": 14}
        columns, rows = read_sides(ConfigReader({**settings.config, "grid": None}, usual), 2)
    values = lay_out_grid(rows, columns)[:, ::-1].astype(np.float32) * np.float32(window / columns)
    return Positions(values.astype(np.float64), WH)


def memory(settings: ConfigReader) -> Positions:
    """SAM 2's memory attention: queries on their grid, EdgeTAM's keys on a smaller one (`is_key`)."""
    key = settings.flag("is_key")
    names = ("memory_attention_rope_k_sizes",) if key else ("memory_attention_rope_feat_sizes", "grid")
    columns, rows = settings.sizes(*names, default=(16, 16) if key else (64, 64), count=2)
    return Positions(lay_out_grid(rows, columns)[:, ::-1], WH)


def llama4(settings: ConfigReader) -> Positions:
    """Llama 4: columns and rows from 1; the class token comes last and is not rotated."""
    rows, columns = read_sides(ConfigReader(settings.config, {"image_size": 448, "patch_size": 14}), 2)
    return Positions(np.concatenate([lay_out_grid(rows, columns, start=1.0)[:, ::-1], np.zeros((1, 2))]), WH)


def dinov3(settings: ConfigReader) -> Positions:
    """DINOv3: patch centres in −1 … 1 of each side, or of the shorter or the longer one (`normalize_coords`)."""
    return timm(ConfigReader({"grid_type": "centered", **settings.config, "grid": read_sides(settings)}))


def vjepa2(settings: ConfigReader) -> Positions:
    """V-JEPA 2: frame, row and column of the tokens of a square grid."""
    edge = settings.size("crop_size", "image_size", default=256) // settings.size("patch_size", default=16)
    if isinstance(settings.value("grid"), (int, float)):
        edge = settings.required("grid")
    frames = settings.size("frames_per_clip", default=64) // settings.size("tubelet_size", default=2)
    if min(edge, frames) < 1:
        raise ValueError(TEXTS("grid.clip"))
    return Positions(lay_out_grid(frames, edge, edge), THW)


def efficientloftr(settings: ConfigReader) -> Positions:
    """EfficientLoFTR: rows and columns from 1, of features after aggregation."""
    if settings.value("grid") is None and settings.value("features") is not None:
        kernel = settings.size("q_aggregation_kernel_size", default=4)
        stride = settings.size("q_aggregation_stride", default=4)
        rows, columns = ((side - kernel) // stride + 1 for side in settings.sizes("features", count=2, least=kernel))
    else:
        rows, columns = settings.sizes("grid", count=2)
    return Positions(lay_out_grid(rows, columns, start=1.0), HW)


def timm(settings: ConfigReader) -> Positions:
    """timm's grids: by index (with an offset), in −1 … 1 by pixel or by centre, interpolated onto a reference grid."""
    shape = read_sides(settings)
    usual = "pixel" if settings.flag("in_pixels") else "index"
    kind = settings.choice("grid_type", options=("index", "pixel", "centered"), default=usual)
    offset = settings.number("grid_offset", default=0.0)
    sides: list[Any] = []
    extent = {"min": min(shape), "max": max(shape)}
    common = extent.get(settings.choice("normalize_coords", options=("separate", "min", "max")))
    for side in shape:
        if kind == "pixel":
            sides.append(-1.0 + 2.0 * np.arange(side) / max(side - 1, 1))
        elif kind == "centered":
            sides.append((np.arange(side) + 0.5 + offset) / (common or side))
        else:
            sides.append(np.arange(side) + offset)
    onto = settings.sizes("ref_feat_shape", default=shape, count=len(shape))
    if onto != shape:
        sides = [part / side * wanted for part, side, wanted in zip(sides, shape, onto, strict=True)]
    values = 2.0 * combine_coordinates(*sides) - 1.0 if kind == "centered" else combine_coordinates(*sides)
    if settings.choice("grid_indexing", options=("ij", "xy")) == "xy":
        return Positions(values[:, [1, 0, 2][: len(shape)]], ("w", "h", "axis 2")[: len(shape)])
    return Positions(values, HW if len(shape) == 2 else THW)


def timm_mrope(settings: ConfigReader) -> Positions:
    """timm's M-RoPE: row and column of a grid, time at 0."""
    rows, columns = read_sides(settings, 2)
    return Positions(combine_coordinates([0.0], np.arange(rows), np.arange(columns)), THW)


def mixed(settings: ConfigReader) -> Positions:
    """RoPE-Mixed: column and row by index."""
    return timm(ConfigReader({"grid_indexing": "xy", **settings.config, "in_pixels": False}))


LAID: dict[str, Lay] = {
    "patch-order": read_patch_order,
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
