"""What the page Recall asks the readers, and with which embedding; the same question is answered once."""

from __future__ import annotations

import functools
import threading
from typing import Any

import numpy as np

from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures.scaling import short_label
from rope_viz.pictures.picture_request import Now
from rope_viz.tiny_lm import attention_diagnosis, checkpoints
from rope_viz.tiny_lm.numpy_model import Reader
from rope_viz.tiny_lm.recall import Recall, interval
from rope_viz.tiny_lm.recall import recall as asked

TRAINED = RopeSpec(head_dim=32, base=10_000.0, context=256)
"""What the readers were trained with, known before any is read."""
HEADS = ("previous_token", "finder")
MOST = 4096
"""Questions whose having been asked is remembered."""


def misfit(now: Now) -> str:
    """Why the reader cannot read with what was chosen, if it cannot."""
    try:
        checkpoints.spec_for(now.spec, TRAINED)
    except ValueError:
        label = short_label(now.spec.scaling.name)
        return f"{label} has numbers for each pair of its own model; the reader has 16 pairs. Choose another method."
    return ""


def lent(now: Now) -> RopeSpec:
    """The embedding the reader gets: the chosen one, or the chosen method on the reader's own."""
    return checkpoints.spec_for(now.spec, TRAINED)


def readers() -> list[Reader]:
    """The three seeds."""
    return [checkpoints.reader(name) for name in checkpoints.SEEDS]


def label(spec: RopeSpec) -> str:
    """A method's name at the end of a line."""
    return short_label(spec.scaling.name)


_known: set[tuple[RopeSpec, int, int, int]] = set()
_known_lock = threading.Lock()


def reading(spec: RopeSpec, tokens: int, sequences: int, seeds: int = 3) -> Recall:
    """What the first seeds find in so many texts; the same question is answered once."""
    found = asked(readers()[:seeds], spec, tokens, sequences=sequences)
    with _known_lock:
        if len(_known) >= MOST:
            _known.clear()
        _known.add((spec, tokens, sequences, seeds))
    return found


def is_known(spec: RopeSpec, tokens: int, sequences: int, seeds: int) -> bool:
    """Whether `reading` has been asked this before."""
    with _known_lock:
        return (spec, tokens, sequences, seeds) in _known


@functools.lru_cache(maxsize=256)
def kept(spec: RopeSpec, tokens: int) -> tuple[float, float]:
    """What the two heads of the first seed still give the right tokens, as shares of what they gave in training."""
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
    """The 95 % interval of a share that the training measured."""
    counted = checkpoints.measured()["questions"]
    texts = counted["sequences"] * checkpoints.TUNED_LENGTH // row["length"]
    return interval(np.array([row["recall"]]), texts * counted["facts"])
