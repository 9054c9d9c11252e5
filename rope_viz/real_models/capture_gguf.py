"""Capture q and k of the model in a GGUF file, before rotation, with our own forward pass: NumPy and tokenizers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from rope_viz.models.formats.gguf import is_gguf, read_header
from rope_viz.real_models.capture import Taken
from rope_viz.real_models.gguf_model import load_gguf, make_config
from rope_viz.real_models.gguf_tokenizer import make_tokenizer
from rope_viz.studies.capture_file import Layer
from rope_viz.tiny_lm import numpy_model


def find_gguf(path: str | Path) -> Path | None:
    """Return the GGUF file at a path, or the only one in a folder; None if there is none.

    Raises `ValueError` for a folder with several.
    """
    path = Path(path)
    if path.is_file():
        return path if is_gguf(path) else None
    found = sorted(path.glob("*.gguf")) if path.is_dir() else []
    if len(found) > 1:
        raise ValueError(f"{path} has {len(found)} GGUF files: name one of them, such as {found[0].name}")
    return found[0] if found else None


def capture_gguf(
    path: str | Path,
    text: str,
    *,
    tokens: int,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Taken:
    """Capture q and k of these layers and query heads (all, if None) on the first `tokens` of a text.

    Raises `ValueError` for a model or a tokenizer that is not built in, a text of less than two tokens, and layers or
    heads that the model does not have.
    """
    header = read_header(path, long_arrays=True)
    config = make_config(header)
    check_range("layer", layers, config["num_hidden_layers"])
    check_range("head", heads, config["num_attention_heads"])
    ids = np.asarray(make_tokenizer(header).encode(text).ids[:tokens])
    if len(ids) < 2:
        raise ValueError("the text must have at least two tokens")
    model = load_gguf(path)
    taken = Taken(config, model.name)

    def record(index: int, inputs: numpy_model.Taken) -> None:
        if layers is None or index in layers:
            taken.layers[index] = choose_heads(inputs, heads)
        if progress is not None:
            progress(index + 1, len(model.layers))

    numpy_model.hidden(model, ids, None, np.arange(len(ids)), record)
    return taken


def choose_heads(inputs: numpy_model.Taken, heads: Sequence[int] | None) -> Layer:
    """Return one layer with these query heads and the key head of each."""
    q, k = inputs.q, inputs.k
    if heads is not None:
        q, k = q[list(heads)], k[[head * len(k) // len(q) for head in heads]]
    numbers = range(len(q)) if heads is None else heads
    return Layer(q, k, scale=float(q.shape[-1] ** -0.5), heads=tuple(numbers))


def check_range(name: str, wanted: Sequence[int] | None, count: int) -> None:
    """Raise `ValueError` for an index that the model does not have."""
    wrong = [index for index in wanted or () if not 0 <= index < count]
    if wrong:
        raise ValueError(f"{name}s must be from 0 to {count - 1}, got {wrong}")
