"""Ask older releases of vLLM and SGLang for the rotary module of synthetic configs: adds to tests/goldens/older.json.

Run from the root of the repository with torch and transformers, once for each release and its unpacked wheel:
    python tests/goldens/make_older.py vllm 0.8.5 unpacked/vllm-0.8.5
How its model files are run stands in model_files.py. `error` is what the file or the rotary package raises.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from model_files import PLACES, asked, opened

PATH = Path(__file__).with_name("older.json")
ORIGINAL = "original_max_position_embeddings"
YARN: dict[str, Any] = {"rope_type": "yarn", "factor": 4.0, ORIGINAL: 1024}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, ORIGINAL: 1024, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LISTS = {"short_factor": [1.0 + 0.01 * i for i in range(32)], "long_factor": [1.0 + i for i in range(32)]}
LONGROPE = {"rope_type": "longrope", **LISTS, ORIGINAL: 1024}
# What a Llama is asked, and what of it every other model is.
SCALINGS: tuple[dict[str, Any] | None, ...] = (
    None,
    YARN,
    {"rope_type": "linear", "factor": 2.5},
    {"type": "linear", "factor": 2.5},
    {"rope_type": "linear", "factor": 2},
    {"rope_type": "dynamic", "factor": 2.0},
    {"rope_type": "dynamic", "alpha": 3.0},
    {"rope_type": "ntk", "factor": 4.0},
    {**YARN, "truncate": False},
    {**YARN, "mscale": 1.0, "mscale_all_dim": 0.5},
    {**YARN, "attention_factor": 0.7},
    {**YARN, "attn_factor": 0.7},
    {**YARN, "extrapolation_factor": 0.5},
    {**YARN, "beta_fast": 16, "beta_slow": 2},
    {"rope_type": "yarn", "factor": 4.0},
    LLAMA3,
    {**LLAMA3, "low_freq_factor": 4.0, "high_freq_factor": 1.0},
    {"rope_type": "llama3", "factor": 8.0, ORIGINAL: 1024},
    LONGROPE,
    {"type": "su", **LISTS, ORIGINAL: 1024},
    {**LONGROPE, "attention_factor": 1.3, "factor": 9.0},
    {**LONGROPE, "short_mscale": 1.1, "long_mscale": 1.2},
    {"rope_type": "proportional", "factor": 2.0},
    {"rope_type": "foo", "factor": 2.0},
)
FEW = SCALINGS[:3]
SIZES = {"hidden_size": 1024, "num_attention_heads": 16, "num_key_value_heads": 16, "max_position_embeddings": 4096}
MLA = {"qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128, "kv_lora_rank": 512, "q_lora_rank": None}
# {model type: (file, its own keys)}
TYPES: dict[str, tuple[str, dict[str, Any]]] = {
    "mistral": ("llama", {"head_dim": 64}),
    "qwen2": ("qwen2", {}),
    "qwen3": ("qwen3", {"head_dim": 64}),
    "qwen2_moe": ("qwen2_moe", {}),
    "mixtral": ("mixtral", {"head_dim": 64}),
    "gemma": ("gemma", {"head_dim": 64}),
    "gemma2": ("gemma2", {"head_dim": 64}),
    "granite": ("granite", {"head_dim": 64}),
    "stablelm": ("stablelm", {"partial_rotary_factor": 0.5}),
    "starcoder2": ("starcoder2", {}),
    "deepseek_v3": ("deepseek_v2", MLA),
}


def few(keys: dict[str, Any]) -> tuple[dict[str, Any] | None, ...]:
    """DeepSeek's file wants YaRN."""
    return (YARN,) if keys is MLA else FEW


def main(server: str, version: str, root: str) -> None:
    package = opened(root, server)
    rows = json.loads(PATH.read_text())["rows"] if PATH.exists() else []
    rows = [row for row in rows if (row["runtime"], row["version"]) != (server, version)]
    cases = [("llama", "llama", {"head_dim": 64}, scaling) for scaling in SCALINGS]
    cases += [(kind, file, keys, scaling) for kind, (file, keys) in TYPES.items() for scaling in few(keys)]
    models = Path(root, *PLACES[server][1].split("."))
    for kind, file, keys, scaling in cases:
        if not (models / f"{file}.py").exists():
            continue
        given = {**SIZES, **keys, "rope_theta": 50000.0, **({"rope_scaling": scaling} if scaling else {})}
        longrope = scaling is not None and "long_factor" in scaling
        for length in (None, 2048) if longrope else (None,):
            row = {"runtime": server, "version": version, "file": file, "config": {"model_type": kind, **given}}
            row["length"] = length
            try:
                found, attention = asked(package, file, given, longer=length is not None)
                row |= {"inv_freq": found, "attention_factor": attention}
            except SystemExit as error:
                print(kind, error)
                continue
            except Exception as error:  # what it raises is the answer, unless it is for want of a GPU
                if "CUDA" in str(error):
                    continue
                row["error"] = f"{type(error).__name__}: {error}".splitlines()[0][:160]
            rows.append(row)
    about = "Made by make_older.py from the model files and the rotary package of older releases, torch CPU, float32."
    rows.sort(key=lambda row: (row["runtime"], [int(part) for part in row["version"].split(".")]))
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    PATH.write_text(f'{{"_about": {json.dumps(about)}, "rows": [\n{lines}\n]}}\n')
    print(server, version, len(rows), sum("error" in row for row in rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
