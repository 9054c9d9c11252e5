"""Models with positions on several axes, by family: their rotation, their positions, what extends them.

read("text/qwen3_vl", config)           a language model, from the text part of its config
read("vision/gemma4", config)           a vision tower
read("dit/FluxPosEmbed", config)        a diffusion transformer, by model or by class
read("runtime/llama.cpp", config)       what a runtime computes
positions("positions/qwen2_vl", …)      positions along a prompt, or over a grid, and rope_delta
frequencies("extension/riflex", …)      the speeds of one axis that is carried beyond its grid
from_model(config)                      {part: rotation} of a whole config of transformers or diffusers
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rope_viz.embedding.axes_spec import ladder_per_axis
from rope_viz.embedding.axis_scaling import ImageNtk, ImageYarn, Riflex
from rope_viz.embedding.position_ids import Positions
from rope_viz.embedding.scaling import Linear, NtkAware
from rope_viz.embedding.spec import FloatArray, RopeSpec, Scaling, shorten
from rope_viz.models.config_reader import ConfigReader
from rope_viz.multi_axis import mrope_runtimes
from rope_viz.multi_axis.diffusion import read_diffusion
from rope_viz.multi_axis.diffusion_positions import diffusion_positions
from rope_viz.multi_axis.grid_positions import vision_positions
from rope_viz.multi_axis.model_axes import from_model
from rope_viz.multi_axis.music import music_positions, musicflamingo
from rope_viz.multi_axis.names import plain_name
from rope_viz.multi_axis.prompt_positions import MODELS, by_runtime, lay_out
from rope_viz.multi_axis.text import read_text, text_name
from rope_viz.multi_axis.vision import SPECIAL, TOWERS, Specs, ladder, read_vision, tower_name

__all__ = ["extended", "frequencies", "from_model", "placed", "positions", "read"]

RUNTIME_NAMES = {
    **dict.fromkeys(("llamacpp", "ggml"), "llama.cpp"),
    **dict.fromkeys(("mlx", "mlxvlm"), "mlx-vlm"),
    **dict.fromkeys(("hf", "tf", "transformers", "transformers523", "tf523"), "transformers"),
    **{"vllm": "vllm", "sglang": "sglang"},
    **dict.fromkeys(("transformers457", "transformers4576", "tf457", "tf4576"), "transformers-4.57"),
}


def read(family: str, config: Mapping[str, Any]) -> Specs:
    """The rotation of a family's config; a list of them, one per head, where heads differ.

    The config is what the published class takes: the text or the vision part of a config.json, or the arguments of a
    diffusion transformer's class. Raises `ValueError` that names the family or the key.
    """
    group, name = divided(family)
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
        runtime = runtime_name(name)
        if runtime == "llama.cpp":
            return mrope_runtimes.llama_cpp(config)
        if runtime in ("vllm", "sglang", "mlx-vlm"):
            return mrope_runtimes.server(runtime, config)
        return read_text(str(config.get("model_type") or "qwen2_vl"), config)
    if group == "extension":
        spec = extended(name, config)
        return ladder_per_axis([spec], ("t",) if name == "riflex" else ("side",), pairing="interleaved")
    raise ValueError(f"family must begin with {', '.join(GROUPS)}, got {shorten(family)}")


def positions(family: str, config: Mapping[str, Any]) -> tuple[FloatArray, float | None]:
    """(positions (tokens, axes) float64, rope_delta) of a family's config; rope_delta None where there is no such.

    A config names a `layout` (language models) or a grid (vision towers, diffusion transformers). Its `tokens`, where
    it has any, pick rows. Raises `ValueError` that names the family or the key.
    """
    laid = placed(family, config)
    return chosen(laid.values, config), laid.rope_delta


def placed(family: str, config: Mapping[str, Any]) -> Positions:
    """All positions of a family's config, with the names of their axes and the pieces they came from."""
    group, name = divided(family)
    ConfigReader(config)
    if group == "runtime":
        return by_runtime(runtime_name(name))(config)
    if group in ("positions", "text") and text_name(name) in MODELS:
        return lay_out(text_name(name), config)
    if group == "vision" or (group == "positions" and tower_name(name) in {*TOWERS, *SPECIAL}):
        return vision_positions(name, config)
    if group == "audio":
        return music_positions(ConfigReader(config))
    if group in ("dit", "positions"):
        return diffusion_positions(name, config)
    raise ValueError(f"there are no positions for {shorten(family)}")


def frequencies(family: str, config: Mapping[str, Any]) -> FloatArray:
    """Radians per unit of one axis, (pairs,), float64, when it is carried beyond its trained extent."""
    return extended(divided(family)[1], config).inv_freq()


def extended(name: str, config: Mapping[str, Any]) -> RopeSpec:
    """One axis as a RopeSpec, its extent as context and target, extended by "riflex", "image-yarn", "image-ntk", …"""
    given = ConfigReader(config)
    dim, base = given.required("dim", "head_dim"), given.base(10_000.0)
    trained = given.size("trained_patches", "trained_frames", "repeats", "trained", default=64)
    target = given.size("patches", "latent_frames", "frames", "target", "L_test", default=trained)
    noise = (
        None
        if given.value("noise_level", "current_timestep") is None
        else given.number("noise_level", "current_timestep")
    )
    method: Scaling
    if name == "riflex":
        method = Riflex(pair=given.size("k", "pair", default=0, least=0), repeats=given.size("N", default=0, least=0))
    elif name in ("image-ntk", "dype-ntk") or given.value("method") == "ntk":
        method = ImageNtk(noise=noise)
    elif name in ("image-yarn", "dype", "yarn"):
        method = ImageYarn(noise=noise)
    elif name in ("ntk", "linear", "stretch"):
        factor = given.number("factor", default=max(target / trained, 1.0))
        method = NtkAware(factor) if name == "ntk" else Linear(factor)
    else:
        raise ValueError(f"there is no extension {shorten(name)}; there are riflex, image-yarn, image-ntk, ntk, linear")
    plain = ladder(dim, base)
    return RopeSpec(plain.head_dim, plain.rotary_dim, base, trained, target, method)


GROUPS = ("text/", "vision/", "dit/", "audio/", "positions/", "runtime/", "extension/")


def divided(family: str) -> tuple[str, str]:
    """(group, name) of a family like "text/qwen2_vl"."""
    if not isinstance(family, str) or "/" not in family or f"{family.split('/')[0]}/" not in GROUPS:
        raise ValueError(f"family must begin with {', '.join(GROUPS)}, got {shorten(family)}")
    group, name = family.split("/", 1)
    return group, name


def runtime_name(name: str) -> str:
    """The name under which a runtime is known here."""
    return RUNTIME_NAMES.get(plain_name(name), name)


def chosen(values: FloatArray, config: Mapping[str, Any]) -> FloatArray:
    """The rows under `tokens`: indices, or (window, frame) pairs; all where there are none or already picked."""
    tokens: Sequence[Any] | None = config.get("tokens")
    if tokens is None or config.get("text_tokens") is not None:
        return values
    frames = config.get("frames_per_window")
    index: NDArray[Any] = np.zeros(0)
    try:
        rows = [token[0] * frames + token[1] if isinstance(token, (list, tuple)) else token for token in tokens]
        index = np.asarray(rows) if rows else np.zeros(0, dtype=np.int64)
    except (TypeError, ValueError, IndexError):
        pass
    if (
        index.ndim != 1
        or index.dtype.kind not in "iu"
        or (index.size and not 0 <= index.min() <= index.max() < len(values))
    ):
        raise ValueError(f"tokens must be from 0 to {len(values) - 1}, got {shorten(tokens)}")
    return np.asarray(values[index], dtype=np.float64)
