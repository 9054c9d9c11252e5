"""The command `badge`: an SVG for a model card that says how many runtimes compute the config otherwise."""

from __future__ import annotations

import argparse
from typing import Any

from rope_viz.cli.find_configs import find_listed
from rope_viz.cli.hub_access import add_hub_flag
from rope_viz.cli.output import write_output
from rope_viz.cli.spec import NAMES, named, read_config, read_model, refuse_diffusion
from rope_viz.figures.badge import make_badge
from rope_viz.own_files.config_keys import cut_config


def add(commands: Any) -> None:
    """Add `badge` and its flags."""
    parser = commands.add_parser("badge")
    parser.add_argument("config", metavar="CONFIG", help=NAMES)
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="badge.svg, or - for standard output")
    parser.add_argument("--name", default="", help="the model's name in the badge's description")
    add_hub_flag(parser)
    parser.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Run `badge` and return its exit code."""
    config = read_config(parsed.config)
    with named(parsed.config):
        refuse_diffusion(config)
        listed = find_listed(parsed.config)
        # A badge is published, and the path of a file is private.
        name = parsed.name or (listed.name if listed else "")
        content = make_badge(read_model(parsed.config, cut_config(config)), name)
    write_output(parsed.output, content)
    return 0
