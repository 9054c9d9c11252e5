"""Ask model files of vLLM 0.33.0 for the rotary module of synthetic configs: writes tests/goldens/model_files.json.

Run from the root of the repository with torch and transformers 5.23.0 (5.24.0 for sarvam_mla), and the unpacked wheel:
    python tests/goldens/make_model_files.py unpacked/vllm-0.33.0
How model files are run stands in model_files.py. `error` is what the file or the rotary package raises.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import make_servers as servers
from model_files import asked, opened

PATH = Path(__file__).with_name("model_files.json")
BASE = {"rope_theta": 50000.0}
SCALINGS: tuple[dict[str, Any], ...] = (
    {"rope_type": "default"},
    {"rope_type": "linear", "factor": 2.5},
    {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1024},
)
SIZES = {"hidden_size": 1024, "num_attention_heads": 16, "num_key_value_heads": 16, "max_position_embeddings": 4096}
HEADS = {"head_dim": 64}
SWA = {"swa_rope_theta": 10000.0, "swa_head_dim": 192, "swa_v_head_dim": 128, "hybrid_layer_pattern": [0, 1]}
SWA |= {"swa_num_attention_heads": 16, "swa_num_key_value_heads": 16, "sliding_window_size": 128}
SPARSE = {"qk_rope_head_dim": 32, "qk_nope_head_dim": 64, "index_topk": 64, "index_n_heads": 4, "index_head_dim": 64}
# These files read rope_theta at the top, as the published configs have it.
TOP = {"rope_theta": 5e6}
# {model type: (file, its own keys)}
TYPES: dict[str, tuple[str, dict[str, Any]]] = {
    "qwen2_moe": ("qwen2_moe", {}),
    "qwen3_moe": ("qwen3_moe", HEADS),
    "mixtral": ("mixtral", HEADS),
    "gemma": ("gemma", HEADS),
    "granite": ("granite", HEADS),
    "granitemoe": ("granitemoe", HEADS),
    "cohere": ("commandr", {}),
    "olmoe": ("olmoe", {}),
    "internlm3": ("llama", HEADS),
    "apertus": ("apertus", HEADS),
    "ernie4_5_moe": ("ernie45_moe", HEADS),
    "exaone": ("exaone", HEADS),
    "bailing_moe": ("bailing_moe", HEADS),
    "mimo": ("qwen2", {}),
    "orion": ("orion", {}),
    "nemotron": ("nemotron", {**HEADS, "partial_rotary_factor": 0.5}),
    "glm4_moe": ("glm4_moe", {**HEADS, "partial_rotary_factor": 0.5}),
    "minimax_m2": ("minimax_m2", {**HEADS, "rotary_dim": 32}),
    "lfm2": ("lfm2", {}),
    "lfm2_moe": ("lfm2_moe", {}),
    "bailing_moe_v2": ("bailing_moe", {**HEADS, "partial_rotary_factor": 0.5}),
    "cohere2": ("commandr", HEADS),
    "cohere2_moe": ("cohere2_moe", HEADS),
    "deepseek": ("deepseek_v2", {}),
    "falcon_h1": ("falcon_h1", HEADS),
    "granite_swa": ("granite", HEADS),
    "hrm_text": ("hrm_text", HEADS),
    "hy_v3": ("hy_v3", HEADS),
    "hyperclovax": ("hyperclovax", HEADS),
    "iquestcoder": ("llama", HEADS),
    "minicpm": ("minicpm", {}),
    "minicpm3": ("minicpm3", {"qk_rope_head_dim": 32, "qk_nope_head_dim": 64}),
    "olmo_hybrid": ("olmo_hybrid", HEADS),
    "qwen3_next": ("qwen3_next", {**HEADS, "partial_rotary_factor": 0.25}),
    **dict.fromkeys(("deepseek_v32", "glm_moe_dsa"), ("vllm.models.deepseek_v32.attention", SPARSE)),
    "minimax_m3_vl_text": ("vllm.models.minimax_m3.nvidia.model", {**HEADS, **TOP, "partial_rotary_factor": 0.5}),
    "mimo_v2_flash": ("mimo_v2", {"head_dim": 192, "v_head_dim": 128, **TOP, **SWA, "partial_rotary_factor": 0.334}),
    "sarvam_mla": ("sarvam", {"qk_rope_head_dim": 64, "qk_nope_head_dim": 128}),
    "qwen3_5_moe_text": ("qwen3_5", {**HEADS, "partial_rotary_factor": 0.25, "layer_types": ["full_attention"] * 2}),
}
# The type of scaling that only its file knows by this name; a config.json has it in rope_scaling.
OWN_TYPES = {"sarvam_mla": {"rope_type": "deepseek_yarn", "factor": 40.0, "original_max_position_embeddings": 1024}}
# Its file imports libraries that no rotation needs; it is the last one, because transformers notices the stubs.
LAST, LIBRARIES = "qwen3_5_moe_text", {"torchvision", "einops", "triton"}
# Its layers differ: a scaling without a layer type is refused by transformers.
UNSCALED = ("mimo_v2_flash",)


def main(root: str) -> None:
    package = opened(root)
    rows, silent = [], []
    for kind, (file, keys) in TYPES.items():
        path = file.replace(".", "/") if "." in file else f"vllm/model_executor/models/{file}"
        if not Path(root, f"{path}.py").exists():
            silent.append(kind)
            continue
        if kind == LAST:
            servers.KERNELS |= LIBRARIES
        for scaling in (*SCALINGS, *([OWN_TYPES[kind]] if kind in OWN_TYPES else [])):
            share = {key: value for key, value in keys.items() if key == "partial_rotary_factor"}
            given = {**SIZES, **keys}
            if "rope_theta" in keys:
                given |= {} if scaling["rope_type"] == "default" else {"rope_scaling": scaling}
            else:
                given["rope_parameters"] = {**BASE, **share, **scaling}
            if kind in UNSCALED and scaling["rope_type"] != "default":
                continue
            row: dict[str, Any] = {"runtime": "vllm", "version": "0.33.0", "file": file, "length": None}
            row["config"] = {"model_type": kind, **given}
            wanted = json.loads(json.dumps(row["config"]))
            if scaling is OWN_TYPES.get(kind):
                row["config"] = {"model_type": kind, **SIZES, **keys, **BASE, "rope_scaling": scaling}
            try:
                row["inv_freq"], row["attention_factor"] = asked(package, file, wanted)
            except SystemExit:
                silent.append(kind)
                break
            except Exception as error:  # what it raises is the answer
                row["error"] = f"{type(error).__name__}: {error}".splitlines()[0][:160]
            rows.append(row)
    print(len(rows), "rows; no answer from", silent)
    for row in rows:
        if "error" in row:
            print(row["config"]["model_type"], row["error"])
    about = (
        "Made by make_model_files.py from the model files and the rotary package of vLLM 0.33.0, torch CPU, float32."
    )
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    PATH.write_text(f'{{"_about": {json.dumps(about)}, "rows": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main(sys.argv[1])
