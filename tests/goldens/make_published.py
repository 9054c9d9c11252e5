"""Ask model files of vLLM 0.10.2 for the rotary module of published configs: writes tests/goldens/published.json.

Run from the root of the repository with torch and transformers, and the unpacked wheel as the argument:
    python tests/goldens/make_published.py unpacked/vllm-0.10.2
How they are run stands in model_files.py. These types are not in transformers: their code travels with the model, and
these files run it. The configs are those published, cut down to what matters.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from model_files import asked, opened

PATH = Path(__file__).with_name("published.json")
YARN = {"type": "yarn", "factor": 32.0, "beta_fast": 1.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}


def sizes(width: int, heads: int, length: int, **keys: Any) -> dict[str, Any]:
    """The keys that every config has."""
    return {"hidden_size": width, "num_attention_heads": heads, "max_position_embeddings": length, **keys}


# {model type: (file, configs)}
CASES: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "aquila": ("llama", [sizes(4096, 32, 2048)]),
    "arctic": ("arctic", [sizes(7168, 56, 4096, rope_theta=10000)]),
    "baichuan": ("baichuan", [sizes(4096, 32, 4096)]),
    "bailing_moe": ("bailing_moe", [sizes(2048, 16, 16384, head_dim=128, rope_theta=600000)]),
    "deepseek": ("deepseek", [sizes(2048, 16, 4096, rope_theta=10000)]),
    "exaone": (
        "exaone",
        [
            sizes(4096, 32, 4096, rope_theta=500000, head_dim=128),
            sizes(
                *(4096, 32, 32768),
                **{"rope_theta": 1000000, "head_dim": 128},
                rope_scaling={**LLAMA3, "original_max_position_embeddings": 8192},
            ),
        ],
    ),
    "grok-1": ("grok1", [sizes(6144, 48, 8192)]),
    "internlm": ("llama", [sizes(4096, 32, 2048)]),
    "internlm2": ("internlm2", [sizes(4096, 32, 32768, rope_theta=1000000)]),
    "kimi_k2": (
        "deepseek_v2",
        [
            sizes(
                *(7168, 64, 131072),
                **{"qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "rope_theta": 50000.0},
                rope_scaling={**YARN, "original_max_position_embeddings": 4096},
            )
        ],
    ),
    "mimo": ("qwen2", [sizes(4096, 32, 32768, head_dim=128, rope_theta=640000)]),
    "minicpm": ("minicpm", [sizes(2304, 36, 4096)]),
    "minimax_m1": (
        "minimax_text_01",
        [sizes(6144, 64, 10240000, head_dim=128, rotary_dim=64, rope_theta=10000000)],
    ),
    "minimax_text_01": (
        "minimax_text_01",
        [sizes(6144, 64, 10240000, head_dim=128, rotary_dim=64, rope_theta=10000000)],
    ),
    "orion": ("orion", [sizes(5120, 40, 4096, rope_theta=10000.0)]),
    "step3_text": ("step3_text", [sizes(7168, 64, 65536, head_dim=256, rope_theta=500000, num_kv_heads=1)]),
    "xverse": ("llama", [sizes(5120, 40, 8192), sizes(8192, 64, 16384, rope_theta=500000)]),
}


def main(root: str) -> None:
    package = opened(root)
    rows = []
    for kind, (file, configs) in CASES.items():
        for given in configs:
            inv_freq, attention = asked(package, file, given)
            config = {"model_type": kind, **given}
            rows.append({"file": file, "config": config, "inv_freq": inv_freq, "attention_factor": attention})
            print(kind, file, len(inv_freq))
    about = "Made by make_published.py from the model files and the rotary package of vLLM 0.10.2, torch CPU, float32."
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    PATH.write_text(f'{{"_about": {json.dumps(about)}, "rows": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main(sys.argv[1])
