"""Make a probe: a folder that an engine loads in the place of the user's weights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rope_viz.models.model_config import ModelConfig, Source
from rope_viz.probe import plain_model
from rope_viz.probe.hypotheses import ProbedPrompt, find_intended
from rope_viz.probe.reference import as_data
from rope_viz.probe.shrink_config import shrink_config
from rope_viz.probe.tokens import make_tokenizer_files
from rope_viz.probe.weights import LARGEST, pack_safetensors, read_safetensors
from rope_viz.probe.worker_process import start_worker
from rope_viz.probe.write_gguf import pack_probe
from rope_viz.storage.decode_json import decode_json
from rope_viz.storage.read_file import read_limited
from rope_viz.storage.write_file import write_file

PROBE = "probe.json"
"""The file of a probe that says what it is, and with which overrides its engine is started."""
LARGEST_ABOUT = 1 << 20
"""Bytes of that file."""
GGUF = "probe.gguf"


def make_probe(
    config: Source, folder: str | Path, overrides: Mapping[str, Any] | None = None, *, gguf: bool = False
) -> dict[str, Any]:
    """Write the probe of a config into a folder and return its config.json; with `gguf` also probe.gguf.

    `overrides` are those with which the engine will be started; they are noted, and not written into the config.
    Raises `ValueError` with a sentence for a model that no probe can be made of.
    """
    given = ModelConfig.read(config)
    overrides = unwrap_overrides(given, overrides or {})
    small = shrink_config(given)
    model = ModelConfig.read(small)
    intended = find_intended(ProbedPrompt(model, 2, model.limit))
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    if plain_model.is_plain(small):
        small = {**plain_model.DEFAULTS, **small}
        small["architectures"] = [plain_model.ARCHITECTURES[small["model_type"]]]
        write_file(place / "config.json", json.dumps(small, indent=2).encode())
        write_file(place / "model.safetensors", pack_safetensors(plain_model.draw_weights(small)))
    else:
        with start_worker() as worker:
            task = {"task": "make", "folder": str(place), "config": small, "intended": as_data(intended)}
            small = worker.ask(task)
        write_file(place / "config.json", json.dumps(small, indent=2).encode())
    if gguf:
        weights = read_safetensors(read_limited(place / "model.safetensors", LARGEST))
        write_file(place / GGUF, pack_probe(small, weights))
    for name, content in make_tokenizer_files().items():
        write_file(place / name, content)
    about = {"made_by": "rope-viz probe make", "overrides": overrides}
    write_file(place / PROBE, json.dumps(about, indent=2).encode())
    return small


def unwrap_overrides(model: ModelConfig, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return overrides for the language model alone, which is what a probe has.

    Raises `ValueError` for a key outside it, which the probe would apply and the user's model would not.
    """
    found: Any = dict(overrides)
    for key in model.part.path if overrides else ():
        outside = sorted(set(found) - {key})
        if outside or not isinstance(found.get(key), Mapping):
            names = ", ".join(outside) or key
            raise ValueError(f"--overrides: {names} is not within {key}, where the language model of this config is")
        found = dict(found[key])
    return dict(found)


def read_overrides(folder: Path) -> dict[str, Any]:
    """Return the overrides that a probe was made with; {} where its file says none."""
    try:
        found = decode_json(read_limited(folder / PROBE, LARGEST_ABOUT), f"{folder / PROBE} is not JSON")
    except FileNotFoundError:
        return {}
    overrides = found.get("overrides") if isinstance(found, Mapping) else None
    return dict(overrides) if isinstance(overrides, Mapping) else {}
