"""Compare a changed config with the one before it: new findings of the check, and layers that were not to change."""

from __future__ import annotations

import numpy as np

from rope_viz.advice.lint import Finding, check
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.model_config import ModelConfig

IN_VAIN = ("scaled-window", "scaled-sliding")
"""Rules about scaling that extends nothing: their findings count, whatever their severity."""
TOLERANCE = 1e-6


def find_new_findings(before: ModelConfig, after: ModelConfig, *, without: tuple[str, ...] = ()) -> tuple[Finding, ...]:
    """Return errors, warnings and scaling in vain that the check finds in a changed config and not in the one before.

    Differences between runtimes are left out: every requested runtime is emulated on its own.
    """
    slow = ("runtimes-differ", *without)
    known = {finding.rule for finding in check(before, without=slow)}
    return tuple(
        finding
        for finding in check(after, without=slow)
        if finding.rule not in known and (finding.severity in ("error", "warning") or finding.rule in IN_VAIN)
    )


def find_strayed_layers(before: ModelConfig, after: ModelConfig, layer: str) -> tuple[str, ...]:
    """Return the layer types other than `layer` whose embedding has changed, or which are no longer there."""
    found = after.specs
    return tuple(
        name
        for name, spec in before.specs.items()
        if name != layer and (name not in found or not has_same_angles(spec, found[name]))
    )


def has_same_angles(one: RopeSpec, other: RopeSpec) -> bool:
    """Return whether two embeddings have the same frequencies and factor on cos and sin, below and beyond training."""
    return all(
        one.inv_freq(length).shape == other.inv_freq(length).shape
        and np.allclose(one.inv_freq(length), other.inv_freq(length), rtol=TOLERANCE, atol=0.0)
        and abs(one.attention_factor(length) - other.attention_factor(length)) < TOLERANCE
        for length in (1, one.target)
    )
