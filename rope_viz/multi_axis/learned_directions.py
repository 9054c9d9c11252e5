"""Vision encoders whose directions are learned, per head and pair: RoPE-Mixed, and LightGlue's keypoints.

`RotaryEmbeddingMixed` of timm 1.0.31 and `LightGluePositionalEncoder` of transformers 5.23.0. Without weights a case
names a seed: the weights are then those that the class starts with under `torch.manual_seed`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rope_viz.embedding.axes_spec import AxesSpec, directions
from rope_viz.embedding.spec import MAX_HEAD_DIM, FloatArray, require_number
from rope_viz.models.config_reader import ConfigReader
from rope_viz.multi_axis.torch_random import uniform

HW, WH = ("h", "w"), ("w", "h")
MAX_HEADS = 4096  # of a model whose heads are read one by one


def rope_mixed(config: Mapping[str, Any]) -> list[AxesSpec]:
    """RoPE-Mixed: per layer and head a learned direction for every pair; without weights, as a seed initialises them.

    `weights` or `freqs` (2, layers, heads, pairs) or of one layer (2, heads, pairs) are the learned ones, x before y.
    """
    given = ConfigReader(config)
    axes = HW if given.choice("grid_indexing", options=("ij", "xy"), default="xy") == "ij" else WH
    layer = given.size("layer", default=0, least=0)
    if given.value("weights", "freqs") is not None:
        array = given.array("weights", "freqs")
        if array.ndim == 4:
            require_layer(layer, array.shape[1])
            array = array[:, layer]
        if array.ndim != 3 or array.shape[0] != 2:
            raise ValueError(f"weights must have shape (2, heads, pairs), got {array.shape}")
    else:
        array = mixed_start(given, layer)
    return [directions(array[:, head].T, axes) for head in range(array.shape[1])]


def require_layer(layer: int, depth: int) -> None:
    """Raise `ValueError` unless there is such a layer, counted from 0."""
    if layer >= depth:
        raise ValueError(f"layer must be from 0 to {depth - 1}, got {layer}")


def mixed_start(given: ConfigReader, layer: int) -> FloatArray:
    """The weights timm 1.0.31 begins with, in its float32: a ladder in a drawn direction and at right angles to it."""
    width = given.required("dim", "embed_dim", "hidden_size")
    heads = given.required("num_heads", "num_attention_heads", most=MAX_HEADS)
    depth = given.size("depth", default=layer + 1, most=MAX_HEADS)
    size = width // heads
    require_number(size, "the size of a head", least=4, most=MAX_HEAD_DIM)
    require_layer(layer, depth)
    narrow = np.float32
    rungs = narrow(1.0) / narrow(given.number("temperature", default=10.0, above=0.0)) ** (
        np.arange(0, size, 4, dtype=narrow) / narrow(size)
    )
    turn = np.zeros((depth, heads), dtype=narrow)
    if given.flag("rotate", default=True):
        drawn = uniform(given.size("seed", default=0, least=0), depth * heads).reshape(depth, heads)
        turn = drawn.astype(narrow) * narrow(2.0) * narrow(math.pi)
    angle, beside = turn[layer][:, None], turn[layer][:, None] + narrow(math.pi / 2.0)
    x = np.concatenate([rungs * np.cos(angle), rungs * np.cos(beside)], axis=1)
    y = np.concatenate([rungs * np.sin(angle), rungs * np.sin(beside)], axis=1)
    return np.stack([x, y]).astype(np.float64)


def lightglue(config: Mapping[str, Any]) -> AxesSpec | list[AxesSpec]:
    """LightGlue: a learned direction per pair over a keypoint's x and y, one for all heads.

    `weights` are (pairs, axes), or (heads, pairs, axes). Without them, those of a projection as PyTorch starts it from
    `seed`: uniform in −1/√2 … 1/√2, for `descriptor_dim` over `num_attention_heads` dimensions.
    """
    given = ConfigReader(config)
    if given.value("weights", "projector") is None:
        width, heads = (
            given.size("descriptor_dim", "hidden_size", default=256),
            given.size("num_attention_heads", "num_heads", default=4),
        )
        pairs = width // heads // 2
        require_number(pairs, "the pairs of a head", least=1, most=MAX_HEAD_DIM)
        bound = math.sqrt(0.5)
        drawn = uniform(given.size("seed", default=0, least=0), 2 * pairs) * 2.0 * bound - bound
        return directions(drawn.reshape(pairs, 2), WH)
    weights = given.array("weights", "projector")
    if weights.ndim not in (2, 3):
        raise ValueError(f"weights must have shape (pairs, axes) or (heads, pairs, axes), got {weights.shape}")
    axes = WH if weights.shape[-1:] == (2,) else tuple(f"axis {k}" for k in range(weights.shape[-1]))
    return [directions(part, axes) for part in weights] if weights.ndim == 3 else directions(weights, axes)
