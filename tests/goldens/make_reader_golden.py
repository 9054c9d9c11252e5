"""Makes reader_transformers.json: logits of the reader's folders in transformers, plain and with scaling set.

Run with transformers 5.23.0 and torch 2.13.0 (CPU, float32) from the root: python tests/goldens/make_reader_golden.py
Only the texts come from here (tokens), the rest from `LlamaForCausalLM.from_pretrained` and its rotary module.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
import transformers

sys.path.insert(0, str(Path(__file__).parents[2]))

from rope_viz.tiny_lm import tasks

CHECKPOINTS = Path(__file__).parents[2] / "rope_viz" / "tiny_lm" / "checkpoints"
ASKED = 4  # questions of each text
L3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
CASES = [
    ("plain", "seed-0", 256, {"rope_type": "default"}),
    ("plain, longer", "seed-1", 1024, {"rope_type": "default"}),
    ("linear", "seed-2", 1024, {"rope_type": "linear", "factor": 4.0}),
    ("yarn", "seed-0", 1024, {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 256}),
    ("llama3", "seed-1", 1024, {**L3, "original_max_position_embeddings": 256}),
    ("dynamic", "seed-2", 1024, {"rope_type": "dynamic", "factor": 4.0}),
]


def main() -> None:
    cases = []
    for name, reader, length, rope in CASES:
        config = transformers.AutoConfig.from_pretrained(CHECKPOINTS / reader)
        config.rope_parameters = {"rope_theta": 10_000.0, **rope}
        if "original_max_position_embeddings" in rope:
            config.max_position_embeddings = 1024
        model = transformers.LlamaForCausalLM.from_pretrained(CHECKPOINTS / reader, config=config)
        asked = tasks.questions(np.random.default_rng(0), 1, length)
        with torch.inference_mode():
            logits = model(torch.from_numpy(asked.tokens)).logits[0, asked.rows[:ASKED]]
        rotary = model.model.rotary_emb
        cases.append(
            {
                "name": name,
                "reader": reader,
                "length": length,
                "rope_parameters": config.rope_parameters,
                "inv_freq": [float(f"{x:.9g}") for x in rotary.inv_freq.tolist()],
                "attention_factor": float(rotary.attention_scaling),
                "logits": [[float(f"{x:.7g}") for x in row] for row in logits.tolist()],
            }
        )
    made = f"transformers {transformers.__version__}, torch {torch.__version__}"
    out = Path(__file__).with_name("reader_transformers.json")
    out.write_text(json.dumps({"made_with": made, "cases": cases}) + "\n")


if __name__ == "__main__":
    main()
