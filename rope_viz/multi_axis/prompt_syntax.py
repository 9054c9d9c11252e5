"""A prompt as a person writes it, in pixels and seconds, and its positions in a model and a runtime.

    text 12, image 1024x768, text 20, video 1280x720 60s 2fps, sound 10s

Sizes are those that reach the model: pixels are rounded to whole tokens, frames are those sampled from the video.
Time stamps between the frames of a video, where a model writes them, count as eight tokens of text each.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from rope_viz.embedding.position_ids import Positions, patch_counts
from rope_viz.embedding.spec import short_repr
from rope_viz.models.config_reader import SECTION_KEYS, read_model_type
from rope_viz.multi_axis.model_axes import find_inner_parts, find_vision_part, read_size_or
from rope_viz.multi_axis.prompt_positions import TEMPORAL, lay_out, prompt_traits

What: TypeAlias = Literal["text", "image", "video", "sound"]

WHATS: tuple[What, ...] = ("text", "image", "video", "sound")
SCALING = ("rope_scaling", "rope_parameters")

STAMP = 8  # tokens between two frames of a stamped video: the stamp, and a marker on each side
HEARD = 100  # feature frames that an encoder makes of a second of audio
MOST = 1 << 18
LONGEST = 12
# What the page begins with: an image, and a video whose time outruns its grid.
USUAL = "text 12, image 1024x768, text 20, video 448x336 40s 1fps, text 24"
TAKES = (
    "write pieces with commas between them, such as text 12, image 1024x768, video 640x480 20s 2fps, sound 10s; "
    "at most 12 of them"
)
NUMBER = r"\d{1,7}(?:\.\d{1,3})?"
SIZE = r"(?P<width>\d{1,5})\s*[x×*]\s*(?P<height>\d{1,5})"
SECONDS = rf"(?P<seconds>{NUMBER})\s*s"
FORMS: dict[What, re.Pattern[str]] = {
    "text": re.compile(r"text\s+(?P<tokens>\d{1,7})(?:\s*tokens?)?"),
    "image": re.compile(rf"image\s+{SIZE}(?:\s*(?:px|pixels?))?"),
    "video": re.compile(rf"video\s+{SIZE}\s+{SECONDS}(?:\s+(?P<rate>{NUMBER})\s*fps)?"),
    "sound": re.compile(rf"(?:sound|audio)\s+{SECONDS}"),
}
# Keys that decide about positions, in whichever part of a config they are.
POSITION_KEYS = (
    *("spatial_merge_size", "spatial_conv_size", "temporal_merge_size", "temporal_conv_size", "tokens_per_second"),
    *("position_id_per_seconds", "seconds_per_chunk", "n_window", "audio_config", "mrope_section", "xdrope_section"),
)


@dataclass(frozen=True)
class Wanted:
    """A piece of a prompt: tokens of text, an image of width × height pixels, a video, or audio of so many seconds."""

    what: What
    tokens: int = 0
    width: int = 0
    height: int = 0
    seconds: float = 0.0
    rate: float = 2.0

    @property
    def written(self) -> str:
        """The piece as a person writes it."""
        size, seconds = f"{self.width}x{self.height}", f"{self.seconds:g}s"
        video = f"video {size} {seconds} {self.rate:g}fps"
        forms = {"text": f"text {self.tokens}", "image": f"image {size}", "video": video, "sound": f"sound {seconds}"}
        return forms[self.what]


@dataclass(frozen=True)
class Reader:
    """The values of a config that decide how its prompts are laid out."""

    kind: str
    patch: int
    merge: int
    frames: int
    keys: Mapping[str, Any]

    @property
    def traits(self) -> tuple[str, ...]:
        """The traits of its prompts."""
        return prompt_traits(self.kind)


@dataclass(frozen=True, eq=False)
class Laid:
    """The positions of a prompt; `ends` and `starts` are the tokens and positions where each piece begins.

    Both have one entry more, where text would continue after the last piece.
    """

    wanted: tuple[Wanted, ...]
    positions: Positions
    ends: tuple[int, ...]
    starts: tuple[float, ...]

    def cost(self, piece: int) -> float:
        """Return how many positions a piece takes."""
        return self.starts[piece + 1] - self.starts[piece]

    def tokens(self, piece: int) -> int:
        """Return how many tokens a piece has."""
        return self.ends[piece + 1] - self.ends[piece]


def pieces(written: str) -> tuple[Wanted, ...]:
    """Return the pieces of a line. Raises `ValueError` with what may be written.

    >>> [piece.written for piece in pieces("text 4, image 640 x 480")]
    ['text 4', 'image 640x480']
    """
    found = [part for part in re.split(r"[,;+\n]", written.lower().strip()) if part.strip()]
    if not found or len(found) > LONGEST:
        raise ValueError(TAKES)
    return tuple(piece(part.strip()) for part in found)


def piece(part: str) -> Wanted:
    """Return one piece. Raises `ValueError` with what may be written."""
    matches = ((what, form.fullmatch(part)) for what, form in FORMS.items())
    what, match = next((pair for pair in matches if pair[1]), ("text", None))
    if match is None:
        raise ValueError(f"{TAKES}; not {short_repr(part)}")
    given = {name: text for name, text in match.groupdict().items() if text is not None}
    numbers = {name: float(text) if name in ("seconds", "rate") else int(text) for name, text in given.items()}
    wanted = Wanted(what, **numbers)  # type: ignore[arg-type]
    if what in ("image", "video") and min(wanted.width, wanted.height) < 1:
        raise ValueError(f"an image needs sides of at least one pixel, not {short_repr(part)}")
    if not 0.0 < wanted.rate <= 240.0:
        raise ValueError(f"a film needs a rate above 0 and up to 240 frames a second, not {short_repr(part)}")
    return wanted


def reader(config: Mapping[str, Any]) -> Reader | None:
    """Return how the prompts of a model's config are laid out; None where its language model counts tokens alone."""
    outer = read_model_type(config)
    names = (outer, outer.removesuffix("_text"), outer.removesuffix("_thinker"))
    kind = next((name for name in names if prompt_traits(name) and name != "neomme"), None)
    if kind is None:
        return None
    tower = find_vision_part(config)
    parts = [*find_inner_parts(config), tower]
    ropes = [part[key] for part in parts for key in SCALING if isinstance(part.get(key), Mapping)]
    keys = {key: part[key] for part in parts for key in POSITION_KEYS if part.get(key) is not None}
    keys |= {key: ropes[0][key] for key in SECTION_KEYS[:2] if ropes and key in ropes[0]}
    larger = kind.startswith(("qwen3", "qwen4", "hunyuan", "isaac", "glm_image"))
    merge = keys.get("spatial_merge_size", keys.get("spatial_conv_size"))
    return Reader(
        kind,
        patch=read_size_or(tower.get("patch_size"), 16 if larger else 14),
        merge=read_size_or(merge, 1 if kind == "glm_image" else 2),
        frames=read_size_or(tower.get("temporal_patch_size"), 1 if "merged time" in prompt_traits(kind) else 2),
        keys=keys,
    )


def lay(wanted: Sequence[Wanted], read: Reader, runtime: str = "transformers") -> Laid:
    """Return the prompt's positions as a runtime gives them.

    Raises `ValueError` where the model does not take such a piece, and beyond 262,144 tokens.
    """
    parts = [entries(piece, read) for piece in wanted]
    sizes = [size for part in parts for _, size in part]
    count = sum(size if isinstance(size, int) else math.prod(size) // read.merge**2 for size in sizes)
    if count > MOST:
        raise ValueError(f"the prompt has {count:,} tokens, and at most {MOST:,} can be drawn: take fewer frames")
    seconds = [read.frames / piece.rate for piece in wanted if piece.what == "video"]
    ends, starts = [0], [0.0]
    laid: Positions | None = None
    for last in range(1, len(wanted) + 1):
        layout = [entry for part in parts[:last] for entry in part]
        laid = positions(layout, seconds, read, runtime)
        ends.append(laid.tokens)
        # The position of one more token of text is where the next piece begins.
        starts.append(float(positions([*layout, ["text", 1]], seconds, read, runtime).values[-1, 0]))
    if laid is None or not laid.tokens:
        raise ValueError("the prompt has no tokens")
    return Laid(tuple(wanted), laid, tuple(ends), tuple(starts))


def positions(layout: list[Any], seconds: list[float], read: Reader, runtime: str) -> Positions:
    """Return the positions of a layout, with the seconds of as many videos as it has."""
    videos = sum(name == "video" for name, _ in layout)
    given: dict[str, Any] = {**read.keys, "layout": layout, "model_type": read.kind}
    if videos and "stamped" not in read.traits:
        given["second_per_grid_ts"] = seconds[:videos]
    return lay_out(read.kind, given, runtime)


def entries(piece: Wanted, read: Reader) -> list[Any]:
    """Return a piece as entries of a layout."""
    if piece.what == "text":
        return [["text", piece.tokens]]
    if piece.what == "sound":
        if "audio" not in read.traits:
            raise ValueError("this model hears no sound: leave it out, or take an Omni model")
        return [["audio", max(1, round(piece.seconds * HEARD))]]
    rows, columns = patch_counts(piece.height, piece.width, read.patch, read.merge)
    if piece.what == "image":
        return [["image", [1, rows, columns]]]
    if "still" in read.traits:
        raise ValueError("this model is not known to take films: write images instead")
    frames = math.ceil(max(1, round(piece.seconds * piece.rate)) / read.frames)
    if "stamped" in read.traits:
        return [entry for _ in range(frames) for entry in (["text", STAMP], ["video", [1, rows, columns]])]
    if "merged time" in read.traits:
        step = read_size_or(next((read.keys[key] for key in TEMPORAL if key in read.keys), None), 2)
        frames = step * math.ceil(frames / step)
    return [["video", [frames, rows, columns]]]


def taken(read: Reader) -> tuple[What, ...]:
    """Return the kinds of pieces that a model takes."""
    without = {"sound": "audio" not in read.traits, "video": "still" in read.traits}
    return tuple(what for what in WHATS if not without.get(what))


def first_difference(one: Laid, other: Laid) -> int | None:
    """Return the first token whose positions differ, None where all are the same."""
    a, b = one.positions.values, other.positions.values
    common = min(len(a), len(b))
    if a.shape[1] != b.shape[1]:
        return 0
    differ = np.flatnonzero(np.any(np.abs(a[:common] - b[:common]) > 1e-4, axis=1))
    if differ.size:
        return int(differ[0])
    return common if len(a) != len(b) else None
