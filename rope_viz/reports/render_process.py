"""A process that works for a server, one job at a time, with limits of memory and processor time.

A job is a picture to render, or a content from outside to read.

Standard input carries jobs and standard output their results, each as a length of eight bytes and a pickle. The process
ends when its input ends.
"""

from __future__ import annotations

import contextlib
import copyreg
import dataclasses
import logging
import os
import pickle
import re
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

from rope_viz.figures.files import Style
from rope_viz.pages import registry
from rope_viz.picture import blob_store, export, own_file, read_address, wire_format
from rope_viz.picture.outside import measure
from rope_viz.storage.crash_text import format_crash, keep_messages_out_of_logs
from rope_viz.storage.decode_json import ContentError
from rope_viz.storage.outside_text import clean_record
from rope_viz.texts import Texts, current_language, use_language

with contextlib.suppress(ImportError):  # not available on Windows
    import resource

LOG = logging.getLogger(__name__)
LOG.addFilter(clean_record)
TEXTS = Texts("app")
SECONDS = 60
"""Processor time of one job, all threads together (not on Windows)."""
MEMORY = 1 << 30
"""Bytes that a process may allocate after it has started (Linux)."""
READING_SECONDS = 5
"""Processor time of reading one content."""
READING_MEMORY = 512 << 20
"""Bytes that a process may allocate that reads contents."""
MOST_VALUES = 1 << 20
"""Objects of a value that was read: the server takes some 0.1 s for so many, without doing anything else."""
LARGEST_REST = 200 << 20
"""Bytes allocated after a job above which the process ends, because libraries keep freed memory."""
READING_REST = 64 << 20
"""The same of a process that reads contents."""
WARM = '{"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "max_position_embeddings": 8192}'
"""A config whose reading loads what every reading needs."""
STORED = 96 << 20
"""Bytes of contents and decoded values that the process keeps for the next job: one of the largest files, decoded."""
SCENE = "scene"
"""The form of Home's picture as a page for a frame."""
NICENESS = 5
"""What a process for long pictures adds to its niceness: the server, and readings that pages wait for, go first."""


@dataclass(frozen=True)
class FileJob:
    """A picture as a file in one format, and the salted contents that its query names."""

    page: str
    name: str
    form: str
    look: Style
    query: dict[str, str]
    contents: tuple[bytes, ...] = ()
    language: str = field(default_factory=current_language)


@dataclass(frozen=True)
class Reading:
    """A content from outside to read: a function of a module, and what to call it with.

    Of a value above `largest` bytes only the size is returned.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    largest: int | None = None
    language: str = field(default_factory=current_language)


@dataclass(frozen=True)
class RenderResult:
    """A compressed picture and the stem of its file name, or `problem`: a sentence for the user, `failed` for an error.

    Of a reading `content` is a pickle of the value, and `size` the bytes of memory that the value takes. `is_large`:
    the value is left out because it is too large.

    `unreadable`: the problem is a stored content. `ends`: the process ends after this job.
    """

    content: bytes = b""
    stem: str = ""
    size: int = 0
    is_large: bool = False
    problem: str = ""
    failed: bool = False
    unreadable: bool = False
    ends: bool = False


def make_view(part: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    """Return a view of an object that cannot be changed: pickle has no form of its own for those."""
    return MappingProxyType(part)


copyreg.pickle(MappingProxyType, lambda view: (make_view, (dict(view),)))


def write_message(stream: IO[bytes], message: object) -> None:
    """Write one message."""
    data = pickle.dumps(message, protocol=5)
    stream.write(len(data).to_bytes(8, "little"))
    stream.write(data)
    stream.flush()


def read_message(stream: IO[bytes]) -> Any:
    """Read one message. Raise `EOFError` if the other side has ended. Only for streams between our own processes."""
    size = stream.read(8)
    data = stream.read(int.from_bytes(size, "little")) if len(size) == 8 else b""
    if len(size) < 8 or len(data) < int.from_bytes(size, "little"):
        raise EOFError
    return pickle.loads(data)


def render(job: FileJob) -> RenderResult:
    """Render a picture, and turn every error into a result."""
    try:
        for salted in job.contents:
            blob_store.STORE.keep(salted)
        if job.form == SCENE:
            # Not above: a process that reads contents starts without the pages.
            from rope_viz.reports.story_page import draw_home

            return RenderResult(draw_home(job.query))
        page = registry.page(job.page)
        picture, request = page.pictures[job.name], read_address.read_request(page, job.query)
        if job.form != "packed" and "part" not in job.query:
            # A page renders slow pictures in parts; a file always holds the finished picture.
            request = picture.finished(request)
        content = export.compressed(picture, request, job.form, job.look)
        return RenderResult(content, wire_format.file(picture, request, look=job.look))
    except ValueError as error:
        return RenderResult(problem=str(error), unreadable=isinstance(error, ContentError))
    except MemoryError:
        return RenderResult(problem=TEXTS("server.memory"), ends=True)
    except Exception as error:
        LOG.error("%s/%s could not be drawn\n%s", job.page, job.name, format_crash(error))
        return RenderResult(problem=TEXTS("server.failed"), failed=True)


def read_content(reading: Reading) -> RenderResult:
    """Read a content, and turn every error into a result.

    A value of many objects is refused, because unpickling it takes long.
    """
    try:
        value = reading.function(*reading.arguments)
        size, count = measure(value, MOST_VALUES)
        if count > MOST_VALUES:
            return RenderResult(problem=TEXTS("stored.many_values", most=MOST_VALUES), unreadable=True)
        if reading.largest is not None and size > reading.largest:
            return RenderResult(size=size, is_large=True)
        return RenderResult(pickle.dumps(value, protocol=5), size=size)
    except ValueError as error:
        return RenderResult(problem=str(error), unreadable=isinstance(error, ContentError))
    except MemoryError:
        return RenderResult(problem=TEXTS("stored.memory"), unreadable=True, ends=True)
    except Exception as error:
        LOG.error("%s failed\n%s", getattr(reading.function, "__qualname__", "reading"), format_crash(error))
        return RenderResult(problem=TEXTS("stored.failed"), failed=True)


def allocated() -> int:
    """Return the bytes that this process has allocated, 0 where that is unknown (Linux)."""
    with contextlib.suppress(OSError):
        found = re.search(r"^VmData:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
        return int(found[1]) << 10 if found else 0
    return 0


def limit_memory(most: int) -> None:
    """Let this process allocate so many bytes more than now (Linux; elsewhere nothing is limited)."""
    if sys.platform == "linux" and (before := allocated()):
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (before + most, hard))


def limit_seconds(most: int) -> None:
    """End this process by SIGXCPU after so many more seconds of processor time (not on Windows)."""
    if sys.platform != "win32":
        used = resource.getrusage(resource.RUSAGE_SELF)
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + 1 + most, hard))


def end_with(parent: int) -> None:
    """End this process once its parent has ended, also in the middle of a job."""
    wait = threading.Event()
    while os.getppid() == parent:
        wait.wait(1.0)
    os._exit(0)


def main(parent: int, *, seconds: int, memory: int, reads: bool = False) -> None:
    """Do jobs until the input ends, or until the process `parent` ends.

    `seconds` of processor time and `memory` in bytes are the limits of one job and of the process. With `reads` it
    starts with what reads configs alone; pages are loaded when they are needed.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    keep_messages_out_of_logs()
    # Nothing else may write to the stream of results.
    source, results = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    if sys.platform != "win32":
        threading.Thread(target=end_with, args=(parent,), daemon=True).start()
    blob_store.STORE = blob_store.Store(STORED, share=1)
    if reads:
        own_file.read_stored(WARM)
    else:
        if hasattr(os, "nice"):
            os.nice(NICENESS)
        for page in registry.PAGES:
            registry.page(page)
    limit_memory(memory)
    before = allocated()
    while True:
        try:
            job = read_message(source)
        except EOFError:
            return
        limit_seconds(seconds)
        with use_language(job.language):
            result = read_content(job) if isinstance(job, Reading) else render(job)
        ends = result.ends or allocated() - before > (READING_REST if reads else LARGEST_REST)
        write_message(results, dataclasses.replace(result, ends=ends))
        if ends:
            return
