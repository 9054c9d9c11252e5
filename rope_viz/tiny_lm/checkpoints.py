"""Checkpoints of tiny_lm: three seeds, loaded on demand, and one of them fine-tuned, which the wheel does not hold."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rope_viz.embedding.scaling import build_method
from rope_viz.embedding.spec import RopeSpec, short_repr
from rope_viz.tiny_lm.numpy_model import TinyLm, load

FOLDER = Path(__file__).with_name("checkpoints")
SEEDS = ("seed-0", "seed-1", "seed-2")
TUNED_LENGTH = 1024
UNSCALED = "unscaled_recall.json"
"""What the seeds find in long texts without scaling, as `recall.write_unscaled` wrote it."""
MAIN_METHODS = ("none", "linear", "ntk", "ntk-by-parts", "yarn", "llama3")
"""The methods that tiny_lm is fine-tuned with."""


@functools.cache
def load_tiny_lm(name: str) -> TinyLm:
    """Load a checkpoint by its folder name, such as "seed-0" or "yarn-100". Raises `ValueError` for unknown names."""
    if name not in names():
        raise ValueError(f"unknown demo model {short_repr(name)}; models are {', '.join(names())}")
    return load(FOLDER / name)


@functools.cache
def names() -> tuple[str, ...]:
    """Return the names of all checkpoints, seeds first."""
    found = sorted(path.parent.name for path in FOLDER.glob("*/config.json"))
    return tuple(sorted(found, key=lambda name: (name not in SEEDS, name)))


@functools.cache
def measured() -> Mapping[str, Any]:
    """Return the training's records: times, losses, and recall along the fine-tunings."""
    return MappingProxyType(json.loads((FOLDER / "measured.json").read_text(encoding="utf-8")))


@functools.cache
def unscaled_recall() -> Mapping[str, Mapping[str, str]]:
    """Return {seed: {length: one digit per question, 1 for a right answer}}."""
    return MappingProxyType(json.loads((FOLDER / UNSCALED).read_text(encoding="utf-8")))


@functools.lru_cache(maxsize=256)
def spec_for(spec: RopeSpec, trained: RopeSpec) -> RopeSpec:
    """Return the embedding of tiny_lm for a given `spec`: all of it if the sizes match, else only its scaling.

    A spec of other sizes (another model's) gives its scaling method and knobs, and its target as a multiple of its
    trained length. Raises `ValueError` if the method does not fit the pairs of tiny_lm (LongRoPE's lists).
    """
    if (spec.head_dim, spec.rotary_dim, spec.pairing) == (trained.head_dim, trained.rotary_dim, trained.pairing):
        return spec
    target = max(1, round(spec.target / spec.context * trained.context))
    return replace(trained, scaling=spec.scaling, target=target)


def scaled(trained: RopeSpec, method: str, length: int) -> RopeSpec:
    """Return tiny_lm's embedding under a method whose factor just reaches `length`; other knobs have defaults."""
    return replace(trained, scaling=build_method(method, length / trained.context), target=max(length, 1))
