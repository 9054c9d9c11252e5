"""Makes telechat3.json: vLLM 0.33.0's rope dict, frequencies and factor on cos and sin for type telechat3-yarn.

Run from the root of the repository with torch (CPU) and the unpacked wheel:
    python tests/goldens/make_telechat3.py unpacked/vllm-0.33.0
Its patch_legacy_rope_type is taken from transformers_utils/config.py and run alone; the rotary package runs as in
make_servers.py.
"""

import ast
import importlib
import json
import logging
import math
import sys
from pathlib import Path

import make_servers as servers

FACTORS = (1.0, 2.0, 4.0, 8.0, 40.0)
BASE = {"rope_theta": 1e6, "original_max_position_embeddings": 1024, "beta_fast": 32, "beta_slow": 1}


def main(root: Path) -> None:
    path = root / "vllm" / "transformers_utils" / "config.py"
    node = next(one for one in ast.parse(path.read_text()).body if getattr(one, "name", "") == "patch_legacy_rope_type")
    space = {"math": math, "logger": logging.getLogger("vllm"), "is_rope_parameters_nested": lambda _: False}
    space["Any"] = object
    exec(compile(ast.Module([node], []), str(path), "exec"), space)
    package = servers.PACKAGES["vllm"]
    sys.meta_path.insert(0, servers.Finder(package, root))
    module = importlib.import_module(package)
    rows = []
    for factor in FACTORS:
        given = {"rope_type": "telechat3-yarn", "factor": factor, **BASE}
        patched = dict(given)
        space["patch_legacy_rope_type"](patched)
        found, attention = servers.table("vllm", module, {"partial_rotary_factor": 1.0, **patched}, None)
        config = {"model_type": "llama", "head_dim": 64, "hidden_size": 1024, "num_attention_heads": 16}
        config |= {"max_position_embeddings": servers.LIMIT, "rope_parameters": given}
        row = {"config": config, "patched": patched}
        inv_freq = [float(f"{value:.9g}") for value in found]
        rows.append(row | {"inv_freq": inv_freq, "attention_factor": round(attention, 9)})
    made_by = "tests/goldens/make_telechat3.py, vLLM 0.33.0, torch CPU, float32"
    lines = ",\n".join(json.dumps(row) for row in rows)
    text = f'{{"_made_by": {json.dumps(made_by)}, "rows": [\n{lines}\n]}}\n'
    Path(__file__).with_name("telechat3.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
