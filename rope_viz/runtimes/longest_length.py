"""The longest length that a server accepts for a config: its own rule, by which it refuses a longer flag.

Sources, read: vLLM 0.33.0, config/model.py, _get_and_verify_max_len; SGLang 0.5.23, get_context_length in
srt/utils/hf_transformers/common.py and _derive_context_length in srt/configs/model_config.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rope_viz.models.config_reader import is_number
from rope_viz.models.length_keys import LENGTH_KEYS, OVER_ALL, read_lengths
from rope_viz.models.model_config import ModelConfig
from rope_viz.models.rope_config import ORIGINAL, PRETRAINED_TYPES, read_rope_type

WITHOUT_KEY = 2048
"""What SGLang takes where the config has none of its keys."""


@dataclass(frozen=True)
class LongestLength:
    """The longest length in tokens, infinite where there is no bound, and the key that it comes from."""

    length: float
    key: str


def derive_for_vllm(model: ModelConfig) -> LongestLength:
    """Return the least of its keys, or model_max_length, times the factor of types whose limit is not extended yet."""
    lengths = read_lengths(model.fields, "vllm")
    own = lengths.get(OVER_ALL, 0.0)
    key = OVER_ALL if own else min(lengths, key=lambda name: lengths[name], default="")
    factor: Any = None
    if "gemma3" not in model.model_type:
        for params in model.rope_parameters.values():
            if read_rope_type(model.fields, params) not in PRETRAINED_TYPES:
                factor = params.get("factor", factor)
    derived = lengths.get(key, math.inf) * (factor if is_number(factor) else 1.0)
    return LongestLength(max(derived, own), key)


def derive_for_sglang(model: ModelConfig) -> LongestLength:
    """Return the first of its keys, times the factor where the rope dict has no original length."""
    lengths = read_lengths(model.fields, "sglang")
    key = next(iter(lengths), "")
    params = model.rope_parameters.get("", {})
    extended = ORIGINAL in params or (params and read_rope_type(model.fields, params) in PRETRAINED_TYPES)
    factor = None if extended else params.get("factor")
    return LongestLength(lengths.get(key, WITHOUT_KEY) * (factor if is_number(factor) else 1.0), key)


DERIVED: Mapping[str, Callable[[ModelConfig], LongestLength]] = {"vllm": derive_for_vllm, "sglang": derive_for_sglang}
assert DERIVED.keys() == LENGTH_KEYS.keys(), "every runtime with keys has a rule"


def explain_refused_length(model: ModelConfig, runtime: str, length: int) -> str:
    """Return why a runtime refuses to serve so many tokens of a config, empty where it accepts them."""
    if runtime not in DERIVED or model.problems:
        return ""
    longest = DERIVED[runtime](model)
    if length <= longest.length:
        return ""
    source = longest.key or "the lack of any length key"
    return f"it serves at most {longest.length:,.0f} tokens, which it derives from {source}, and refuses {length:,}"
