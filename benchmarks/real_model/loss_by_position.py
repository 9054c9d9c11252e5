"""Loss by position of a real model on novels, without scaling and under each method, without fine-tuning.

python benchmarks/real_model/loss_by_position.py MODEL.gguf --texts FOLDER -o loss.json \
    [--factor 2] [--read 8192] [--novels northangerabbey,persuasion] [--methods none,yarn] [--dtype bfloat16]

The text has `factor` times the trained length, or `read` tokens, with the scaling for the factor all the same. A row
has the mean loss in nats of every 128 tokens, so that intervals and paired differences can be computed from it. The
first block has 127 tokens, because the first token has no loss.
"""

from __future__ import annotations

import time

import numpy as np
from common import NOVELS, Bench, parser

from rope_viz.studies.heads import Turning
from rope_viz.tiny_lm.checkpoints import MAIN_METHODS, scaled

BLOCK = 128


def main() -> None:
    """Measure what the results file does not have yet."""
    flags = parser(__doc__)
    flags.add_argument("--factor", type=float, default=2.0)
    flags.add_argument("--read", type=int, help="tokens to read; default: factor times the trained length")
    flags.add_argument("--novels", default=NOVELS[0])
    flags.add_argument("--methods", default=",".join(MAIN_METHODS))
    parsed = flags.parse_args()
    bench = Bench(parsed, block=BLOCK, **({"read": parsed.read} if parsed.read else {}))
    length = round(parsed.factor * bench.model.spec.context)
    read = parsed.read or length
    for novel in parsed.novels.split(","):
        for method in parsed.methods.split(","):
            key = f"{novel}/{length}/{method}"
            if key in bench.results.rows:
                continue
            started = time.process_time()
            spec = scaled(bench.model.spec, method, length)
            losses = bench.torch.losses(bench.tokens(novel, read), Turning.from_spec(spec, length))
            edges = range(0, read, BLOCK)
            blocks = np.add.reduceat(np.concatenate([[0.0], losses.astype(np.float64)]), edges)
            sizes = np.diff([1, *edges[1:], read])
            row = {"loss": np.round(blocks / sizes, 4).tolist(), "cpu_s": round(time.process_time() - started)}
            bench.results.add(key, row)


if __name__ == "__main__":
    main()
