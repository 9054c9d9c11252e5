"""The commands `report` and `learn`: pages that work offline, of one model, of many, or of Learn."""

from __future__ import annotations

import argparse
import concurrent.futures
import functools
import hashlib
import json
import multiprocessing
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rope_viz import __version__
from rope_viz.cli.app import read_address
from rope_viz.cli.check import find_sources
from rope_viz.cli.figure import read_flags
from rope_viz.cli.find_configs import find_configs, find_listed
from rope_viz.cli.output import STDOUT, one_line, write_output
from rope_viz.cli.spec import add_spec_flags
from rope_viz.models.identity.hf_cache import NAME
from rope_viz.reports import report_site
from rope_viz.reports.render_process import MEMORY, end_with, limit_memory, limit_seconds
from rope_viz.reports.report_site import FOLDER, IndexEntry
from rope_viz.storage.decode_json import decode_json
from rope_viz.storage.write_file import is_temporary

FORMATS = ("html", "md")
MARKER = ".rope-viz-report"
"""An empty file in the folder of a report's pictures: the next report may overwrite what is there."""


def add_report(commands: Any) -> None:
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
    command.set_defaults(run=run_report)


def run_report(parsed: argparse.Namespace) -> int:
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

    if parsed.model is not None or parsed.format is not None:
        raise ValueError("--all takes no CONFIG and no --format: it reads a folder or a file, and writes a site")
    if parsed.output == STDOUT or site.suffix.lower() in (".html", ".htm", ".md"):
        raise ValueError("a site is a folder: name one, as in -o site")
    check_folder(site)
    site.mkdir(parents=True, exist_ok=True)
    write_output(site / MARKER, b"")
    return write_site(parsed.all, site, is_full=parsed.full)


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


SECONDS = 60
"""Processor time for one model."""

FULL_SECONDS = 600
"""The same with all pictures."""

RECORD = ".json"
"""A page has a file of this ending next to it: the digest of its source and its line in the index."""


@dataclass(frozen=True)
class ReportJob:
    """One page to make. `source` is the text of a config or the id of a model of the list, `problem` why it is none."""

    label: str
    file: str
    source: bytes | str
    problem: str = ""
    is_full: bool = False

    @property
    def digest(self) -> str:
        """Return a hash that changes with anything that changes the page."""
        parts = [__version__, self.label, self.problem, self.is_full, repr(self.source)]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def write_site(name: str, site: Path, *, is_full: bool) -> int:
    """Write the site of all models of a folder or list, and return the exit code: 1 if a page could not be drawn.

    Pages of an earlier run whose config did not change are kept. Raises `ValueError` if there are no models.
    """
    jobs = list(find_jobs(name, is_full=is_full))
    pages = site / FOLDER
    pages.mkdir(parents=True, exist_ok=True)
    done = {job.file: entry for job in jobs if (entry := read_record(pages, job))}
    left = [job for job in jobs if job.file not in done]
    remove_others(pages, {job.file for job in jobs})
    if done:
        print(f"rope-viz: {len(done):,} of {len(jobs):,} pages are there already", file=sys.stderr)
    write_output(site / report_site.SCRIPT, report_site.script())
    for number, entry in enumerate(run_jobs(left, pages), 1):
        done[entry.file] = entry
        print(f"rope-viz: {number:,} of {len(left):,}: {entry.label}", file=sys.stderr, flush=True)
    entries = [done[job.file] for job in jobs]
    write_output(site / "index.html", report_site.index_page(entries))
    return 1 if any(entry.status in ("failed", "ended") for entry in entries) else 0


def find_jobs(name: str, *, is_full: bool) -> Iterator[ReportJob]:
    """Yield a job for each config of a folder, or of each line of a file: paths, ids of models, folders."""
    taken: set[str] = set()
    for label, read in find_named(Path(name)):
        short = label.removesuffix(f"/{NAME}")
        try:
            source, problem = read(), ""
        except (ValueError, OSError) as error:
            source, problem = b"", f"{one_line(error)}."
        yield ReportJob(short, file_name(short, taken), source, problem, is_full)


def find_named(path: Path) -> Iterator[tuple[str, Callable[[], bytes | str]]]:
    """Yield (label, function that returns the source of a job) of a folder or of a file with names."""
    if path.is_dir():
        for label, read in find_sources(str(path), False):
            yield Path(label).relative_to(path).as_posix(), read
        return
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    names = [line for line in lines if line and not line.startswith("#")]
    if not names:
        raise ValueError(f"{path} names no model: write one config, folder or model id in each line")
    for name in names:
        if (listed := find_listed(name)) is not None:
            yield name, functools.partial(str, listed.id)
            continue
        try:
            yield from find_configs(name)
        except (ValueError, OSError) as error:
            yield name, functools.partial(raise_error, error)


def raise_error(error: Exception) -> bytes:
    """Raise an error when a job's source is read, and not before."""
    raise error


def file_name(label: str, taken: set[str]) -> str:
    """Return the name of a model's page, different from those taken also where upper and lower case are the same."""
    stem = re.sub(r"[^\w.-]+", "-", label, flags=re.ASCII).strip("-.")[:80] or "model"
    found, number = f"{stem}.html", 2
    while found.lower() in taken:
        found, number = f"{stem}-{number}.html", number + 1
    taken.add(found.lower())
    return found


def read_record(pages: Path, job: ReportJob) -> IndexEntry | None:
    """Return the line in the index of a page that is finished and current, else None."""
    record = (pages / job.file).with_suffix(RECORD)
    if not record.is_file() or not (pages / job.file).is_file():
        return None
    try:
        found = decode_json(record.read_bytes(), "the record cannot be read")
        return report_site.read_entry(found["entry"]) if found["digest"] == job.digest else None
    except (ValueError, KeyError, TypeError):
        return None


def remove_others(pages: Path, files: set[str]) -> None:
    """Remove pages of an earlier run whose model is not there any more."""
    for record in pages.glob(f"*{RECORD}"):
        page = record.with_suffix(".html")
        if page.name not in files:
            record.unlink()
            page.unlink(missing_ok=True)


def run_jobs(jobs: Sequence[ReportJob], pages: Path) -> Iterator[IndexEntry]:
    """Yield the entries as their pages are written, in a process per core.

    When a process ends, for lack of memory or time, the jobs without a page run again one by one. The job that ends it
    again gets a page that says so.
    """
    workers = min(os.cpu_count() or 1, len(jobs))
    left = list(jobs)
    if workers > 1:
        finished = set()
        try:
            for job, entry in run_pool(left, pages, workers):
                finished.add(job)
                yield entry
        except BrokenProcessPool:
            pass
        left = [job for job in left if job not in finished]
    while left:
        try:
            for _, entry in run_pool(left, pages, 1):
                left.pop(0)
                yield entry
        except BrokenProcessPool:
            yield write_page(left.pop(0), pages, "ended")


def run_pool(jobs: Sequence[ReportJob], pages: Path, workers: int) -> Iterator[tuple[ReportJob, IndexEntry]]:
    """Yield (job, entry) of jobs that run in so many processes; one process runs them in order."""
    # These processes multiply only small arrays; one thread each.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    context = multiprocessing.get_context("spawn")
    pool = concurrent.futures.ProcessPoolExecutor(
        workers, mp_context=context, initializer=begin_process, initargs=(os.getpid(),)
    )
    try:
        futures = {pool.submit(run_job, job, pages): job for job in jobs}
        for future in concurrent.futures.as_completed(futures):
            yield futures[future], future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def begin_process(parent: int) -> None:
    """Prepare a process: it ends with its parent, and has a limit of memory."""
    if sys.platform != "win32":
        threading.Thread(target=end_with, args=(parent,), daemon=True).start()
    limit_memory(MEMORY)


def run_job(job: ReportJob, pages: Path) -> IndexEntry:
    """Write one page and its record, and return its line in the index."""
    limit_seconds(FULL_SECONDS if job.is_full else SECONDS)
    try:
        return write_page(job, pages)
    except (Exception, MemoryError) as error:
        print(f"rope-viz: {job.label}: {type(error).__name__}: {one_line(error)}", file=sys.stderr)
        return write_page(job, pages, "failed")


def write_page(job: ReportJob, pages: Path, status: str = "") -> IndexEntry:
    """Write one page, or with a status the page that says why there is none. The record comes last."""
    if status or job.problem:
        problem = report_site.TEXTS(f"site.{status}") if status else job.problem
        entry, page = report_site.problem_page(
            IndexEntry(job.label, job.file, status=status or "unread", problem=problem)
        )
    else:
        entry, page = report_site.render_page(job.label, job.file, job.source, is_full=job.is_full)
    write_output(pages / job.file, page)
    if not status:  # a page that failed is tried again by the next run
        record = json.dumps({"digest": job.digest, "entry": entry.as_dict()})
        write_output((pages / job.file).with_suffix(RECORD), record.encode())
    return entry


def add_learn(commands: Any) -> None:
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
    command.set_defaults(run=run_learn)


def run_learn(parsed: argparse.Namespace) -> int:
    """Run the command and return its exit code. Raise `ValueError` for an address that is none."""
    from rope_viz.reports.story_page import story_page

    write_output(parsed.output, story_page(app=read_address("--app", parsed.app) or None))
    return 0
