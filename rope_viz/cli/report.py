"""The command `report`: write every picture of every page for one model, with sentences and findings."""

from __future__ import annotations

import argparse
import dataclasses
import shlex
from pathlib import Path
from typing import Any

from rope_viz.cli.figure import read_flags
from rope_viz.cli.hub_access import add_hub_flag
from rope_viz.cli.language import add_language_flag
from rope_viz.cli.output import STDOUT, check_folder, write_output
from rope_viz.cli.spec import add_spec_flags
from rope_viz.texts import use_language

FORMATS = ("html", "md")
MARKER = ".rope-viz-report"
"""An empty file in the folder of a report's pictures: the next report may overwrite what is there."""


def add(commands: Any) -> None:
    """Add the command and its flags."""
    command = commands.add_parser(
        "report",
        description="Write every picture of every page for one model, with its sentences and the findings of the "
        "check. The result is a page that works offline, or Markdown with a folder of SVG files for a model card.",
    )
    add_spec_flags(command, length=False)
    command.add_argument("-o", "--output", metavar="FILE", required=True, help="report.html or report.md; - is stdout")
    # Flags of former releases, which say where they went.
    command.add_argument("--all", help=argparse.SUPPRESS)
    command.add_argument("--full", action="store_true", help=argparse.SUPPRESS)
    command.add_argument("--format", choices=FORMATS, help="default: by the ending of the file")
    add_language_flag(command)
    add_hub_flag(command)
    command.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Run the command and return its exit code. Raise `ValueError` with one sentence if it cannot be written."""
    from rope_viz.reports import report

    path = Path(parsed.output)
    if parsed.all is not None:
        raise ValueError(f"report --all has become a part of site: {write_site_command(parsed)}")
    if parsed.full:
        raise ValueError("--full is a flag of `rope-viz site` now; a report on one model has every picture")
    form = parsed.format or {".html": "html", ".htm": "html", ".md": "md", ".markdown": "md"}.get(path.suffix.lower())
    if form is None:
        if parsed.output == STDOUT:
            raise ValueError("standard output needs a format: --format html")
        raise ValueError(f"{path}: the file must end in .html or .md, or use --format")
    if form == "md":
        if parsed.output == STDOUT:
            raise ValueError("a report in Markdown has a folder of picture files: name a file, as in -o report.md")
        # Before the pictures are drawn, which takes a minute.
        check_folder(folder_of(path), MARKER)
    request = dataclasses.replace(read_flags(parsed), language=parsed.language)
    if form == "html":
        with use_language(parsed.language):
            page = report.to_html(request)
        write_output(parsed.output, page)
        return 0
    folder = folder_of(path)
    with use_language(parsed.language):
        text, files = report.to_markdown(request, folder.name.replace(" ", "%20"))
    folder.mkdir(exist_ok=True)
    # The marker first and the text last: after a kill the next report may write here, and the old text is whole.
    for name, content in {MARKER: b"", **files}.items():
        write_output(folder / name, content)
    write_output(path, text)
    return 0


def write_site_command(parsed: argparse.Namespace) -> str:
    """Return the command that does what `report --all` did."""
    words = ["rope-viz", "site"]
    words += [parsed.all] if Path(parsed.all).is_dir() else ["--list", parsed.all]
    words += ["-o", parsed.output]
    words += ["--full"] if parsed.full else []
    words += ["--hub"] if parsed.hub else []
    words += ["--language", parsed.language] if parsed.language != "en" else []
    return shlex.join(words)


def folder_of(path: Path) -> Path:
    """Return the folder of a Markdown report's pictures."""
    return path.with_name(f"{path.stem}_files")
