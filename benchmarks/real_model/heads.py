"""The job of every head of a real model, and how it uses every pair: see `rope_viz.real_models.head_jobs`.

python benchmarks/real_model/heads.py MODEL.gguf --texts FOLDER -o heads.json [--tokens 512]
"""

from __future__ import annotations

import numpy as np
from common import NOVELS, Bench, parser

from rope_viz.real_models.head_jobs import THRESHOLDS, measure_heads, random_halves
from rope_viz.real_models.measured_subjects import GgufSubject


def main() -> None:
    """Measure every head and write the file once, at the end: this takes two minutes of one core."""
    flags = parser(__doc__)
    flags.add_argument("--tokens", type=int, default=512)
    flags.add_argument("--sequences", type=int, default=6)
    parsed = flags.parse_args()
    bench = Bench(parsed, tokens=parsed.tokens, sequences=parsed.sequences, seed=43, thresholds=THRESHOLDS)
    subject = GgufSubject(bench.torch)
    pieces = [
        bench.tokens(NOVELS[number % len(NOVELS)], parsed.tokens, first=4096) for number in range(parsed.sequences)
    ]
    halves = random_halves(subject.vocabulary, parsed.tokens, parsed.sequences, np.random.default_rng(43))
    bench.results.rows |= measure_heads(subject, pieces, halves, lambda done, of: print(f"{done} of {of}", flush=True))
    bench.results.save()


if __name__ == "__main__":
    main()
