"""Loss by position on Markov chains, and the lowest possible loss.

Edelman et al., https://arxiv.org/abs/2402.11004: a model of two layers learns to count transitions.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rope_viz.embedding.spec import FloatArray, RopeSpec
from rope_viz.studies.heads import Turning
from rope_viz.tiny_lm import tasks
from rope_viz.tiny_lm.numpy_model import TinyLm, logits


@dataclass(frozen=True, eq=False)
class Loss:
    """Mean loss in nats of the token at each position from 1 on: `loss` (models, length − 1), `best` (length − 1,)."""

    loss: FloatArray
    best: FloatArray


def chain_loss(models: Sequence[TinyLm], spec: RopeSpec, length: int, *, sequences: int = 8, seed: int = 0) -> Loss:
    """Return the models' loss by position on Markov chains, and the Bayes-optimal loss on the same chains.

    Mean over `sequences`, the same ones for every model and method.
    """
    seeds = range(seed, seed + sequences)
    found = [np.mean([one_loss(model, spec, length, one) for one in seeds], axis=0) for model in models]
    best = np.mean([tasks.best_chain_loss(chain(length, one)[None])[0] for one in seeds], axis=0)
    return Loss(np.stack(found), best)


@functools.lru_cache(maxsize=512)
def one_loss(model: TinyLm, spec: RopeSpec, length: int, seed: int) -> FloatArray:
    """Return one model's loss on one chain, (length − 1,)."""
    tokens = chain(length, seed)
    found = logits(model, tokens, Turning.from_spec(spec, length), rows=np.arange(length - 1)).astype(float)
    top = found.max(axis=1)
    total = top + np.log(np.exp(found - top[:, None]).sum(axis=1))
    return np.asarray(total - found[np.arange(length - 1), tokens[1:]])


def chain(length: int, seed: int) -> tasks.Tokens:
    """Return the chain of a length and seed, (length,)."""
    tokens, _ = tasks.chains(np.random.default_rng([length, seed]), 1, length)
    return np.asarray(tokens[0])


def smoothed(values: FloatArray, columns: int = 48) -> tuple[FloatArray, FloatArray]:
    """Return means over intervals of growing width: (middle position, mean), along the last axis."""
    edges = np.unique(np.geomspace(1, values.shape[-1] + 1, columns + 1).round().astype(int)) - 1
    sums = np.add.reduceat(values, edges[:-1], axis=-1)
    return np.sqrt((edges[:-1] + 1.0) * edges[1:]), sums / np.diff(edges)
