"""The HTTP route that renders any picture by its address, caches it and serves it without a session."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import logging
import re
import struct
import zlib
from collections.abc import AsyncIterator, Callable, Coroutine, Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy
import plotly
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from rope_viz import __version__
from rope_viz.figures.files import Style, is_key
from rope_viz.own_files import blob_store
from rope_viz.own_files.outside import ReadContents, Reader
from rope_viz.pages import home, registry
from rope_viz.picture import export, read_address, wire_format
from rope_viz.picture.page import Page, Picture
from rope_viz.picture.public_address import read_public_address
from rope_viz.reports.preview import preview_style
from rope_viz.reports.story_page import draw_home
from rope_viz.serving.border import BORDER, LargeValueError
from rope_viz.serving.link_preview import KEY
from rope_viz.serving.long_jobs import NoProcessError
from rope_viz.serving.render_process import SCENE, FileJob
from rope_viz.serving.render_queue import FILES, MOVING, SHOWN, Gallery, QueueFullError, RenderError
from rope_viz.serving.request_bodies import UNREAD, take_turn
from rope_viz.storage.crash_text import format_crash
from rope_viz.storage.decode_json import ContentError
from rope_viz.storage.limits import (
    ADDRESS_CHARACTERS,
    ANSWER_PART_BYTES,
    LARGE_VALUE_BYTES,
    PICTURE_BYTES,
    REQUEST_BYTES,
    REQUEST_CONTENTS,
    SMALL_PICTURE_BYTES,
    UNREAD_ANSWER_BYTES,
)
from rope_viz.texts import Texts, current_language
from rope_viz.texts.outside_text import clean_query, clean_record, printable
from rope_viz.ui.visitors import visitor_name

LOG = logging.getLogger(__name__)
LOG.addFilter(clean_record)
T = TypeVar("T")
TEXTS = Texts("app")
ZIP_HEADER = re.compile(rb"PK\x01\x02")
"""The start of a member in the directory of a zip file; the unpacked size has 4 bytes from byte 24 on."""
LATE_PART = 3
"""The part of a slow picture from which on each part can take seconds."""
DAY = 86_400
OPEN = {"access-control-allow-origin": "*", "cross-origin-resource-policy": "cross-origin"}
# Files opened by their own address may run their own scripts, but in a sandbox without the app's origin.
ALONE = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:; sandbox"
ALONE += " allow-scripts"


NOTHING_READ = ReadContents({})
"""The reader of a query that names no content."""
# Pictures that clients are still reading share the room of the cache.
GALLERY = Gallery(most=PICTURE_BYTES - UNREAD_ANSWER_BYTES)


async def answer(request: Request) -> Response:
    """Answer `/picture/<page>/<name>.<form>?<query>`; a POST carries stored contents in its body."""
    name, _, form = request.path_params["name"].rpartition(".")
    try:
        picture = registry.picture(request.path_params["page"], name)
        if form not in export.FORMS:
            raise KeyError(TEXTS("server.form", forms=", ".join(export.FORMS), form=form[:20]))
    except KeyError as error:
        return respond(404, str(error.args[0]))
    try:
        if request.method == "POST":
            await store_body(request)
        query = read_query(request)
        look = Style.read({key: query.pop(key) for key in list(query) if is_key(key)})
        if query.pop(KEY, ""):
            look = preview_style(picture, read_public_address())
        read = read_asked(picture, form, look, query, visitor_of(request))
        if read_address.needs_reading(registry.page(picture.page), query):
            reading = await await_or_disconnect(request, read)
            if reading is None or reading.cancelled():
                return Response(status_code=499)
            asked = reading.result()
        else:
            asked = await read
    except ClientDisconnect:
        return Response(status_code=499)
    except (ValueError, QueueFullError, NoProcessError) as error:
        return error_response(error, picture.address)
    tag = hashlib.sha256(repr((version(), form, look, asked.key)).encode()).hexdigest()[:32]
    headers = {**OPEN, "etag": f'"{tag}"', "cache-control": cache_control(asked)}
    if form not in export.WHOLE:
        headers["vary"] = "accept-encoding"
    if form not in ("packed", "json", "csv"):
        headers["content-security-policy"] = ALONE
    if known(request, tag):
        return Response(status_code=304, headers=headers)
    drawn = GALLERY.found(tag)
    if drawn is None:
        drawing = GALLERY.drawn(
            tag,
            asked.make,
            rank=MOVING if asked.is_coarse else SHOWN if form == "packed" else FILES,
            keep=not asked.is_coarse,
            away=None if asked.is_private else (picture.page, name, query),
            visitor=visitor_of(request),
            long=asked.long,
        )
        work = await await_or_disconnect(request, drawing)
        if work is None or work.cancelled():
            return Response(status_code=499)
        if (problem := work.exception()) is not None:
            response = error_response(problem, picture.address)
            # Its frames hold the contents, and form a cycle that would keep them for a long time.
            problem.__traceback__ = None
            return response
        drawn = work.result()
    content: bytes | memoryview = drawn
    stem = asked.stem
    if asked.long is not None:
        stem, content = split_stem(drawn)
    parts = None
    if form not in export.WHOLE:
        if takes_gzip(request.headers):
            headers["content-encoding"] = "gzip"
        else:
            headers["content-length"] = str(int.from_bytes(content[-4:], "little"))  # gzip ends with the size
            parts = inflate(content)
    headers["content-disposition"] = f'inline; filename="{stem}.{form}"'
    if parts is not None:
        return InflatedResponse(content, parts, media_type=export.FORMS[form], headers=headers)
    return Response(content, media_type=export.FORMS[form], headers=headers)


class InflatedResponse(StreamingResponse):
    """A response whose compressed content counts while its client reads the parts."""

    def __init__(self, packed: bytes | memoryview, parts: AsyncIterator[bytes], **options: Any) -> None:
        super().__init__(parts, **options)
        self.packed = packed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with UNREAD.hold(scope, self.packed):
            await super().__call__(scope, receive, send)


def split_stem(drawn: bytes) -> tuple[str, memoryview]:
    """Return the stem of the file name and the picture that a process rendered, as a view of the same bytes.

    Clients that read a picture slowly share one copy of it.
    """
    end = drawn.index(b"\0")
    return drawn[:end].decode(), memoryview(drawn)[end + 1 :]


async def inflate(content: bytes | memoryview) -> AsyncIterator[bytes]:
    """Yield gzip's content in parts, each once the client has taken the last: many may ask for the same large page."""
    reader = zlib.decompressobj(16 + zlib.MAX_WBITS)
    for start in range(0, len(content), ANSWER_PART_BYTES):
        left = content[start : start + ANSWER_PART_BYTES]
        while left:
            await take_turn()
            yield reader.decompress(left, ANSWER_PART_BYTES)
            left = reader.unconsumed_tail
    yield reader.flush()


@dataclass(frozen=True)
class RouteJob:
    """A picture as it was asked for: its key in the cache, and how to render it.

    `long` is set for what can take long; that needs a process of its own, which also returns the stem.
    """

    key: Hashable
    is_coarse: bool
    is_private: bool
    make: Callable[[], bytes]
    stem: str = ""
    long: FileJob | None = None


async def read_asked(picture: Picture, form: str, look: Style, query: dict[str, str], visitor: str) -> RouteJob:
    """Read a query. Large contents are left to the process that renders the picture, small ones to the border.

    Raise `UnknownError` for contents that are not stored, and `ValueError` with a sentence for an invalid query.
    """
    page = registry.page(picture.page)
    contents = read_address.stored_contents(page, query)
    job = FileJob(picture.page, picture.name, form, look, query, contents)
    key = (picture.address, *sorted(query.items()))
    in_process = RouteJob(key, query.get("coarse") == "1", True, do_nothing, long=job)
    if is_large(page, query, contents):
        return in_process
    named = read_address.list_contents(page, query)
    if not named:
        return read_small(picture, form, look, job)
    try:
        return await BORDER.read_query(visitor, named, functools.partial(read_small, picture, form, look, job))
    except LargeValueError as error:
        note_large_value(contents, error)
        return in_process


def is_large(page: Page, query: dict[str, str], contents: tuple[bytes, ...]) -> bool:
    """Return whether contents are too large for the server process, packed or as they were found to unpack."""
    if sum(map(len, contents)) > SMALL_PICTURE_BYTES or any(
        unpacked_size(content) > LARGE_VALUE_BYTES for content in contents
    ):
        return True
    return any(map(blob_store.STORE.has_large_value, read_address.stored_names(page, query)))


def unpacked_size(content: bytes) -> int:
    """Return the bytes to which the members of an archive unpack, by their headers; 0 for other contents.

    So an archive that says that it is large takes no place of small readings. Readers trust no header.
    """
    sizes = (content[header.start() + 24 : header.start() + 28] for header in ZIP_HEADER.finditer(content))
    return sum(int.from_bytes(size, "little") for size in sizes)


def note_large_value(contents: tuple[bytes, ...], error: LargeValueError) -> None:
    """Remember which of some salted contents has a large value, so that the next picture need not read it first."""
    for salted in contents:
        if salted[blob_store.SALT :] == error.content:
            blob_store.STORE.note_large_value(blob_store.name_of(salted))


def read_small(picture: Picture, form: str, look: Style, job: FileJob, reader: Reader = NOTHING_READ) -> RouteJob:
    """Read a query whose contents are small. `reader` has them."""
    query, contents = job.query, job.contents
    request = read_address.read_request(registry.page(picture.page), query, reader=reader)
    if form != "packed" and "part" not in query:
        # A page renders slow pictures in parts; a file always holds the finished picture.
        request = picture.finished(request)
    is_long = form != "packed" or (not request.coarse and min(request.part, picture.parts(request) - 1) >= LATE_PART)
    return RouteJob(
        picture.cache_key(request),
        request.coarse,
        bool(contents),
        functools.partial(export.compressed, picture, request, form, look),
        wire_format.file(picture, request, look=look),
        job if is_long else None,
    )


async def draw_scene(query: dict[str, str], contents: tuple[bytes, ...], visitor: str) -> bytes:
    """Return the page of Home's picture, from a process of its own if the contents are large.

    Raise what `Border.read_query` and `Gallery.drawn` raise.
    """
    if not is_large(home.PAGE, query, contents):
        try:
            named = read_address.list_contents(home.PAGE, query)
            return await BORDER.read_query(visitor, named, functools.partial(draw_home, query))
        except LargeValueError as error:
            note_large_value(contents, error)
    job = FileJob(home.PAGE.name, home.turning.name, SCENE, Style(), query, contents)
    tag = repr((SCENE, current_language(), sorted(query.items())))
    drawn = await GALLERY.drawn(tag, do_nothing, rank=FILES, keep=False, visitor=visitor, long=job)
    return bytes(split_stem(drawn)[1])


def do_nothing() -> bytes:
    """Stand in for a renderer that is never called."""
    raise NotImplementedError


def visitor_of(request: Request) -> str:
    """Return whose request this is: the client's address, of IPv6 the network of 64 bits that one client has.

    Behind a proxy named by --trusted-proxy, the server puts the address from X-Forwarded-For there.
    """
    return visitor_name(request.client.host if request.client else "")


def known(request: Request, tag: str) -> bool:
    """True if If-None-Match lists the tag, also as a weak one (from a compressing proxy), or `*`."""
    listed = [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]
    return f'"{tag}"' in listed or listed == ["*"]


def takes_gzip(headers: Headers) -> bool:
    """True if Accept-Encoding allows gzip: it names gzip or `*`, with a weight above 0."""
    weights = {}
    for each in headers.get("accept-encoding", "").lower().split(","):
        name, _, weight = each.partition(";")
        weights[name.strip()] = weight.replace(" ", "").removeprefix("q=").rstrip("0.") != "" or not weight.strip()
    return weights.get("gzip", weights.get("*", False))


def read_query(request: Request) -> dict[str, str]:
    """Return the query, cleaned. Raise `ValueError` if it is too long or repeats a key."""
    if len(request.url.query) > ADDRESS_CHARACTERS:
        raise ValueError(TEXTS("server.too_long", most=ADDRESS_CHARACTERS))
    pairs = request.query_params.multi_items()
    query = clean_query(dict(pairs))
    if len(query) < len(pairs):
        raise ValueError(TEXTS("server.repeated"))
    query.pop("v", None)  # the asking version, which separates versions in the browser's cache
    return query


async def store_body(request: Request) -> None:
    """Store the contents in the body, each prefixed by its length. Other sites cannot set the required header."""
    if request.headers.get("rope-viz") != "kept":
        raise ValueError(TEXTS("server.other_site"))
    length = request.headers.get("content-length", "0")
    if length.isascii() and length.isdecimal() and int(length[:20]) > REQUEST_BYTES:
        raise ValueError(TEXTS("server.too_large", most=REQUEST_BYTES >> 20))
    body, visitor = bytearray(), visitor_of(request)
    async for part in request.stream():
        body += part
        if len(body) > REQUEST_BYTES:
            raise ValueError(TEXTS("server.too_large", most=REQUEST_BYTES >> 20))
    for content in split_contents(body):
        # One at a time: when the client leaves, the rest is not stored.
        await run_in_threadpool(blob_store.STORE.keep, content, visitor)
        if await request.is_disconnected():
            raise ClientDisconnect


def split_contents(body: bytearray) -> Iterator[bytes]:
    """Yield each content of a body, and release the body. Raise `ValueError` if there are too many."""
    at, ends = 0, list[tuple[int, int]]()
    while at + 4 <= len(body):
        (size,) = struct.unpack_from("<I", body, at)
        ends.append((at + 4, at + 4 + size))
        at += 4 + size
        if len(ends) > REQUEST_CONTENTS:
            raise ValueError(TEXTS("server.too_many", most=REQUEST_CONTENTS))
    for start, stop in reversed(ends):
        content = bytes(memoryview(body)[start:stop])
        del body[start:]  # so that body and contents together take little more than the body
        yield content


def refuse(error: ValueError) -> Response:
    """Answer with the error's sentence: 422 for a content that cannot be read, 400 for an address."""
    return respond(422 if isinstance(error, ContentError) else 400, str(error))


def error_response(error: BaseException, address: str) -> Response:
    """Turn a rendering error into a response with a sentence."""
    if isinstance(error, QueueFullError):
        return respond(503, TEXTS("server.busy"), {"retry-after": "1"})
    if isinstance(error, blob_store.UnknownError):
        named = {"rope-viz-missing": error.name} if blob_store.NAME.fullmatch(error.name) else {}
        return respond(410, str(error), named)
    if isinstance(error, NoProcessError):
        return respond(503, str(error), {"retry-after": "5"})
    if isinstance(error, RenderError):
        return respond(500, str(error))
    if isinstance(error, ValueError):
        return refuse(error)
    LOG.error("%s could not be drawn\n%s", address, format_crash(error))
    return respond(500, TEXTS("server.failed"))


async def await_or_disconnect(request: Request, drawing: Coroutine[Any, Any, T]) -> asyncio.Task[T] | None:
    """Return the finished task, or None if the client disconnected first; the task is then cancelled."""
    work = asyncio.get_running_loop().create_task(drawing)
    gone = asyncio.ensure_future(disconnected(request))
    try:
        await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
    if work.done():
        return work
    work.cancel()
    return None


async def disconnected(request: Request) -> None:
    """Return once the client has disconnected."""
    whole = False
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            return
        if whole:
            # This server does not report disconnects after the whole request, so wait for ever.
            await asyncio.get_running_loop().create_future()
        whole = not message.get("more_body")


def cache_control(asked: RouteJob) -> str:
    """Return the Cache-Control value: never for coarse pictures, private ones for the user's own browser only."""
    if asked.is_coarse:
        return "no-store"
    return f"{'private' if asked.is_private else 'public'}, max-age={DAY}"


def respond(status: int, sentence: str, headers: dict[str, str] | None = None) -> Response:
    """Return a plain-text response; the sentence may name what the client sent."""
    return PlainTextResponse(printable(sentence), status, {**OPEN, "cache-control": "no-store", **(headers or {})})


@functools.cache
def version() -> str:
    """Return one tag for all code that affects pictures: equal on every server with the same code."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256(f"{__version__} {numpy.__version__} {plotly.__version__}".encode())
    for path in sorted([*root.rglob("*.py"), *root.rglob("*.json"), *root.rglob("*.toml")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
