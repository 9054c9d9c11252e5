"""The log-probabilities that a probe gives under a hypothesis: by our own forward pass, or by transformers."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from rope_viz.embedding.spec import FloatArray
from rope_viz.probe import plain_model
from rope_viz.probe.answers import Targets
from rope_viz.probe.hypotheses import Hypothesis
from rope_viz.probe.weights import LARGEST, read_safetensors
from rope_viz.probe.worker_process import start_worker
from rope_viz.storage.read_file import read_limited

Reference: TypeAlias = Callable[[Sequence[int], Targets, Mapping[str, Hypothesis]], dict[str, FloatArray]]
"""A function of prompt, targets and hypotheses: the log-probability of each target, by computable hypothesis."""


@contextlib.contextmanager
def open_reference(
    config: Mapping[str, Any], intended: Hypothesis, folder: str | Path | None = None
) -> Iterator[Reference]:
    """Yield the reference for a probe's config: with the weights of its folder, or with those drawn again.

    Raises `ValueError` where there is none.
    """
    if plain_model.is_plain(config):
        weights = plain_model.draw_weights(config)
        if folder is not None:
            weights = read_safetensors(read_limited(Path(folder) / "model.safetensors", LARGEST))
        yield functools.partial(plain_model.compute_log_probs, config, weights)
        return
    with start_worker() as worker:
        about = {"config": dict(config), "folder": "" if folder is None else str(folder)}
        worker.ask({"task": "open", "intended": as_data(intended), **about})

        def compute(
            prompt: Sequence[int], targets: Targets, hypotheses: Mapping[str, Hypothesis]
        ) -> dict[str, FloatArray]:
            data = [as_data(one) for one in hypotheses.values()]
            task = {"task": "compute", "prompt": list(prompt), "targets": targets.tolist(), "hypotheses": data}
            found = zip(hypotheses, worker.ask(task), strict=True)
            return {name: np.array(values) for name, values in found if values is not None}

        yield compute


def as_data(hypothesis: Hypothesis) -> dict[str, Any]:
    """Return a hypothesis as JSON data."""
    layers = {layer: {**vars(one), "inv_freq": one.inv_freq.tolist()} for layer, one in hypothesis.layers.items()}
    return {**vars(hypothesis), "layers": layers}
