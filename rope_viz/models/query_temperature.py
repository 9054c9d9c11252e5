"""Attention temperature by position: a factor on the query that depends on where the query is, as some models have it.

Sources: Llama 4 (https://arxiv.org/abs/2501.19399), Ministral 3 and Mistral 4 in transformers 5.23.0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from rope_viz.embedding.spec import MAX_LENGTH, FloatArray, require_number
from rope_viz.models import TEXTS
from rope_viz.models.architecture import QueryTemperature
from rope_viz.models.model_config import ModelConfig


@dataclass(frozen=True)
class Temperature:
    """The factor of one model: the rule of its class with the numbers of its config."""

    rule: QueryTemperature
    strength: float = 0.0
    length: int = 0

    @property
    def is_learned(self) -> bool:
        """Whether the values are in the weights, so that no config gives them."""
        return self.rule.formula == "learned"

    @property
    def start(self) -> int:
        """The first position whose factor is above 1."""
        return 0 if self.rule.formula == "power" else self.length - self.rule.first + (self.rule.formula == "log")

    def factor(self, positions: FloatArray) -> FloatArray:
        """Return the factor of queries at these positions, counted from 0. Raise `ValueError` if it is learned."""
        if self.is_learned:
            raise ValueError(TEXTS("query_temperature.learned"))
        at = np.asarray(positions, dtype=np.float64) + self.rule.first
        if self.rule.formula == "log":
            return np.asarray(np.log(np.maximum(at, self.length)) / math.log(self.length))
        if self.rule.formula == "power":
            return np.asarray((1.0 + at / self.length) ** self.strength)
        return np.asarray(1.0 + self.strength * np.log1p(np.floor(at / self.length)))


def find_temperature(config: ModelConfig) -> Temperature | None:
    """Return the attention temperature of a model, None where it has none.

    Raise `ValueError` for a number that it cannot be computed from.
    """
    rule = config.architecture.query_temperature
    if rule is None or (rule.switch and not _read(config, rule.switch, True)):
        return None
    if rule.formula == "learned":
        return Temperature(rule)
    length = _read(config, rule.length, rule.default_length)
    strength = 1.0 if rule.formula == "log" else _read(config, rule.strength, rule.default_strength)
    if strength is None or length is None:
        return None
    require_number(length, rule.length, least=2, most=MAX_LENGTH, integer=True)
    require_number(strength, rule.strength, least=0.0, most=100.0)
    return Temperature(rule, float(strength), int(length))


def _read(config: ModelConfig, key: str, default: Any) -> Any:
    """Return a key of the language model, or of its RoPE parameters if the class reads it there."""
    for place in (config.part.config, config.rope_parameters[config.main_layer]):
        if place.get(key) is not None:
            return place[key]
    return default
