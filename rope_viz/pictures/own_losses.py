"""Losses by position on a user's text: of the measured model in a file, of the real model, or as measured here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rope_viz.embedding.spec import FloatArray
from rope_viz.pictures.picture_request import Now
from rope_viz.pictures.real_heads import real_spec
from rope_viz.pictures.recall_choices import MEASURED, REPORT
from rope_viz.studies.real_model import load_first_losses
from rope_viz.tiny_lm.text_results import BLOCK, FACTOR, average_blocks


@dataclass(frozen=True, eq=False)
class OwnLosses:
    """{method: (1, blocks of `block` tokens)} in nats, and what was read.

    `name` is that of the stored content, "" for the shipped losses; `model` is the name of a user's model.
    """

    losses: Mapping[str, FloatArray]
    block: int
    tokens: int
    factor: float
    trained: int
    name: str = ""
    model: str = ""


def own_losses(now: Now) -> OwnLosses:
    """Return the losses to show: of a measured file before those of a text that was read live."""
    if (held := now[MEASURED]) is not None:
        own = held.value
        return OwnLosses(own.losses, own.block, own.tokens, own.factor, own.spec().context, held.name, own.name)
    trained, live = real_spec().context, now[REPORT]
    if live is None:
        block, losses = load_first_losses()
        return OwnLosses(losses, block, block * losses["none"].shape[1], FACTOR, trained)
    found = live.value
    averaged = {method: average_blocks(values, BLOCK) for method, values in found.losses.items()}
    return OwnLosses(averaged, BLOCK, found.tokens, found.factor, trained, live.name)
