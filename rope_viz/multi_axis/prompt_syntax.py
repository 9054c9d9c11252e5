"""The syntax of prompts, in pixels and seconds, and their positions in a model and a runtime.

    text 12, image 1024x768, text 20, video 1280x720 60s 2fps, audio 10s

Sizes are those that reach the model: pixels are rounded to whole tokens, frames are those sampled from the video.
If a model inserts time stamps between the frames of a video, each counts as eight tokens of text.
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
from rope_viz.models import TEXTS
from rope_viz.models.config_reader import SECTION_KEYS, read_model_type
from rope_viz.models.several_axes.model_axes import find_inner_parts, find_vision_part, read_size_or
from rope_viz.multi_axis.prompt_positions import TEMPORAL, lay_out, prompt_traits

Kind: TypeAlias = Literal["text", "image", "video", "audio"]

KINDS: tuple[Kind, ...] = ("text", "image", "video", "audio")
SCALING = ("rope_scaling", "rope_parameters")

STAMP_TOKENS = 8  # tokens between two frames of a stamped video: the stamp, and a marker before and after it
AUDIO_RATE = 100  # feature frames per second of audio
MOST_TOKENS = 1 << 18
MOST_PIECES = 12
# The page's default prompt: an image, and a video with more positions in time than rows or columns.
EXAMPLE = "text 12, image 1024x768, text 20, video 448x336 40s 1fps, text 24"
NUMBER = r"\d{1,7}(?:\.\d{1,3})?"
SIZE = r"(?P<width>\d{1,5})\s*[x×*]\s*(?P<height>\d{1,5})"
SECONDS = rf"(?P<seconds>{NUMBER})\s*s"
PATTERNS: dict[Kind, re.Pattern[str]] = {
    "text": re.compile(r"text\s+(?P<tokens>\d{1,7})(?:\s*tokens?)?"),
    "image": re.compile(rf"image\s+{SIZE}(?:\s*(?:px|pixels?))?"),
    "video": re.compile(rf"video\s+{SIZE}\s+{SECONDS}(?:\s+(?P<rate>{NUMBER})\s*fps)?"),
    "audio": re.compile(rf"(?:sound|audio)\s+{SECONDS}"),
}
# Config keys that affect positions, in any part of the config.
POSITION_KEYS = tuple(
    """
    spatial_merge_size spatial_conv_size temporal_merge_size temporal_conv_size tokens_per_second
    position_id_per_seconds seconds_per_chunk n_window audio_config mrope_section xdrope_section
    """.split()
)


@dataclass(frozen=True)
class Piece:
    """A piece of a prompt: text in tokens, an image or video in pixels, or audio in seconds; `rate` in frames/s."""

    what: Kind
    tokens: int = 0
    width: int = 0
    height: int = 0
    seconds: float = 0.0
    rate: float = 2.0

    @property
    def text(self) -> str:
        """The piece in the syntax that `parse_pieces` reads."""
        size, seconds = f"{self.width}x{self.height}", f"{self.seconds:g}s"
        video = f"video {size} {seconds} {self.rate:g}fps"
        forms = {"text": f"text {self.tokens}", "image": f"image {size}", "video": video, "audio": f"audio {seconds}"}
        return forms[self.what]


@dataclass(frozen=True)
class PromptRules:
    """The values of a config that decide the positions of its prompts. `frames` become one token in time."""

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
class PromptLayout:
    """The positions of a prompt; `ends` and `starts` are the token and the position at which each piece begins.

    Both have one more entry, for text that would follow the last piece.
    """

    pieces: tuple[Piece, ...]
    positions: Positions
    ends: tuple[int, ...]
    starts: tuple[float, ...]

    def cost(self, piece: int) -> float:
        return self.starts[piece + 1] - self.starts[piece]

    def tokens(self, piece: int) -> int:
        return self.ends[piece + 1] - self.ends[piece]


def parse_pieces(line: str) -> tuple[Piece, ...]:
    """Parse a line into pieces. Raise `ValueError` with the syntax if that is impossible.

    >>> [piece.text for piece in parse_pieces("text 4, image 640 x 480")]
    ['text 4', 'image 640x480']
    """
    found = [part for part in re.split(r"[,;+\n]", line.lower().strip()) if part.strip()]
    if not found or len(found) > MOST_PIECES:
        raise ValueError(TEXTS("prompt.syntax"))
    return tuple(parse_piece(part.strip()) for part in found)


def parse_piece(part: str) -> Piece:
    """Parse one piece. Raise `ValueError` with the syntax if that is impossible."""
    matches = ((what, form.fullmatch(part)) for what, form in PATTERNS.items())
    what, match = next((pair for pair in matches if pair[1]), ("text", None))
    if match is None:
        raise ValueError(TEXTS("prompt.not_this", syntax=TEXTS("prompt.syntax"), part=short_repr(part)))
    given = {name: text for name, text in match.groupdict().items() if text is not None}
    numbers = {name: float(text) if name in ("seconds", "rate") else int(text) for name, text in given.items()}
    piece = Piece(what, **numbers)  # type: ignore[arg-type]
    if what in ("image", "video") and min(piece.width, piece.height) < 1:
        raise ValueError(TEXTS("prompt.small_sides", part=short_repr(part)))
    if not 0.0 < piece.rate <= 240.0:
        raise ValueError(TEXTS("prompt.rate", part=short_repr(part)))
    return piece


def find_prompt_rules(config: Mapping[str, Any]) -> PromptRules | None:
    """Read how a config lays out prompts; None if its language model has one position per token."""
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
    return PromptRules(
        kind,
        patch=read_size_or(tower.get("patch_size"), 16 if larger else 14),
        merge=read_size_or(merge, 1 if kind == "glm_image" else 2),
        frames=read_size_or(tower.get("temporal_patch_size"), 1 if "merged time" in prompt_traits(kind) else 2),
        keys=keys,
    )


def lay_out_pieces(pieces: Sequence[Piece], rules: PromptRules, runtime: str = "transformers") -> PromptLayout:
    """Return the prompt's positions as a runtime computes them.

    Raise `ValueError` if the model does not take such a piece, and for more than 262,144 tokens.
    """
    parts = [make_entries(piece, rules) for piece in pieces]
    sizes = [size for part in parts for _, size in part]
    count = sum(size if isinstance(size, int) else math.prod(size) // rules.merge**2 for size in sizes)
    if count > MOST_TOKENS:
        raise ValueError(TEXTS("prompt.long", count=count, most_tokens=MOST_TOKENS))
    seconds = [rules.frames / piece.rate for piece in pieces if piece.what == "video"]
    ends, starts = [0], [0.0]
    positions: Positions | None = None
    for last in range(1, len(pieces) + 1):
        entries = [entry for part in parts[:last] for entry in part]
        positions = compute_positions(entries, seconds, rules, runtime)
        ends.append(positions.tokens)
        # The next piece begins at the position of one more token of text.
        starts.append(float(compute_positions([*entries, ["text", 1]], seconds, rules, runtime).values[-1, 0]))
    if positions is None or not positions.tokens:
        raise ValueError(TEXTS("prompt.empty"))
    return PromptLayout(tuple(pieces), positions, tuple(ends), tuple(starts))


def compute_positions(entries: list[Any], seconds: list[float], rules: PromptRules, runtime: str) -> Positions:
    """Return the positions of a prompt. `seconds` are the durations of a token in time, one for each of its videos."""
    videos = sum(name == "video" for name, _ in entries)
    given: dict[str, Any] = {**rules.keys, "layout": entries, "model_type": rules.kind}
    if videos and "stamped" not in rules.traits:
        given["second_per_grid_ts"] = seconds[:videos]
    return lay_out(rules.kind, given, runtime)


def make_entries(piece: Piece, rules: PromptRules) -> list[Any]:
    """Return a piece as entries for `lay_out`. Raise `ValueError` if the model does not take it."""
    if piece.what == "text":
        return [["text", piece.tokens]]
    if piece.what == "audio":
        if "audio" not in rules.traits:
            raise ValueError(TEXTS("prompt.no_audio"))
        return [["audio", max(1, round(piece.seconds * AUDIO_RATE))]]
    rows, columns = patch_counts(piece.height, piece.width, rules.patch, rules.merge)
    if piece.what == "image":
        return [["image", [1, rows, columns]]]
    if "still" in rules.traits:
        raise ValueError(TEXTS("prompt.no_video"))
    frames = math.ceil(max(1, round(piece.seconds * piece.rate)) / rules.frames)
    if "stamped" in rules.traits:
        return [entry for _ in range(frames) for entry in (["text", STAMP_TOKENS], ["video", [1, rows, columns]])]
    if "merged time" in rules.traits:
        step = read_size_or(next((rules.keys[key] for key in TEMPORAL if key in rules.keys), None), 2)
        frames = step * math.ceil(frames / step)
    return [["video", [frames, rows, columns]]]


def list_accepted_kinds(rules: PromptRules) -> tuple[Kind, ...]:
    """Return the kinds of pieces that a model takes."""
    without = {"audio": "audio" not in rules.traits, "video": "still" in rules.traits}
    return tuple(what for what in KINDS if not without.get(what))


def first_difference(one: PromptLayout, other: PromptLayout) -> int | None:
    """Return the first token whose positions differ; None if all are equal."""
    a, b = one.positions.values, other.positions.values
    common = min(len(a), len(b))
    if a.shape[1] != b.shape[1]:
        return 0
    differ = np.flatnonzero(np.any(np.abs(a[:common] - b[:common]) > 1e-4, axis=1))
    if differ.size:
        return int(differ[0])
    return common if len(a) != len(b) else None
