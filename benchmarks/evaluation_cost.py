"""How the time of one evaluation question grows with its length: a transformers model with random weights on a CPU.

Run by hand: python benchmarks/evaluation_cost.py. Prints the median processor time of three passes by length, on one
core, and the exponent from each length to the next. Weights do not change the time. The model is a Llama of 8 layers.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time

import torch
from transformers import LlamaConfig, LlamaForCausalLM


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lengths", type=int, nargs="+", default=[512, 1024, 2048, 4096, 8192])
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--hidden", type=int, default=512)
    asked = parser.parse_args()
    sizes = {"hidden_size": asked.hidden, "intermediate_size": 3 * asked.hidden, "num_hidden_layers": asked.layers}
    config = LlamaConfig(**sizes, num_attention_heads=8, vocab_size=4096, max_position_embeddings=max(asked.lengths))
    torch.set_num_threads(1)
    model = LlamaForCausalLM(config).eval()
    parameters = sum(each.numel() for each in model.parameters())
    print(f"{parameters / 1e6:.0f} million parameters, one thread, torch {torch.__version__}")
    before: tuple[int, float] | None = None
    for length in asked.lengths:
        tokens = torch.randint(0, 4096, (1, length))
        seconds = []
        for _ in range(3):
            start = time.process_time()
            with torch.inference_mode():
                model(tokens, logits_to_keep=1, use_cache=False)
            seconds.append(time.process_time() - start)
        median = statistics.median(seconds)
        exponent = (
            "" if before is None else f"  exponent {math.log(median / before[1]) / math.log(length / before[0]):.2f}"
        )
        print(f"{length:6,} tokens  {median:7.2f} s  {length / median:6,.0f} tokens/s{exponent}", flush=True)
        before = length, median


if __name__ == "__main__":
    main()
