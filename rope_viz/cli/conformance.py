"""The command `conformance`: write the conformance kit, which checks the rotary embedding of any engine."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rope_viz.advice.verify.conformance import make_kit
from rope_viz.storage.write_file import write_file


def add(commands: Any) -> None:
    """Add the command and its flags."""
    asked = commands.add_parser(
        "conformance",
        description="Write cases.json (configs with frequencies, angles and rotated vectors), check_rope.py, which "
        "compares your function with them and needs only NumPy, and values.bin with values.json: the same numbers as "
        "little-endian float64 for engines in other languages.",
    )
    asked.add_argument("-o", "--output", required=True, metavar="DIR", help="folder to write into")
    asked.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    folder = Path(parsed.output)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in make_kit().items():
        write_file(folder / name, content)
        print(folder / name)
    return 0
