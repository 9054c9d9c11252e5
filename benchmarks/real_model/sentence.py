"""Keep q and k of every head for one sentence, before rotation, so that a page can rotate them in any way.

python benchmarks/real_model/sentence.py MODEL.gguf -o rope_viz/studies/measured/smollm2_sentence

Writes OUTPUT.safetensors, a float16 capture as `rope-viz capture` makes it, and OUTPUT.json with the tokens.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from common import describe

from rope_viz.models.formats.gguf import read_header
from rope_viz.real_models.capture import capture_gguf
from rope_viz.real_models.gguf_model import make_tokenizer
from rope_viz.storage.write_file import write_file
from rope_viz.studies.capture_file import write_capture

SENTENCE = (
    "Paris is the capital of France, and Rome is the capital of Italy. "
    "She went from Paris to Rome, and then back to Paris again"
)


def main() -> None:
    """Capture the sentence and write both files."""
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("model")
    flags.add_argument("-o", "--output", required=True)
    parsed = flags.parse_args()
    tokenizer = make_tokenizer(read_header(parsed.model, long_arrays=True))
    ids = tokenizer.encode(SENTENCE).ids
    taken = capture_gguf(parsed.model, SENTENCE, tokens=len(ids))
    write_capture(f"{parsed.output}.safetensors", taken.layers, config=taken.config, name=taken.name)
    about = describe(parsed.model, versions=("numpy", "tokenizers"))
    words = [tokenizer.decode([token]).strip() for token in ids]
    found = {"about": about, "rows": {"tokens": words}}
    write_file(Path(f"{parsed.output}.json"), (json.dumps(found) + "\n").encode())


if __name__ == "__main__":
    main()
