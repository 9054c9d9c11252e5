"""What a real model loses without the rotation of some pairs, by length.

python benchmarks/real_model/ablation.py MODEL.gguf --texts FOLDER -o ablation.json [--lengths 512,2048]

A group of pairs has zero frequency in all heads, and the model runs again. `novel` has the mean loss of each piece of a
novel, in nats per token; `late` that of the last quarter of its tokens. `copying` has the mean loss of each sequence of
random tokens when they are read the second time.
"""

from __future__ import annotations

import time

import numpy as np
from common import NOVELS, Bench, parser

from rope_viz.studies.heads import Turning

GROUPS = {
    "none": range(0),
    **{f"{first}-{first + 3}": range(first, first + 4) for first in range(0, 32, 4)},
    "20-31": range(20, 32),
    "all": range(32),
}


def main() -> None:
    """Measure what the results file does not have yet."""
    flags = parser(__doc__)
    flags.add_argument("--lengths", default="512,2048")
    flags.add_argument("--pieces", type=int, default=4)
    parsed = flags.parse_args()
    bench = Bench(parsed, pieces=parsed.pieces, seed=43)
    plain = bench.model.spec.inv_freq()
    for length in map(int, parsed.lengths.split(",")):
        rng = np.random.default_rng(43)
        half = [rng.integers(100, len(bench.model.embedding), length // 2) for _ in range(parsed.pieces)]
        for name, pairs in GROUPS.items():
            key = f"{length}/{name}"
            if key in bench.results.rows:
                continue
            started = time.process_time()
            turn = Turning(np.where(np.isin(np.arange(len(plain)), pairs), 0.0, plain))
            pieces = [bench.tokens(NOVELS[number], length) for number in range(parsed.pieces)]
            novel = np.stack([bench.torch.losses(piece, turn) for piece in pieces])
            copied = np.stack([bench.torch.losses(np.tile(each, 2), turn)[length // 2 :] for each in half])
            losses = {"novel": novel, "late": novel[:, -length // 4 :], "copying": copied}
            row = {part: np.round(values.mean(axis=1).astype(float), 4).tolist() for part, values in losses.items()}
            bench.results.add(key, row | {"cpu_s": round(time.process_time() - started)})


if __name__ == "__main__":
    main()
