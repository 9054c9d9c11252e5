"""Make a probe: a folder that an engine loads in the place of the user's weights."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rope_viz.models.model_config import ModelConfig, Source
from rope_viz.probe import plain_model
from rope_viz.probe.shrink_config import shrink_config
from rope_viz.probe.tokens import make_tokenizer_files
from rope_viz.probe.weights import pack_safetensors, read_safetensors
from rope_viz.probe.write_gguf import pack_probe
from rope_viz.storage.decode_json import decode_json
from rope_viz.storage.write_file import write_file

PROBE = "probe.json"
"""The file of a probe that says what it is, and with which overrides its engine is started."""
GGUF = "probe.gguf"
LONGEST_MAKE = 300.0  # seconds


def make_probe(
    config: Source, folder: str | Path, overrides: Mapping[str, Any] | None = None, *, gguf: bool = False
) -> dict[str, Any]:
    """Write the probe of a config into a folder and return its config.json; with `gguf` also probe.gguf.

    `overrides` are those with which the engine will be started; they are noted, and not written into the config.
    Raises `ValueError` with a sentence for a model that no probe can be made of.
    """
    small = shrink_config(ModelConfig.read(config))
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    if plain_model.is_plain(small):
        small["architectures"] = [plain_model.ARCHITECTURES[small["model_type"]]]
        write_file(place / "config.json", json.dumps(small, indent=2).encode())
        write_file(place / "model.safetensors", pack_safetensors(plain_model.draw_weights(small)))
    else:
        write_file(place / "config.json", json.dumps(small, indent=2).encode())
        small = run_worker({"task": "make", "folder": str(place)}, LONGEST_MAKE)
        write_file(place / "config.json", json.dumps(small, indent=2).encode())
    if gguf:
        weights = read_safetensors((place / "model.safetensors").read_bytes())
        write_file(place / GGUF, pack_probe(small, weights))
    for name, content in make_tokenizer_files().items():
        write_file(place / name, content)
    about = {"made_by": "rope-viz probe make", "overrides": dict(overrides or {})}
    write_file(place / PROBE, json.dumps(about, indent=2).encode())
    return small


def run_worker(task: Mapping[str, Any], timeout: float) -> Any:
    """Run a task of `transformers_worker` in a process of its own and return its result.

    Raises `ValueError` with the sentence that the process ends with.
    """
    here = str(Path(__file__).parents[2])
    paths = [here, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-m", "rope_viz.probe.transformers_worker"]
    try:
        done = subprocess.run(
            command, input=json.dumps(task).encode(), capture_output=True, timeout=timeout, env=environment, check=False
        )
    except subprocess.TimeoutExpired:
        raise ValueError(f"transformers did not finish within {timeout:,.0f} seconds") from None
    lines = done.stdout.decode(errors="replace").splitlines()
    if done.returncode != 0 or not lines:
        last = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
        raise ValueError(f"transformers could not run this probe: {last[-1][:300]}")
    found = json.loads(lines[-1])
    if "problem" in found:
        raise ValueError(str(found["problem"]))
    return found["result"]


def read_overrides(folder: Path) -> dict[str, Any]:
    """Return the overrides that a probe was made with; {} where its file says none."""
    try:
        found = decode_json((folder / PROBE).read_bytes(), f"{folder / PROBE} is not JSON")
    except FileNotFoundError:
        return {}
    overrides = found.get("overrides") if isinstance(found, Mapping) else None
    return dict(overrides) if isinstance(overrides, Mapping) else {}
