"""One colour and dash for every scaling method, model, runtime and rounding, the same in all figures.

The current spec is blue and solid, its unscaled version grey and dotted. Neither style has another use.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rope_viz.figures import theme
from rope_viz.models.catalog import catalog
from rope_viz.runtimes.releases import format_name

PURPLE, TEAL, PINK, OLIVE = theme.FURTHER


class Look(NamedTuple):
    """The style of a line: colour and dash, a name or a list of strokes and gaps, as Plotly expects them."""

    colour: str
    dash: str


CURRENT, PLAIN = Look(theme.CURRENT, "solid"), Look(theme.PLAIN, "dot")

# Related methods share a colour: YaRN and its ramps, larger bases, a divisor for all pairs, tables per model.
METHODS: dict[str, Look] = {
    "none": PLAIN,
    "yarn": Look(PURPLE, "dash"),
    "yarn-paper": Look(PURPLE, "dashdot"),
    "ntk-by-parts": Look(PURPLE, "longdash"),
    "ntk": Look(TEAL, "dash"),
    "dynamic": Look(TEAL, "dashdot"),
    "linear": Look(PINK, "dash"),
    "proportional": Look(PINK, "dashdot"),
    "llama3": Look(OLIVE, "dash"),
    "longrope": Look(OLIVE, "dashdot"),
}
"""{method: its style next to the current spec}."""

# Dashes distinguish models from methods; the first sixteen models get the simplest ones.
STROKES = (
    "longdashdot",
    "2px,2px",
    "12px,3px,3px,3px,3px,3px",
    "16px,4px",
    "5px,2px",
    "8px,2px,8px,6px",
    "3px,6px",
    "14px,3px,6px,3px",
    "2px,2px,2px,6px",
    "10px,2px,2px,2px,2px,2px,2px,2px",
    "20px,3px,3px,3px",
    "6px,2px,2px,2px,6px,6px",
    "1px,4px",
    "18px,2px,8px,2px,2px,2px",
)

# Families are spread over the colours. Append new models, so that no other model's style changes. The style of a model
# that is missing here is derived from its name, and may equal another's.
MODELS: tuple[str, ...] = (
    "llama-3.1-8b",
    "qwen3-8b",
    "llama-2-7b",
    "gpt-oss-20b",
    "qwen3-8b-yarn",
    "deepseek-v3",
    "phi-4-mini",
    "gemma-3-27b-global",
    "kimi-k2-instruct",
    "llama-3-8b",
    "mistral-7b-v0.3",
    "qwen2.5-7b",
    "phi-3-mini-128k-2024-04",
    "gemma-4-full",
    "yarn-llama-2-7b-128k",
    "codellama-7b",
    "llama-4-scout",
    "qwen2.5-7b-instruct-yarn",
    "glm-4-9b-0414",
    "deepseek-v2",
    "llama-3.2-1b",
    "qwen3.5-9b",
    "gpt-neox-20b",
    "phi-4",
    "mixtral-8x7b",
    "gemma-2-9b",
    "olmo-3.1-32b",
    "yarn-mistral-7b-128k",
    "llama-1-7b",
    "qwen3-0.6b",
    "kimi-k2-thinking",
    "phi-3.5-mini",
    "mistral-7b-v0.1",
    "gemma-3-12b-global",
    "deepseek-v2-lite",
    "yarn-llama-2-7b-64k",
    "gpt-j-6b",
    "qwen2.5-7b-instruct",
    "glm-4-9b-chat",
    "phi-3-vision-128k",
    "internlm2.5-7b",
    "gemma-2-27b",
    "pythia-6.9b",
    "deepseek-v4-flash-compress",
    "ministral-3-3b",
    "kimi-k2.5",
    "stablelm-2-1.6b",
    "gemma-3-1b",
    "roformer-base",
    "smollm2-135m",
    "pythia-160m",
    "modernbert-base-global",
    "rope-viz-reader",
)

RUNTIMES: dict[str, Look] = {
    "transformers 4.57": Look(TEAL, "dashdot"),
    "transformers 4.52": Look(TEAL, "longdash"),
    "transformers 4.43": Look(TEAL, "dot"),
    "transformers": Look(TEAL, "longdashdot"),
    format_name("llama.cpp"): Look(PURPLE, "dash"),
    format_name("tensorrt-llm"): Look(PURPLE, "dashdot"),
    format_name("vllm"): Look(TEAL, "dash"),
    format_name("sglang"): Look(PINK, "dash"),
    format_name("mlx-lm"): Look(OLIVE, "dash"),
    format_name("paper"): Look(OLIVE, "dashdot"),
}
"""{start of a runtime's name: its style next to the reference}; releases of one runtime share a colour."""


def method_look(name: str) -> Look:
    """Return the style of a scaling method."""
    return METHODS.get(name) or _look_by_name(name)


def model_look(name: str) -> Look:
    """Return the style of a compared model, by its id in the catalog or by its name."""
    key = _model_ids().get(name, name)
    return _look_by_index(MODELS.index(key)) if key in MODELS else _look_by_name(key)


def runtime_look(name: str) -> Look:
    """Return the style of a runtime."""
    return next((look for start, look in RUNTIMES.items() if name.startswith(start)), None) or _look_by_name(name)


def entry_look(name: str, names: Sequence[str]) -> Look:
    """Return the style of an entry of a fixed list, by its index."""
    place = list(names).index(name)
    colours = len(theme.FURTHER)
    return Look(theme.FURTHER[place % colours], (*theme.DASHES[1:], "longdash")[place // colours % 4])


def _look_by_index(place: int) -> Look:
    colours = len(theme.FURTHER)
    return Look(theme.FURTHER[place % colours], STROKES[place // colours % len(STROKES)])


def _look_by_name(name: str) -> Look:
    """Return a style that depends only on the name."""
    return _look_by_index(zlib.crc32(name.encode()) % (len(STROKES) * len(theme.FURTHER)))


@functools.cache
def _model_ids() -> Mapping[str, str]:
    return {model.name: id for id, model in catalog().items()}
