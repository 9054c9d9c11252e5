"""The rotations of a whole config: text and vision of transformers, the transformer of diffusers.

Frequencies are those of the formula in float64; `read` in this package returns what a class holds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rope_viz.embedding.axes_spec import AxesSpec, ladder_per_axis
from rope_viz.embedding.position_ids import Positions, require_token_count
from rope_viz.embedding.spec import short_repr
from rope_viz.models import TEXTS
from rope_viz.models.config_reader import ConfigReader, is_pipeline_part, read_model_type
from rope_viz.models.no_rope_types import NoRope
from rope_viz.models.several_axes.diffusion import find_rule, read_diffusion, require_rule
from rope_viz.models.several_axes.text import text_layers
from rope_viz.models.several_axes.vision import MEMORY, TOWERS, Specs, find_tower, ladder, partial_factor, read_vision
from rope_viz.models.text_config import TEXT_KEYS

MUSIC_AXES = ("seconds×window", "seconds×frame")


# `MusicFlamingoRotaryEmbedding` of transformers 5.23.0 rotates the encoder's features, not q and k.
def musicflamingo(config: Mapping[str, Any]) -> AxesSpec:
    """Return the rotation of MusicFlamingo: two copies of the rotating part of the width."""
    settings = ConfigReader(config)
    width = settings.size("head_dim", "hidden_size", default=1280)
    one = ladder(int(width * partial_factor(settings, 0.2)), settings.base(1200.0))
    return ladder_per_axis([one, one], MUSIC_AXES, pairing="interleaved", head_dim=max(width, 4 * one.pairs))


def music_positions(settings: ConfigReader) -> Positions:
    """MusicFlamingo: −2π·seconds·window/length and −2π·seconds·2π·frame/length; `tokens` are (window, frame)."""
    length = settings.number("max_position_embeddings", default=settings.base(1200.0), above=0.0)
    frames = settings.size("frames_per_window", default=750)
    step = 4.0 * settings.number("audio_frame_step", default=0.01, above=0.0, most=1e6)
    starts = np.array(settings.numbers("window_starts_seconds", default=(0.0,)))
    require_token_count(len(starts), frames)
    index = np.arange(frames)
    seconds = starts[:, None] + index * step if settings.value("timestamps") is None else settings.array("timestamps")
    if seconds.shape != (len(starts), frames):
        raise ValueError(f"timestamps must be one row per window of {frames} seconds, got shape {seconds.shape}")
    turn, window = -2.0 * math.pi * seconds, np.round(starts / (step * frames))[:, None]
    values = np.stack([turn * window / length, turn * 2.0 * math.pi * index / length], axis=-1)
    return Positions(values.reshape(-1, 2), MUSIC_AXES)


# Types whose config describes an encoder only.
ENCODERS = tuple(
    """
    dinov3_vit sapiens2 eomt_dinov3 vjepa2 sam2_video sam3_tracker_video edgetam_video efficientloftr mlcd pixtral
    sam3 llama4
    """.split()
)
ENDINGS = ("_vision_encoder", "_vision_model", "_vit_model", "_vision")
INSIDE = ("thinker_config", "text_config", "llm_config", "language_config")


def from_model(config: Mapping[str, Any]) -> dict[str, AxesSpec]:
    """Return {part: rotation} of a model's config.json, or of a diffusion model's transformer/config.json.

    Parts are "text" ("text sliding_attention" if layer types differ), "vision", "predictor", "memory", "audio" and
    "transformer"; "transformer head 0" and so on if heads differ. The text of a plain language model has one axis.
    Raises `ValueError` that names what is missing or unknown.
    """
    if not isinstance(config, Mapping):
        raise ValueError(TEXTS("value.config", config=short_repr(config)))
    if is_pipeline_part(config):
        return read_diffusion_model(config)
    kind = read_model_type(config)
    parts: dict[str, AxesSpec] = {}
    tower = find_tower_name(kind, config)
    if not is_encoder(kind, config):
        try:
            layers = text_layers(kind, config)
            same = len(set(layers.values())) == 1
            parts |= {"text" if same else f"text {layer}".rstrip(): spec for layer, spec in layers.items()}
        except NoRope:
            # The vision tower may rotate although the language model does not.
            if tower is None:
                raise
    if tower is not None:
        part = "memory" if TOWERS.get(tower) is MEMORY else "vision"
        parts |= split_by_head(part, read_vision(tower, find_vision_part(config)))
    if kind == "vjepa2":
        parts |= split_by_head("predictor", read_vision("vjepa2", {**config, "part": "predictor"}))
    if kind == "musicflamingo":
        parts["audio"] = musicflamingo(config)
    if not parts:
        raise ValueError(TEXTS("model_axes.unknown", kind=short_repr(kind)))
    return parts


def read_diffusion_model(config: Mapping[str, Any]) -> dict[str, AxesSpec]:
    """Return the rotation of a diffusion transformer by its class. Raises `ValueError` if it has no readable one."""
    name = require_rule(config["_class_name"])
    if config.get("use_rotary_positional_embeddings") is False:
        raise ValueError(TEXTS("model_axes.adds_positions"))
    if name == "mochi" and ConfigReader(config).value("weights", "pos_frequencies") is None:
        raise ValueError(TEXTS("model_axes.mochi"))
    return split_by_head("transformer", read_diffusion(name, config))


def split_by_head(part: str, specs: Specs) -> dict[str, AxesSpec]:
    """Return one part, or one per head if heads differ."""
    if isinstance(specs, AxesSpec):
        return {part: specs}
    return {f"{part} head {head}": spec for head, spec in enumerate(specs)}


def find_tower_name(kind: str, config: Mapping[str, Any]) -> str | None:
    """Return the name of the vision tower; None if there is none, or it does not rotate."""
    inner = find_vision_part(config)
    if inner is config and not is_encoder(kind, config):
        return None
    names = [read_model_type(inner), kind] if inner is not config else [kind]
    return next((found for name in names if (found := find_tower(name)) is not None), None)


def find_vision_part(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part of a config that describes its vision tower; the config itself if there is no such part."""
    for place in find_inner_parts(config):
        inner = place.get("vision_config")
        if inner is not None and not isinstance(inner, Mapping):
            raise ValueError(TEXTS("value.object", name="vision_config", got=short_repr(inner)))
        if inner is not None:
            return inner
    return config


def find_inner_parts(config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the config and those of its parts that may contain a language model's keys."""
    return [config, *(config[key] for key in INSIDE if isinstance(config.get(key), Mapping))]


def read_size_or(value: Any, usual: int) -> int:
    """Return the value if it is a positive integer, else the default."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 1 else usual


def is_encoder(kind: str, config: Mapping[str, Any]) -> bool:
    """Return True if the config describes an encoder without a language model."""
    if any(isinstance(config.get(key), Mapping) for key in TEXT_KEYS):
        return False
    plain = next((kind.removesuffix(end) for end in ENDINGS if kind.endswith(end)), kind)
    return plain in ENCODERS or kind != plain or kind == "musicflamingo"


def is_diffusion(config: Mapping[str, Any]) -> bool:
    """Return True if the config describes a known diffusion transformer."""
    name = config.get("_class_name")
    return isinstance(name, str) and find_rule(name) is not None
