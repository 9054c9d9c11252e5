"""The prompts of a probe: token ids, drawn at random and always the same."""

from __future__ import annotations

import numpy as np

from rope_viz.models.model_config import ModelConfig
from rope_viz.probe.tokens import FIRST, LAST

SHORT = 320
LONGEST = 8192
"""The longest prompt in tokens, unless the user asks for longer ones."""
SHORTEST = 8
BEYOND = 64
"""Tokens beyond the original length in the prompt that shows whether something changes there."""
NOISE_PROMPTS = 24
ROOM = 4
"""Tokens that a prompt leaves free below the limit, for the token that the server adds."""


def list_lengths(model: ModelConfig, longest: int = LONGEST) -> list[int]:
    """Return the lengths of the prompts: short, a little beyond the original length, and near the limit."""
    most = max(min(longest, max(spec.target for spec in model.specs.values()) - ROOM, model.limit - ROOM), SHORTEST)
    found = {min(SHORT, most), most}
    for spec in model.specs.values():
        if SHORT < spec.context + BEYOND < most:
            found.add(spec.context + BEYOND)
    return sorted(found)


def list_prompts(model: ModelConfig, longest: int = LONGEST) -> list[list[int]]:
    """Return the prompts, those of two tokens first: their answer depends on no rotation, so it shows the noise."""
    lengths = [2] * NOISE_PROMPTS + list_lengths(model, longest)
    return [draw_prompt(length, place) for place, length in enumerate(lengths)]


def draw_prompt(length: int, place: int) -> list[int]:
    """Return a prompt of this many tokens; `place` is its number."""
    drawn: list[int] = np.random.default_rng([length, place]).integers(FIRST, LAST + 1, length).tolist()
    return drawn
