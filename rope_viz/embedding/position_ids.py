"""Position ids of tokens: along a prompt of text, images, video and audio, and over a grid.

Positions (tokens, axes) may be negative, fractional or products. `Manner` holds what differs between models and
runtimes. The order and width of the arithmetic follow the runtime, because the floor of a float32 product can differ
from the floor of a float64 one.

Qwen2-VL, https://arxiv.org/abs/2409.12191, section 2.1; `get_rope_index` of transformers 5.23.0
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rope_viz.embedding import TEXTS
from rope_viz.embedding.axes_spec import THW
from rope_viz.embedding.spec import FloatArray, freeze, require_number, short_repr
from rope_viz.texts.texts import join_items

Kind: TypeAlias = Literal["text", "image", "video", "audio", "marker"]
Resume: TypeAlias = Literal["side", "largest"]

KINDS: tuple[Kind, ...] = ("text", "image", "video", "audio", "marker")
MAX_TOKENS = 1 << 22
MOST_PACE = 1e9


@dataclass(frozen=True)
class Segment:
    """Consecutive tokens [start, stop) of one kind."""

    kind: Kind
    start: int
    stop: int

    @property
    def tokens(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True, eq=False)
class Positions:
    """Positions of a sequence of tokens: `values` (tokens, axes) float64, read-only.

    `rope_delta` is the largest position + 1 − the number of tokens, None if the model has no such number: the next
    decoded token has position index + rope_delta on all axes. `segments` are the pieces the tokens came from.
    """

    values: FloatArray
    axes: tuple[str, ...] = THW
    rope_delta: float | None = None
    segments: tuple[Segment, ...] = field(default=())

    def __post_init__(self) -> None:
        values = np.array(self.values, dtype=np.float64)
        if values.ndim != 2 or values.shape[1] != len(self.axes):
            raise ValueError(f"positions must have shape (tokens, {len(self.axes)}), got {values.shape}")
        object.__setattr__(self, "values", freeze(values))

    @property
    def tokens(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class PromptSegment:
    """One text, image, video or audio of a prompt.

    text, audio: `tokens`, one position each. image, video: `grid` = (frames, rows, columns) of patches before merging.
    `pace` are the factors by which a frame's index is multiplied, in this order, to give its position in time (seconds
    per grid, then positions per second). Most models put two frames of a video into one such grid.
    """

    kind: Kind
    tokens: int = 0
    grid: tuple[int, int, int] = (1, 1, 1)
    pace: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(TEXTS("positions.kind", kinds=join_items(KINDS), kind=short_repr(self.kind)))
        require_number(self.tokens, "tokens", least=0, most=MAX_TOKENS, integer=True)
        for step in self.pace:
            require_number(step, TEXTS("names.time_step"), least=-MOST_PACE, most=MOST_PACE)
        if len(self.grid) != 3:
            raise ValueError(TEXTS("positions.grid", grid=short_repr(self.grid)))
        for size in self.grid:
            require_number(size, TEXTS("names.grid_sides"), least=1, most=MAX_TOKENS, integer=True)

    @property
    def is_flat(self) -> bool:
        """True if all axes have the same positions in this piece."""
        return self.kind not in ("image", "video")


@dataclass(frozen=True)
class Manner:
    """How a model in a given runtime assigns positions to a prompt.

    merge: patches per side that become one token; temporal_merge: the same in time, for video.
    resume: position of text after an image or video that began at s: s + its longer side ("side"), or the largest
    position + 1 ("largest"). They differ if time extends further than the grid.
    floor: truncate positions in time; otherwise they stay fractions.
    narrow: compute time in float32, as torch does, instead of float64.
    markers: add a token before and after every image, video and audio.
    separate_frames: lay out each frame of a video like a separate image.
    gap: tokens between such separate frames, all axes equal.
    origin: count rows and columns from the start of the image or from 0.
    """

    merge: int = 2
    temporal_merge: int = 1
    resume: Resume = "side"
    floor: bool = True
    narrow: bool = True
    markers: bool = False
    separate_frames: bool = False
    gap: int = 0
    origin: Literal["start", "zero"] = "start"


def place_prompt(pieces: Iterable[PromptSegment], manner: Manner = Manner(), axes: Sequence[str] = THW) -> Positions:
    """Return positions along a prompt on the axes time, row and column.

    Raises `ValueError` if a grid is smaller than one token, and beyond 2²² tokens.
    """
    blocks: list[FloatArray] = []
    segments: list[Segment] = []
    dtype = np.float64 if manner.floor or not manner.narrow else np.float32
    count, following = 0, 0.0

    def add_block(kind: Kind, block: FloatArray, next_position: float | None = None) -> None:
        nonlocal count, following
        if not len(block):
            return
        if count + len(block) > MAX_TOKENS:
            raise ValueError(TEXTS("positions.long_prompt", max_tokens=MAX_TOKENS))
        blocks.append(block)
        segments.append(Segment(kind, count, count + len(block)))
        count += len(block)
        following = float(dtype(block.max()) + dtype(1.0)) if next_position is None else next_position

    pieces = list(pieces)
    last = max((k for k, piece in enumerate(pieces) if not piece.is_flat), default=-1)
    for index, piece in enumerate(pieces):
        if piece.is_flat:
            if manner.markers and piece.kind == "audio":
                add_block("marker", line_positions(1, following))
                add_block("audio", line_positions(piece.tokens, following))
                add_block("marker", line_positions(1, following))
            else:
                add_block(piece.kind, line_positions(piece.tokens, following))
            continue
        if manner.markers:
            add_block("marker", line_positions(1, following))
        frames, rows, columns = merged_grid(piece, manner)
        for frame in range(frames if manner.separate_frames else 1):
            if frame and manner.gap:
                add_block("marker", line_positions(manner.gap, following))
            shape = (1 if manner.separate_frames else frames, rows, columns)
            add_block(
                piece.kind,
                visual_positions(shape, piece, manner, following),
                next_start(shape, manner, following, index == last),
            )
        if manner.markers:
            add_block("marker", line_positions(1, following))
    values = np.concatenate(blocks) if blocks else np.zeros((0, 3))
    return Positions(values, tuple(axes), find_rope_delta(values, dtype), tuple(segments))


def interleave_audio(
    pieces: Iterable[PromptSegment | tuple[PromptSegment, int]], manner: Manner, chunk: int | None = None
) -> Positions:
    """Return positions of a prompt that merges (video, tokens of its audio), with two markers on either side.

    With `chunk`, runs of that many positions alternate: video, then audio (Qwen2.5-Omni). Without it, tokens are
    ordered by time, video first (Qwen3-Omni). As in the model classes, the next piece starts after the last run, even
    if an earlier run has larger positions.
    """
    blocks: list[FloatArray] = []
    segments: list[Segment] = []
    count, following = 0, 0.0
    for piece in pieces:
        if isinstance(piece, PromptSegment):
            part = place_prompt([piece], manner)
            values, kinds = part.values + following, part.segments
            end = float(values.max()) if len(values) else following - 1.0
        else:
            video = visual_positions(
                merged_grid(piece[0], manner), piece[0], manner, following + marker_positions(chunk)
            )
            audio = line_positions(piece[1], following + marker_positions(chunk))
            if chunk is None:
                # Rounded to torch's float32, which decides whether a frame and an audio token have the same time.
                audio = np.asarray(audio.astype(np.float32), dtype=np.float64)
            inside = order_by_time(video, audio) if chunk is None else alternate_chunks(video, audio, chunk)
            first = (
                line_positions(2, following) if chunk is None else np.repeat(line_positions(1, following), 2, axis=0)
            )
            after = float(inside[-1].max()) + 1.0
            last = line_positions(2, after) if chunk is None else np.repeat(line_positions(1, after), 2, axis=0)
            values = np.concatenate([first, *inside, last])
            end = float(last.max())
            length = len(values)
            kinds = (Segment("marker", 0, 2), Segment("video", 2, length - 2), Segment("marker", length - 2, length))
        blocks.append(values)
        segments += [Segment(part.kind, part.start + count, part.stop + count) for part in kinds]
        count += len(values)
        require_token_count(count)
        following = end + 1.0
    values = np.concatenate(blocks) if blocks else np.zeros((0, 3))
    return Positions(values, THW, find_rope_delta(values), tuple(segments))


def marker_positions(chunk: int | None) -> float:
    """Return how many positions the two markers before a video with audio take; Qwen2.5-Omni: one for both."""
    return 2.0 if chunk is None else 1.0


def order_by_time(video: FloatArray, audio: FloatArray) -> list[FloatArray]:
    """Return both sorted by time, video first at equal times; the last run is the rest of the longer one."""
    both = np.concatenate([video, audio])
    order = np.argsort(both[:, 0], kind="stable")
    is_audio = order >= len(video)
    other = np.flatnonzero(is_audio != is_audio[-1])
    merged_count = int(other[-1]) + 1 if other.size else 0
    return [part for part in (both[order[:merged_count]], both[order[merged_count:]]) if len(part)]


def alternate_chunks(video: FloatArray, audio: FloatArray, chunk: int) -> list[FloatArray]:
    """Return runs of `chunk` positions in time that alternate: video, then audio."""
    start = float(video[0, 0])
    cuts = [cut_into_chunks(block, start, chunk) if len(block) else [] for block in (video, audio)]
    turns = range(max(len(cut) for cut in cuts))
    return [cut[turn] for turn in turns for cut in cuts if turn < len(cut)]


def cut_into_chunks(block: FloatArray, start: float, chunk: int) -> list[FloatArray]:
    """Cut the block at the first token past each multiple of `chunk`, at most one multiple per token."""
    cuts, k = [0], 1
    for index, time in enumerate(block[:, 0].tolist()):
        if time - start >= k * chunk:
            cuts.append(index)
            k += 1
    return [block[first:last] for first, last in zip(cuts, [*cuts[1:], len(block)], strict=True)]


def visual_positions(shape: tuple[int, int, int], piece: PromptSegment, manner: Manner, start: float) -> FloatArray:
    """Return positions of an image's or a video's tokens, (frames·rows·columns, 3), frame by frame, row by row."""
    time = frame_times(shape[0], piece.pace, manner)
    origin = start if manner.origin == "start" else 0.0
    block = combine_coordinates(time, np.arange(shape[1]) + origin, np.arange(shape[2]) + origin)
    block[:, 0] += start
    if not manner.floor and manner.narrow:
        return np.asarray(block.astype(np.float32).astype(np.float64))
    return block


def frame_times(frames: int, pace: Sequence[float], manner: Manner) -> FloatArray:
    """Return the frames' positions in time from 0 on, (frames,), in the runtime's precision, floored or not."""
    dtype = np.float32 if manner.narrow else np.float64
    value: NDArray[Any] = np.arange(frames, dtype=dtype)
    for step in pace:
        value = value * dtype(step)
    return np.asarray(np.trunc(value) if manner.floor else value, dtype=np.float64)


def next_start(shape: tuple[int, int, int], manner: Manner, start: float, last: bool) -> float | None:
    """Return the start of the next piece; None means the largest position + 1."""
    if manner.origin == "zero":
        # Isaac in vLLM: an image takes one position, but if another image follows, the largest position + 1.
        return start + 1.0 if last else None
    return start + max(shape[1:]) if manner.resume == "side" else None


def merged_grid(piece: PromptSegment, manner: Manner) -> tuple[int, int, int]:
    """Return (frames, rows, columns) in tokens; raise `ValueError` if a side is smaller than the merge."""
    step = manner.temporal_merge if piece.kind == "video" else 1
    sides = (piece.grid[0] // step, piece.grid[1] // manner.merge, piece.grid[2] // manner.merge)
    if min(sides) < 1:
        raise ValueError(TEXTS("positions.small_grid", grid=piece.grid, merge=manner.merge))
    require_token_count(*sides)
    return sides


def find_rope_delta(values: FloatArray, dtype: type[np.floating] = np.float64) -> float:
    """Return the largest position + 1 − the number of tokens; 0 for no tokens."""
    return float(dtype(values.max()) + dtype(1.0) - dtype(len(values))) if len(values) else 0.0


def require_token_count(*sides: int) -> None:
    """Raise `ValueError` if a grid of these sides has more than 2²² tokens."""
    if math.prod(int(side) for side in sides) > MAX_TOKENS:
        shape = " × ".join(f"{side:,}" for side in sides)
        raise ValueError(TEXTS("positions.large_grid", shape=shape, max_tokens=MAX_TOKENS))


def line_positions(tokens: int, start: float = 0.0, axes: int = 3) -> FloatArray:
    """Return start, start + 1, … on every axis, (tokens, axes)."""
    require_token_count(tokens)
    return np.repeat(start + np.arange(tokens, dtype=np.float64)[:, None], axes, axis=1)


def combine_coordinates(*coordinates: ArrayLike) -> FloatArray:
    """Return every combination of the coordinates, the last fastest, (tokens, axes).

    >>> combine_coordinates([0, 1], [5, 6]).tolist()
    [[0.0, 5.0], [0.0, 6.0], [1.0, 5.0], [1.0, 6.0]]
    """
    parts = [np.asarray(part, dtype=np.float64) for part in coordinates]
    require_token_count(*(part.size for part in parts))
    grids = np.meshgrid(*parts, indexing="ij")
    return np.stack([part.ravel() for part in grids], axis=1)


def lay_out_grid(*sides: int, start: float = 0.0) -> FloatArray:
    """Return positions of a grid that starts at `start` on every axis, the last axis fastest, (tokens, axes)."""
    require_token_count(*sides)
    return combine_coordinates(*(start + np.arange(side) for side in sides))


def merge_order(rows: int, columns: int, merge: int) -> FloatArray:
    """Return (row, column) of patches in the order of a merging vision tower: by blocks of merge × merge."""
    if merge < 1 or rows % merge or columns % merge:
        raise ValueError(TEXTS("positions.blocks", rows=rows, columns=columns, merge=merge))
    blocks = lay_out_grid(rows, columns).reshape(rows // merge, merge, columns // merge, merge, 2)
    return blocks.transpose(0, 2, 1, 3, 4).reshape(-1, 2)


def centred_positions(side: int) -> FloatArray:
    """Return −⌈side/2⌉ … ⌊side/2⌋ − 1, centred on 0, (side,)."""
    return np.arange(side, dtype=np.float64) - (side - side // 2)


def spaced_positions(start: float, stop: float, side: int) -> FloatArray:
    """Return `side` evenly spaced positions from start to stop without its end, (side,), as a linspace."""
    return np.asarray(np.linspace(start, stop * (side - 1) / side, side), dtype=np.float64)


def patch_counts(height: int, width: int, patch: int, merge: int = 1) -> tuple[int, int]:
    """Return rows and columns of patches of an image in pixels, rounded to blocks of `merge` patches, at least one."""
    for value, name in ((height, "height"), (width, "width"), (patch, "patch"), (merge, "merge")):
        require_number(value, name, least=1, integer=True)
    unit = patch * merge
    return tuple(merge * max(1, math.floor(side / unit + 0.5)) for side in (height, width))  # type: ignore[return-value]
