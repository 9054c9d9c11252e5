"""The flag `--language` of commands that write pages; what the commands print stays English."""

from __future__ import annotations

from argparse import ArgumentParser

from rope_viz.texts.languages import ENGLISH, list_languages


def add_language_flag(command: ArgumentParser) -> None:
    """Add the flag."""
    languages = ", ".join(list_languages())
    command.add_argument(
        "--language",
        choices=list_languages(),
        default=ENGLISH,
        metavar="CODE",
        help=f"language of what is written: {languages}; default: {ENGLISH}",
    )
