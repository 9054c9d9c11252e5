"""What a real model made of a user's text: its loss by position, and the pass keys that it found."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from rope_viz.embedding.spec import FloatArray, require_number
from rope_viz.real_models import TEXTS
from rope_viz.storage.decode_json import decode_json
from rope_viz.tiny_lm.checkpoints import MAIN_METHODS

FACTOR = 2.0
"""Factor of all methods."""
BLOCK = 32
"""Tokens over which losses are averaged; a text is read up to a multiple of it."""
LEAST, MOST = 256, 2048
"""Tokens of a text that are read."""
DEPTHS = (0.1, 0.5, 0.9)
"""Depths in the text at which a pass key is hidden."""
MOST_DIGITS = 8
"""Digits of a pass key."""


@dataclass
class TextResult:
    """The model's name, the number of tokens that it has read at once, and the factor of the methods."""

    model: str = ""
    tokens: int = 0
    factor: float = FACTOR

    def add_line(self, line: dict[str, Any]) -> None:
        self.model, self.tokens = line.get("model", self.model), line.get("tokens", self.tokens)

    def pack(self) -> bytes:
        return json.dumps(dataclasses.asdict(self), allow_nan=False).encode()


@dataclass
class TextLosses(TextResult):
    """Losses on one text: {method: nats of every token but the first}."""

    losses: dict[str, list[float]] = field(default_factory=dict)

    def add_line(self, line: dict[str, Any]) -> None:
        super().add_line(line)
        if "losses" in line:
            self.losses[line["method"]] = line["losses"]


@dataclass
class FoundKeys(TextResult):
    """Pass keys in one text: {method: right digits at each of `DEPTHS`}, and the key."""

    key: str = ""
    right: dict[str, list[int]] = field(default_factory=dict)

    def add_line(self, line: dict[str, Any]) -> None:
        super().add_line(line)
        self.key = line.get("key", self.key)
        if "right" in line:
            self.right.setdefault(line["method"], [0] * len(DEPTHS))[line["depth"]] = line["right"]


Found = TypeVar("Found", TextLosses, FoundKeys)


def read_text_losses(content: bytes) -> TextLosses:
    """Return the losses in a JSON text. Raises `ValueError` with a sentence for another content."""
    found = read_result(content, TextLosses)
    check_values(found.losses, found.tokens - 1, least=-1.0, most=1e4)
    return found


def read_found_keys(content: bytes) -> FoundKeys:
    """Return the pass keys in a JSON text. Raises `ValueError` with a sentence for another content."""
    found = read_result(content, FoundKeys)
    if not is_pass_key(found.key):
        raise ValueError(TEXTS("live.no_report"))
    check_values(found.right, len(DEPTHS), least=0, most=len(found.key), integer=True)
    return found


def read_result(content: bytes, kind: type[Found]) -> Found:
    """Return a result whose values by method are not checked yet."""
    problem = TEXTS("live.no_report")
    found = decode_json(content, problem)
    if not isinstance(found, dict) or set(found) != {each.name for each in dataclasses.fields(kind)}:
        raise ValueError(problem)
    if not isinstance(found["model"], str) or len(found["model"]) > 200:
        raise ValueError(problem)
    require_number(found["tokens"], "tokens", least=LEAST, most=MOST, integer=True)
    require_number(found["factor"], "factor", least=1.0, most=1e6)
    return kind(**found)


def check_values(values: Any, count: int, **limits: Any) -> None:
    """Raise `ValueError` unless this is {method: `count` numbers within limits}, with the method "none"."""
    if not isinstance(values, dict) or "none" not in values or not set(values) <= set(MAIN_METHODS):
        raise ValueError(TEXTS("live.no_report"))
    for row in values.values():
        if not isinstance(row, list) or len(row) != count:
            raise ValueError(TEXTS("live.no_report"))
        for value in row:
            require_number(value, TEXTS("live.value"), **limits)


def is_pass_key(key: object) -> bool:
    """True if this is a text of one to `MOST_DIGITS` digits."""
    return isinstance(key, str) and key.isascii() and key.isdecimal() and len(key) <= MOST_DIGITS


def average_blocks(values: ArrayLike, size: int) -> FloatArray:
    """Return means of every `size` tokens, (1, blocks); the first block lacks the first token, which has no loss."""
    whole = np.concatenate([[np.nan], np.asarray(values, dtype=np.float64)])
    means: FloatArray = np.nanmean(whole[: len(whole) // size * size].reshape(1, -1, size), axis=2)
    return means
