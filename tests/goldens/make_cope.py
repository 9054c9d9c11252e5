"""Makes cope.json: the frequencies of the rotary class of CoPE's published code, transformers around it replaced.

Run with torch 2.13.0 (CPU, float32) and a checkout of https://github.com/hrlics/CoPE at ed52ba5:
    python tests/goldens/make_cope.py CoPE/modeling_cope.py
Only the class LlamaRotaryEmbedding is executed. What it takes from transformers is plain RoPE: base^(-2i/d), factor 1.
"""

import ast
import json
import sys
import types
from pathlib import Path

import torch
from torch import nn

# (head dimension, base, max_position_embeddings): Llama 3 8B as published, and as trained at 64k by its scripts.
SIZES = ((128, 500_000.0, 8192), (128, 10_000_000.0, 65_536), (64, 10_000.0, 2048), (32, 10_000.0, 2048))


def plain(config, device=None, seq_len=None):
    """Plain RoPE as transformers 4 computes it."""
    dim = config.hidden_size // config.num_attention_heads
    return 1.0 / config.rope_theta ** (torch.arange(0, dim, 2, dtype=torch.int64).float() / dim), 1.0


def main() -> None:
    tree = ast.parse(Path(sys.argv[1]).read_text(encoding="utf-8"))
    node = next(one for one in tree.body if getattr(one, "name", "") == "LlamaRotaryEmbedding")
    space = {"nn": nn, "torch": torch, "LlamaConfig": object, "ROPE_INIT_FUNCTIONS": {"default": plain}}
    exec(compile(ast.Module([node], []), sys.argv[1], "exec"), space)
    rows = []
    for dim, base, limit in SIZES:
        sizes = {"hidden_size": dim, "num_attention_heads": 1, "max_position_embeddings": limit, "rope_theta": base}
        config = types.SimpleNamespace(**sizes, rope_scaling=None, use_cope=True, use_hardclip=False)
        made = space["LlamaRotaryEmbedding"](config)
        row = {"head_dim": dim, "base": base, "context": limit, "clipped": made.clip_low_n}
        rows.append({**row, "inv_freq": made.inv_freq.tolist(), "attention_factor": made.attention_scaling})
    made_by = "tests/goldens/make_cope.py, modeling_cope.py of hrlics/CoPE at ed52ba5, torch CPU, float32"
    lines = ",\n".join(json.dumps(row) for row in rows)
    text = f'{{"_made_by": {json.dumps(made_by)}, "rows": [\n{lines}\n]}}\n'
    Path(__file__).with_name("cope.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
