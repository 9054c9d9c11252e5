"""The commands by which a runtime is asked with a probe: make it, start the runtime with the same flags, ask."""

from __future__ import annotations

from collections.abc import Mapping

from rope_viz.advice.plan.runtime_instructions import Instructions
from rope_viz.models.model_config import ModelConfig, Source
from rope_viz.probe.shrink_config import shrink_config

OLD, NEW, FOLDER = "config.json", "extended.json", "probe"
"""The user's config, the one that `rope-viz extend -o` writes, and the folder of the probe."""
FLOAT32: Mapping[str, str] = {"vllm": "--dtype float32", "sglang": "--dtype float32", "llama.cpp": "-ctk f32 -ctv f32"}
"""Flags that leave no noise of small types."""
PORTS: Mapping[str, int] = {"vllm": 8000, "sglang": 30000, "llama.cpp": 8080}
"""Where each server listens by default; the other runtimes load the probe in a process of their own."""
MODELS = {"./model": f"./{FOLDER}", "model.gguf": f"{FOLDER}/probe.gguf"}


def write_probe_commands(config: Source, one: Instructions) -> str:
    """Return the commands for one runtime, line by line; empty for a model that no probe can be made of.

    A runtime that reads the new config.json gets a probe of it. One that gets flags has one of the old file, so that
    flags that do nothing show.
    """
    try:
        shrink_config(ModelConfig.read(config))
    except ValueError:
        return ""
    reads_file = one.language == "json" or not one.text
    gguf = " --gguf" if one.runtime == "llama.cpp" else ""
    make = f"rope-viz probe make {NEW if reads_file else OLD} -o {FOLDER}{gguf}"
    if one.runtime not in PORTS:
        engine = one.runtime.split("-4")[0]
        return f"{make}\nrope-viz probe ask --engine {engine} {FOLDER} --config {NEW}"
    start = one.command
    for model, probe in MODELS.items():
        start = start.replace(model, probe)
    ask = f"rope-viz probe ask http://localhost:{PORTS[one.runtime]} --config {NEW}"
    return f"{make}\n{start} {FLOAT32[one.runtime]}\n{ask}"
