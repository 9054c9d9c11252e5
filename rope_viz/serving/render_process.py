"""The jobs of a process that works for a server, with limits of memory and processor time.

A job is a picture to render, or a content from outside to read.
"""

from __future__ import annotations

import copyreg
import logging
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from rope_viz.figures.files import Style
from rope_viz.own_files import blob_store
from rope_viz.own_files.admit import admit_text
from rope_viz.own_files.outside import measure
from rope_viz.pages import registry
from rope_viz.picture import export, read_address, wire_format
from rope_viz.storage.crash_text import format_crash
from rope_viz.storage.decode_json import ContentError
from rope_viz.storage.limits import JOB_CONTENT_BYTES, READ_OBJECTS
from rope_viz.texts import Texts, current_language
from rope_viz.texts.outside_text import clean_record

LOG = logging.getLogger(__name__)
LOG.addFilter(clean_record)
TEXTS = Texts("app")
WARM = '{"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "max_position_embeddings": 8192}'
"""A config whose reading loads what every reading needs."""
SCENE = "scene"
"""The form of Home's picture as a page for a frame."""


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

    `unreadable`: the problem is a stored content.
    """

    content: bytes = b""
    stem: str = ""
    size: int = 0
    is_large: bool = False
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
        raise
    except Exception as error:
        LOG.error("%s/%s could not be drawn\n%s", job.page, job.name, format_crash(error))
        return RenderResult(problem=TEXTS("server.failed"), failed=True)


def read_content(reading: Reading) -> RenderResult:
    """Read a content, and turn every error but a lack of memory into a result.

    A value of many objects is refused, because unpickling it takes long.
    """
    try:
        value = reading.function(*reading.arguments)
        size, count = measure(value, READ_OBJECTS)
        if count > READ_OBJECTS:
            return RenderResult(problem=TEXTS("stored.many_values", most=READ_OBJECTS), unreadable=True)
        if reading.largest is not None and size > reading.largest:
            return RenderResult(size=size, is_large=True)
        return RenderResult(pickle.dumps(value, protocol=5), size=size)
    except ValueError as error:
        return RenderResult(problem=str(error), unreadable=isinstance(error, ContentError))
    except MemoryError:
        raise
    except Exception as error:
        LOG.error("%s failed\n%s", getattr(reading.function, "__qualname__", "reading"), format_crash(error))
        return RenderResult(problem=TEXTS("stored.failed"), failed=True)


def bound_store() -> None:
    """Let this process keep less of the contents of its jobs than a server does."""
    blob_store.STORE = blob_store.Store(JOB_CONTENT_BYTES, share=1)


def prepare() -> None:
    """Load all that pictures need."""
    bound_store()
    for page in registry.PAGES:
        registry.page(page)


def prepare_reading() -> None:
    """Load what reads configs alone. Pages are loaded when they are needed."""
    bound_store()
    admit_text(WARM)
