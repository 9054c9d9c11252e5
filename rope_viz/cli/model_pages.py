"""Write the pages of a site's models, with badges and link previews, in parallel processes.

An interrupted run goes on.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, field
from pathlib import Path

from rope_viz import __version__
from rope_viz.cli.output import one_line, write_output
from rope_viz.reports import report_site
from rope_viz.reports.report_site import FOLDER, IndexEntry
from rope_viz.reports.site_pages import badge_file, make_model_badge, preview_file, render_model_preview
from rope_viz.storage.decode_json import decode_json
from rope_viz.storage.limits import JOB_MEMORY, JOB_REST, TEXT_FILE_BYTES
from rope_viz.storage.processes import Job, Limits, Pool, ProcessError
from rope_viz.storage.read_file import read_limited
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

    `before` is HTML for its menu's beginning, `head` for its head; `public` is the address of the site.
    """

    label: str
    file: str
    source: bytes | str
    problem: str = ""
    is_full: bool = False
    before: str = ""
    head: str = ""
    public: str = ""
    language: str = field(default_factory=current_language)

    @property
    def stem(self) -> str:
        """The name of the model's files."""
        return Path(self.file).stem

    @property
    def digest(self) -> str:
        """Return a hash that changes with anything that changes the page."""
        parts = [__version__, self.label, self.problem, self.is_full, repr(self.source), self.before, self.head]
        parts += [self.public, self.language]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@dataclass(frozen=True)
class MadePage:
    """A page that was written: its line in the index, and the model's name in its badge, "" where it has none."""

    entry: IndexEntry
    badge: str = ""


def has_failed(pages: Sequence[MadePage]) -> bool:
    """True if a page could not be drawn."""
    return any(page.entry.status in ("failed", "ended") for page in pages)


def list_files(job: ReportJob) -> list[str]:
    """Return the files of a model in the site's folder; one that cannot be drawn has no badge and no preview."""
    page = Path(FOLDER) / job.file
    return [page.as_posix(), page.with_suffix(RECORD).as_posix(), badge_file(job.stem), preview_file(job.stem)]


def write_pages(jobs: Sequence[ReportJob], site: Path) -> list[MadePage]:
    """Write the models' pages and the script that they share, and return what was written.

    Pages of an earlier run whose job did not change are kept.
    """
    done = {job.file: page for job in jobs if (page := read_record(site, job))}
    left = [job for job in jobs if job.file not in done]
    if done:
        print(f"rope-viz: {len(done):,} of {len(jobs):,} pages are there already", file=sys.stderr)
    write_output(site / report_site.SCRIPT, report_site.script())
    for number, page in enumerate(run_jobs(left, site), 1):
        done[page.entry.file] = page
        print(f"rope-viz: {number:,} of {len(left):,}: {page.entry.label}", file=sys.stderr, flush=True)
    return [done[job.file] for job in jobs]


def file_name(label: str, taken: set[str]) -> str:
    """Return the name of a model's page, different from those taken also where upper and lower case are the same."""
    stem = re.sub(r"[^\w.-]+", "-", label, flags=re.ASCII).strip("-.")[:80] or "model"
    found, number = f"{stem}.html", 2
    while found.lower() in taken:
        found, number = f"{stem}-{number}.html", number + 1
    taken.add(found.lower())
    return found


def read_record(site: Path, job: ReportJob) -> MadePage | None:
    """Return a page that is finished and current, else None."""
    page = site / FOLDER / job.file
    record = page.with_suffix(RECORD)
    if not record.is_file() or not page.is_file():
        return None
    try:
        found = decode_json(read_limited(record, TEXT_FILE_BYTES), "the record cannot be read")
        made = MadePage(report_site.read_entry(found["entry"]), found["badge"])
        is_whole = all((site / name).is_file() for name in found["files"])
        return made if is_whole and found["digest"] == job.digest else None
    except (ValueError, KeyError, TypeError):
        return None


def run_jobs(jobs: Sequence[ReportJob], site: Path) -> Iterator[MadePage]:
    """Yield the pages as they are written, in a process per core.

    A job whose process ends, for lack of memory or time, gets a page that says so.
    """
    if not jobs:
        return
    seconds = FULL_SECONDS if any(job.is_full for job in jobs) else SECONDS
    limits = Limits(processor_seconds=seconds, memory=JOB_MEMORY, rest=JOB_REST)
    places = min(os.cpu_count() or 1, len(jobs))
    # These processes multiply only small arrays; one thread each.
    variables = {"OPENBLAS_NUM_THREADS": "1"}
    with Pool(places, limits, name="site", variables=variables) as pool:
        pages = {pool.submit(Job(write_or_fail, (job, site))): job for job in jobs}
        for page in as_completed(pages):
            try:
                yield page.result()
            except ProcessError:
                yield write_page(pages[page], site, "ended")


def write_or_fail(job: ReportJob, site: Path) -> MadePage:
    """Write one page and its record, or a page that says that it could not be made."""
    try:
        return write_page(job, site)
    except Exception as error:
        print(f"rope-viz: {job.label}: {type(error).__name__}: {one_line(error)}", file=sys.stderr)
        return write_page(job, site, "failed")


def write_page(job: ReportJob, site: Path, status: str = "") -> MadePage:
    """Write the files of one model, or with a status the page that says why there is none. The record comes last."""
    with use_language(job.language):
        entry, content = render_job(job, status)
        badge = preview = None
        if not entry.status:
            badge = make_model_badge(job.source, job.stem)
            preview = render_model_preview(job.source, job.public)
    for name in list_files(job):
        (site / name).parent.mkdir(parents=True, exist_ok=True)
    page = site / FOLDER / job.file
    write_output(page, content)
    write_or_remove(site / badge_file(job.stem), badge.content if badge else None)
    write_or_remove(site / preview_file(job.stem), preview)
    made = MadePage(entry, badge.name if badge else "")
    if not status:  # a page that failed is tried again by the next run
        files = [badge_file(job.stem)] if badge else []
        files += [preview_file(job.stem)] if preview else []
        record = {"digest": job.digest, "entry": entry.as_dict(), "badge": made.badge, "files": files}
        write_output(page.with_suffix(RECORD), json.dumps(record).encode())
    return made


def write_or_remove(path: Path, content: bytes | None) -> None:
    """Write a file, or with None remove that of an earlier run."""
    if content is None:
        path.unlink(missing_ok=True)
    else:
        write_output(path, content)


def render_job(job: ReportJob, status: str) -> tuple[IndexEntry, bytes]:
    """Return a job's line in the index and its page; with a status the page that says why there is none."""
    if status or job.problem:
        problem = report_site.TEXTS(f"site.{status}") if status else job.problem
        entry = IndexEntry(job.label, job.file, status=status or "unread", problem=problem)
        return report_site.problem_page(entry, before=job.before)
    return report_site.render_page(
        job.label, job.file, job.source, is_full=job.is_full, before=job.before, head=job.head
    )
