"""The jobs of a process that works for a server, with limits of memory and processor time.

A job is a picture to render, or a content from outside to read.
"""

from __future__ import annotations

import copyreg
import logging
import os
import pickle
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from rope_viz.figures.files import Style
from rope_viz.pages import registry
from rope_viz.picture import blob_store, export, own_file, read_address, wire_format
from rope_viz.picture.outside import measure
from rope_viz.storage.decode_json import ContentError

# `cli/report_all.py` takes these from here.
from rope_viz.storage.processes import limit_memory as limit_memory
from rope_viz.storage.processes import limit_seconds as limit_seconds
from rope_viz.texts import Texts, current_language

LOG = logging.getLogger(__name__)
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
STORED = 64 << 20
"""Bytes of contents and decoded values that the process keeps for the next job."""


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
    """A content from outside to read: a function of a module, and what to call it with."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    language: str = field(default_factory=current_language)


@dataclass(frozen=True)
class RenderResult:
    """A compressed picture and the stem of its file name, or `problem`: a sentence for the user, `failed` for an error.

    Of a reading `content` is a pickle of the value, and `size` the bytes of memory that the value takes.

    `unreadable`: the problem is a stored content.
    """

    content: bytes = b""
    stem: str = ""
    size: int = 0
    problem: str = ""
    failed: bool = False
    unreadable: bool = False


def make_view(part: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    """Return a view of an object that cannot be changed: pickle has no form of its own for those."""
    return MappingProxyType(part)


copyreg.pickle(MappingProxyType, lambda view: (make_view, (dict(view),)))


def render(job: FileJob) -> RenderResult:
    """Render a picture, and turn every error but a lack of memory into a result."""
    try:
        for salted in job.contents:
            blob_store.STORE.keep(salted)
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
        raise
    except Exception:
        LOG.exception("%s/%s could not be drawn", job.page, job.name)
        return RenderResult(problem=TEXTS("server.failed"), failed=True)


def read_content(reading: Reading) -> RenderResult:
    """Read a content, and turn every error but a lack of memory into a result.

    A value of many objects is refused, because unpickling it takes long.
    """
    try:
        value = reading.function(*reading.arguments)
        size, count = measure(value, MOST_VALUES)
        if count > MOST_VALUES:
            return RenderResult(problem=TEXTS("stored.many_values", most=MOST_VALUES), unreadable=True)
        return RenderResult(pickle.dumps(value, protocol=5), size=size)
    except ValueError as error:
        return RenderResult(problem=str(error), unreadable=isinstance(error, ContentError))
    except MemoryError:
        raise
    except Exception:
        LOG.exception("%s failed", reading.function)
        return RenderResult(problem=TEXTS("stored.failed"), failed=True)


def end_with(parent: int) -> None:
    """End this process once its parent has ended, also in the middle of a job."""
    wait = threading.Event()
    while os.getppid() == parent:
        wait.wait(1.0)
    os._exit(0)


def bound_store() -> None:
    """Let this process keep less of the contents of its jobs than a server does."""
    blob_store.STORE = blob_store.Store(STORED)


def prepare() -> None:
    """Load all that pictures need."""
    bound_store()
    for page in registry.PAGES:
        registry.page(page)


def prepare_reading() -> None:
    """Load what reads configs alone. Pages are loaded when they are needed."""
    bound_store()
    own_file.read_stored(WARM)
