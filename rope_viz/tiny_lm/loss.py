"""Loss by position on Markov chains, beside the least loss that any reader could have.

Edelman et al., https://arxiv.org/abs/2402.11004: a model of two layers learns to count what followed what.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rope_viz.embedding.spec import FloatArray, RopeSpec
from rope_viz.studies.heads import Turning
from rope_viz.tiny_lm import tasks
from rope_viz.tiny_lm.numpy_model import Reader, logits


@dataclass(frozen=True, eq=False)
class Loss:
    """Mean loss in nats of the token at each position from 1 on: `loss` (readers, length − 1), `best` (length − 1,)."""

    loss: FloatArray
    best: FloatArray


def chain_loss(readers: Sequence[Reader], spec: RopeSpec, length: int, *, sequences: int = 8, seed: int = 0) -> Loss:
    """The readers' loss by position on chains of their own per sequence, and the Bayes-optimal one on the same chains.

    Mean over `sequences`, the same ones for every reader and method.
    """
    seeds = range(seed, seed + sequences)
    found = [np.mean([one_loss(reader, spec, length, one) for one in seeds], axis=0) for reader in readers]
    best = np.mean([tasks.best_chain_loss(chain(length, one)[None])[0] for one in seeds], axis=0)
    return Loss(np.stack(found), best)


@functools.lru_cache(maxsize=512)
def one_loss(reader: Reader, spec: RopeSpec, length: int, seed: int) -> FloatArray:
    """One reader's loss on one chain, (length − 1,)."""
    tokens = chain(length, seed)
    found = logits(reader, tokens, Turning.of(spec, length), rows=np.arange(length - 1)).astype(float)
    top = found.max(axis=1)
    total = top + np.log(np.exp(found - top[:, None]).sum(axis=1))
    return np.asarray(total - found[np.arange(length - 1), tokens[1:]])


def chain(length: int, seed: int) -> tasks.Tokens:
    """The chain of a length and seed, (length,)."""
    tokens, _ = tasks.chains(np.random.default_rng([length, seed]), 1, length)
    return np.asarray(tokens[0])


def smoothed(values: FloatArray, columns: int = 48) -> tuple[FloatArray, FloatArray]:
    """Means over stretches of positions that grow with the position: (middle position, mean), along the last axis."""
    edges = np.unique(np.geomspace(1, values.shape[-1] + 1, columns + 1).round().astype(int)) - 1
    sums = np.add.reduceat(values, edges[:-1], axis=-1)
    return np.sqrt((edges[:-1] + 1.0) * edges[1:]), sums / np.diff(edges)
