"""Makes resonance.json: the frequencies of Resonance RoPE's published code.

Run with torch 2.13.0 (CPU, float32) and a checkout of https://github.com/sheryc/resonance_rope at 9e903dc:
    python tests/goldens/make_resonance.py resonance_rope/llama_finetuning/scaled_rope/modeling_llama_yarn.py
Only the class ResonanceEmbedding is executed, on the plain frequencies that its file computes: base^(-2i/d).
"""

import ast
import json
import math
import sys
from pathlib import Path

import torch
from torch import nn

# (head dimension, base): Llama 2, Llama 3, a small head, and the base that the paper's benchmark takes.
SIZES = ((128, 10_000.0), (128, 500_000.0), (64, 1_000_000.0), (32, 10_000.0))


def main() -> None:
    tree = ast.parse(Path(sys.argv[1]).read_text(encoding="utf-8"))
    node = next(one for one in tree.body if getattr(one, "name", "") == "ResonanceEmbedding")
    space = {"nn": nn, "torch": torch, "math": math}
    exec(compile(ast.Module([node], []), sys.argv[1], "exec"), space)
    rows = []
    for dim, base in SIZES:
        made = space["ResonanceEmbedding"]()
        made.inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim))
        made.resonance_register()
        wavelengths = [int(value) for value in made.r_wavelengths.tolist()]
        rows.append({"head_dim": dim, "base": base, "wavelengths": wavelengths, "inv_freq": made.r_inv_freq.tolist()})
    made_by = "tests/goldens/make_resonance.py, modeling_llama_yarn.py of sheryc/resonance_rope at 9e903dc, torch CPU"
    lines = ",\n".join(json.dumps(row) for row in rows)
    text = f'{{"_made_by": {json.dumps(made_by + ", float32")}, "rows": [\n{lines}\n]}}\n'
    Path(__file__).with_name("resonance.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
