"""Vision encoders whose directions are learned, per head and pair: RoPE-Mixed, and LightGlue's keypoints.

`RotaryEmbeddingMixed` of timm 1.0.31 and `LightGluePositionalEncoder` of transformers 5.23.0. Without weights a case
names a seed: the weights are then those that the class starts with under `torch.manual_seed`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from rope_viz.embedding.axes_spec import AxesSpec, mix_axes
from rope_viz.embedding.spec import MAX_HEAD_DIM, FloatArray, require_number
from rope_viz.models import TEXTS
from rope_viz.models.config_reader import ConfigReader


def plain_name(name: str) -> str:
    """Reduce a name to its letters and digits, in lower case."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


def find_known_name(name: str, known: Mapping[str, str], endings: Sequence[str]) -> str | None:
    """Look a name up in `known`, with or without a class ending; None if it is unknown.

    >>> find_known_name("FLUX.2-PosEmbed", {"flux2": "flux2"}, ["posembed"])
    'flux2'
    """
    plain = plain_name(name)
    candidates = [plain, *(plain.removesuffix(ending) for ending in endings if plain.endswith(ending))]
    return next((known[candidate] for candidate in candidates if candidate in known), None)


HW, WH = ("h", "w"), ("w", "h")
MAX_HEADS = 4096  # limit for models whose heads are read one by one


def rope_mixed(settings: ConfigReader) -> list[AxesSpec]:
    """RoPE-Mixed: a learned direction per layer, head and pair; initialised from a seed without weights.

    `weights` or `freqs` (2, layers, heads, pairs) or of one layer (2, heads, pairs) are the learned ones, x before y.
    """
    axes = HW if settings.choice("grid_indexing", options=("xy", "ij")) == "ij" else WH
    layer = settings.size("layer", default=0, least=0)
    if settings.value("weights", "freqs") is None:
        return learned_heads(initial_weights(settings, layer), axes)
    array = settings.array("weights", "freqs")
    if array.ndim == 4:
        require_layer(layer, array.shape[1])
        array = array[:, layer]
    return learned_heads(array, axes)


def learned_heads(weights: FloatArray, axes: tuple[str, ...]) -> list[AxesSpec]:
    """Return one spec per head from weights (axes, heads, pairs)."""
    if weights.ndim != 3 or len(weights) != len(axes):
        raise ValueError(f"weights must have shape ({len(axes)}, heads, pairs), got {weights.shape}")
    return [mix_axes(weights[:, head].T, axes) for head in range(weights.shape[1])]


def require_layer(layer: int, depth: int) -> None:
    """Raise `ValueError` unless this layer exists; layers count from 0."""
    if layer >= depth:
        raise ValueError(TEXTS("learned_heads.layer", last=depth - 1, layer=layer))


def initial_weights(settings: ConfigReader, layer: int) -> FloatArray:
    """Return timm 1.0.31's initial weights in float32: a ladder in a random direction and perpendicular to it."""
    heads = settings.required("num_heads", "num_attention_heads", most=MAX_HEADS)
    depth = settings.size("depth", default=layer + 1, most=MAX_HEADS)
    size = settings.required("dim", "embed_dim", "hidden_size") // heads
    require_number(size, TEXTS("name.head_size"), least=4, most=MAX_HEAD_DIM)
    require_layer(layer, depth)
    narrow = np.float32
    temperature = narrow(settings.number("temperature", default=10.0, above=0.0))
    rungs = narrow(1.0) / temperature ** (np.arange(0, size, 4, dtype=narrow) / narrow(size))
    turn = np.zeros((depth, heads), dtype=narrow)
    if settings.flag("rotate", default=True):
        random = draw_uniform(settings.size("seed", default=0, least=0), depth * heads).reshape(depth, heads)
        turn = random.astype(narrow) * narrow(2.0) * narrow(math.pi)
    angles = [turn[layer][:, None], turn[layer][:, None] + narrow(math.pi / 2.0)]
    parts = [np.concatenate([rungs * wave(angle) for angle in angles], axis=1) for wave in (np.cos, np.sin)]
    return np.stack(parts).astype(np.float64)


def lightglue(settings: ConfigReader) -> AxesSpec | list[AxesSpec]:
    """LightGlue: a learned direction per pair over a keypoint's x and y, one for all heads.

    `weights` are (pairs, axes) or (heads, pairs, axes). Without them PyTorch starts them uniform in −1/√2 … 1/√2.
    """
    if settings.value("weights", "projector") is None:
        width = settings.size("descriptor_dim", "hidden_size", default=256)
        pairs = width // settings.size("num_attention_heads", "num_heads", default=4) // 2
        require_number(pairs, TEXTS("name.head_pairs"), least=1, most=MAX_HEAD_DIM)
        random = (2.0 * draw_uniform(settings.size("seed", default=0, least=0), 2 * pairs) - 1.0) * math.sqrt(0.5)
        return mix_axes(random.reshape(pairs, 2), WH)
    weights = settings.array("weights", "projector")
    if weights.ndim not in (2, 3):
        raise ValueError(f"weights must have shape (pairs, axes) or (heads, pairs, axes), got {weights.shape}")
    axes = WH if weights.shape[-1:] == (2,) else tuple(f"axis {k}" for k in range(weights.shape[-1]))
    return [mix_axes(part, axes) for part in weights] if weights.ndim == 3 else mix_axes(weights, axes)


def draw_uniform(seed: int, count: int) -> FloatArray:
    """Return what `torch.manual_seed(seed); torch.rand(count)` gives, as float64, (count,).

    PyTorch's CPU generator is MT19937, seeded as `init_genrand`; `torch.rand` uses the lower 24 bits of each draw.
    """
    draws = np.frombuffer(np.random.RandomState(seed & 0xFFFFFFFF).bytes(4 * count), dtype="<u4")
    return np.asarray((draws & 0xFFFFFF) * 2.0**-24, dtype=np.float64)
