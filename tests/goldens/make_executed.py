"""Write `executed` into the records of model types: which were run in which runtime, by the goldens here.

Run from the root of the repository: python tests/goldens/make_executed.py
It also writes the day into executed_on.json, if a golden has changed.
An architecture counts where its golden holds frequencies, or what the runtime itself raised.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from releases_5_cases import list_cases

from rope_viz.models.model_config import ModelConfig

HERE = Path(__file__).parent
# The golden that says most first.
ROWS = ("servers.json", "model_files.json", "glue.json", "older.json", "mlx.json", "releases.json", "runtimes.json")
ROWS += ("converted.json", "deepseek_v4_releases.json")
# Two snapshots that may not belong together were run for TensorRT-LLM: that is not executing a release.
LEFT_OUT = ("tensorrt-llm",)
# Their code travels with the model: what stands for transformers there was not run by it.
REMOTE = ("chatglm", "internlm2")
DEFAULTS = tuple(f"transformers_5.24.0_{name}.json" for name in ("random", "defaults"))
# The day on which a golden last changed, which the page of all models names.
EXECUTED_ON = HERE.parents[1] / "rope_viz" / "runtimes" / "executed_on.json"


def scaling(config: dict[str, Any]) -> str:
    """The type of scaling of a config, of any of its layers."""
    rope = config.get("rope_scaling") or config.get("rope_parameters") or {}
    parts = [part for part in rope.values() if isinstance(part, dict)] or [rope]
    kinds = [part.get("rope_type", part.get("type", "default")) for part in parts]
    return next((kind for kind in kinds if kind != "default"), "default")


def find_text_type(config: dict[str, Any]) -> str:
    """The model type of a config's language model, its own where it has none."""
    try:
        return ModelConfig.read(config).fields.kind
    except ValueError:
        return str(config["model_type"])


def executed() -> dict[str, dict[str, dict[str, list[str]]]]:
    """{runtime and version: {golden: {model type: types of scaling}}}."""
    found: dict[str, Any] = defaultdict(lambda: defaultdict(lambda: defaultdict(set)))
    for name in ROWS:
        golden = json.loads((HERE / name).read_text())
        for row in golden["rows"]:
            config = row["config"] if "config" in row else golden["configs"][row["id"]]
            runtime = row.get("runtime", "mlx-lm" if name == "mlx.json" else "transformers")
            remote = runtime == "transformers" and config["model_type"] in REMOTE
            if runtime in LEFT_OUT or remote or not row.get("executed", True):
                continue
            version = row.get("version", "0.32.2").split(" ")[0]
            part = config.get("text_config", config)
            kind = "default" if row.get("layer") == "main" else scaling(part)
            found[f"{runtime} {version}"][name][part["model_type"]].add(kind)
    for golden in DEFAULTS:
        for row in json.loads((HERE / golden).read_text())["rows"]:
            found["transformers 5.24.0"][golden][row["config"]["model_type"]].add(scaling(row["config"]))
    for row in json.loads((HERE / "vectors.json").read_text())["rows"]:
        found["transformers 5.24.0"]["vectors.json"][row["config"]["model_type"]].add(scaling(row["config"]))
    golden = json.loads((HERE / "releases_5.json").read_text())
    cases = list_cases()
    names = [
        *golden["same"],
        *(row["name"] for row in golden["rows"] if any("layers" in one for one in row["answers"].values())),
    ]
    for part in (cases[name][0] for name in names):
        found["transformers 5"]["releases_5.json"][find_text_type(part)].add(scaling(part.get("text_config", part)))
    return {
        at: {
            golden: {kind: sorted(types) for kind, types in sorted(kinds.items())} for golden, kinds in goldens.items()
        }
        for at, goldens in sorted(found.items())
    }


def digest() -> str:
    """Return a digest of all goldens that are read here."""
    found = hashlib.sha256()
    for name in (*ROWS, *DEFAULTS):
        found.update((HERE / name).read_bytes())
    return found.hexdigest()[:16]


def main() -> None:
    from records import read_records, write_record

    found = executed()
    for kind, record in read_records().items():
        ran = {
            at: {name: kinds[kind] for name, kinds in goldens.items() if kind in kinds} for at, goldens in found.items()
        }
        place = {key: value for key, value in record.items() if key not in ("executed", "remote_code", "source")}
        rest = {key: record[key] for key in ("remote_code", "source") if key in record}
        write_record(kind, {**place, "executed": {at: goldens for at, goldens in ran.items() if goldens}, **rest})
    if json.loads(EXECUTED_ON.read_text())["goldens"] != digest():
        today = {"date": datetime.date.today().isoformat(), "goldens": digest()}
        EXECUTED_ON.write_text(json.dumps(today, indent=2) + "\n")


if __name__ == "__main__":
    main()
