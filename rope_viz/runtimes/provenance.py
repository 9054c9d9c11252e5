"""How an answer is known: the architecture was executed in this runtime, its file there was read, or neither.

`executed.json` lists what was executed, from the goldens (tests/goldens/make_executed.py); `served.json` which file of
a runtime reads a model type, from its own registry (tests/goldens/make_served.py).
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from rope_viz.embedding.spec import shorten
from rope_viz.models import remote_code_types
from rope_viz.models.config_reader import Fields
from rope_viz.models.no_rope_types import names

How: TypeAlias = Literal["executed", "by rule", "not known"]
HOW: tuple[How, ...] = ("executed", "by rule", "not known")

# Published types that a runtime reads by the file of another, key by key the same.
TWINS = {"kimi_k2": "deepseek_v3"}
# Where the general rules of a runtime were read.
RULES_READ = {
    "transformers": "modeling_rope_utils.py, the configuration classes and CONFIG_MAPPING_NAMES",
    "vllm": "vllm/model_executor/layers/rotary_embedding and vllm/model_executor/models/registry.py",
    "sglang": "sglang/srt/layers/rotary_embedding and the EntryClass of sglang/srt/models",
    "llama.cpp": "conversion/base.py, src/llama-model.cpp and src/llama-context.cpp",
    "mlx-lm": "mlx_lm/models/rope_utils.py and mlx_lm/utils.py",
    "tensorrt-llm": "RopeEmbeddingUtils of functional.py, run; which keys reach it is read from another snapshot",
    "paper": "https://arxiv.org/abs/2309.00071",
}
# Runtimes whose functions take any architecture: what was read of them holds where the model itself is known.
GENERAL = ("transformers", "paper")


@dataclass(frozen=True)
class Known:
    """How one answer is known, and the golden, file or paper that it is known from."""

    how: How
    source: str


@functools.cache
def read(name: str) -> dict[str, Any]:
    """One of the two lists."""
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def served(runtime: str, kind: str) -> str | None:
    """The file of a runtime that reads this model type, "transformers" where it uses that library, None for no file.

    `runtime` may be an older release, such as "vllm 0.8.5".
    """
    found: str | None = read("served.json").get(runtime, {}).get(kind)
    return found


def known(runtime: str, release: str, fields: Fields, scaling: str) -> Known:
    """How the answer of a runtime for this model with this type of scaling is known."""
    if not fields.listed or fields.wrapper:
        return Known("not known", f"the code of {shorten(fields.wrapper or fields.kind)} was not read")
    at, kind = f"{runtime} {release.split(' ')[0]}", fields.kind
    for golden, kinds in read("executed.json").get(at, {}).items():
        if kind in kinds:
            with_type = scaling if scaling in kinds[kind] else f"other types, {scaling} by its rules"
            what = f"the conversion class of {kind}" if golden == "converted.json" else kind
            return Known("executed", f"tests/goldens/{golden}: {what} run in {at} with {with_type}")
    older = at in read("served.json")
    file = served(at if older else runtime, kind)
    if older and file is not None:
        return among_older(at, kind, file)
    twin = TWINS.get(kind)
    if twin is not None and file is not None and file == served(runtime, twin):
        for golden, kinds in read("executed.json").get(at, {}).items():
            if twin in kinds:
                return Known("by rule", f"{kind} goes through {file} of {at}, run with {twin}: tests/goldens/{golden}")
    where = RULES_READ[runtime]
    if runtime == "tensorrt-llm":
        return Known("by rule", where) if kind in TENSORRT else Known("not known", f"{kind} was not tried in {at}")
    if runtime == "transformers" and kind in remote_code_types.SOURCES:
        return Known(
            "by rule", f"it runs the code that travels with the model; read: {remote_code_types.SOURCES[kind]}"
        )
    if runtime in GENERAL or file is None:
        return Known("by rule", where)
    if file == "transformers":
        return Known("by rule", f"{where}: it runs {kind} by the code of transformers")
    return Known("not known", f"{file} of {at} was not run with {kind}")


def executed_counts() -> list[tuple[str, str, int]]:
    """(runtime, version, how many architectures were executed in it), in the order of the list."""
    found = []
    for at, goldens in read("executed.json").items():
        name, version = at.split(" ")
        found.append((name, version, len({kind for kinds in goldens.values() for kind in kinds})))
    return found


def converted_only() -> frozenset[str]:
    """The architectures of llama.cpp whose conversion class was run, and the model itself was not."""
    for at, goldens in read("executed.json").items():
        if at.startswith("llama.cpp "):
            others = {kind for name, kinds in goldens.items() if name != "converted.json" for kind in kinds}
            return frozenset(goldens.get("converted.json", {})) - others
    return frozenset()


def among_older(at: str, kind: str, file: str) -> Known:
    """How an answer of an older release is known where this architecture itself was not run in it."""
    for golden, kinds in read("executed.json").get(at, {}).items():
        other = next((one for one in kinds if served(at, one) == file), None)
        if other is not None:
            return Known("by rule", f"{kind} goes through {file} of {at}, run with {other}: tests/goldens/{golden}")
    return Known("not known", f"{file} of {at} was not run with {kind}")


# Architectures put to the two snapshots of TensorRT-LLM (tests/goldens/runtimes.json).
TENSORRT = names(
    "deepseek_v2 deepseek_v3 gemma2 glm4 gpt_neox gpt_oss gptj llama llama4_text mistral mixtral phi3 qwen2 qwen3 "
    "stablelm"
)
