"""Conversion of q and k weights between the two pairings, and the effect of converting only some of them.

The permutation is that of transformers' `convert_llama_weights_to_hf.py` (interleaved to half) and of llama.cpp's
conversion (half to interleaved): https://github.com/huggingface/transformers and https://github.com/ggml-org/llama.cpp
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from rope_viz.embedding.spec import FloatArray, Pairing, RopeSpec, require_number, short_repr
from rope_viz.studies.rotation import IntArray, other_pairing, pairing_permutation, rotate
from rope_viz.studies.vectors import draw_normals

Library = Literal["numpy", "torch"]

MAX_HEADS = 1024


def weight_permutation(spec: RopeSpec, heads: int, source: Pairing, to: Pairing) -> IntArray:
    """Return row indices, shape (heads * head_dim,): `weight[indices]` is the q or k projection in layout `to`.

    `weight` has shape (heads * head_dim, model width), as torch stores it. Biases and q/k norm weights take the same
    indices (a norm shared by all heads those of one head). Raises `ValueError` for an invalid head count.
    """
    require_number(heads, "heads", least=1, most=MAX_HEADS, integer=True)
    one = pairing_permutation(spec, source, to)
    return (np.arange(int(heads))[:, None] * spec.head_dim + one).ravel()


def conversion_code(spec: RopeSpec, heads: int, source: Pairing, to: Pairing, library: Library = "torch") -> str:
    """Return code of a function `convert(weight)` for this head size and number of heads, in NumPy or torch.

    It takes a weight of shape (heads * head_dim, width) or a bias of shape (heads * head_dim,).
    """
    require_number(heads, "heads", least=1, most=MAX_HEADS, integer=True)
    if library not in ("numpy", "torch"):
        raise ValueError(f"library must be 'numpy' or 'torch', got {short_repr(library)}")
    rotated = 2 * spec.pairs
    split = f"{spec.pairs}, 2" if source == "interleaved" else f"2, {spec.pairs}"
    swap = "swapaxes" if library == "numpy" else "transpose"
    join = "np.concatenate" if library == "numpy" else "torch.cat"
    axis = "axis" if library == "numpy" else "dim"
    change = f"{swap}(1, 2)" if source != to else "copy()" if library == "numpy" else "clone()"
    lines = [
        "import numpy as np" if library == "numpy" else "import torch",
        "",
        "",
        "def convert(weight):",
        f'    """Rows of q_proj or k_proj, {heads} heads of {spec.head_dim}: {source} to {to}."""',
        f"    heads = weight.reshape({heads}, {spec.head_dim}, -1)",
        f"    rotated = heads[:, :{rotated}].reshape({heads}, {split}, -1).{change}.reshape({heads}, {rotated}, -1)",
        f"    return {join}([rotated, heads[:, {rotated}:]], {axis}=1).reshape(weight.shape)",
    ]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, eq=False)
class Mistake:
    """Scores over the distance for one way to convert, and their relative error.

    `error` is the root mean square of the difference over the root mean square of the right scores.
    """

    name: str
    scores: FloatArray
    error: float


CASES = (
    ("both", True, True),
    ("q", True, False),
    ("k", False, True),
    ("none", False, False),
)


def conversion_mistakes(
    spec: RopeSpec, distances: ArrayLike, *, seed: int = 0, length: int | None = None
) -> tuple[Mistake, ...]:
    """Run a checkpoint of the other pairing with the spec's, for each way to convert q and k.

    One random q and k (fixed by `seed`), the query `distances` positions after the key; scores are q·k/√head_dim, shape
    of `distances`. With neither converted the score is right at distance 0 only; with one converted, nowhere.
    """
    gaps = np.asarray(distances, dtype=np.float64)
    q, k = (draw_normals(f"conversion {name} {seed}", spec.head_dim) for name in "qk")
    order = pairing_permutation(spec, other_pairing(spec), spec.pairing)
    scores = {
        name: score(spec, q[order] if q_done else q, k[order] if k_done else k, gaps, length)
        for name, q_done, k_done in CASES
    }
    right = scores["both"]
    scale = float(np.sqrt(np.mean(right**2))) or 1.0
    return tuple(
        Mistake(name, scores[name], float(np.sqrt(np.mean((scores[name] - right) ** 2))) / scale)
        for name, _, _ in CASES
    )


def score(spec: RopeSpec, q: FloatArray, k: FloatArray, distances: FloatArray, length: int | None) -> FloatArray:
    """Return q·k/√head_dim with q rotated by the distance and k at position 0."""
    gain = spec.attention_factor(length)
    turned = rotate(spec, q, distances, length=length, gain=gain)
    at_zero = rotate(spec, k, 0.0, length=length, gain=gain)
    result: FloatArray = turned @ at_zero / np.sqrt(spec.head_dim)
    return result
