"""Words that a real model writes next at some positions of a novel, without scaling and under each method.

python benchmarks/real_model/next_words.py MODEL.gguf --texts FOLDER -o next_words.json \
    [--positions 6000,10000,14000] [--factor 2] [--novel northangerabbey] [--methods none,linear,ntk,yarn]

The model reads the novel once per method, as one text that starts with its first token. At each position it goes on by
itself for `TOKENS` tokens, each its first choice: nothing is drawn at random, whatever the seed. In float32, with one
thread, a second run writes the same file. A row also has the words of the novel.
"""

from __future__ import annotations

import time

from common import NOVELS, Bench, parser

from rope_viz.real_models.torch_forward import KeyValueCache
from rope_viz.studies.heads import Turning
from rope_viz.tiny_lm.checkpoints import scaled

TOKENS = 28
"""Tokens that are written, about 20 words."""


def main() -> None:
    """Write the words that the results file does not have yet."""
    flags = parser(__doc__)
    flags.add_argument("--positions", default="6000,10000,14000")
    flags.add_argument("--factor", type=float, default=2.0)
    flags.add_argument("--novel", default=NOVELS[0])
    flags.add_argument("--methods", default="none,linear,ntk,yarn")
    parsed = flags.parse_args()
    bench = Bench(parsed, tokens=TOKENS, factor=parsed.factor, seed=0, choice="greedy")
    positions = sorted(map(int, parsed.positions.split(",")))
    ids = bench.tokens(parsed.novel, positions[-1] + TOKENS)
    length = round(parsed.factor * bench.model.spec.context)
    for method in parsed.methods.split(","):
        missing = [each for each in positions if f"{parsed.novel}/{each}/{method}" not in bench.results.rows]
        if not missing:
            continue
        started, cache = time.process_time(), KeyValueCache()
        turn = Turning.from_spec(scaled(bench.model.spec, method, length), length)
        bench.torch.hidden(ids[: missing[-1] - 1], turn, cache=cache)
        for position in missing:
            written = bench.torch.write_greedily(cache.cut(position - 1), int(ids[position - 1]), TOKENS, turn)
            row = {
                "words": bench.tokenizer.decode(written, skip_special_tokens=False),
                "novel": bench.tokenizer.decode(ids[position : position + TOKENS].tolist()),
            }
            bench.results.add(f"{parsed.novel}/{position}/{method}", row)
        print(f"{method}: {time.process_time() - started:.0f} s of CPU")


if __name__ == "__main__":
    main()
