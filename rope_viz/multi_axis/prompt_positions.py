"""Positions along a prompt as models and runtimes lay it out: text, images, video, audio.

A layout is a list of pieces: ["text", tokens], ["image", [frames, rows, columns]] and ["video", …] in patches before
merging, ["audio", length] in the feature frames of the encoder.

`get_rope_index` of transformers 5.23.0 (by class), SGLang 0.5.23 and mlx-vlm 0.7.10, `get_mrope_input_positions` of
vLLM 0.33.0, and llama.cpp 0c1e57098 as read.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rope_viz.embedding.position_ids import (
    MAX_TOKENS,
    Kind,
    Manner,
    Positions,
    PromptSegment,
    Segment,
    find_rope_delta,
    interleave_audio,
    lay_out_grid,
    line_positions,
    place_prompt,
    require_token_count,
)
from rope_viz.embedding.spec import require_number, short_repr
from rope_viz.models import TEXTS
from rope_viz.models.config_reader import ConfigReader
from rope_viz.models.several_axes.text import all_axes, find_axes, xdrope_axes
from rope_viz.texts.texts import join_items

RUNTIMES = ("transformers", "transformers-4.57", "vllm", "sglang", "mlx-vlm", "llama.cpp")
TEMPORAL = ("temporal_merge_size", "temporal_conv_size")
SECONDS = ("second_per_grid_ts", "second_per_grids", "second_per_grid")


def prompt_traits(kind: str) -> tuple[str, ...]:
    """Return the traits of a model type's prompts; () if they are unknown."""
    axes = find_axes(kind)
    return () if axes is None else axes.prompt


def lay_out(kind: str, config: Mapping[str, Any], runtime: str = "transformers") -> Positions:
    """Return positions along the `layout` of a config, as the model type's code in this runtime computes them."""
    settings, traits = ConfigReader(config), prompt_traits(kind)
    if "own" in traits:
        return hunyuan(settings) if kind == "hunyuan_vl" else neomme(settings)
    if not traits:
        known = ", ".join(name for name, axes in all_axes().items() if axes.prompt)
        raise ValueError(TEXTS("prompt.unknown", kind=short_repr(kind), known=known))
    manner = find_manner(kind, runtime, settings)
    if "audio" in traits and settings.flag("use_audio_in_video"):
        chunk = int(read_rate(kind, settings) * settings.number("seconds_per_chunk", default=2.0))
        pieces = join_audio_to_video(read_pieces(kind, settings, "transformers"))
        return interleave_audio(pieces, manner, None if kind.startswith("qwen3") else chunk)
    parts = read_pieces(kind, settings, runtime)
    if "audio" in traits and all(part.is_flat for part in parts) and runtime in ("transformers", "sglang"):
        # Without an image or a video the classes count tokens, with the same result.
        manner = dataclasses.replace(manner, floor=True)
    positions = place_prompt(parts, manner)
    return (
        dataclasses.replace(positions, rope_delta=0.0)
        if (kind, runtime) == ("glm_image", "transformers")
        else positions
    )


def find_manner(kind: str, runtime: str, settings: ConfigReader) -> Manner:
    """Return how this runtime lays out the prompts of this model type."""
    if runtime not in RUNTIMES:
        raise ValueError(
            TEXTS("value.one_of", name="runtime", options=join_items([*RUNTIMES]), got=short_repr(runtime))
        )
    traits = prompt_traits(kind)
    merge = 1 if kind == "glm_image" else settings.size("spatial_merge_size", "spatial_conv_size", default=2)
    if runtime == "llama.cpp":
        return Manner(merge=merge, resume="side", separate_frames=True)
    keeps_fractions = kind.startswith("qwen3") and runtime in ("transformers", "sglang", "mlx-vlm")
    return Manner(
        merge=merge,
        temporal_merge=settings.size(*TEMPORAL, default=2) if "merged time" in traits else 1,
        resume="side" if runtime == "transformers" and "side" in traits else "largest",
        floor="audio" not in traits or not keeps_fractions,
        narrow=runtime != "vllm",
        markers="audio" in traits,
        separate_frames="stamped" in traits or "gap" in traits,
        gap=2 if "gap" in traits else 0,
        origin="zero" if "from zero" in traits else "start",
    )


def read_pieces(kind: str, settings: ConfigReader, runtime: str) -> list[PromptSegment]:
    """Return the layout as pieces, with the pace of every video."""
    pieces, videos = [], 0
    for name, size in read_entries(settings):
        if name in ("image", "video"):
            seconds = read_seconds(settings, videos) if name == "video" else None
            pace = find_pace(kind, settings, runtime, seconds, name)
            pieces.append(PromptSegment(name, grid=read_three_sides(size), pace=pace))  # type: ignore[arg-type]
            videos += name == "video"
        elif name == "audio":
            pieces.append(PromptSegment("audio", tokens=count_audio_tokens(kind, read_tokens(size), settings)))
        else:
            pieces.append(PromptSegment("text", tokens=read_tokens(size)))
    return pieces


def read_seconds(settings: ConfigReader, index: int) -> float | None:
    """Return the seconds per grid of one video; None if the config has none."""
    seconds = settings.value(*SECONDS)
    if seconds is None:
        return None
    if isinstance(seconds, (int, float)) and not isinstance(seconds, bool):
        seconds = [seconds]
    if not isinstance(seconds, (list, tuple)) or index >= len(seconds):
        raise ValueError(TEXTS("prompt.seconds", seconds=short_repr(seconds)))
    require_number(seconds[index], TEXTS("prompt.seconds_entries"))
    return float(seconds[index])


def read_rate(kind: str, settings: ConfigReader) -> float:
    """Return the positions per second of an Omni model."""
    return settings.number("position_id_per_seconds", default=13.0 if kind.startswith("qwen3") else 25.0)


def find_pace(kind: str, settings: ConfigReader, runtime: str, seconds: float | None, name: str) -> tuple[float, ...]:
    """Return the factors on a frame's index, in the order in which the code multiplies."""
    each = 1.0 if seconds is None or name == "image" else seconds
    if runtime == "llama.cpp":
        return ()
    if "audio" in prompt_traits(kind):
        rate = read_rate(kind, settings)
        return (each * rate,) if runtime == "vllm" else (each, rate)
    also_timed = {"vllm": ("qwen2_vl", "paddleocr_vl"), "sglang": ("paddleocr_vl",), "mlx-vlm": ("paddleocr_vl",)}
    timed = "seconds" in prompt_traits(kind) or kind in also_timed.get(runtime, ())
    if name == "image" or not timed:
        return ()
    rate = settings.number("tokens_per_second", default=4.0 if kind == "qwen2_5_vl" else 1.0)
    if runtime == "transformers-4.57":
        return (float(int(each)), rate)
    return (each, rate) if runtime in ("sglang", "mlx-vlm") else (each * rate,)


def count_audio_tokens(kind: str, length: int, settings: ConfigReader) -> int:
    """Return the number of audio tokens; only Omni models give feature frames, others give tokens."""
    if kind.startswith("qwen2_5_omni"):
        return ((length - 1) // 2 + 1 - 2) // 2 + 1
    if kind.startswith("qwen3_omni"):
        chunk = 2 * settings.part("audio_config").size("n_window", default=settings.size("n_window", default=50))
        rest = (length % chunk - 1) // 2 + 1
        return ((rest - 1) // 2 + 1 - 1) // 2 + 1 + length // chunk * 13
    return length


def join_audio_to_video(pieces: Sequence[PromptSegment]) -> list[PromptSegment | tuple[PromptSegment, int]]:
    """Merge every video with the audio after it into (video, audio tokens)."""
    found: list[PromptSegment | tuple[PromptSegment, int]] = []
    for piece in pieces:
        last = found[-1] if found else None
        if piece.kind == "audio" and isinstance(last, PromptSegment) and last.kind == "video":
            found[-1] = (last, piece.tokens)
        else:
            found.append(piece)
    return found


def read_entries(settings: ConfigReader) -> list[tuple[str, Any]]:
    """Return the pieces of a layout as (kind, size)."""
    layout = settings.value("layout")
    if not isinstance(layout, (list, tuple)):
        raise ValueError(TEXTS("prompt.layout", layout=short_repr(layout)))
    kinds = ("text", "image", "video", "audio")
    for piece in layout:
        if not isinstance(piece, (list, tuple)) or len(piece) != 2 or piece[0] not in kinds:
            raise ValueError(TEXTS("prompt.piece", piece=short_repr(piece)))
    return [(name, size) for name, size in layout]


def read_tokens(size: Any) -> int:
    """Return a number of tokens, from a number or a list with one number."""
    value = size[0] if isinstance(size, (list, tuple)) and len(size) == 1 else size
    require_number(value, TEXTS("name.piece_tokens"), least=0, integer=True)
    return int(value)


def read_three_sides(size: Any) -> tuple[int, int, int]:
    """Return (frames, rows, columns); two numbers are rows and columns of one frame."""
    if not isinstance(size, (list, tuple)) or len(size) not in (2, 3):
        raise ValueError(TEXTS("prompt.grid", size=short_repr(size)))
    for side in size:
        require_number(side, TEXTS("name.grid_sides"), least=1, most=MAX_TOKENS, integer=True)
    frames, rows, columns = [1, *map(int, size)][-3:]
    return frames, rows, columns


def hunyuan(settings: ConfigReader) -> Positions:
    """HunYuan-VL: the first axis counts tokens; inside an image w and h count from 0, a newline after each row.

    The markers before and behind keep text positions, and the last axis is the image's ordinal.
    """
    counts = settings.sizes("mrope_section", "xdrope_section", default=(16, 16, 16, 16), least=0)
    axes, merge = xdrope_axes(counts), settings.size("spatial_merge_size", default=2)
    blocks, segments, image = [np.zeros((0, len(axes)))], list[Segment](), 0
    for name, size in read_entries(settings):
        count = segments[-1].stop if segments else 0
        kinds: list[tuple[Kind, int]] = [("text", 0 if name == "image" else read_tokens(size))]
        if name == "image":
            _, rows, columns = (side // merge if k else side for k, side in enumerate(read_three_sides(size)))
            kinds = [("marker", 1), ("image", rows * (columns + 1)), ("marker", 1)]
        block = line_positions(sum(tokens for _, tokens in kinds), count, len(axes))
        if name == "image":
            block[1:-1, -3:-1] = lay_out_grid(rows, columns + 1)[:, ::-1]
            block[1:-1, -1] = image
            image += 1
        blocks.append(block)
        for kind, tokens in kinds:
            segments.append(Segment(kind, count, count + tokens))
            count += tokens
        require_token_count(count)
    values = np.concatenate(blocks)
    return Positions(values, axes, find_rope_delta(values), tuple(segments))


def neomme(settings: ConfigReader) -> Positions:
    """NeoMME: `<doc> <img>` at 0 and 1, then rows and columns from 2 with a newline after each row; text counts."""
    axes = ("row", "column")
    if settings.value("grid") is None:
        pieces = read_entries(settings) if settings.value("layout") is not None else []
        images = [read_three_sides(size) for name, size in pieces if name != "text"]
        tokens = sum(read_tokens(size) for name, size in pieces if name == "text")
        if len(images) > 1 or (images and tokens):
            raise ValueError(TEXTS("prompt.neomme"))
        if not images:
            return Positions(line_positions(tokens, 0.0, 2), axes, None, (Segment("text", 0, tokens),))
        settings = ConfigReader({"grid": list(images[0][1:])})
    rows, columns = settings.sizes("grid", count=2)
    require_token_count(rows, columns + 1)
    values = np.concatenate([line_positions(2, 0.0, 2), lay_out_grid(rows, columns + 1, start=2.0)])
    return Positions(values, axes, None, (Segment("marker", 0, 2), Segment("image", 2, len(values))))
