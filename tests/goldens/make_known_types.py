"""Write rope_viz/runtimes/known_types.json: which model types each release has, by its own lists.

Run from the root of the repository with transformers 5.24.0 installed, and the unpacked wheels of the releases as
arguments, those of transformers oldest first, llama.cpp's source last:
    python tests/goldens/make_known_types.py transformers-4.43.4 transformers-4.52.4 transformers-4.57.6 \\
        transformers-5.0.0 … transformers-5.24.0 mlx_lm-0.32.2 vllm-0.33.0 vllm-0.10.2 vllm-0.8.5 vllm-0.6.6 \\
        sglang-0.5.23 sglang-0.4.6 llama.cpp-0c1e57098
Nothing is run, the files are parsed. A release of transformers lists what it adds and removes. Servers and llama.cpp
list `classes`; `types` are those whose own class they name. Of the types under `unnamed` no class name is known here.
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

import make_served
from records import read_records

from rope_viz.models.no_rope_types import letters_of

PATH = Path(__file__).parents[2] / "rope_viz" / "runtimes" / "known_types.json"
ABOUT = {
    "transformers": "CONFIG_MAPPING_NAMES in transformers/models/auto of each release: what it adds, what it removes",
    "mlx-lm": "the files of mlx_lm/models, and MODEL_REMAPPING of mlx_lm/utils.py",
    "vllm": "the classes in vllm/model_executor/models/registry.py",
    "sglang": "the classes named EntryClass in sglang/srt/models",
    "llama.cpp": "the classes registered in conversion/",
}


def find_renamed(path: Path) -> dict[str, str]:
    """Return MODEL_REMAPPING of mlx-lm. Raises `ValueError` where there is none."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "MODEL_REMAPPING":
            return dict(ast.literal_eval(node.value))
    raise ValueError(f"no MODEL_REMAPPING in {path}")


def transformers_types(root: Path) -> set[str]:
    """Return the keys of CONFIG_MAPPING_NAMES, from every statement at the top of a file that fills it."""
    found: set[str] = set()
    for path in (root / "transformers" / "models" / "auto").glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign):
                filled = ast.unparse(node.targets[0])
            else:
                filled = ast.unparse(node.value.func) if isinstance(getattr(node, "value", None), ast.Call) else ""
            if filled not in ("CONFIG_MAPPING_NAMES", "CONFIG_MAPPING_NAMES.update"):
                continue
            for part in ast.walk(node):
                keys = part.keys if isinstance(part, ast.Dict) else part.elts[:1] if isinstance(part, ast.Tuple) else []
                found |= {str(key.value) for key in keys if isinstance(key, ast.Constant)}
    return found


def main(folders: list[str]) -> None:
    found: dict[str, dict[str, Any]] = {name: {} for name in ABOUT}
    table = read_records()
    earlier: set[str] = set()
    readers = {"vllm": make_served.vllm, "sglang": make_served.sglang, "llama.cpp": make_served.llamacpp}
    for root in map(Path, folders):
        name, version = root.name.split("-", 1)
        if name == "transformers":
            types = transformers_types(root)
            found[name][version] = {"adds": sorted(types - earlier), "removes": sorted(earlier - types)}
            earlier = types
        elif name == "mlx_lm":
            files = {path.stem for path in (root / "mlx_lm" / "models").glob("*.py")}
            renamed = find_renamed(root / "mlx_lm" / "utils.py")
            found["mlx-lm"][version] = {"files": sorted(files - {"__init__"}), "renamed": renamed}
        else:
            # transformers and the servers write names of classes with other capitals: Kimi_K25, KimiK25.
            classes = sorted(readers[name](root))
            registry = {letters_of(one) for one in classes}
            own = [kind for kind in table if any(letters_of(one) in registry for one in make_served.own_classes(kind))]
            found[name][version] = {"types": sorted(own), "classes": classes}
    unnamed = sorted(kind for kind, facts in table.items() if not make_served.architectures(kind, table))
    lines = [f'"_about": {json.dumps(ABOUT)}', f'"unnamed": {json.dumps(unnamed)}']
    for name, releases in found.items():
        inner = ",\n".join(f"  {json.dumps(version)}: {json.dumps(types)}" for version, types in releases.items())
        lines.append(f"{json.dumps(name)}: {{\n{inner}\n}}")
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
