"""The command `learn`: write the story of Learn as one HTML file that works without a server and a network."""

from __future__ import annotations

import argparse
from typing import Any

from rope_viz.cli.language import add_language_flag
from rope_viz.cli.output import read_address, write_output
from rope_viz.texts import use_language


def add(commands: Any) -> None:
    """Add the command and its flags."""
    command = commands.add_parser(
        "learn",
        description="Write the eight scenes of Learn to one HTML file. It works without a server and a network, "
        "for a course page or a talk.",
    )
    command.add_argument("-o", "--output", metavar="FILE", required=True, help="learn.html, or - for standard output")
    command.add_argument(
        "--app", default="", metavar="URL", help="your RoPE Viz server, which the links to other pages lead to"
    )
    add_language_flag(command)
    command.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Run the command and return its exit code. Raise `ValueError` for an address that is none."""
    from rope_viz.reports.story_page import story_page

    app = read_address("--app", parsed.app) or None
    with use_language(parsed.language):
        page = story_page(app=app)
    write_output(parsed.output, page)
    return 0
