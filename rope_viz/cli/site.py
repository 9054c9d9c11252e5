"""The command `site`: write Home, Learn, the runtimes' differences and pages of models as a folder of static files."""

from __future__ import annotations

import argparse
import functools
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from rope_viz.cli.find_configs import NO_CONFIG, find_configs, find_listed, make_reader, search_folder
from rope_viz.cli.hub_access import add_hub_flag
from rope_viz.cli.language import add_language_flag
from rope_viz.cli.output import STDOUT, check_folder, named, one_line, read_address, write_output
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

Read: TypeAlias = "Callable[[], bytes | str]"
"""A function that returns the text of a config, or the id of a model of the list."""


@dataclass(frozen=True)
class Source:
    """A model of the site: its label, and the text of its config or its id; `problem` is why there is none."""

    label: str
    content: bytes | str = b""
    problem: str = ""


def add(commands: Any) -> None:
    """Add the command and its flags."""
    command = commands.add_parser(
        "site",
        description="Write a folder that any web server or page host can serve, below any path, and that works from a "
        "disk: Home, Learn, who computes it differently, and check, memory and pictures of each model, with badges and "
        "link previews. It uses all cores. A run that was interrupted goes on.",
    )
    command.add_argument(
        "models",
        metavar="MODEL",
        nargs="*",
        help="a model of the list, a config or a folder of configs; default: ten models of the list",
    )
    command.add_argument(
        "--list",
        metavar="FILE",
        help="a text with a model, a config or a folder in each line; what cannot be read gets a page that says why",
    )
    command.add_argument(
        "--full", action="store_true", help="all pictures on the page of a model, in the place of three"
    )
    command.add_argument("-o", "--output", metavar="DIR", required=True, help="new, empty, or written by this command")
    command.add_argument(
        "--public-url", default="", metavar="URL", help="address at which the site is published, for link previews"
    )
    add_language_flag(command)
    add_hub_flag(command)
    command.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Run the command and return its exit code: 1 if a model's page could not be drawn.

    Raise `ValueError` for a folder with other files, for an unknown model and for an address that is none.
    """
    folder, public = Path(parsed.output), read_address("--public-url", parsed.public_url)
    if parsed.output == STDOUT or folder.suffix.lower() in (".html", ".htm", ".md"):
        raise ValueError("a site is a folder: name one, as in -o site")
    check_folder(folder, MARKER)
    models = list_models(parsed.models or (USUAL if parsed.list is None else ()))
    if parsed.list is not None:
        models += read_list(Path(parsed.list))
    folder.mkdir(parents=True, exist_ok=True)
    with use_language(parsed.language):
        return write_site(folder, models, public, is_full=parsed.full)


def write_site(folder: Path, models: Sequence[Source], public: str, *, is_full: bool = False) -> int:
    """Write the site of these models and return the exit code. Raise `ValueError` as `run` does."""
    from rope_viz.cli import model_pages
    from rope_viz.reports.report_site import FOLDER, SCRIPT
    from rope_viz.reports.site_pages import StaticSite, list_links, render_page_previews

    site = StaticSite(public)
    taken: set[str] = set()
    jobs = []
    for model in models:
        file = model_pages.file_name(model.label, taken)
        job = model_pages.ReportJob(
            model.label,
            file,
            model.content,
            problem=model.problem,
            is_full=is_full,
            before=list_links(up="../"),
            head=site.head(f"{model.label} · RoPE Viz", f"{FOLDER}/{file}", Path(file).stem),
            public=public,
        )
        jobs.append(job)

    previews = render_page_previews(public)
    of_models = [name for job in jobs for name in model_pages.list_files(job)]
    names = [*site.files, *previews, *of_models, SCRIPT]
    replace_files(folder, names)
    write_files(folder, previews)
    pages = model_pages.write_pages(jobs, folder)
    badges = {job.stem: page.badge for job, page in zip(jobs, pages, strict=True) if page.badge}
    write_files(folder, site.pages(badges))
    write_output(folder / site.models_file, site.models_page([page.entry for page in pages]))

    # A model that cannot be drawn has no badge and no preview: such a file would be somebody else's.
    write_marker(folder, [name for name in names if (folder / name).exists()])
    return 1 if model_pages.has_failed(pages) else 0


def write_files(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write files into a folder, and make the folders that they need."""
    for name, content in contents.items():
        (folder / name).parent.mkdir(exist_ok=True)
        write_output(folder / name, content)


def list_models(names: Sequence[str]) -> list[Source]:
    """Return the models that names on the command line mean.

    What a folder holds and cannot be read gets a page that says why. Raise `ValueError` for a name that means no
    model, and for a single config that cannot be read.
    """
    models = []
    for name in names:
        with named(name):
            is_folder = Path(name).is_dir()
            for label, read in find_models(name):
                models.append(read_source(label, read) if is_folder else Source(label, read()))
    return models


def read_list(path: Path) -> list[Source]:
    """Return the models of a text with a name in each line; those without a config have the reason.

    Raise `ValueError` if the text cannot be read or names nothing.
    """
    with named(str(path)):
        lines = [line.strip() for line in read_limited_text(path).removeprefix("\ufeff").splitlines()]
    names = [line for line in lines if line and not line.startswith("#")]
    if not names:
        raise ValueError(f"{path} names no model: write one config, folder or model id in each line")
    models = []
    for name in names:
        try:
            models += [read_source(label, read) for label, read in find_models(name)]
        except (ValueError, OSError) as error:
            models.append(Source(cut_path(name), problem=f"{one_line(error)}."))
    return models


def read_source(label: str, read: Read) -> Source:
    """Return a model, or why it cannot be read."""
    try:
        return Source(label, read())
    except (ValueError, OSError) as error:
        return Source(label, problem=f"{one_line(error)}.")


def find_models(name: str) -> Iterator[tuple[str, Read]]:
    """Yield (label, function that reads it) of each model that a name means. Raise `ValueError` for none.

    A file's label is its folder's name or its own: the rest of its path is private.
    """
    if (listed := find_listed(name)) is not None:
        yield listed.id, functools.partial(str, listed.id)
        return
    if name.strip() and Path(name).is_dir():
        yield from find_in_folder(Path(name))
        return
    for label, read in find_configs(name):
        yield (label_file(Path(label)) if Path(label).exists() else cut_path(label)), read


def find_in_folder(folder: Path) -> Iterator[tuple[str, Read]]:
    """Yield the configs of a folder by content, as `find_models` does; those of one name have their path in it."""
    found = search_folder(folder)
    skipped = found.describe_skipped()
    if skipped:
        print(f"rope-viz: {skipped}", file=sys.stderr)
    if not found.configs:
        raise ValueError(NO_CONFIG)
    counts = Counter(map(label_file, found.configs))
    for path in found.configs:
        label = label_file(path)
        if counts[label] > 1:
            inside = path.relative_to(folder)
            inside = inside.parent if path.name == NAME else inside.with_suffix("")
            label = label if inside == Path() else inside.as_posix()
        yield label, make_reader(path)


def label_file(path: Path) -> str:
    """Return the label of a file."""
    return path.resolve().parent.name if path.name == NAME else path.stem


def cut_path(name: str) -> str:
    """Return the last part of a name that is no file."""
    return name.rstrip("/").rpartition("/")[2] or name


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
    write_marker(folder, {*earlier, *names})
    for name in sorted({*earlier}.difference(names)):
        path = folder / name
        if path.resolve().is_relative_to(folder.resolve()):
            path.unlink(missing_ok=True)
    write_marker(folder, names)


def write_marker(folder: Path, names: Collection[str]) -> None:
    """Write which files of the folder are of this command."""
    write_output(folder / MARKER, "\n".join(sorted(names)).encode())
