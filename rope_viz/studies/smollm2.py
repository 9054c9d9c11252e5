"""Measurements of one real language model, SmolLM2 135M, beyond its trained length."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np

from rope_viz.studies.real_model import BIN, load_losses

FILE = Path(__file__).with_suffix(".json")


@functools.cache
def read_measurements() -> dict[str, Any]:
    """Return the measurements with their source.

    `loss.methods` is {scaling method: nats per token, one mean per `loss.bin` tokens}, from `measured/`.
    `passkey.methods` is {scaling method: number of right answers by text length}, out of `passkey.questions`.
    """
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    losses = load_losses()
    methods = {method: np.round(values.mean(axis=0), 3).tolist() for method, values in losses.items()}
    texts, bins = losses["none"].shape
    return found | {"loss": {"bin": BIN, "methods": methods}, "text": f"{texts} novels, {bins * BIN:,} tokens each"}
