"""Middleware: gzip Streamlit's static files once per process; add header and a loading message to its first page.

Streamlit leaves them uncompressed, because its middleware would compress them again for every request. The cache is
safe: the files' names change with their content.
"""

from __future__ import annotations

import asyncio
import functools
import gzip
import html
import json
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import config

from rope_viz import web
from rope_viz.embedding.spec import short_repr
from rope_viz.pages import registry
from rope_viz.pages.registry import doors, moved, pictures_on, title_of, titles
from rope_viz.picture import read_address, write_address
from rope_viz.picture.page import Picture
from rope_viz.picture.read_address import LANGUAGE_KEY
from rope_viz.serving import link_preview
from rope_viz.serving.picture_route import takes_gzip
from rope_viz.storage.byte_cache import ByteCache
from rope_viz.storage.limits import LEAST_COMPRESSED_BYTES, STATIC_FILE_BYTES, WRITTEN_ADDRESS_CHARACTERS
from rope_viz.texts import Texts, cache_by_language, current_language, use_language
from rope_viz.texts.languages import list_languages
from rope_viz.texts.texts import language_code
from rope_viz.ui import state
from rope_viz.ui.components.scripts import PREFIX, list_needed, version
from rope_viz.ui.language import find_language, find_preferred

COLOURS = ("primaryColor", "backgroundColor", "secondaryBackgroundColor", "textColor")

MARK, THEME = web.read_inline("mark.svg"), web.read_inline("theme.svg")


# The header is part of the first page that the server sends, so it is there before Streamlit's scripts; `header.js`
# sets its links.
@cache_by_language()
def prerendered_header() -> str:
    """Return the header and the tabs of every door; `header.js` shows those of the open one."""
    links = "".join(
        f'<a data-door="{door}" data-to="{pages[0]}">{TEXTS(f"doors.{door}")}</a>' for door, pages in doors().items()
    )
    tabs = ""
    for door, pages in doors().items():
        if len(pages) > 1:
            tab = "".join(f'<a data-to="{name}">{title_of(name)}</a>' for name in pages)
            tabs += f'<div data-of="{door}" hidden>{tab}</div>'
    return (
        f'<header id="rv-header"><a class="rv-skip" href="#stMain">{TEXTS("header.skip")}</a>'
        f'<a class="rv-logo" data-to="" aria-label="RoPE Viz">{MARK}<span>RoPE Viz</span></a>'
        f'<nav aria-label="{TEXTS("header.doors")}">{links}</nav>'
        f'<nav id="rv-tabs" aria-label="{TEXTS("header.pages")}" hidden>{tabs}</nav>'
        f'<div class="rv-actions"><button type="button" id="rv-chip" title="{TEXTS("header.model")}"><b></b>'
        f'<span></span></button><span id="rv-share"></span>{language_links()}'
        f'<button type="button" id="rv-theme" aria-label="{TEXTS("header.theme")}" '
        f'title="{TEXTS("header.theme")}">{THEME}</button></div></header>'
        f"<style>{(HERE / 'header.css').read_text(encoding='utf-8')}</style>"
    )


def language_links() -> str:
    """Return a link to the page in each language, "" if there is one language; `header.js` sets their addresses."""
    links = ""
    for each in list_languages():
        with use_language(each):
            name, label, code = (LANGUAGE(key) for key in ("name", "label", "code"))
        current = ' aria-current="true"' if each == current_language() else ""
        links += f'<a href="?{LANGUAGE_KEY}={each}" data-language="{each}" lang="{code}" hreflang="{code}"{current} '
        links += f'aria-label="{label}">{name}</a>'
    return (
        f'<nav class="rv-languages" aria-label="{TEXTS("header.language")}">{links}</nav>'
        if len(list_languages()) > 1
        else ""
    )


@cache_by_language()
def header_script() -> str:
    """Return the script that sets the header's links and changes the theme."""
    themes = {
        # `base` is 0 for light and 1 for dark in Streamlit's messages.
        name: {key: config.get_option(f"theme.{name}.{key}") for key in COLOURS}
        | {"base": base, "baseFontSize": config.get_option("theme.baseFontSize")}
        for base, name in enumerate(("light", "dark"))
    }
    text = web.read_inline("header.js")
    named = {page: door for door, pages in doors().items() for page in pages}
    return text.replace("DOORS[", f"({json.dumps(named)})[", 1).replace("THEMES", json.dumps(themes), 1)


TEXTS, LANGUAGE = Texts("app"), Texts("language")
COMPRESSIBLE = ("text/", "application/javascript", "application/json", "image/svg+xml")
ELSEWHERE = ("/rope-viz/", "/_stcore/", "/media/")
LEVEL = 9

HERE = Path(__file__).parent

# Until the first script runs the page is empty. This is shown meanwhile, and replaced by the app.
COMING = web.read_inline("coming.html")


# The answer to an address below a page. Streamlit's first page would not find its scripts from there and hang. For an
# unknown address at the level of the pages it opens Home with a banner (navigation.js).
NOWHERE = web.read_inline("nowhere.html")


class Packing:
    """Middleware that compresses Streamlit's static files and completes its first page."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._cache = ByteCache[tuple[str, str], bytes](STATIC_FILE_BYTES)
        # Clients that ask for one file together read it in turn: only the first one reads and compresses it.
        self._locks: defaultdict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            return await self.app(scope, receive, send)
        if target := moved().get(page_of(scope["path"])):
            # Relative to the page, because a proxy may put the app below a path.
            page, tab = target
            query = "&".join(filter(None, (query_of(scope), tab)))
            answer = RedirectResponse(f"{page}?{query}" if query else page, 307)
            return await answer(scope, receive, send)
        asked = Headers(scope=scope)
        takes = takes_gzip(asked) and "range" not in asked
        if not takes or not any(part in scope["path"] for part in ELSEWHERE):
            # Streamlit would compress pages below the root itself, so nothing could be inserted; it also compresses
            # for clients that list gzip only to refuse it.
            scope = {**scope, "headers": [each for each in scope["headers"] if each[0] != b"accept-encoding"]}
        # A first page without a language is in the one that the browser prefers.
        language = find_language(dict(parse_qsl(query_of(scope))), find_preferred(asked.get("accept-language", "")))
        response = BufferedResponse(self, scope, takes, language, send)
        try:
            return await self.app(scope, receive, response)
        finally:
            response.release()

    def find(self, path: str, tag: str) -> bytes | None:
        """Return a compressed file from the cache."""
        return self._cache.get((path, tag))

    async def lock(self, path: str, tag: str) -> asyncio.Lock:
        """Wait until no other client has a file compressed, and return the lock to release."""
        lock = self._locks[path, tag]
        await lock.acquire()
        return lock

    async def packed(self, path: str, tag: str, content: bytes) -> bytes:
        """Return a compressed content, and keep it if it has a tag."""
        found = await run_in_threadpool(functools.partial(gzip.compress, content, LEVEL, mtime=0))
        if tag:
            self._cache.add((path, tag), found, len(found))
            self._locks.pop((path, tag), None)
        return found


class BufferedResponse:
    """One response, buffered in full if it is to be compressed or changed."""

    def __init__(self, packing: Packing, scope: Scope, takes: bool, language: str, send: Send) -> None:
        self.packing, self.path, self.takes, self.language, self.send = packing, scope["path"], takes, language, send
        self.query = query_of(scope)
        self.start: Message | None = None
        self.change: Callable[[bytes], bytes] | None = None
        self.parts: list[bytes] = []
        self.cached: bytes | None = None
        self.lock: asyncio.Lock | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and self._held(message):
            self.start = message
            await self._look_up(Headers(raw=message["headers"]).get("etag", ""))
        elif self.start is None or message["type"] != "http.response.body":
            await self.send(message)
        else:
            if self.cached is None:
                self.parts.append(message.get("body", b""))
            if not message.get("more_body"):
                content = b"".join(self.parts)
                # A client that takes its answer slowly does not hold Streamlit's file as well.
                self.parts.clear()
                await self._finish(self.start, content)

    def release(self) -> None:
        """Let the next client of this file go on."""
        if self.lock is not None:
            self.lock.release()
            self.lock = None

    async def _look_up(self, tag: str) -> None:
        """Find a file in the cache, so that its content need not be read again."""
        if self.change or not tag:
            return
        self.cached = self.packing.find(self.path, tag)
        if self.cached is None:
            self.lock = await self.packing.lock(self.path, tag)
            self.cached = self.packing.find(self.path, tag)
            if self.cached is not None:
                self.release()

    def _held(self, message: Message) -> bool:
        headers = Headers(raw=message["headers"])
        # For an unknown address Streamlit sends the first page with status 404.
        if message["status"] not in (200, 404) or "content-encoding" in headers:
            return False
        kind = headers.get("content-type", "")
        if self.path.endswith("/_stcore/host-config"):
            # After a deep link Streamlit's client first requests this at a wrong address, without JSON.
            self.change = without_error_dialogs if kind.startswith("application/json") else None
        elif kind.startswith("text/html") and "/rope-viz/" not in self.path and not is_scene(self.path):
            with use_language(self.language):
                missing = not_found_page(self.path)
            self.change = missing or self._completed
            if missing:
                message["status"] = 404
        return self.change is not None or (self.takes and "/static/" in self.path and kind.startswith(COMPRESSIBLE))

    def _completed(self, page: bytes) -> bytes:
        name = page_of(self.path) or "home"
        with use_language(self.language):
            tags = link_preview.tags(name, self.query, first_pictures().get(name)) + early_request(name, self.query)
            return complete_first_page(page).replace(b"</head>", f"{tags}</head>".encode(), 1)

    async def _finish(self, start: Message, content: bytes) -> None:
        headers = MutableHeaders(raw=start["headers"])
        tag = "" if self.change else headers.get("etag", "")
        if self.change:
            content = self.change(content)
            # These describe Streamlit's unchanged file.
            del headers["etag"], headers["last-modified"]
        if self.cached is not None or (self.takes and len(content) >= LEAST_COMPRESSED_BYTES):
            content = self.cached or await self.packing.packed(self.path, tag, content)
            self.release()
            headers["content-encoding"] = "gzip"
            headers.add_vary_header("accept-encoding")
        headers["content-length"] = str(len(content))
        await self.send({**start, "headers": headers.raw})
        await self.send({"type": "http.response.body", "body": content})


def without_error_dialogs(settings: bytes) -> bytes:
    """Disable Streamlit's own error dialogs in its settings; the app reports a lost server itself."""
    return json.dumps({**json.loads(settings), "blockErrorDialogs": True}).encode()


def query_of(scope: Scope) -> str:
    """Return the query of a request, still percent-encoded."""
    return str(scope["query_string"].decode("ascii", "replace"))


def page_of(path: str) -> str:
    """Return what a path is below the app's base path."""
    base = str(config.get_option("server.baseUrlPath")).strip("/")
    return path.removeprefix(f"/{base}").strip("/") if base else path.strip("/")


def is_scene(path: str) -> bool:
    """True if a path is a page of its own for a frame: one scene of Learn, or the picture of Home."""
    return re.fullmatch(r"scene/(\d+|home)", page_of(path), re.ASCII) is not None


def not_found_page(path: str) -> Callable[[bytes], bytes] | None:
    """Return a function that makes the 404 page for a path below the app's pages, None for other paths."""
    page = page_of(path)
    if "/" not in page:
        return None
    up = "../" * page.count("/")
    links = (f'<a href="{up}{"" if name == "home" else name}">{title}</a>' for name, title in titles().items())
    text = TEXTS("not_found.text", path=html.escape(short_repr(page)))
    answer = message_page(TEXTS("not_found.title"), text, " · ".join(links))
    return lambda _: answer.encode()


def message_page(title: str, text: str, links: str = "") -> str:
    """Return a small page with a sentence, which needs no session."""
    page = NOWHERE.replace('lang="en"', f'lang="{language_code()}"')
    return page.replace("LINKS", links).replace("TITLE", title).replace("TEXT", text)


@cache_by_language(4)
def complete_first_page(page: bytes) -> bytes:
    """Add the loading message to Streamlit's first page, and drop its early font preloads."""
    text = re.sub(r"<link\s+rel=\"preload\"[^>]*as=\"font\"[^>]*>", "", page.decode("utf-8"))
    root = '<div id="root"></div>'
    if root not in text:
        return page
    return (
        text.replace(root, prerendered_header() + root + loading())
        .replace("<title>Streamlit</title>", "<title>RoPE Viz</title>")
        .replace('<html lang="en">', f'<html lang="{language_code()}">', 1)
        .encode()
    )


@cache_by_language()
def loading() -> str:
    """Return the loading message with its scripts and each page's first picture, by the page's path."""
    named = {"" if name == "home" else name: first_picture(picture) for name, picture in first_pictures().items()}
    needed = {kind: list_needed(kind) for kind in ("", *(kind for _, kind in named.values()))}
    parts = {
        "LOADING": TEXTS("loading.page"),
        "NO_JAVASCRIPT": TEXTS("loading.no_javascript"),
        "ADDRESS": web.read_inline("history.js"),
        "SLEEPING": web.read_inline("sleep.js"),
        "ASLEEP": json.dumps(TEXTS("sessions.asleep")),
        "PICTURES": json.dumps(named),
        "CHOICE_KEYS": json.dumps(read_address.CHOICE_KEYS),
        "EARLY": web.read_inline("preload.js")
        .replace("SCRIPTS", f"{PREFIX}/{version()}")
        .replace("NEEDED", f"({json.dumps(needed)})"),
        "STILL": web.read_inline("placeholder.js"),
        "PICTURE_LABEL": json.dumps(TEXTS("loading.picture")),
        "HEADER_SCRIPT": header_script(),
    }
    return functools.reduce(lambda text, part: text.replace(*part, 1), parts.items(), COMING)


@functools.cache
def first_pictures() -> dict[str, Picture]:
    """Return the first picture of every page that has one."""
    return {name: pictures_on(name)[0] for name in titles() if pictures_on(name)}


@cache_by_language(64)
def early_request(name: str, query: str) -> str:
    """Return a script that requests the page's first picture at once; `picture.js` would do so only after the run.

    It is empty for a query that the picture's address would not have, or that has contents from outside.
    """
    picture = first_pictures().get(name)
    if picture is None or picture.query:  # in a tab that may be closed
        return ""
    page, given = registry.page(picture.page), dict(parse_qsl(query))
    own = {
        key: text for key, text in given.items() if key in read_address.CHOICE_KEYS or key.startswith(f"{page.name}.")
    }
    own.pop(LANGUAGE_KEY, None)  # the current one, and an unknown one is English
    if len(query) > WRITTEN_ADDRESS_CHARACTERS or state.PRESENTED in given or read_address.needs_reading(page, own):
        return ""
    try:
        asked = write_address.query(read_address.read_request(page, own), picture)
    except (KeyError, ValueError):
        return ""
    # As a browser writes a query: it escapes these two the other way round.
    search = urlencode(asked | {"v": version()}).replace("~", "%7E").replace("%2A", "*")
    address = json.dumps(f".{PREFIX}/picture/{picture.address}.packed?{search}")
    return (
        "<script>window.ropeVizEarly = (address => ({ address: new URL(address, location).href, "
        f'answer: fetch(address, {{ priority: "low" }}).catch(() => null) }}))({address})</script>'
    )


def first_picture(picture: Picture) -> list[str]:
    """Describe a page's first picture: its address and the script that draws it."""
    return [picture.address, picture.kind.renderer]
