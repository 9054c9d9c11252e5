"""The configs that every minor release of transformers 5 was run with, by a name that stays the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rope_viz.models.architecture import all_architectures
from rope_viz.models.catalog import catalog

HERE = Path(__file__).parent
FILES = HERE.parent / "cases"
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096}
# What the class of each model type is also given.
CHANGES: dict[str, dict[str, Any]] = {
    "yarn": {"rope_scaling": {**YARN, "mscale": 1.0, "mscale_all_dim": 0.7}},
    "linear": {"rope_scaling": {"type": "linear", "factor": 2.0}},
    "params": {"rope_parameters": {**YARN, "rope_theta": 54321.0}},
    "base-share": {"rope_theta": 12345.0, "partial_rotary_factor": 0.25, "max_position_embeddings": 8192},
    "two-layers": {"num_hidden_layers": 2},
}
# Keys that say nothing about RoPE, and that need code or libraries which are not here.
LEFT_OUT = ("auto_map", "quantization_config", "_about")
# Types whose model holds the rotary modules of several language models.
SEVERAL = ("qwen2_5_omni_thinker", "qwen3_omni_moe_thinker")


def list_cases() -> dict[str, tuple[dict[str, Any], int | None]]:
    """Return {name: (config, current length)}."""
    found: dict[str, tuple[dict[str, Any], int | None]] = {}
    for kind, record in all_architectures().items():
        found[f"class {kind}"] = ({"model_type": kind}, None)
        if record.text is None and not record.not_text and not record.remote_code:
            for name, keys in CHANGES.items():
                found[f"{name} {kind}"] = ({"model_type": kind, **keys}, None)
    for name, model in catalog().items():
        found[f"catalog {name}"] = (dict(model.whole), None)
    for path in sorted(FILES.rglob("*.json")):
        config = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(config, dict) and "model_type" in config:
            found[f"file {path.stem}"] = (config, None)
    for golden in ("defaults", "random"):
        rows = json.loads((HERE / f"transformers_5.24.0_{golden}.json").read_text(encoding="utf-8"))["rows"]
        for place, row in enumerate(rows):
            found[f"{golden} {place}"] = (row["config"], None)
            found |= {f"{golden} {place} at {length}": (row["config"], int(length)) for length in row.get("at", {})}
    rows = json.loads((HERE / "releases.json").read_text(encoding="utf-8"))["rows"]
    for place, row in enumerate(row for row in rows if row["version"] == "5.23.0"):
        found[f"release {place}"] = (row["config"], row["length"])
    return {
        name: ({key: value for key, value in config.items() if key not in LEFT_OUT}, length)
        for name, (config, length) in found.items()
        if config["model_type"] not in SEVERAL
    }
