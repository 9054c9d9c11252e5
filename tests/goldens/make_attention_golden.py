"""Makes attention_transformers.json: rotated q and k and attention from the rotary modules of transformers.

The case in bf16 has its table too, so that the roundings of the products can be compared alone.

Run with transformers 5.23.0 and torch 2.13.0 (CPU, float32): python tests/goldens/make_attention_golden.py
The half-split pairing is Llama's, plain and with YaRN; the interleaved one is RoFormer's, whose sinusoidal module also
gives the table (sines first, then cosines).
"""

import json
from pathlib import Path

import torch
import transformers
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb
from transformers.models.roformer.modeling_roformer import (
    RoFormerSelfAttention,
    RoFormerSinusoidalPositionalEmbedding,
)

HEAD_DIM, TOKENS, OFFSET, BASE = 16, 5, 1000, 10_000.0
SCALINGS = {
    "plain": {"rope_type": "default", "rope_theta": BASE},
    "yarn": {
        "rope_type": "yarn",
        "rope_theta": BASE,
        "factor": 4.0,
        "original_max_position_embeddings": 4096,
    },
}


def main() -> None:
    generator = torch.Generator().manual_seed(7)
    q, k = (torch.randn(1, 1, TOKENS, HEAD_DIM, generator=generator) for _ in range(2))
    positions = OFFSET + torch.arange(TOKENS)[None]
    cases = {}
    for name, parameters in SCALINGS.items():
        config = LlamaConfig(
            hidden_size=HEAD_DIM,
            num_attention_heads=1,
            head_dim=HEAD_DIM,
            max_position_embeddings=16384 if name == "yarn" else 4096,
            rope_parameters=parameters,
        )
        cos, sin = LlamaRotaryEmbedding(config)(q, positions)
        cases[f"half {name}"] = record(*apply_rotary_pos_emb(q, k, cos, sin))
        if name == "plain":
            low_q, low_k = q.bfloat16(), k.bfloat16()
            low_cos, low_sin = LlamaRotaryEmbedding(config)(low_q, positions)
            cases["half plain bf16"] = record(*apply_rotary_pos_emb(low_q, low_k, low_cos, low_sin))
            cases["half plain bf16"] |= {"cos": low_cos[0].tolist(), "sin": low_sin[0].tolist()}
    waves = RoFormerSinusoidalPositionalEmbedding(OFFSET + TOKENS, HEAD_DIM).create_weight()[OFFSET:]
    rotated = RoFormerSelfAttention.apply_rotary_position_embeddings(waves[None, None], q, k)
    cases["interleaved plain"] = record(*rotated)
    golden = {
        "made_with": {"transformers": transformers.__version__, "torch": torch.__version__},
        "head_dim": HEAD_DIM,
        "offset": OFFSET,
        "q": q[0, 0].tolist(),
        "k": k[0, 0].tolist(),
        "cases": cases,
        "sines_then_cosines": waves.tolist(),
    }
    Path(__file__).with_name("attention_transformers.json").write_text(json.dumps(golden) + "\n")


def record(q: torch.Tensor, k: torch.Tensor) -> dict:
    scores = q.float() @ k.float().transpose(-1, -2) / HEAD_DIM**0.5
    return {
        "q": q[0, 0].tolist(),
        "k": k[0, 0].tolist(),
        "weights": scores.softmax(-1)[0, 0].tolist(),
    }


if __name__ == "__main__":
    main()
