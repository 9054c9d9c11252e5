"""Write a site with a page for each of many models, in parallel processes; an interrupted run goes on."""

from __future__ import annotations

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
from dataclasses import dataclass, field
from pathlib import Path

from rope_viz import __version__
from rope_viz.cli.check import find_sources
from rope_viz.cli.find_configs import find_configs, find_listed
from rope_viz.cli.output import one_line, write_output
from rope_viz.models.identity.hf_cache import NAME
from rope_viz.reports import report_site
from rope_viz.reports.render_process import MEMORY, end_with, limit_memory, limit_seconds
from rope_viz.reports.report_site import FOLDER, IndexEntry
from rope_viz.storage.decode_json import decode_json
from rope_viz.storage.read_file import LARGEST_TEXT, read_limited, read_limited_text
from rope_viz.texts import current_language, use_language

SECONDS = 60
"""Processor time for one model."""
FULL_SECONDS = 600
"""The same with all pictures."""
RECORD = ".json"
"""A page has a file of this ending next to it: the digest of its source and its line in the index."""


@dataclass(frozen=True)
class ReportJob:
    """One page to make. `source` is the text of a config or the id of a model of the list, `problem` why it is none.

    `before` is HTML for its menu's beginning, `head` for its head.
    """

    label: str
    file: str
    source: bytes | str
    problem: str = ""
    is_full: bool = False
    before: str = ""
    head: str = ""
    language: str = field(default_factory=current_language)

    @property
    def digest(self) -> str:
        """Return a hash that changes with anything that changes the page."""
        parts = [__version__, self.label, self.problem, self.is_full, repr(self.source), self.before, self.head]
        parts.append(self.language)
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def write_site(name: str, site: Path, *, is_full: bool) -> int:
    """Write the site of all models of a folder or list, and return the exit code: 1 if a page could not be drawn.

    Raises `ValueError` if there are no models.
    """
    jobs = list(find_jobs(name, is_full=is_full))
    remove_others(site / FOLDER, {job.file for job in jobs})
    entries = write_pages(jobs, site)
    write_output(site / "index.html", report_site.index_page(entries))
    return 1 if has_failed(entries) else 0


def has_failed(entries: Sequence[IndexEntry]) -> bool:
    """True if a page could not be drawn."""
    return any(entry.status in ("failed", "ended") for entry in entries)


def write_pages(jobs: Sequence[ReportJob], site: Path) -> list[IndexEntry]:
    """Write the models' pages and the script that they share, and return their lines in the index.

    Pages of an earlier run whose job did not change are kept.
    """
    pages = site / FOLDER
    pages.mkdir(parents=True, exist_ok=True)
    done = {job.file: entry for job in jobs if (entry := read_record(pages, job))}
    left = [job for job in jobs if job.file not in done]
    if done:
        print(f"rope-viz: {len(done):,} of {len(jobs):,} pages are there already", file=sys.stderr)
    write_output(site / report_site.SCRIPT, report_site.script())
    for number, entry in enumerate(run_jobs(left, pages), 1):
        done[entry.file] = entry
        print(f"rope-viz: {number:,} of {len(left):,}: {entry.label}", file=sys.stderr, flush=True)
    return [done[job.file] for job in jobs]


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
    lines = [line.strip() for line in read_limited_text(path).splitlines()]
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
        found = decode_json(read_limited(record, LARGEST_TEXT), "the record cannot be read")
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
    with use_language(job.language):
        entry, page = render_job(job, status)
    write_output(pages / job.file, page)
    if not status:  # a page that failed is tried again by the next run
        record = json.dumps({"digest": job.digest, "entry": entry.as_dict()})
        write_output((pages / job.file).with_suffix(RECORD), record.encode())
    return entry


def render_job(job: ReportJob, status: str) -> tuple[IndexEntry, bytes]:
    """Return a job's line in the index and its page; with a status the page that says why there is none."""
    if status or job.problem:
        problem = report_site.TEXTS(f"site.{status}") if status else job.problem
        entry = IndexEntry(job.label, job.file, status=status or "unread", problem=problem)
        return report_site.problem_page(entry, before=job.before)
    return report_site.render_page(
        job.label, job.file, job.source, is_full=job.is_full, before=job.before, head=job.head
    )
