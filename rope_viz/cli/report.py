"""The command `report`: write every picture of every page for one model, with sentences and findings."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rope_viz.cli.figure import read_flags
from rope_viz.cli.flags import add_command, add_flags
from rope_viz.cli.output import STDOUT, write_output
from rope_viz.cli.spec import add_spec_flags
from rope_viz.storage.write_file import is_temporary

FORMATS = ("html", "md")
MARKER = ".rope-viz-report"
"""An empty file in the folder of a report's pictures: the next report may overwrite what is there."""


def add(commands: Any) -> None:
    """Add the command and its flags."""
    command = add_command(commands, "report", run)
    add_spec_flags(command, length=False)
    add_flags(command, "report-own", FORMATS=FORMATS)


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
        check_folder(folder_of(path))
    request = read_flags(parsed)
    if form == "html":
        write_output(parsed.output, report.to_html(request))
        return 0
    folder = folder_of(path)
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
    check_folder(site)
    site.mkdir(parents=True, exist_ok=True)
    write_output(site / MARKER, b"")
    return report_all.write_site(parsed.all, site, is_full=parsed.full)


def folder_of(path: Path) -> Path:
    """Return the folder of a Markdown report's pictures."""
    return path.with_name(f"{path.stem}_files")


def check_folder(folder: Path) -> None:
    """Raise `ValueError` if the folder has files of somebody else: it must be missing, empty or have our marker."""
    if folder.is_dir():
        names = {each.name for each in folder.iterdir() if not is_temporary(each.name)}
        if names and MARKER not in names:
            raise ValueError(f"{folder} has other files: move them, or name another report")
    elif folder.exists():
        raise ValueError(f"{folder} is a file, and the report needs a folder of this name: name another report")
