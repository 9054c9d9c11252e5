"""The command `probe`: make a small model with the RoPE of a config, and ask an engine what it computes with it."""

from __future__ import annotations

import argparse
from typing import Any

from rope_viz.cli.spec import NAMES, read_config, read_model
from rope_viz.probe.make_probe import make_probe
from rope_viz.storage.decode_json import decode_json


def add(commands: Any) -> None:
    """Add `probe` and its two commands."""
    parser = commands.add_parser("probe")
    tasks = parser.add_subparsers(required=True, metavar="make|ask")
    maker = tasks.add_parser("make")
    maker.add_argument("config", metavar="CONFIG", help=NAMES)
    maker.add_argument("-o", "--output", required=True, metavar="DIR")
    maker.add_argument("--overrides", metavar="JSON")
    maker.set_defaults(run=run_make)


def run_make(parsed: argparse.Namespace) -> int:
    """Run `probe make` and return its exit code."""
    config = read_model(parsed.config, read_config(parsed.config))
    overrides = decode_json(parsed.overrides, "--overrides must be a JSON object") if parsed.overrides else None
    make_probe(config, parsed.output, overrides)
    print(f"{parsed.output}: a probe of {config.model_type}")
    return 0
