"""Ask vLLM 0.33.0 for the frequencies of rope_type "ntk": writes tests/goldens/fixed_ntk.json.

Run from the root of the repository with torch and the unpacked wheel:
    python tests/goldens/make_fixed_ntk.py unpacked/vllm-0.33.0
`NTKScalingRotaryEmbedding._compute_inv_freq` and the method of its base class are executed as they are in the wheel;
the rest of both classes needs vLLM's platform and is stepped over.
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

CASES: tuple[dict[str, Any], ...] = (
    {"head_dim": 64, "rope_theta": 160000.0, "factor": 2.0},
    {"head_dim": 64, "rope_theta": 500000.0, "factor": 8.0},
    {"head_dim": 128, "rope_theta": 10000.0, "factor": 4.0, "mixed_b": 0.625},
)


def take_method(path: Path) -> Any:
    """Return the source of _compute_inv_freq in a file, as a function of `self` and `base`."""
    tree = ast.parse(path.read_text())
    method = next(
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "_compute_inv_freq"
    )
    space: dict[str, Any] = {"torch": torch}
    code = ast.unparse(method).replace("super()._compute_inv_freq(base)", "self.of_base(base)")
    exec(compile(code, str(path), "exec"), space)
    return space["_compute_inv_freq"]


def main() -> None:
    """Write one row per case."""
    package = Path(sys.argv[1]) / "vllm" / "model_executor" / "layers" / "rotary_embedding"
    own, of_base = take_method(package / "ntk_scaling_rope.py"), take_method(package / "base.py")
    rows = []
    for case in CASES:
        module = SimpleNamespace(
            base=case["rope_theta"],
            rotary_dim=case["head_dim"],
            scaling_factor=case["factor"],
            mixed_b=case.get("mixed_b"),
            init_cache=True,
        )
        module.of_base = lambda base, module=module: of_base(module, base)
        inv_freq = own(module, module.base).double().tolist()
        rows.append({**case, "inv_freq": [float(f"{value:.9g}") for value in inv_freq]})
    about = "Made by make_fixed_ntk.py from rotary_embedding/ntk_scaling_rope.py of vLLM 0.33.0, float32 on the CPU."
    path = Path(__file__).with_name("fixed_ntk.json")
    path.write_text(json.dumps({"_about": about, "rows": rows}) + "\n")


if __name__ == "__main__":
    main()
