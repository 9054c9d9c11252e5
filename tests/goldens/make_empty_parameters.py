"""Write empty_parameters.json: what transformers 5.23.0 makes of `"rope_parameters": {}`, type by type.

Run from the root of the repository with transformers 5.23.0 and torch:
    python tests/goldens/make_empty_parameters.py
The configuration class is built, then its rotary class; what raises is an error. The rows of phi3 have the type "su".
"""

from __future__ import annotations

import copy
import importlib
import json
import warnings
from pathlib import Path
from typing import Any

import transformers
from records import read_records

FACTORS = {"short_factor": [1.0] * 48, "long_factor": [2.0] * 48}
SU = {
    "su": {"rope_scaling": {"type": "su", **FACTORS}},
    "su, length outside": {"rope_scaling": {"type": "su", **FACTORS}, "original_max_position_embeddings": 4096},
    "su, length inside": {"rope_scaling": {"type": "su", "original_max_position_embeddings": 4096, **FACTORS}},
}


def describe(kind: str, keys: dict[str, Any]) -> dict[str, Any]:
    """Return the RoPE parameters of a configuration and the first frequencies of its rotary class, or the error."""
    try:
        config = transformers.AutoConfig.for_model(kind, **keys)
        name = type(config).__module__.replace("configuration_", "modeling_")
        module = importlib.import_module(name)
        for key, rotary in vars(module).items():
            own = isinstance(rotary, type) and rotary.__module__ == name and key.endswith("RotaryEmbedding")
            if own and not any(word in key for word in ("Vision", "Audio", "Scaled")):
                rotary(config)
    except Exception as error:
        return {"error": type(error).__name__}
    return {"rope_parameters": config.rope_parameters}


def main() -> None:
    """Write one row per model type, and the rows of phi3."""
    warnings.simplefilter("ignore")
    rows = {}
    for kind, record in read_records().items():
        if not (record.get("remote_code") or record.get("text") or record.get("not_text")):
            rows[kind] = describe(kind, {"rope_parameters": {}})
    content = {
        "_about": "Made by make_empty_parameters.py with transformers 5.23.0.",
        "empty": rows,
        "phi3": {name: {"keys": keys, **describe("phi3", copy.deepcopy(keys))} for name, keys in SU.items()},
    }
    Path(__file__).with_name("empty_parameters.json").write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
