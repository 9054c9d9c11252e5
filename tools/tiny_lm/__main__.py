"""python -m tools.tiny_lm train: makes every checkpoint, in under half an hour on two cores.

`python -m tools.tiny_lm recall` stores what the three seeds find in long texts without scaling.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from rope_viz.tiny_lm.checkpoints import FOLDER, UNSCALED


def main() -> None:
    """Run a command."""
    top = argparse.ArgumentParser(prog="python -m tools.tiny_lm", description=__doc__)
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    train = commands.add_parser("train", help="train three seeds and fine-tune them, and write what was measured")
    train.add_argument("--out", type=Path, default=FOLDER, help="where the checkpoints go (default: next to the code)")
    train.add_argument("--cores", type=int, help="processes at once (default: all cores)")
    train.set_defaults(command="train")
    recall = commands.add_parser("recall", help="store what the three seeds find in long texts, in a minute")
    recall.add_argument(
        "--out", type=Path, default=FOLDER, help="where the checkpoints are (default: next to the code)"
    )
    recall.set_defaults(command="recall")
    parsed = top.parse_args()
    from rope_viz.tiny_lm.recall import write_unscaled

    if parsed.command == "recall":
        write_unscaled(parsed.out)
        print(f"done: {parsed.out / UNSCALED}")
        return
    from tools.tiny_lm.build_checkpoints import make

    found = make(parsed.out, cores=parsed.cores)
    write_unscaled(parsed.out)
    took = "" if found["seconds"] is None else f" in {found['seconds'] / 60:.1f} minutes"
    print(f"done{took}; measured: {parsed.out / 'measured.json'}")


if __name__ == "__main__":
    main()
