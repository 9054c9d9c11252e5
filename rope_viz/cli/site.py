"""The command `site`: write Home, Learn, the runtimes' differences and pages of models as a folder of static files."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rope_viz.cli.find_configs import find_configs, find_listed
from rope_viz.cli.language import add_language_flag
from rope_viz.cli.output import check_folder, named, read_address, write_output
from rope_viz.models.identity.hf_cache import NAME
from rope_viz.storage.read_file import read_limited_text
from rope_viz.texts import use_language

MARKER = ".rope-viz-site"
"""A file in the site's folder with the names of the files that this command wrote: the next run may replace them."""
USUAL = (
    "llama-3.1-8b",
    "qwen3-8b",
    "qwen3-8b-yarn",
    "mistral-7b-v0.3",
    "gemma-3-27b-global",
    "phi-4-mini",
    "deepseek-v3.2",
    "gpt-oss-20b",
    "kimi-k2-thinking",
    "smollm2-135m",
)
"""The models of a site without a list."""


def add(commands: Any) -> None:
    """Add the command and its flags."""
    command = commands.add_parser(
        "site",
        description="Write a folder that any web server or page host can serve, below any path, and that works from a "
        "disk: Home, Learn, who computes it differently, and check, memory and pictures of each model, with badges and "
        "link previews. A run that was interrupted goes on.",
    )
    command.add_argument(
        "models",
        metavar="MODEL",
        nargs="*",
        help="a model of the list, a config or a folder of configs; default: ten models of the list",
    )
    command.add_argument("-o", "--output", metavar="DIR", required=True, help="new, empty, or written by this command")
    command.add_argument(
        "--public-url", default="", metavar="URL", help="address at which the site is published, for link previews"
    )
    add_language_flag(command)
    command.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Run the command and return its exit code: 1 if a model's page could not be drawn.

    Raise `ValueError` for a folder with other files, for an unknown model and for an address that is none.
    """
    folder, public = Path(parsed.output), read_address("--public-url", parsed.public_url)
    check_folder(folder, MARKER)
    models = [found for name in parsed.models or USUAL for found in find_models(name)]
    folder.mkdir(parents=True, exist_ok=True)
    with use_language(parsed.language):
        return write_site(folder, models, public)


def write_site(folder: Path, models: Sequence[tuple[str, bytes | str]], public: str) -> int:
    """Write the site of these models and return the exit code. Raise `ValueError` as `run` does."""
    from rope_viz.cli import report_all
    from rope_viz.reports.report_site import FOLDER, SCRIPT
    from rope_viz.reports.site_pages import BADGES, PREVIEWS, StaticSite, list_links, make_badges, render_previews

    site, jobs = StaticSite(public), list[report_all.ReportJob]()
    taken: set[str] = set()
    for label, source in models:
        file = report_all.file_name(label, taken)
        head = site.head(f"{label} · RoPE Viz", f"{FOLDER}/{file}", Path(file).stem)
        jobs.append(report_all.ReportJob(label, file, source, before=list_links(up="../"), head=head))
    sources = {Path(job.file).stem: job.source for job in jobs}
    badges = make_badges(sources)
    contents = {f"{PREVIEWS}/{name}.png": content for name, content in render_previews(sources, public).items()}
    contents |= {f"{BADGES}/{name}.svg": badge.content for name, badge in badges.items()}
    contents |= site.pages(badges)
    pages = [Path(FOLDER) / job.file for job in jobs]
    made = [path.as_posix() for page in pages for path in (page, page.with_suffix(report_all.RECORD))]
    replace_files(folder, [*contents, *made, SCRIPT, site.models_file])
    for name, content in contents.items():
        (folder / name).parent.mkdir(exist_ok=True)
        write_output(folder / name, content)
    entries = report_all.write_pages(jobs, folder)
    write_output(folder / site.models_file, site.models_page(entries))
    return 1 if report_all.has_failed(entries) else 0


def find_models(name: str) -> Iterator[tuple[str, bytes | str]]:
    """Yield (label, source) of each model that a name means, as `ReportJob` has them. Raise `ValueError` for none.

    A file's label is its folder's name or its own: the rest of its path is private.
    """
    if (listed := find_listed(name)) is not None:
        yield listed.id, listed.id
        return
    with named(name):
        for label, read in find_configs(name):
            path = Path(label)
            yield (path.resolve().parent.name if path.name == NAME else path.stem), read()


def replace_files(folder: Path, names: Sequence[str]) -> None:
    """Prepare a folder for files of these names: remove what an earlier run wrote and this one does not.

    Raise `ValueError` if a file of somebody else has one of the names.
    """
    marker = folder / MARKER
    earlier = read_limited_text(marker).splitlines() if marker.is_file() else []
    foreign = next((name for name in names if name not in earlier and (folder / name).exists()), None)
    if foreign is not None:
        raise ValueError(f"{folder / foreign} is not from `rope-viz site`: move it, or name another folder")
    # First the union: after a kill, the next run still knows all files.
    write_output(marker, "\n".join(sorted({*earlier, *names})).encode())
    for name in sorted({*earlier}.difference(names)):
        path = folder / name
        if path.resolve().is_relative_to(folder.resolve()):
            path.unlink(missing_ok=True)
    write_output(marker, "\n".join(sorted(names)).encode())
