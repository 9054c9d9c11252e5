"""The command `report`: write every picture of every page for one model, with sentences and findings."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rope_viz.cli.figure import read_flags
from rope_viz.cli.spec import add_spec_flags

FORMATS = ("html", "md")


def add(commands: Any) -> None:
    """Add the command and its flags."""
    command = commands.add_parser(
        "report",
        help="write all pictures of a model to one file",
        description="Write every picture of every page for one model, with its sentences and the findings of the "
        "check. The result is a page that works offline, or Markdown with a folder of SVG files for a model card.",
    )
    add_spec_flags(command, length=False)
    command.add_argument("-o", "--output", metavar="FILE", required=True, help="report.html or report.md")
    command.add_argument("--format", choices=FORMATS, help="default: by the ending of the file")
    command.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Run the command and return its exit code. Raise `ValueError` with one sentence if it cannot be written."""
    from rope_viz.pictures import report

    path = Path(parsed.output)
    form = parsed.format or {".html": "html", ".htm": "html", ".md": "md", ".markdown": "md"}.get(path.suffix.lower())
    if form is None:
        raise ValueError(f"{path}: the file must end in .html or .md, or use --format")
    now = read_flags(parsed)
    if form == "html":
        path.write_bytes(report.to_html(now))
        return 0
    folder = path.with_name(f"{path.stem}_files")
    text, files = report.to_markdown(now, folder.name.replace(" ", "%20"))
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    path.write_bytes(text)
    return 0
