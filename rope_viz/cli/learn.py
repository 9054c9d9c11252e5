"""The command `learn`: write the story of Learn as one HTML file that works without a server and a network."""

from __future__ import annotations

import argparse
from typing import Any

from rope_viz.cli.app import read_address
from rope_viz.cli.flags import add_command
from rope_viz.cli.output import write_output


def add(commands: Any) -> None:
    """Add the command and its flags."""
    add_command(commands, "learn", run)


def run(parsed: argparse.Namespace) -> int:
    """Run the command and return its exit code. Raise `ValueError` for an address that is none."""
    from rope_viz.reports.story_page import story_page

    write_output(parsed.output, story_page(app=read_address("--app", parsed.app) or None))
    return 0
