"""Makes learned_frequencies.json: cos and sin of Mistral Large 4's rotary module with frequencies learned in `alpha`.

Run with transformers 5.23.0 and torch 2.13.0 (CPU, float32): python tests/goldens/make_learned_frequencies.py
"""

import json
from pathlib import Path

import torch
import transformers
from transformers import MistralLarge4TextConfig
from transformers.models.mistral_large4.modeling_mistral_large4 import MistralLarge4TextRotaryEmbedding

POSITION = 3


def main() -> None:
    config = MistralLarge4TextConfig()
    module = MistralLarge4TextRotaryEmbedding(config)
    pairs = len(module.inv_freq)
    alpha = torch.randn(pairs, generator=torch.Generator().manual_seed(7)) / 4
    module.alpha.copy_(alpha)
    cos, sin = module(torch.zeros(1, 1, 1), torch.tensor([[POSITION]]))
    rows = {"alpha": alpha.tolist(), "cos": cos[0, 0, :pairs].tolist(), "sin": sin[0, 0, :pairs].tolist()}
    names = [name for name, _ in module.named_buffers()]
    made = f"tests/goldens/make_learned_frequencies.py, transformers {transformers.__version__}"
    text = json.dumps({"_made_by": made, "position": POSITION, "buffers": names, **rows})
    Path(__file__).with_name("learned_frequencies.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
