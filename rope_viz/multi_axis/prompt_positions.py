"""Positions along a prompt as models and runtimes lay it out: text, images, video, sound.

A layout is a list of pieces: ["text", tokens], ["image", [frames, rows, columns]] and ["video", …] in patches before
merging, ["audio", length] in the feature frames of the encoder.

`get_rope_index` of transformers 5.23.0 by class, `get_mrope_input_positions` of vLLM 0.33.0, `get_rope_index` of
SGLang 0.5.23, `get_rope_index` of mlx-vlm 0.7.10, and llama.cpp 0c1e57098 as read.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rope_viz.embedding.position_ids import (
    MAX_TOKENS,
    Manner,
    Piece,
    Positions,
    Segment,
    delta,
    grid,
    line,
    product,
    prompt,
    require_tokens,
    weave,
)
from rope_viz.embedding.spec import FloatArray, require_number, shorten
from rope_viz.models.config_reader import ConfigReader
from rope_viz.multi_axis.text import xdrope_axes

OMNI = ("qwen2_5_omni", "qwen2_5_omni_thinker", "qwen3_omni_moe", "qwen3_omni_moe_thinker")
# Each frame of a video is an image of its own behind a time stamp in text.
STAMPED = (
    *("qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe", "qwen4_exp", "glm4v", "glm4v_moe", "glm46v", "glm_ocr"),
    *("cohere_compass", "cosmos3_edge", "cosmos3_omni", "minicpmv4_6", "bailing_moe_v3_vl"),
)
SECONDED = ("qwen2_5_vl",)
ERNIE = ("ernie4_5_vl_moe", "ernie4_5_moe_vl")
PLAIN = ("qwen2_vl", "paddleocr_vl", "keye", "keye_vl1_5", "keye_vl_1_5")
MODELS = (*PLAIN, *SECONDED, *STAMPED, *OMNI, *ERNIE, "isaac", "openpangu_vl", "hunyuan_vl", "neomme", "glm_image")
RUNTIMES = ("transformers", "transformers-4.57", "vllm", "sglang", "mlx-vlm", "llama.cpp")
SECONDS = ("second_per_grid_ts", "second_per_grids", "second_per_grid")


def lay_out(kind: str, config: Mapping[str, Any], runtime: str = "transformers") -> Positions:
    """Positions along the `layout` of a config, as a model type's code in a runtime gives them."""
    given = ConfigReader(config)
    own = {"hunyuan_vl": hunyuan, "neomme": neomme, "glm_image": glm_image}
    if kind in own and runtime == "transformers":
        return own[kind](given)
    if kind in own and kind != "glm_image":
        return own[kind](given)
    if kind not in MODELS:
        raise ValueError(
            f"there is no model type {shorten(kind)} whose prompts are known; there are {', '.join(MODELS)}"
        )
    manner = manner_of(kind, runtime, given)
    if kind in OMNI and given.flag("use_audio_in_video"):
        return woven(kind, given, manner)
    pieces = pieces_of(kind, given, runtime)
    if kind in OMNI and all(piece.flat for piece in pieces) and runtime in ("transformers", "sglang"):
        # Without an image or a video the classes count tokens, which comes to the same.
        manner = dataclasses.replace(manner, floor=True)
    return prompt(pieces, manner)


def manner_of(kind: str, runtime: str, given: ConfigReader) -> Manner:
    """How this runtime lays out the prompts of this model type."""
    if runtime not in RUNTIMES:
        raise ValueError(f"runtime must be one of {', '.join(RUNTIMES)}, got {shorten(runtime)}")
    merge = given.size("spatial_merge_size", "spatial_conv_size", default=1 if kind == "glm_image" else 2)
    manner = Manner(merge=merge, resume="largest", narrow=runtime != "vllm")
    if runtime == "llama.cpp":
        return dataclasses.replace(manner, resume="side", apart=True)
    if kind in STAMPED:
        manner = dataclasses.replace(manner, apart=True)
    if kind in ERNIE:
        manner = dataclasses.replace(manner, temporal_merge=given.size(*TEMPORAL, default=2))
    if kind in OMNI:
        kept = kind.startswith("qwen3") and runtime in ("transformers", "sglang", "mlx-vlm")
        manner = dataclasses.replace(manner, markers=True, floor=not kept)
    if kind == "isaac":
        manner = dataclasses.replace(manner, origin="zero")
    if kind == "openpangu_vl":
        manner = dataclasses.replace(manner, apart=True, gap=2)
    if runtime == "transformers" and kind not in OMNI and kind not in ("isaac", "openpangu_vl", *KEYE):
        manner = dataclasses.replace(manner, resume="side")
    return manner


TEMPORAL = ("temporal_merge_size", "temporal_conv_size")
KEYE = ("keye", "keye_vl1_5", "keye_vl_1_5", "bailing_moe_v3_vl")


def pieces_of(kind: str, given: ConfigReader, runtime: str) -> list[Piece]:
    """The layout as pieces, with the pace of every video."""
    seconds = given.value(*SECONDS)
    seconds = [seconds] if isinstance(seconds, (int, float)) and not isinstance(seconds, bool) else seconds
    pieces, videos = [], 0
    for name, size in entries(given):
        if name in ("image", "video"):
            pace = pace_of(kind, given, runtime, at(seconds, videos) if name == "video" else None, name)
            pieces.append(Piece(name, grid=three(size), pace=pace))  # type: ignore[arg-type]
            videos += name == "video"
        elif name == "audio":
            pieces.append(Piece("audio", tokens=sounded(kind, tokens_of(size), given)))
        else:
            pieces.append(Piece("text", tokens=tokens_of(size)))
    return pieces


def at(seconds: Any, index: int) -> float | None:
    """The seconds per grid of one video; None where there are none."""
    if seconds is None:
        return None
    if not isinstance(seconds, (list, tuple)) or index >= len(seconds):
        raise ValueError(f"second_per_grid_ts must have one number per video, got {shorten(seconds)}")
    require_number(seconds[index], "second_per_grid_ts entries")
    return float(seconds[index])


def pace_of(kind: str, given: ConfigReader, runtime: str, seconds: float | None, name: str) -> tuple[float, ...]:
    """What the index of a frame is multiplied by, in the order the code does it."""
    if runtime == "llama.cpp":
        return ()
    if kind in OMNI:
        rate = given.number("position_id_per_seconds", default=13.0 if kind.startswith("qwen3") else 25.0)
        each = 1.0 if seconds is None or name == "image" else seconds
        return (each * rate,) if runtime == "vllm" else (each, rate)
    timed = kind in SECONDED or (runtime == "vllm" and kind in ("qwen2_vl", "paddleocr_vl"))
    timed = timed or (runtime in ("sglang", "mlx-vlm") and kind == "paddleocr_vl")
    if not timed or name == "image":
        return ()
    default = {"qwen2_5_vl": 4.0}.get(kind, 1.0)
    rate = given.number("tokens_per_second", default=default if seconds is not None or kind in SECONDED else 1.0)
    each = 1.0 if seconds is None else seconds
    if runtime == "transformers-4.57":
        return (float(int(each)), rate)
    return (each, rate) if runtime in ("sglang", "mlx-vlm") else (each * rate,)


def sounded(kind: str, length: int, given: ConfigReader) -> int:
    """Tokens of a sound of so many feature frames; for other models the number is of tokens already."""
    if kind.startswith("qwen2_5_omni"):
        return ((length - 1) // 2 + 1 - 2) // 2 + 1
    if kind.startswith("qwen3_omni"):
        chunk = 2 * given.part("audio_config").size("n_window", default=given.size("n_window", default=50))
        rest = (length % chunk - 1) // 2 + 1
        return ((rest - 1) // 2 + 1 - 1) // 2 + 1 + length // chunk * 13
    return length


def entries(given: ConfigReader) -> list[tuple[str, Any]]:
    """The pieces of a layout as (kind, size)."""
    layout = given.value("layout")
    if not isinstance(layout, (list, tuple)):
        raise ValueError(f"layout must be a list of pieces, got {shorten(layout)}")
    for piece in layout:
        if (
            not isinstance(piece, (list, tuple))
            or len(piece) != 2
            or piece[0] not in ("text", "image", "video", "audio")
        ):
            raise ValueError(f"a piece must be like ['text', 4] or ['image', [1, 6, 8]], got {shorten(piece)}")
    return [(name, size) for name, size in layout]


def tokens_of(size: Any) -> int:
    """A number of tokens, given as such or as a list of one."""
    value = size[0] if isinstance(size, (list, tuple)) and len(size) == 1 else size
    require_number(value, "the tokens of a piece", least=0, integer=True)
    return int(value)


def three(size: Any) -> tuple[int, int, int]:
    """(frames, rows, columns); two numbers are rows and columns of one frame."""
    if not isinstance(size, (list, tuple)) or len(size) not in (2, 3):
        raise ValueError(f"a grid must be frames, rows and columns of patches, got {shorten(size)}")
    for side in size:
        require_number(side, "a grid's sides", least=1, most=MAX_TOKENS, integer=True)
    sides = [int(side) for side in size]
    return (sides[0], sides[1], sides[2]) if len(sides) == 3 else (1, sides[0], sides[1])


def woven(kind: str, given: ConfigReader, manner: Manner) -> Positions:
    """Omni with the sound of a video woven into it: every video is followed by its sound in the layout."""
    seconds = given.value(*SECONDS)
    rate = given.number("position_id_per_seconds", default=13.0 if kind.startswith("qwen3") else 25.0)
    chunk = None if kind.startswith("qwen3") else int(rate * given.number("seconds_per_chunk", default=2.0))
    found = entries(given)
    pieces: list[Piece | tuple[Piece, int]] = []
    index, videos = 0, 0
    while index < len(found):
        name, size = found[index]
        if name == "video" and index + 1 < len(found) and found[index + 1][0] == "audio":
            video = Piece("video", grid=three(size), pace=(at(seconds, videos) or 1.0, rate))
            pieces.append((video, sounded(kind, tokens_of(found[index + 1][1]), given)))
            index, videos = index + 2, videos + 1
            continue
        alone = ConfigReader({**given.config, "layout": [[name, size]]})
        pieces += pieces_of(kind, alone, "transformers")
        index += 1
    return weave(pieces, manner, chunk)


def hunyuan(given: ConfigReader) -> Positions:
    """HunYuan-VL: the first axis counts tokens; inside an image w and h count from 0, a newline behind each row.

    The markers before and behind keep text positions, and the last axis is the image's ordinal.
    """
    counts = given.sizes("mrope_section", "xdrope_section", default=(16, 16, 16, 16), least=0)
    axes, merge = xdrope_axes(counts), given.size("spatial_merge_size", default=2)
    blocks: list[FloatArray] = []
    segments: list[Segment] = []
    count, image = 0, 0
    for name, size in entries(given):
        if name == "image":
            _, rows, columns = (side // merge if k else side for k, side in enumerate(three(size)))
            require_tokens(rows, columns + 1)
            inside = np.zeros((rows * (columns + 1), len(axes)))
            inside += count + 1 + np.arange(len(inside))[:, None]
            inside[:, -3:-1] = grid(rows, columns + 1)[:, ::-1]
            inside[:, -1] = image
            parts = [("marker", line(1, count, len(axes))), ("image", inside)]
            parts.append(("marker", line(1, count + 1 + len(inside), len(axes))))
            image += 1
        else:
            parts = [("text", line(tokens_of(size), count, len(axes)))]
        for part, block in parts:
            segments.append(Segment(part, count, count + len(block)))  # type: ignore[arg-type]
            blocks.append(block)
            count += len(block)
            require_tokens(count)
    values = np.concatenate(blocks) if blocks else np.zeros((0, len(axes)))
    return Positions(values, axes, delta(values), tuple(segments))


def neomme(given: ConfigReader) -> Positions:
    """NeoMME: `<doc> <img>` at 0 and 1, then rows and columns from 2 with a newline behind each row; text counts."""
    axes = ("row", "column")
    if given.value("grid") is None:
        pieces = entries(given) if given.value("layout") is not None else []
        images = [three(size) for name, size in pieces if name != "text"]
        tokens = sum(tokens_of(size) for name, size in pieces if name == "text")
        if len(images) > 1 or (images and tokens):
            raise ValueError("layout must be one image, or text: NeoMME reads a page or a question, never both at once")
        if not images:
            return Positions(line(tokens, 0.0, 2), axes, None, (Segment("text", 0, tokens),))
        given = ConfigReader({"grid": list(images[0][1:])})
    rows, columns = given.sizes("grid", count=2)
    require_tokens(rows, columns + 1)
    values = np.concatenate([line(2, 0.0, 2), grid(rows, columns + 1, start=2.0)])
    return Positions(values, axes, None, (Segment("marker", 0, 2), Segment("image", 2, len(values))))


def glm_image(given: ConfigReader) -> Positions:
    """GLM-Image: no merge, and rope_delta is 0; images still to draw have their positions ahead (`drawn_ahead`)."""
    laid = prompt(pieces_of("glm_image", given, "transformers"), Manner(merge=1))
    return dataclasses.replace(laid, rope_delta=0.0)


def drawn_ahead(grids: list[tuple[int, int]], start: float) -> FloatArray:
    """GLM-Image: positions (tokens, 3) of images that are drawn next, the last first, and of the token behind them."""
    blocks, place = [], float(start)
    for rows, columns in reversed(grids):
        blocks.append(product([place], place + np.arange(rows), place + np.arange(columns)))
        place += max(rows, columns)
    return np.concatenate([*blocks, line(1, place)])


def by_runtime(runtime: str) -> Callable[[Mapping[str, Any]], Positions]:
    """Positions of a config whose `model_type` says the model, Qwen2-VL or Qwen2.5-VL where it does not."""

    def read(config: Mapping[str, Any]) -> Positions:
        given = ConfigReader(config)
        kind = given.value("model_type")
        if kind is None:
            kind = "qwen2_vl" if given.value("tokens_per_second", *SECONDS) is None else "qwen2_5_vl"
        return lay_out(str(kind).removesuffix("_text"), config, runtime)

    return read
