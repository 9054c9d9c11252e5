"""Read and write the records of model types, which the scripts beside this one fill in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "rope_viz" / "models" / "architectures"


def read_records() -> dict[str, dict[str, Any]]:
    """Return {model type: record} of all of them."""
    paths = sorted(FOLDER.glob("*.json"), key=lambda path: path.stem)
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}


def write_record(kind: str, record: dict[str, Any]) -> None:
    """Write one record, a line per key, and a line per inner key where that is long. Empty values are left out."""
    lines = []
    for key, value in record.items():
        if value in ({}, [], "", None, False):
            continue
        text = json.dumps(value)
        if isinstance(value, dict) and len(text) > 100:
            # The classes build this one in no fixed order.
            parts = {name: json.dumps(part, sort_keys=name == "rope_parameters") for name, part in value.items()}
            inner = ",\n".join(f"    {json.dumps(name)}: {part}" for name, part in parts.items())
            text = f"{{\n{inner}\n  }}"
        lines.append(f'  "{key}": {text}')
    (FOLDER / f"{kind}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
