"""Recall of tiny_lm at several lengths under every method, with 95 % intervals and without fine-tuning.

python benchmarks/recall.py [--lengths 512,1024,4096] [--sequences 16] [--transformers]

Every method has the factor length / 256. Prints a Markdown table of means over the three seeds. The interval is
Student's over the seeds or Wilson's over the questions, whichever is wider. `--transformers` also runs the same
questions in transformers on the same folders, with `rope_parameters` set in the config.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rope_viz.embedding.scaling import Llama3, NtkAware, NtkByParts, Yarn
from rope_viz.embedding.spec import RopeSpec, Scaling
from rope_viz.models.rope_config import to_config
from rope_viz.tiny_lm import checkpoints
from rope_viz.tiny_lm.recall import interval, recall, text

COLUMNS = {
    "none": "none",
    "linear": "linear",
    "ntk": "NTK",
    "yarn": "YaRN",
    "yarn-1": "YaRN without attention factor",
    "llama3": "Llama 3",
    "ntk-by-parts": "NTK-by-parts",
}


def scaled_spec(trained: RopeSpec, method: str, length: int) -> RopeSpec:
    """Return tiny_lm's spec under a method whose factor just reaches the length."""
    if method == "yarn-1":
        return dataclasses.replace(trained, scaling=Yarn(factor=length / trained.context, attention=1.0), target=length)
    return checkpoints.scaled(trained, method, length)


def ask_transformers(spec: RopeSpec, name: str, length: int, sequences: int) -> np.ndarray:
    """Return which questions transformers answers correctly with this folder's model and the scaling in its config."""
    import torch
    from transformers import AutoConfig, LlamaForCausalLM

    scaling = spec.scaling
    if isinstance(scaling, NtkAware):  # equals a larger base
        base = spec.base * scaling.factor ** (spec.rotary_dim / (spec.rotary_dim - 2))
        spec = dataclasses.replace(spec, base=base, scaling=Scaling())
    elif isinstance(scaling, NtkByParts):  # equals Llama 3's ramp with these bounds
        ramp = Llama3(factor=scaling.factor, low_freq_factor=scaling.alpha, high_freq_factor=scaling.beta)
        spec = dataclasses.replace(spec, scaling=ramp)
    written = to_config(spec)
    config = AutoConfig.from_pretrained(checkpoints.FOLDER / name)
    config.max_position_embeddings = written["max_position_embeddings"]
    config.rope_parameters = written["rope_parameters"]
    model = LlamaForCausalLM.from_pretrained(checkpoints.FOLDER / name, config=config)
    right = []
    for seed in range(sequences):
        question_text = text(length, seed)
        with torch.inference_mode():
            logits = model(torch.from_numpy(question_text.tokens)).logits[0, question_text.rows]
        right.append(logits.argmax(dim=1).numpy() == question_text.answers[0])
    return np.array(right)


def format_cell(share: float, low: float, high: float) -> str:
    """Format a cell: 0.98 (0.96 to 0.99)."""
    return f"{share:.2f} ({low:.2f} to {high:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", default="256,512,1024,2048,4096")
    parser.add_argument("--sequences", type=int, default=16, help="texts per seed, 16 questions each")
    parser.add_argument("--transformers", action="store_true")
    options = parser.parse_args()
    lengths = [int(length) for length in options.lengths.split(",")]
    models = [checkpoints.load_tiny_lm(name) for name in checkpoints.SEEDS]
    trained = models[0].spec
    print(
        f"{len(models)} seeds, {options.sequences * 16} questions each, trained to {trained.context} tokens; ", end=""
    )
    print(f"{os.cpu_count()} cores, NumPy {np.__version__}\n")
    print("| length | " + " | ".join(COLUMNS.values()) + " |\n" + "| ---: " * (len(COLUMNS) + 1) + "|")
    begin = time.perf_counter()
    for length in lengths:
        cells = []
        for method in COLUMNS:
            spec = scaled_spec(trained, method, length)
            found = recall(models, spec, length, sequences=options.sequences)
            cells.append(format_cell(found.share, *found.interval))
            if options.transformers:
                transformers_answers = np.stack(
                    [ask_transformers(spec, name, length, options.sequences) for name in checkpoints.SEEDS]
                )
                cells[-1] += " / " + format_cell(
                    transformers_answers.mean(),
                    *interval(transformers_answers.mean(axis=(1, 2)), transformers_answers.size),
                )
        print(f"| {length:,} | " + " | ".join(cells) + " |", flush=True)
    print(f"\n{time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
