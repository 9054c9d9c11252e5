"""Share of pass keys that a real model finds again, by length, depth and method, without fine-tuning.

python benchmarks/real_model/passkey.py MODEL.gguf --texts FOLDER -o passkey.json [--lengths 1024,4096] [--factor 2]

A sentence with five random digits is placed in a novel, and the text ends with the question. An answer is right if the
model's first choice is right at each digit, given the digits before. Every question is a whole text of its own.
"""

from __future__ import annotations

import time

import numpy as np
from common import NOVELS, Bench, parser

from rope_viz.studies.heads import Turning
from rope_viz.tiny_lm.checkpoints import MAIN_METHODS, scaled
from rope_viz.tiny_lm.passkey import hide_key

CITIES = ("Paris", "London", "Rome", "Madrid", "Vienna", "Berlin")
DEPTHS = (0.1, 0.3, 0.5, 0.7, 0.9)


def main() -> None:
    """Measure what the results file does not have yet."""
    flags = parser(__doc__)
    flags.add_argument("--lengths", default="1024,2048,4096")
    flags.add_argument("--factor", type=float, default=2.0)
    flags.add_argument("--methods", default=",".join(MAIN_METHODS))
    parsed = flags.parse_args()
    bench = Bench(parsed, seed=43, factor=parsed.factor)
    context = bench.model.spec.context
    for length in map(int, parsed.lengths.split(",")):
        rng = np.random.default_rng([43, length])
        for number, depth in enumerate(DEPTHS):
            digits = "".join(str(digit) for digit in rng.integers(0, 10, 5))
            ids = question(bench, length, depth, CITIES[number], digits, NOVELS[number])
            for method in parsed.methods.split(","):
                key = f"{length}/{depth}/{method}"
                if key in bench.results.rows:
                    continue
                started = time.process_time()
                spec = scaled(bench.model.spec, method, round(parsed.factor * context))
                state = bench.torch.hidden(ids, Turning.from_spec(spec, length))[-6:-1]
                found = (state @ bench.torch.unembedding.T).argmax(dim=1).tolist()
                right = [one == int(other) for one, other in zip(found, ids[-5:], strict=True)]
                row = {"right": all(right), "digits": sum(right), "key": digits}
                bench.results.add(key, row | {"cpu_s": round(time.process_time() - started)})


def question(bench: Bench, length: int, depth: float, city: str, digits: str, novel: str) -> np.ndarray:
    """Return the tokens of a text with its question and the answer, whose last five tokens are the digits."""

    def encode(text: str) -> np.ndarray:
        return np.asarray(bench.tokenizer.encode(text, add_special_tokens=False).ids)

    return hide_key(encode, bench.tokens(novel, length), depth, digits, city)


if __name__ == "__main__":
    main()
