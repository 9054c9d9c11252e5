"""The route of pictures: any picture of any page by its address, drawn once, kept, and answered without a session."""

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
from rope_viz.ui.render_workers import Drawers

LOG = logging.getLogger(__name__)
AT_ONCE = 2
"""Pictures drawn at a time by the server itself, for all readers together: the runs of pages need their share."""
PLACES = 2
"""Pictures that each drawer has at a time: one in hand, and one that lies ready."""
WAITING = 128
"""Pictures that may wait for their turn; whoever comes then is told when to come again."""
MOST = 64 << 20
"""Bytes of pictures that are kept."""
LONGEST = 16_000
DAY = 86_400
OPEN = {"access-control-allow-origin": "*", "cross-origin-resource-policy": "cross-origin"}
# What is opened by its own address may show itself and do nothing else: it has no part in the app's origin.
ALONE = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:; sandbox"
ALONE += " allow-scripts"


Away: TypeAlias = tuple[str, str, dict[str, str]]
"""Page, picture and query: all that another process needs to know of a picture whose address holds everything."""


class BusyError(RuntimeError):
    """The queue is full."""


class Job:
    """A picture that is being drawn or waits to be, for all who asked for it."""

    def __init__(self, rank: int, order: tuple[float, int], make: Callable[[], bytes], away: Away | None) -> None:
        self.rank, self.order, self.make, self.away = rank, order, make, away
        self.wanted, self.begun = 0, False
        self.done: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.came = asyncio.get_running_loop().time()

    def __lt__(self, other: Job) -> bool:
        return self.order < other.order


class Gallery:
    """Pictures by tag: each drawn once at a time, few at once, few waiting, the last ones kept up to so many bytes.

    All of it happens on the server's one loop, but for the drawing itself: on a thread, or by the `drawers`.
    """

    def __init__(
        self, *, at_once: int = AT_ONCE, waiting: int = WAITING, most: int = MOST, drawers: Drawers | None = None
    ) -> None:
        self.at_once, self.waiting, self.most = at_once, waiting, most
        self.drawers = drawers or Drawers()
        self.size = 0
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._jobs: dict[str, Job] = {}
        self._queue: list[Job] = []
        self._here, self._there = Counter[int](), Counter[int]()
        self._count = itertools.count()
        self._pool = ThreadPoolExecutor(at_once + 1, thread_name_prefix="pictures")

    def found(self, tag: str) -> bytes | None:
        """A picture that is kept."""
        if tag in self._kept:
            self._kept.move_to_end(tag)
        return self._kept.get(tag)

    async def drawn(
        self, tag: str, make: Callable[[], bytes], *, rank: int = 0, keep: bool = True, away: Away | None = None
    ) -> bytes:
        """The picture, drawn by `make` on a thread, or elsewhere by `away`. Raises `BusyError`, and what they raise.

        The next is the one whose time came first: now for a knob that moves, `PATIENCE` later for the others, so that
        neither waits for ever. Who stops waiting gives it up; what nobody waits for any more is not begun.
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
        """Begin what may begin: what drawers can draw is theirs once they are there, and the rest is drawn here."""
        places = PLACES * self.drawers.count if self.drawers.ready else 0
        later: list[Job] = []
        while self._queue and (self._here.total() < self.at_once or self._there.total() < places):
            job = heapq.heappop(self._queue)
            if not self._may(job, places):
                later.append(job)
                continue
            job.begun = True
            self.drawers.late(asyncio.get_running_loop().time() - job.came)
            self._begin(job)
        for job in later:
            heapq.heappush(self._queue, job)

    def _may(self, job: Job, places: int) -> bool:
        """Whether there is room for it.

        Of the drawers' places one is left to knobs that move. Files, which take longest, get one place at most here,
        so that pages never wait for them.
        """
        if places and job.away is not None:
            resting = self._there.total() - self._there[MOVING]
            return self._there.total() < places and (job.rank == MOVING or resting < places - 1)
        return self._here.total() < self.at_once and (job.rank != FILES or self._here[FILES] < max(1, self.at_once - 1))

    def _begin(self, job: Job) -> None:
        there = None if job.away is None else self.drawers.draw(*job.away)
        where = self._here if there is None else self._there
        where[job.rank] += 1
        loop = asyncio.get_running_loop()
        drawing = loop.run_in_executor(self._pool, job.make) if there is None else asyncio.wrap_future(there)
        drawing.add_done_callback(functools.partial(self._drawn, job, where))

    def _drawn(self, job: Job, where: Counter[int], drawing: asyncio.Future[bytes]) -> None:
        """Those who wait for it have it, or hear what went wrong."""
        where[job.rank] -= 1
        if not drawing.cancelled() and isinstance(drawing.exception(), BrokenExecutor):
            # Who drew it was ended, by the system's want of memory say: it is drawn here.
            self.drawers.let_go()
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
        self._kept[tag] = content
        self.size += len(content)
        while self.size > self.most:
            _, oldest = self._kept.popitem(last=False)
            self.size -= len(oldest)


MOVING, SHOWN, FILES = 0, 1, 2
"""Ranks: for a knob that moves, for a page, for a file."""
PATIENCE = {MOVING: 0.0, SHOWN: 0.25, FILES: 1.0}
"""{rank: seconds that it gives way to those that come after it}."""

GALLERY = Gallery()


async def answer(request: Request) -> Response:
    """The route `/picture/<page>/<name>.<form>?<query>`; by POST with what is kept for it in the body."""
    name, _, form = request.path_params["name"].rpartition(".")
    try:
        picture = registry.picture(request.path_params["page"], name)
        if form not in export.FORMS:
            raise KeyError(f"A picture has the forms {', '.join(export.FORMS)}, not {form[:20]!r}.")
    except KeyError as error:
        return said(404, str(error.args[0]))
    try:
        if request.method == "POST":
            await take(request)
        query = asked(request)
        look = Style.read({key: query.pop(key) for key in list(query) if is_key(key)})
        now = registry.read(registry.page(picture.page), query)
        if form != "packed" and "part" not in query:
            # A page draws what takes long in parts; a file holds the whole.
            now = picture.finished(now)
        key = registry.key(now, picture)
    except blob_store.UnknownError as error:
        named = {"rope-viz-missing": error.name} if blob_store.NAME.fullmatch(error.name) else {}
        return said(410, str(error), named)
    except ValueError as error:
        return said(400, str(error))
    tag = hashlib.sha256(repr((version(), form, look, key)).encode()).hexdigest()[:32]
    headers = {**OPEN, "etag": f'"{tag}"', "cache-control": caching(now)}
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
        away = (picture.page, name, query) if form == "packed" and not private(now) else None
        work = await listened(request, GALLERY.drawn(tag, make, rank=rank, keep=not now.coarse, away=away))
        if work is None:
            return Response(status_code=499)
        if (problem := work.exception()) is not None:
            return failed(problem, picture.address)
        content = work.result()
    if form not in export.WHOLE:
        if takes_gzip(request.headers):
            headers["content-encoding"] = "gzip"
        else:
            content = gzip.decompress(content)
    headers["content-disposition"] = f'inline; filename="{wire_format.file(picture, now, look=look)}.{form}"'
    return Response(content, media_type=export.FORMS[form], headers=headers)


def known(request: Request, tag: str) -> bool:
    """Whether who asks has it: If-None-Match lists tags, weak ones where somebody compressed on the way, or any (*)."""
    listed = [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]
    return f'"{tag}"' in listed or listed == ["*"]


def takes_gzip(headers: Headers) -> bool:
    """Whether Accept-Encoding lets an answer be compressed: it names gzip or anything, and not with a weight of 0."""
    weights = {}
    for each in headers.get("accept-encoding", "").lower().split(","):
        name, _, weight = each.partition(";")
        weights[name.strip()] = weight.replace(" ", "").removeprefix("q=").rstrip("0.") != "" or not weight.strip()
    return weights.get("gzip", weights.get("*", False))


def asked(request: Request) -> dict[str, str]:
    """The query. Raises `ValueError` with a sentence where it is too long or says a thing twice."""
    if len(request.url.query) > LONGEST:
        raise ValueError(f"The query is longer than {LONGEST:,} characters.")
    pairs = request.query_params.multi_items()
    query = dict(pairs)
    if len(query) < len(pairs):
        raise ValueError("The query says one thing twice.")
    query.pop("v", None)  # which version asks: it keeps pictures of different versions apart in the browser's cache
    return query


async def take(request: Request) -> None:
    """Keep what the browser sends: contents, each behind its length. Only our own pages can set the header it needs."""
    if request.headers.get("rope-viz") != "kept":
        raise ValueError("Contents are taken from pages of this app only.")
    most = 2 * blob_store.LARGEST
    length = request.headers.get("content-length", "0")
    if length.isascii() and length.isdecimal() and int(length[:20]) > most:
        raise ValueError(f"at most {most >> 20} MiB can be sent")
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > most:
            raise ValueError(f"at most {most >> 20} MiB can be sent")
    at = 0
    while at + 4 <= len(body):
        (size,) = struct.unpack_from("<I", body, at)
        blob_store.STORE.keep(bytes(body[at + 4 : at + 4 + size]))
        at += 4 + size


def failed(error: BaseException, address: str) -> Response:
    """What went wrong with a picture, as a sentence."""
    if isinstance(error, BusyError):
        return said(503, "Too many pictures are being drawn just now. Ask again in a moment.", {"retry-after": "1"})
    if isinstance(error, ValueError):
        return said(400, str(error))
    LOG.error("%s could not be drawn", address, exc_info=error)
    return said(500, "This picture could not be drawn. The server's log says why.")


async def listened(request: Request, drawing: Coroutine[Any, Any, bytes]) -> asyncio.Task[bytes] | None:
    """The finished task; None where whoever asked has gone before, and then it is given up."""
    work = asyncio.get_running_loop().create_task(drawing)
    gone = asyncio.ensure_future(left(request))
    try:
        await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
    if work.done():
        return work
    work.cancel()
    return None


async def left(request: Request) -> None:
    """Returns when the other side has closed the connection."""
    whole = False
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            return
        if whole:
            # Nothing comes after the whole of a request: this server does not say when the other side leaves.
            await asyncio.get_running_loop().create_future()
        whole = not message.get("more_body")


def caching(now: Now) -> str:
    """For how long, and by whom, a picture may be kept: not on its way, and what is kept here by the reader alone."""
    if now.coarse:
        return "no-store"
    return f"{'private' if private(now) else 'public'}, max-age={DAY}"


def private(now: Now) -> bool:
    """Whether the picture depends on what is kept here, for one reader."""
    return bool(now.held) or any(isinstance(value, Held) for value in now.given.values())


def said(status: int, sentence: str, headers: dict[str, str] | None = None) -> Response:
    """A sentence instead of a picture."""
    return PlainTextResponse(sentence, status, {**OPEN, "cache-control": "no-store", **(headers or {})})


@functools.cache
def version() -> str:
    """One tag for all that pictures are drawn by: the same on every server with the same code."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256(f"{__version__} {numpy.__version__} {plotly.__version__}".encode())
    for path in sorted([*root.rglob("*.py"), *root.rglob("*.json")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
