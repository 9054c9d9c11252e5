"""Evaluations of tiny_lm for the page Recall, cached by spec and text length."""

from __future__ import annotations

import functools
import threading
from typing import Any

import numpy as np

from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures.compared import short_label
from rope_viz.pages.recall.figures import TEXTS
from rope_viz.picture.picture_request import Now
from rope_viz.tiny_lm import attention_diagnosis, checkpoints
from rope_viz.tiny_lm.numpy_model import TinyLm
from rope_viz.tiny_lm.recall import Recall, interval, recall

TRAINED = RopeSpec(head_dim=32, base=10_000.0, context=256)
"""The spec of tiny_lm in training, known before a checkpoint is loaded."""
HEADS = ("previous_token", "finder")
MOST = 4096
"""Number of evaluations remembered in `_known`."""


def explain_misfit(now: Now) -> str:
    """Return why tiny_lm cannot use the chosen method, "" if it can."""
    try:
        checkpoints.spec_for(now.spec, TRAINED)
    except ValueError:
        return TEXTS("refused", method=name_method(now.spec))
    return ""


def tiny_lm_spec(now: Now) -> RopeSpec:
    """Return the spec used by tiny_lm: the chosen one, or the chosen method on its own sizes."""
    return checkpoints.spec_for(now.spec, TRAINED)


def load_models() -> list[TinyLm]:
    """Return the three seeds of tiny_lm."""
    return [checkpoints.load_tiny_lm(name) for name in checkpoints.SEEDS]


def name_method(spec: RopeSpec) -> str:
    """Return a method's short name, for the end of a line."""
    return short_label(spec.scaling.name)


_known: set[tuple[RopeSpec, int, int, int]] = set()
_known_lock = threading.Lock()


def measure_recall(spec: RopeSpec, tokens: int, sequences: int, seeds: int = 3) -> Recall:
    """Return the recall of the first seeds on this many texts, cached."""
    found = recall(load_models()[:seeds], spec, tokens, sequences=sequences)
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
def measure_kept_attention(spec: RopeSpec, tokens: int) -> tuple[float, float]:
    """Return the shares of their trained attention on the correct tokens that the two heads of the first seed keep."""
    model = load_models()[0]
    works = [
        (
            getattr(attention_diagnosis, name)(model, spec, tokens),
            getattr(attention_diagnosis, name)(model, TRAINED, 256),
        )
        for name in HEADS
    ]
    first, second = (now.hit / max(then.hit, 1e-9) for now, then in works)
    return first, second


def find_interval(row: dict[str, Any]) -> tuple[float, float]:
    """Return the 95 % interval of a recall measured in training."""
    counted = checkpoints.measured()["questions"]
    texts = counted["sequences"] * checkpoints.TUNED_LENGTH // row["length"]
    return interval(np.array([row["recall"]]), texts * counted["facts"])
