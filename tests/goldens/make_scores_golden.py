"""Writes scores_transformers.json: scores of q and k rotated by transformers' own code.

Made with transformers 5.23.0 and torch 2.13.0. To make it again: python tests/goldens/make_scores_golden.py
"""

import json
from pathlib import Path

import torch
import transformers
from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb as rotate_interleaved
from transformers.models.llama.modeling_llama import LlamaConfig, LlamaRotaryEmbedding
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb as rotate_half_split

HEAD_DIM = 16
YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 256}


def main() -> None:
    generator = torch.Generator().manual_seed(0)
    cases = []
    for rope in ({"rope_type": "default", "rope_theta": 1e4}, YARN):
        config = LlamaConfig(
            hidden_size=HEAD_DIM, num_attention_heads=1, max_position_embeddings=1024, rope_parameters=rope
        )
        module = LlamaRotaryEmbedding(config)
        inv_freq = module.inv_freq.double()
        for longest in (200, 10_000_000):
            for _ in range(4):
                q, k = torch.randn(2, HEAD_DIM, generator=generator, dtype=torch.float64).round(decimals=4)
                m, n = torch.randint(0, longest, (2,), generator=generator).tolist()
                # Angles in float64 (the module rounds them to float32), turned by the library's own functions.
                angle = torch.outer(torch.tensor([m, n], dtype=torch.float64), inv_freq)
                cos, sin = angle.cos() * module.attention_scaling, angle.sin() * module.attention_scaling
                pair = torch.stack([q, k])[None, None]
                half = rotate_half_split(pair, pair, torch.cat([cos, cos], -1)[None], torch.cat([sin, sin], -1)[None])
                interleaved = rotate_interleaved(pair.transpose(1, 2), sin[None], cos[None]).transpose(1, 2)
                case = {
                    "inv_freq": inv_freq.tolist(),
                    "attention_factor": module.attention_scaling,
                    "q": q.tolist(),
                    "k": k.tolist(),
                    "m": m,
                    "n": n,
                    "half": (half[0][0, 0, 0] @ half[0][0, 0, 1]).item(),
                    "interleaved": (interleaved[0, 0, 0] @ interleaved[0, 0, 1]).item(),
                }
                if longest == 200:
                    cos32, sin32 = module(pair.float(), torch.tensor([[m, n]]))
                    own = rotate_half_split(pair, pair, cos32.double(), sin32.double())[0]
                    case["half_float32"] = (own[0, 0, 0] @ own[0, 0, 1]).item()
                cases.append(case)
    target = Path(__file__).with_name("scores_transformers.json")
    made = {"transformers": transformers.__version__, "torch": torch.__version__}
    lines = ",\n".join(json.dumps(case) for case in cases)
    target.write_text(f'{{"made_with": {json.dumps(made)}, "cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
