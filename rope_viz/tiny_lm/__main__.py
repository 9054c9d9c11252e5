"""python -m rope_viz.tiny_lm train: makes every checkpoint, in under half an hour on two cores."""

from __future__ import annotations

import argparse
from pathlib import Path

from rope_viz.tiny_lm.checkpoints import FOLDER


def main() -> None:
    """Run the only command, `train`."""
    top = argparse.ArgumentParser(prog="python -m rope_viz.tiny_lm", description=__doc__)
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    train = commands.add_parser("train", help="train three seeds and fine-tune them, and write what was measured")
    train.add_argument("--out", type=Path, default=FOLDER, help="where the checkpoints go (default: next to the code)")
    train.add_argument("--cores", type=int, help="processes at once (default: all cores)")
    parsed = top.parse_args()
    from rope_viz.tiny_lm.build_checkpoints import make

    found = make(parsed.out, cores=parsed.cores)
    took = "" if found["seconds"] is None else f" in {found['seconds'] / 60:.1f} minutes"
    print(f"done{took}; measured: {parsed.out / 'measured.json'}")


if __name__ == "__main__":
    main()
