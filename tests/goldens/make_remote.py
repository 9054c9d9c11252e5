"""Run the rotary class of a published modeling file that no server has: adds its rows to tests/goldens/published.json.

Run from the root of the repository with torch, after make_published.py, and with the file as it was published:
    python tests/goldens/make_remote.py modeling_telechat.py
The class alone is taken out of models/12B/modeling_telechat.py of Tele-AI/Telechat@14c009a and called; frequencies and
the factor are those of row 1 of its tables, kept in float32 instead of halved.
"""

from __future__ import annotations

import ast
import json
import math
import sys
import types
from pathlib import Path

import torch

PATH = Path(__file__).with_name("published.json")
CONFIGS = (
    {"model_type": "telechat", "hidden_size": 5120, "n_head": 32, "seq_length": 8192, "training_seqlen": 8192},
    {"model_type": "telechat", "hidden_size": 4096, "n_head": 32, "seq_length": 8192, "training_seqlen": 8192},
    {"model_type": "telechat", "hidden_size": 4096, "n_head": 32, "seq_length": 8192, "training_seqlen": 20000},
    {"model_type": "telechat", "hidden_size": 4096, "n_head": 32, "seq_length": 8192, "training_seqlen": 4096},
)
# Lengths beyond the trained one, within a step and beyond it.
LENGTHS = (None, 8193, 16384, 16385, 50000)


def main(file: str) -> None:
    tree = ast.parse(Path(file).read_text())
    node = next(one for one in tree.body if getattr(one, "name", "") == "RotaryEmbedding")
    space = {"torch": torch, "math": math}
    exec(compile(ast.Module([node], []), file, "exec"), space)
    torch.Tensor.half = lambda self: self
    golden = json.loads(PATH.read_text())
    rows = [row for row in golden["rows"] if row["config"]["model_type"] != "telechat"]
    asked = [(CONFIGS[0], None), *((config, length) for config in CONFIGS[1:] for length in LENGTHS)]
    for config, length in asked:
        rope = space["RotaryEmbedding"](config["hidden_size"] // config["n_head"], types.SimpleNamespace(**config))
        rope.precision = torch.float32
        cos, sin = (part[1, 0].double().chunk(2)[0] for part in rope(torch.zeros(1), seq_len=length))
        inv_freq = [float(f"{value:.9g}") for value in torch.atan2(sin, cos).tolist()]
        row = {"file": Path(file).name, "config": config, "length": length, "inv_freq": inv_freq}
        rows.append({**row, "attention_factor": round(float(torch.hypot(sin[0], cos[0])), 9)})
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    PATH.write_text(f'{{"_about": {json.dumps(golden["_about"])}, "rows": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main(sys.argv[1])
