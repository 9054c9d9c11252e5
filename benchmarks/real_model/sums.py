"""Keep sums of q and k of every head and pair of the real model, and the mean logits by distance next to them.

python benchmarks/real_model/sums.py MODEL.gguf --texts TEXTS -o rope_viz/studies/measured/smollm2_sums

Writes OUTPUT.safetensors, float32 sums as `rope-viz capture --sums` makes them, and OUTPUT.json: the exact mean logit
of every head at some distances. With --time it prints what the sums add to the time of the forward pass.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from common import TEXT_SOURCE, describe, sha256

from rope_viz.models.formats.gguf import read_header
from rope_viz.real_models.capture import capture_gguf, cut_text
from rope_viz.real_models.gguf_model import load_gguf, make_tokenizer
from rope_viz.storage.write_file import write_file
from rope_viz.studies import heads as studies
from rope_viz.studies.heads import Turning
from rope_viz.studies.pair_sums import add_up
from rope_viz.studies.sums_file import SummedLayer, encode_sums
from rope_viz.tiny_lm import numpy_model

NOVELS = ("northangerabbey", "persuasion")
DISTANCES = 64


def main() -> None:
    """Sum over the pieces of both novels and write both files, or print times."""
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("model")
    flags.add_argument("--texts", required=True, type=Path, help="folder of NAME.txt, as write_texts.R makes it")
    flags.add_argument("-o", "--output")
    flags.add_argument("--tokens", type=int, default=1024, help="tokens of a piece")
    flags.add_argument("--pieces", type=int, default=8, help="pieces of each novel")
    flags.add_argument("--time", action="store_true", help="print times in place of writing files")
    parsed = flags.parse_args()
    if parsed.time:
        print_times(parsed)
        return
    tokenizer = make_tokenizer(read_header(parsed.model, long_arrays=True))
    texts = {name: (parsed.texts / f"{name}.txt").read_bytes() for name in NOVELS}
    distances = np.unique([0, *np.geomspace(1, parsed.tokens - 1, DISTANCES).round().astype(int)])
    summed: dict[int, SummedLayer] = {}
    logits: dict[int, list[np.ndarray]] = {}
    config, name = {}, ""
    for raw in texts.values():
        ids = np.asarray(tokenizer.encode(raw.decode("utf-8")).ids[: parsed.tokens * parsed.pieces])
        for piece in cut_text(ids, parsed.tokens, (0, 1)):
            taken = capture_gguf(parsed.model, tokenizer.decode(piece.tolist()), tokens=parsed.tokens)
            config, name = taken.config, taken.name
            for index, layer in taken.layers.items():
                spec = taken.spec(index)
                sums = add_up(layer.q, layer.k, spec.pairs, spec.pairing)
                found = SummedLayer(sums, layer.kind, layer.scale, layer.heads)
                summed[index] = summed[index] + found if index in summed else found
                if layer.q.shape[1] == parsed.tokens:
                    exact = studies.mean_logit(layer.as_heads(spec), Turning.from_spec(spec, parsed.tokens))
                    logits.setdefault(index, []).append(exact[:, distances])
            print(f"{summed[0].sums.tokens:,} tokens", flush=True)
    content = encode_sums(summed, config=config, name=name, dtype="float32")
    write_file(f"{parsed.output}.safetensors", content)
    about = describe(parsed.model, versions=("numpy", "tokenizers")) | {
        "texts": TEXT_SOURCE,
        "text_sha256": {each: sha256(raw) for each, raw in texts.items()},
        "tokens": parsed.tokens,
        "pieces": len(logits[0]),
        "distances": distances.tolist(),
    }
    rows = {index: np.mean(values, axis=0).round(4).tolist() for index, values in logits.items()}
    write_file(Path(f"{parsed.output}.json"), (json.dumps({"about": about, "rows": rows}) + "\n").encode())


def print_times(parsed: argparse.Namespace) -> None:
    """Print the least time of a forward pass, alone and with sums, over some repeats in turn."""
    text = (parsed.texts / f"{NOVELS[0]}.txt").read_text(encoding="utf-8")[: 12 * parsed.tokens]
    model = load_gguf(parsed.model)
    ids = np.asarray(make_tokenizer(read_header(parsed.model, long_arrays=True)).encode(text).ids[: parsed.tokens])
    spec = model.spec
    times: dict[str, list[float]] = {"forward": [], "with sums": []}

    def record(index: int, inputs: numpy_model.AttentionInputs) -> None:
        add_up(inputs.q, inputs.k, spec.pairs, spec.pairing)

    for _ in range(5):
        for name, see in (("forward", None), ("with sums", record)):
            began = time.process_time()
            numpy_model.hidden(model, ids, None, np.arange(len(ids)), see)
            times[name].append(time.process_time() - began)
    least = {name: min(values) for name, values in times.items()}
    ratio = least["with sums"] / least["forward"]
    print(f"{len(ids)} tokens: forward {least['forward']:.2f} s, with sums {least['with sums']:.2f} s, × {ratio:.3f}")


if __name__ == "__main__":
    main()
