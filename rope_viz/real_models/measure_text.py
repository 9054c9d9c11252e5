"""Measure a GGUF model on a user's text, in a process of its own."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from rope_viz.models.formats.gguf import read_header
from rope_viz.real_models import TEXTS
from rope_viz.real_models.gguf_model import load_gguf, make_tokenizer
from rope_viz.real_models.model_run import ModelRun
from rope_viz.real_models.text_results import (
    BLOCK,
    DEPTHS,
    FACTOR,
    LEAST,
    MOST,
    MOST_DIGITS,
    FoundKeys,
    TextLosses,
    is_pass_key,
)
from rope_viz.storage.processes import Tell
from rope_viz.studies.heads import Turning
from rope_viz.tiny_lm import numpy_model
from rope_viz.tiny_lm.checkpoints import scaled
from rope_viz.tiny_lm.numpy_model import Floats, TinyLm
from rope_viz.tiny_lm.passkey import hide_key
from rope_viz.tiny_lm.tasks import Tokens

See: TypeAlias = Callable[[int, numpy_model.AttentionInputs], None]

ROWS = 128
"""Positions whose logits are in memory at once."""
LOADED = 0.1
"""Share of the progress after which the model is loaded."""
WORKERS = min(4, os.cpu_count() or 1)
"""Methods that are measured at once, each in one thread."""


class TextRun(ModelRun):
    """A measurement of a text in a process of its own; no other measurement runs at the same time.

    With a `key`, it asks for this pass key at several depths; without one, it measures the loss by position.
    """

    function = f"{__name__}:measure"

    def __init__(self, model: Path, text: str, methods: Iterable[str], key: str | None = None) -> None:
        super().__init__({"model": str(model), "text": text, "methods": list(methods), "key": key})

    def make_report(self, workload: dict[str, Any]) -> TextLosses | FoundKeys:
        return TextLosses() if workload["key"] is None else FoundKeys()

    @property
    def first_step(self) -> str:
        return str(TEXTS("live.loading"))


def text_losses(model: TinyLm, ids: ArrayLike, turn: Turning, see: See | None = None) -> Floats:
    """Return the loss in nats of every token but the first, float32 (tokens − 1,)."""
    tokens = numpy_model.checked_tokens(model, ids)
    state = numpy_model.hidden(model, tokens, turn, np.arange(len(tokens)), see)
    found = np.empty(len(tokens) - 1, dtype=np.float32)
    for first in range(0, len(found), ROWS):
        rows = slice(first, min(first + ROWS, len(found)))
        logits = state[rows] @ model.unembedding.T
        right = logits[np.arange(len(logits)), tokens[1:][rows]]
        most = logits.max(axis=1, keepdims=True)
        found[rows] = np.log(np.exp(logits - most).sum(axis=1)) + most[:, 0] - right
    return found


def right_digits(model: TinyLm, ids: Tokens, digits: int, turn: Turning, see: See | None = None) -> int:
    """Return how many of the last `digits` tokens are the model's first choice, given all tokens before."""
    rows = np.arange(len(ids) - digits - 1, len(ids) - 1)
    state = numpy_model.hidden(model, numpy_model.checked_tokens(model, ids), turn, rows, see)
    return int((np.argmax(state @ model.unembedding.T, axis=1) == ids[-digits:]).sum())


def measure(arguments: dict[str, Any], tell: Tell) -> None:
    """Tell progress and results, or a line with `problem`, a sentence for the user."""
    path, methods, key = Path(arguments["model"]), arguments["methods"], arguments["key"]
    tokenizer = make_tokenizer(read_header(path, long_arrays=True))
    ids = encode(tokenizer, arguments["text"])
    if len(ids) < LEAST:
        tell({"problem": TEXTS("live.too_short", tokens=len(ids), least=LEAST)})
        return
    ids = ids[: min(len(ids), MOST) // BLOCK * BLOCK]
    if key is not None and not is_pass_key(key):
        tell({"problem": TEXTS("live.wrong_key", most=MOST_DIGITS)})
        return
    model = load_gguf(
        path, lambda done, count: tell({"fraction": LOADED * done / count, "name": TEXTS("live.loading")})
    )
    turns = {
        method: Turning.from_spec(scaled(model.spec, method, round(FACTOR * model.spec.context)), len(ids))
        for method in methods
    }
    name = TEXTS("live.reading", tokens=len(ids))
    tell({"model": model.name, "tokens": len(ids), "fraction": LOADED, "name": name})
    parts = plan_losses(model, ids, turns) if key is None else plan_keys(model, tokenizer, ids, turns, key)
    run_threads(parts, len(model.layers), name, tell)


def plan_losses(model: TinyLm, ids: Tokens, turns: Mapping[str, Turning]) -> list[Callable[[See], dict[str, Any]]]:
    """Return a function per method that measures the losses of all tokens."""

    def measure_method(method: str, see: See) -> dict[str, Any]:
        losses = text_losses(model, ids, turns[method], see)
        return {"method": method, "losses": np.round(losses.astype(float), 4).tolist()}

    return [functools.partial(measure_method, method) for method in turns]


def plan_keys(
    model: TinyLm, tokenizer: Any, ids: Tokens, turns: Mapping[str, Turning], key: str
) -> list[Callable[[See], dict[str, Any]]]:
    """Return a function per method and depth that asks for a pass key hidden in the text."""
    texts = [hide_key(functools.partial(encode, tokenizer), ids, depth, key) for depth in DEPTHS]
    if any([tokenizer.decode([token]) for token in text[-len(key) :]] != list(key) for text in texts):
        raise ValueError("this model does not read digits one by one")

    def ask(method: str, depth: int, see: See) -> dict[str, Any]:
        right = right_digits(model, texts[depth], len(key), turns[method], see)
        return {"method": method, "key": key, "depth": depth, "right": right}

    return [functools.partial(ask, method, depth) for method in turns for depth in range(len(DEPTHS))]


def encode(tokenizer: Any, text: str) -> Tokens:
    """Return the tokens of a text."""
    return np.asarray(tokenizer.encode(text, add_special_tokens=False).ids, dtype=np.int64)


def run_threads(parts: Sequence[Callable[[See], dict[str, Any]]], layers: int, name: str, tell: Tell) -> None:
    """Run the parts in `WORKERS` threads; tell the progress after each layer, and each result."""
    lock, done = threading.Lock(), 0

    def see(index: int, taken: numpy_model.AttentionInputs) -> None:
        nonlocal done
        with lock:
            done += 1
            tell({"fraction": LOADED + (1 - LOADED) * done / (len(parts) * layers), "name": name})

    pool = ThreadPoolExecutor(WORKERS)
    try:
        for found in [pool.submit(part, see) for part in parts]:
            result = found.result()
            with lock:
                tell({"fraction": LOADED + (1 - LOADED) * done / (len(parts) * layers), "name": name} | result)
    finally:
        pool.shutdown(cancel_futures=True)
