"""Rotation and positions of models whose positions have several axes, by model family.

read_family("text/qwen3_vl", config)      a language model, from the text part of its config
read_family("vision/gemma4", config)      a vision tower
read_family("dit/FluxPosEmbed", config)   a diffusion transformer, by model or by class
read_family("runtime/llama.cpp", config)  what a runtime computes
positions("positions/qwen2_vl", …)        positions along a prompt, or over a grid, and rope_delta
lay_out_tokens("positions/qwen2_vl", …)   the same with the names of the axes and the parts of the prompt
from_model(config)                        {part: rotation} of a whole config of transformers or diffusers
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rope_viz.embedding.position_ids import Positions
from rope_viz.embedding.spec import FloatArray, short_repr
from rope_viz.models import TEXTS
from rope_viz.models.config_reader import ConfigReader
from rope_viz.models.several_axes.diffusion import read_diffusion
from rope_viz.models.several_axes.learned_directions import plain_name
from rope_viz.models.several_axes.model_axes import from_model, music_positions, musicflamingo
from rope_viz.models.several_axes.text import read_text, round_to_float32, text_name
from rope_viz.models.several_axes.vision import Specs, find_tower, read_vision
from rope_viz.multi_axis.diffusion_positions import diffusion_positions
from rope_viz.multi_axis.grid_positions import pick_tokens, vision_positions
from rope_viz.multi_axis.mrope_runtimes import allocate_for_runtime, rotate_as_ggml
from rope_viz.multi_axis.prompt_positions import SECONDS, lay_out, prompt_traits
from rope_viz.texts.texts import join_items

__all__ = ["from_model", "lay_out_tokens", "positions", "read_family"]

GROUPS = ("text/", "vision/", "dit/", "audio/", "positions/", "runtime/")
RUNTIME_NAMES = {
    "llamacpp": "llama.cpp",
    "ggml": "llama.cpp",
    "mlx": "mlx-vlm",
    "mlxvlm": "mlx-vlm",
    "vllm": "vllm",
    "sglang": "sglang",
    **dict.fromkeys(("hf", "tf", "transformers523", "tf523"), "transformers"),
    **dict.fromkeys(("transformers457", "transformers4576", "tf457", "tf4576"), "transformers-4.57"),
}


def read_family(family: str, config: Mapping[str, Any]) -> Specs:
    """Return the rotation of a family's config; a list with one per head if heads differ.

    The config is what the published class takes: the text or the vision part of a config.json, or the arguments of a
    diffusion transformer's class. Raises `ValueError` that names the family or the key.
    """
    group, name = split_family(family)
    ConfigReader(config)
    if group == "text":
        return read_text(text_name(name), config)
    if group == "vision":
        return read_vision(name, config)
    if group == "dit":
        return read_diffusion(name, config)
    if group == "audio":
        return musicflamingo(config)
    if group == "runtime":
        runtime = RUNTIME_NAMES.get(plain_name(name), name)
        if runtime == "llama.cpp":
            return rotate_as_ggml(config)
        if runtime in ("vllm", "sglang", "mlx-vlm"):
            return round_to_float32(allocate_for_runtime(runtime, config))
        return read_text(str(config.get("model_type") or "qwen2_vl"), config)
    raise ValueError(TEXTS("family.groups", groups=join_items(GROUPS), got=short_repr(family)))


def positions(family: str, config: Mapping[str, Any]) -> tuple[FloatArray, float | None]:
    """Return positions (tokens, axes), float64, and rope_delta (or None) of a family's config.

    A config names a `layout` (language models) or a grid (vision towers, diffusion transformers). Its `tokens`, where
    it has any, pick rows. Raises `ValueError` that names the family or the key.
    """
    layout = lay_out_tokens(family, config)
    tokens = config.get("tokens")
    # Qwen-Image selects its tokens itself.
    if tokens is None or config.get("text_tokens") is not None:
        return layout.values, layout.rope_delta
    return pick_tokens(layout.values, tokens, frames=config.get("frames_per_window")), layout.rope_delta


def lay_out_tokens(family: str, config: Mapping[str, Any]) -> Positions:
    """Return all positions of a family's config, with axis names and the prompt pieces they belong to."""
    group, name = split_family(family)
    given = ConfigReader(config)
    if group == "runtime":
        usual = "qwen2_vl" if given.value("tokens_per_second", *SECONDS) is None else "qwen2_5_vl"
        kind = str(given.value("model_type") or usual).removesuffix("_text")
        return lay_out(kind, config, RUNTIME_NAMES.get(plain_name(name), name))
    if group in ("positions", "text") and prompt_traits(text_name(name)):
        return lay_out(text_name(name), config)
    if group == "vision" or (group == "positions" and find_tower(name)):
        return vision_positions(name, config)
    if group == "audio":
        return music_positions(given)
    if group in ("dit", "positions"):
        return diffusion_positions(name, config)
    raise ValueError(TEXTS("family.no_positions", family=short_repr(family)))


def split_family(family: str) -> tuple[str, str]:
    """Return (group, name) of a family like "text/qwen2_vl"."""
    if not isinstance(family, str) or "/" not in family or f"{family.split('/')[0]}/" not in GROUPS:
        raise ValueError(TEXTS("family.groups", groups=join_items(GROUPS), got=short_repr(family)))
    group, name = family.split("/", 1)
    return group, name
