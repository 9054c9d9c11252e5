"""The command `widget`: write the moving pictures as one module of JavaScript, for web pages."""

from __future__ import annotations

import argparse
from typing import Any

from rope_viz.cli.output import write_output


def add(commands: Any) -> None:
    """Add the command and its flags."""
    command = commands.add_parser(
        "widget",
        description="Write rope-viz.js: the clocks and the two hands, for any web page. The page needs nothing else.",
    )
    command.add_argument("-o", "--output", metavar="FILE", required=True, help="rope-viz.js, or - for standard output")
    command.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from rope_viz.widgets.module import make_module

    write_output(parsed.output, make_module().encode())
    return 0
