"""The scaling that a model was trained with, and what another embedding loses of it.

The weights know the frequencies and the factors on the scores that they were trained with. A longer context may slow a
pair down further; a pair that turns faster than in training reaches its angles too early.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rope_viz.embedding.scaling import mscale
from rope_viz.embedding.spec import RopeSpec, lists
from rope_viz.models import TEXTS
from rope_viz.models.identity.identify_model import Identity
from rope_viz.models.identity.shipped_scaling import is_factor_for_length

TOLERANCE = 1e-6


@dataclass(frozen=True)
class TrainedLoss:
    """What an embedding loses of a trained one.

    `faster` pairs of `pairs` turn faster than in training, by up to `ratio`. `factor` is the trained factor on the
    scores that it drops, 1 where it drops none.
    """

    trained: RopeSpec
    faster: int
    ratio: float
    factor: float

    @property
    def words(self) -> str:
        """The loss in words, with its numbers."""
        key = "loss.faster_by" if np.isfinite(self.ratio) else "loss.faster"
        faster = TEXTS(key, faster=self.faster, pairs=self.trained.pairs, ratio=self.ratio) if self.faster else ""
        factor = TEXTS("loss.factor", factor=self.factor) if self.factor != 1.0 else ""
        return TEXTS("loss.both", faster=faster, factor=factor) if faster and factor else faster or factor


def find_trained_embedding(found: Identity) -> RopeSpec:
    """Return the embedding that a longer context starts from: what the file computes today.

    It is what the model ships with where the file departs from that by mistake. A fine-tune may have been trained with
    a scaling of its own, and a factor for another length is no mistake.
    """
    theirs, ours = found.shipped, found.spec
    if theirs is None or not found.departs or (found.how == "fine-tune" and ours.is_scaled):
        return ours
    # Without scaling and no longer than the original length, it may be the model before it was extended.
    if not ours.is_scaled and theirs.scaling.divides_from_length and ours.target <= theirs.context:
        return ours
    return ours if is_factor_for_length(ours, theirs, found.departs) else theirs


def is_trained_scaling(recognised: Identity, trained: RopeSpec) -> bool:
    """Return whether an embedding surely has the scaling that the model was trained with, at every length."""
    scaling = trained.scaling
    given = any(getattr(scaling, name) for name in lists(scaling))
    shipped = recognised.exact or trained is recognised.shipped
    return given or (not scaling.depends_on_length and trained.is_scaled and (shipped or scaling.is_trained_with))


def find_loss(trained: RopeSpec, made: RopeSpec) -> TrainedLoss | None:
    """Return what an embedding loses of a trained one; None where no pair turns faster and no factor is dropped.

    What depends on the length is compared below, at and beyond the longest length that the trained one reaches, where
    it counts as it is at that length.
    """
    end = max(trained.target, trained.context + bool(lists(trained.scaling)))
    ratios = np.ones(trained.pairs)
    dropped = 1.0
    for length in {trained.context, end, max(end, made.target)}:
        before, after = trained.inv_freq(min(length, end)), made.inv_freq(length)
        if before.shape != after.shape:
            return TrainedLoss(trained, trained.pairs, np.inf, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.where(after > 0, after / before, 0.0)
        ratios = np.maximum(ratios, found)
        for had, has in zip(score_factors(trained, min(length, end)), score_factors(made, length), strict=True):
            if (had - 1.0) * (had - has) > TOLERANCE * abs(had - 1.0):
                dropped = had
    faster = int(np.count_nonzero(ratios > 1.0 + TOLERANCE))
    return TrainedLoss(trained, faster, float(ratios.max()), dropped) if faster or dropped != 1.0 else None


def score_factors(spec: RopeSpec, length: int) -> tuple[float, float]:
    """Return the factor on the logits of the rotated part, and the one that DeepSeek's classes put on all logits."""
    weight = getattr(spec.scaling, "mscale_all_dim", None) or 0.0
    return spec.attention_factor(length) ** 2, mscale(spec.scaling.factor_for(spec), weight) ** 2
