"""The log-probabilities that a probe gives under a hypothesis: by our own forward pass, or by transformers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from rope_viz.embedding.spec import FloatArray
from rope_viz.probe import plain_model
from rope_viz.probe.answers import Targets
from rope_viz.probe.hypotheses import Hypothesis

Reference: TypeAlias = Callable[[Sequence[int], Targets, Mapping[str, Hypothesis]], dict[str, FloatArray]]
"""A function of prompt, targets and hypotheses: the log-probability of each target, by hypothesis."""


def open_reference(config: Mapping[str, Any]) -> Reference:
    """Return the reference for a probe's config. Raises `ValueError` where there is none."""
    if not plain_model.is_plain(config):
        raise ValueError(f"no reference for {config['model_type']} yet")
    weights = plain_model.draw_weights(config)

    def compute(prompt: Sequence[int], targets: Targets, hypotheses: Mapping[str, Hypothesis]) -> dict[str, FloatArray]:
        return plain_model.compute_log_probs(config, weights, prompt, targets, hypotheses)

    return compute
