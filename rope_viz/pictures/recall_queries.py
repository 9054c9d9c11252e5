"""Evaluations of tiny_lm for the page Recall, cached by spec and text length."""

from __future__ import annotations

import functools
import threading
from typing import Any

import numpy as np

from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures.scaling import short_label
from rope_viz.pictures.picture_request import Now
from rope_viz.tiny_lm import attention_diagnosis, checkpoints
from rope_viz.tiny_lm.numpy_model import TinyLm
from rope_viz.tiny_lm.recall import Recall, interval
from rope_viz.tiny_lm.recall import recall as asked

TRAINED = RopeSpec(head_dim=32, base=10_000.0, context=256)
"""The spec of tiny_lm in training, known before a checkpoint is loaded."""
HEADS = ("previous_token", "finder")
MOST = 4096
"""Number of evaluations remembered in `_known`."""


def misfit(now: Now) -> str:
    """Return why tiny_lm cannot use the chosen method, "" if it can."""
    try:
        checkpoints.spec_for(now.spec, TRAINED)
    except ValueError:
        label = short_label(now.spec.scaling.name)
        return f"{label} has numbers for each pair of its own model; the reader has 16 pairs. Choose another method."
    return ""


def tiny_lm_spec(now: Now) -> RopeSpec:
    """Return the spec used by tiny_lm: the chosen one, or the chosen method on its own sizes."""
    return checkpoints.spec_for(now.spec, TRAINED)


def readers() -> list[TinyLm]:
    """Return the three seeds of tiny_lm."""
    return [checkpoints.load_tiny_lm(name) for name in checkpoints.SEEDS]


def label(spec: RopeSpec) -> str:
    """Return a method's short name, for the end of a line."""
    return short_label(spec.scaling.name)


_known: set[tuple[RopeSpec, int, int, int]] = set()
_known_lock = threading.Lock()


def reading(spec: RopeSpec, tokens: int, sequences: int, seeds: int = 3) -> Recall:
    """Return the recall of the first seeds on this many texts, cached."""
    found = asked(readers()[:seeds], spec, tokens, sequences=sequences)
    with _known_lock:
        if len(_known) >= MOST:
            _known.clear()
        _known.add((spec, tokens, sequences, seeds))
    return found


def is_known(spec: RopeSpec, tokens: int, sequences: int, seeds: int) -> bool:
    """True if this evaluation has been made before."""
    with _known_lock:
        return (spec, tokens, sequences, seeds) in _known


@functools.lru_cache(maxsize=256)
def kept_attention(spec: RopeSpec, tokens: int) -> tuple[float, float]:
    """Return how much of their trained attention on the right tokens the two heads of the first seed keep (0 to 1)."""
    reader = readers()[0]
    works = [
        (
            getattr(attention_diagnosis, name)(reader, spec, tokens),
            getattr(attention_diagnosis, name)(reader, TRAINED, 256),
        )
        for name in HEADS
    ]
    first, second = (now.hit / max(then.hit, 1e-9) for now, then in works)
    return first, second


def margin(row: dict[str, Any]) -> tuple[float, float]:
    """Return the 95 % interval of a recall measured in training."""
    counted = checkpoints.measured()["questions"]
    texts = counted["sequences"] * checkpoints.TUNED_LENGTH // row["length"]
    return interval(np.array([row["recall"]]), texts * counted["facts"])
