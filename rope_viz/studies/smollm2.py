"""Measurements of one real language model, SmolLM2 135M, beyond its trained length."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np

from rope_viz.studies.real_model import BIN, load_heads, load_losses, load_pass_keys
from rope_viz.texts.numbers import format_tokens

FILE = Path(__file__).with_suffix(".json")


@functools.cache
def read_measurements() -> dict[str, Any]:
    """Return the measurements with their source.

    `loss.methods` is {scaling method: nats per token, one mean per `loss.bin` tokens}, from `measured/`.
    `passkey.methods` is {scaling method: number of right answers by text length}, out of `passkey.questions`, for the
    methods that were asked at every length. `previous` is {rotation: attention on the token before} of L16H0.
    """
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    losses = load_losses()
    methods = {method: np.round(values.mean(axis=0), 3).tolist() for method, values in losses.items()}
    texts, bins = losses["none"].shape
    keys = load_pass_keys()
    asked = [method for method in methods if all(method in answers for answers in keys.values())]
    head = load_heads().heads[16, 0]
    return found | {
        "loss": {"bin": BIN, "methods": methods},
        "text": f"{texts} novels, {bins * BIN:,} tokens each",
        "passkey": {
            "lengths": [format_tokens(length) for length in keys],
            "questions": [answers["none"][1] for answers in keys.values()],
            "methods": {method: [answers[method][0] for answers in keys.values()] for method in asked},
        },
        "previous": {"as trained": head.scores["previous token"], **head.changed["previous token"]},
    }
