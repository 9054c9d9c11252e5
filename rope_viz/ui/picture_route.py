"""The HTTP route that renders any picture by its address, caches it and serves it without a session."""

from __future__ import annotations

import asyncio
import functools
import gzip
import hashlib
import heapq
import itertools
import logging
import struct
from collections import Counter, OrderedDict
from collections.abc import Callable, Coroutine
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeAlias

import numpy
import plotly
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from rope_viz import __version__
from rope_viz.figures.files import Style, is_key
from rope_viz.pictures import blob_store, export, registry, wire_format
from rope_viz.pictures.choices import Held
from rope_viz.pictures.picture_request import Now
from rope_viz.storage.decode_json import ContentError
from rope_viz.texts import Texts
from rope_viz.texts.texts import LANGUAGE
from rope_viz.ui.render_workers import RenderWorkers

LOG = logging.getLogger(__name__)
TEXTS = Texts("app")
AT_ONCE = 2
"""Pictures that the server process renders at a time, for all users together; page runs need their share of the CPU."""
PLACES = 2
"""Pictures assigned to each worker: one being rendered and one ready to start."""
WAITING = 128
"""Pictures that may wait in the queue; further requests are answered with 503 and Retry-After."""
MOST = 64 << 20
"""Bytes of rendered pictures in the cache."""
LONGEST = 16_000
DAY = 86_400
OPEN = {"access-control-allow-origin": "*", "cross-origin-resource-policy": "cross-origin"}
# Files opened by their own address may run their own scripts, but in a sandbox without the app's origin.
ALONE = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:; sandbox"
ALONE += " allow-scripts"


Away: TypeAlias = tuple[str, str, dict[str, str]]
"""Page, picture and query: all that a worker process needs when the address holds all inputs."""


class BusyError(RuntimeError):
    """The queue is full."""


class Job:
    """A picture that is waiting or being rendered, shared by all requests for it."""

    def __init__(self, rank: int, order: tuple[float, int], make: Callable[[], bytes], away: Away | None) -> None:
        self.rank, self.order, self.make, self.away = rank, order, make, away
        self.wanted, self.begun = 0, False
        self.done: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.came = asyncio.get_running_loop().time()

    def __lt__(self, other: Job) -> bool:
        return self.order < other.order


class Gallery:
    """A render queue and cache of pictures by tag: each rendered once, few at a time, old ones evicted by size.

    Bookkeeping runs on the server's event loop; only rendering runs on threads or in the worker processes `workers`.
    """

    def __init__(
        self, *, at_once: int = AT_ONCE, waiting: int = WAITING, most: int = MOST, workers: RenderWorkers | None = None
    ) -> None:
        self.at_once, self.waiting, self.most = at_once, waiting, most
        self.workers = workers or RenderWorkers()
        self.size = 0
        self._cache: OrderedDict[str, bytes] = OrderedDict()
        self._jobs: dict[str, Job] = {}
        self._queue: list[Job] = []
        self._here, self._there = Counter[int](), Counter[int]()
        self._count = itertools.count()
        self._pool = ThreadPoolExecutor(at_once + 1, thread_name_prefix="pictures")

    def found(self, tag: str) -> bytes | None:
        """Return a cached picture, or None."""
        if tag in self._cache:
            self._cache.move_to_end(tag)
        return self._cache.get(tag)

    async def drawn(
        self, tag: str, make: Callable[[], bytes], *, rank: int = 0, keep: bool = True, away: Away | None = None
    ) -> bytes:
        """Render the picture with `make` on a thread, or in a worker if `away` is given.

        Raise `BusyError` when the queue is full, or the renderer's own error. The queue is ordered by due time: now for
        a moving knob, `PATIENCE` later for the others, so none starves. A job without waiters never starts.
        """
        job = self._jobs.get(tag)
        if job is None:
            if len(self._queue) >= self.waiting:
                raise BusyError
            due = asyncio.get_running_loop().time() + PATIENCE[rank]
            job = self._jobs[tag] = Job(rank, (due, next(self._count)), make, away)
            heapq.heappush(self._queue, job)
            job.done.add_done_callback(functools.partial(self._finished, tag, keep))
            self._next()
        job.wanted += 1
        try:
            return await asyncio.shield(job.done)
        finally:
            job.wanted -= 1
            if not job.wanted and not job.begun and not job.done.done():
                self._queue.remove(job)
                heapq.heapify(self._queue)
                job.done.cancel()

    def _next(self) -> None:
        """Start as many queued jobs as there is room for, in the workers if they are ready, else on threads."""
        places = PLACES * self.workers.count if self.workers.ready else 0
        later: list[Job] = []
        while self._queue and (self._here.total() < self.at_once or self._there.total() < places):
            job = heapq.heappop(self._queue)
            if not self._may(job, places):
                later.append(job)
                continue
            job.begun = True
            self.workers.record_wait(asyncio.get_running_loop().time() - job.came)
            self._begin(job)
        for job in later:
            heapq.heappush(self._queue, job)

    def _may(self, job: Job, places: int) -> bool:
        """True if there is room for the job.

        One place of the workers is reserved for moving knobs. On the server's own threads, files (the slowest) get at
        most one place, so that pages never wait for them.
        """
        if places and job.away is not None:
            resting = self._there.total() - self._there[MOVING]
            return self._there.total() < places and (job.rank == MOVING or resting < places - 1)
        return self._here.total() < self.at_once and (job.rank != FILES or self._here[FILES] < max(1, self.at_once - 1))

    def _begin(self, job: Job) -> None:
        there = None if job.away is None else self.workers.submit(*job.away)
        where = self._here if there is None else self._there
        where[job.rank] += 1
        loop = asyncio.get_running_loop()
        drawing = loop.run_in_executor(self._pool, job.make) if there is None else asyncio.wrap_future(there)
        drawing.add_done_callback(functools.partial(self._drawn, job, where))

    def _drawn(self, job: Job, where: Counter[int], drawing: asyncio.Future[bytes]) -> None:
        """Resolve the job's future with the result or the exception."""
        where[job.rank] -= 1
        if not drawing.cancelled() and isinstance(drawing.exception(), BrokenExecutor):
            # The worker process died, for example when memory ran out: render on a thread.
            self.workers.shut_down()
            job.away = None
            self._begin(job)
            return
        if job.done.done() or drawing.cancelled():
            job.done.cancel()
        elif (error := drawing.exception()) is not None:
            job.done.set_exception(error)
        else:
            job.done.set_result(drawing.result())
        self._next()

    def _finished(self, tag: str, keep: bool, done: asyncio.Future[bytes]) -> None:
        del self._jobs[tag]
        if done.cancelled() or done.exception() is not None or not keep:
            return
        content = done.result()
        if len(content) > self.most // 4:
            return
        self._cache[tag] = content
        self.size += len(content)
        while self.size > self.most:
            _, oldest = self._cache.popitem(last=False)
            self.size -= len(oldest)


MOVING, SHOWN, FILES = 0, 1, 2
"""Ranks: a knob that moves, a picture on a page, a file."""
PATIENCE = {MOVING: 0.0, SHOWN: 0.25, FILES: 1.0}
"""{rank: seconds that a job of this rank lets later, more urgent ones overtake it}."""

GALLERY = Gallery()


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
        now = registry.read_request(registry.page(picture.page), query)
        if form != "packed" and "part" not in query:
            # A page renders slow pictures in parts; a file always holds the finished picture.
            now = picture.finished(now)
        key = registry.key(now, picture)
    except blob_store.UnknownError as error:
        named = {"rope-viz-missing": error.name} if blob_store.NAME.fullmatch(error.name) else {}
        return respond(410, str(error), named)
    except ValueError as error:
        return refuse(error)
    tag = hashlib.sha256(repr((version(), form, look, key)).encode()).hexdigest()[:32]
    headers = {**OPEN, "etag": f'"{tag}"', "cache-control": cache_control(now)}
    if form not in export.WHOLE:
        headers["vary"] = "accept-encoding"
    if form not in ("packed", "json", "csv"):
        headers["content-security-policy"] = ALONE
    if known(request, tag):
        return Response(status_code=304, headers=headers)
    content = GALLERY.found(tag)
    if content is None:
        make = functools.partial(export.compressed, picture, now, form, look)
        rank = MOVING if now.coarse else SHOWN if form == "packed" else FILES
        away = (picture.page, name, query) if form == "packed" and not is_private(now) else None
        work = await await_or_disconnect(request, GALLERY.drawn(tag, make, rank=rank, keep=not now.coarse, away=away))
        if work is None:
            return Response(status_code=499)
        if (problem := work.exception()) is not None:
            return error_response(problem, picture.address)
        content = work.result()
    if form not in export.WHOLE:
        if takes_gzip(request.headers):
            headers["content-encoding"] = "gzip"
        else:
            content = gzip.decompress(content)
    headers["content-disposition"] = f'inline; filename="{wire_format.file(picture, now, look=look)}.{form}"'
    return Response(content, media_type=export.FORMS[form], headers=headers)


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
    """Return the query. Raise `ValueError` if it is too long or repeats a key."""
    if len(request.url.query) > LONGEST:
        raise ValueError(TEXTS("server.too_long", most=LONGEST))
    pairs = request.query_params.multi_items()
    query = dict(pairs)
    if len(query) < len(pairs):
        raise ValueError(TEXTS("server.repeated"))
    query.pop("v", None)  # the asking version, which separates versions in the browser's cache
    return query


async def store_body(request: Request) -> None:
    """Store the contents in the body, each prefixed by its length. Other sites cannot set the required header."""
    if request.headers.get("rope-viz") != "kept":
        raise ValueError(TEXTS("server.other_site"))
    most = 2 * blob_store.LARGEST
    length = request.headers.get("content-length", "0")
    if length.isascii() and length.isdecimal() and int(length[:20]) > most:
        raise ValueError(TEXTS("server.too_large", most=most >> 20))
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > most:
            raise ValueError(TEXTS("server.too_large", most=most >> 20))
    at = 0
    while at + 4 <= len(body):
        (size,) = struct.unpack_from("<I", body, at)
        blob_store.STORE.keep(bytes(body[at + 4 : at + 4 + size]))
        at += 4 + size


def refuse(error: ValueError) -> Response:
    """Answer with the error's sentence: 422 for a content that cannot be read, 400 for an address."""
    return respond(422 if isinstance(error, ContentError) else 400, str(error))


def error_response(error: BaseException, address: str) -> Response:
    """Turn a rendering error into a response with a sentence."""
    if isinstance(error, BusyError):
        return respond(503, TEXTS("server.busy"), {"retry-after": "1"})
    if isinstance(error, ValueError):
        return refuse(error)
    LOG.error("%s could not be drawn", address, exc_info=error)
    return respond(500, TEXTS("server.failed"))


async def await_or_disconnect(request: Request, drawing: Coroutine[Any, Any, bytes]) -> asyncio.Task[bytes] | None:
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


def cache_control(now: Now) -> str:
    """Return the Cache-Control value: never for coarse pictures, private ones for the user's own browser only."""
    if now.coarse:
        return "no-store"
    return f"{'private' if is_private(now) else 'public'}, max-age={DAY}"


def is_private(now: Now) -> bool:
    """True if the picture depends on contents stored for one user."""
    return bool(now.held) or any(isinstance(value, Held) for value in now.given.values())


def respond(status: int, sentence: str, headers: dict[str, str] | None = None) -> Response:
    """Return a plain-text response."""
    return PlainTextResponse(sentence, status, {**OPEN, "cache-control": "no-store", **(headers or {})})


@functools.cache
def version() -> str:
    """Return one tag for all code that affects pictures: equal on every server with the same code."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256(f"{__version__} {numpy.__version__} {plotly.__version__} {LANGUAGE}".encode())
    for path in sorted([*root.rglob("*.py"), *root.rglob("*.json"), *(root / "texts").rglob("*.toml")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
