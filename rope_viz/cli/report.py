"""The command `report`: write every picture of every page for one model, with sentences and findings."""

from __future__ import annotations

import argparse
import dataclasses
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
    command.add_argument(
        "--all",
        metavar="FOLDER|FILE",
        help="write a site into the folder -o: a page with check, memory and three pictures for each config of a "
        "folder, or for each line of a file. A run that was interrupted goes on",
    )
    command.add_argument("--full", action="store_true", help="with --all: every picture of every page")
    command.add_argument("--format", choices=FORMATS, help="default: by the ending of the file")
    add_language_flag(command)
    add_hub_flag(command)
    command.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Run the command and return its exit code. Raise `ValueError` with one sentence if it cannot be written."""
    from rope_viz.reports import report

    path = Path(parsed.output)
    if parsed.all is not None:
        return write_all(parsed, path)
    if parsed.full:
        raise ValueError("--full belongs to --all; a report on one model has every picture")
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


def write_all(parsed: argparse.Namespace, site: Path) -> int:
    """Write the site of many models into a folder and return the exit code."""
    from rope_viz.cli import report_all

    if parsed.model is not None or parsed.format is not None:
        raise ValueError("--all takes no CONFIG and no --format: it reads a folder or a file, and writes a site")
    if parsed.output == STDOUT or site.suffix.lower() in (".html", ".htm", ".md"):
        raise ValueError("a site is a folder: name one, as in -o site")
    check_folder(site, MARKER)
    site.mkdir(parents=True, exist_ok=True)
    write_output(site / MARKER, b"")
    with use_language(parsed.language):
        return report_all.write_site(parsed.all, site, is_full=parsed.full)


def folder_of(path: Path) -> Path:
    """Return the folder of a Markdown report's pictures."""
    return path.with_name(f"{path.stem}_files")
