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
from rope_viz.models.formats.json_source import source_file
from rope_viz.models.length_keys import LENGTH_KEYS, OVER_ALL, read_lengths
from rope_viz.models.model_config import ModelConfig
from rope_viz.models.rope_config import ORIGINAL, PRETRAINED_TYPES, read_rope_type
from rope_viz.runtimes.releases import RELEASES
from rope_viz.runtimes.texts import TEXTS
from rope_viz.texts import join
from rope_viz.texts.texts import join_list

WITHOUT_KEY = 2048
"""What SGLang takes where the config has none of its keys."""


@dataclass(frozen=True)
class LongestLength:
    """The longest length in tokens, infinite where there is no bound, and the key that it comes from.

    `factor` is what the runtime multiplied the value of that key by.
    """

    length: float
    key: str
    factor: float = 1.0


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
    factor = factor if is_number(factor) else 1.0
    return LongestLength(max(lengths.get(key, math.inf) * factor, own), key, factor)


def derive_for_sglang(model: ModelConfig) -> LongestLength:
    """Return the first of its keys, times the factor where the rope dict has no original length."""
    lengths = read_lengths(model.fields, "sglang")
    key = next(iter(lengths), "")
    params = model.rope_parameters.get("", {})
    extended = ORIGINAL in params or (params and read_rope_type(model.fields, params) in PRETRAINED_TYPES)
    factor = None if extended else params.get("factor")
    factor = factor if is_number(factor) else 1.0
    return LongestLength(lengths.get(key, WITHOUT_KEY) * factor, key, factor)


DERIVED: Mapping[str, Callable[[ModelConfig], LongestLength]] = {"vllm": derive_for_vllm, "sglang": derive_for_sglang}
assert DERIVED.keys() == LENGTH_KEYS.keys(), "every runtime with keys has a rule"


def find_derived_lengths(model: ModelConfig) -> dict[str, LongestLength]:
    """Return {runtime: the longest length that it derives}; {} for a GGUF file and for a config without an embedding.

    Runtimes without a bound are left out.
    """
    if model.problems or source_file(model.mapping):
        return {}
    found = {name: derive(model) for name, derive in DERIVED.items()}
    return {name: longest for name, longest in found.items() if math.isfinite(longest.length)}


def describe_derived_lengths(model: ModelConfig) -> str:
    """Return a sentence on the runtimes that derive another length than max_position_embeddings; empty for none."""
    found: dict[LongestLength, list[str]] = {}
    for name, longest in find_derived_lengths(model).items():
        if longest.length != model.limit:
            found.setdefault(longest, []).append(RELEASES[name].name)
    parts = []
    for longest, names in found.items():
        source = longest.key or TEXTS("longest.no_key")
        key = "longest.derived" if longest.factor == 1.0 else "longest.multiplied"
        values = {"runtimes": join_list(names), "length": longest.length, "source": source, "factor": longest.factor}
        parts.append(TEXTS(key, count=len(names), **values))
    return join(*parts)


def explain_refused_length(model: ModelConfig, runtime: str, length: int) -> str:
    """Return why a runtime refuses to serve so many tokens of a config, empty where it accepts them."""
    if runtime not in DERIVED or model.problems:
        return ""
    longest = DERIVED[runtime](model)
    if length <= longest.length:
        return ""
    source = longest.key or TEXTS("longest.no_key")
    return TEXTS("longest.refused", longest=longest.length, source=source, length=length)
