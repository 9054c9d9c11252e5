"""The language of a page: the one that its address names, else the one that the browser prefers."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl

import streamlit as st
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit.runtime.scriptrunner import get_script_run_ctx

from rope_viz.picture.read_address import LANGUAGE_KEY
from rope_viz.texts import languages, use_language
from rope_viz.ui.session import session


def find_language(query: Mapping[str, str], preferred: str = languages.ENGLISH) -> str:
    """Return the language that a query names, `preferred` if it names none, English if there are no texts in it."""
    named = query.get(LANGUAGE_KEY, preferred)
    return named if named in languages.list_languages() else languages.ENGLISH


def find_preferred(accepted: str) -> str:
    """Return the first language of an Accept-Language header that there are texts in, English if there is none."""
    weights: dict[str, float] = {}
    for each in accepted.lower().split(","):
        name, _, weight = each.partition(";q=")
        try:
            weights.setdefault(name.strip().partition("-")[0], float(weight or 1.0))
        except ValueError:
            continue
    known = [name for name in languages.list_languages() if weights.get(name, 0.0) > 0.0]
    return max(known, key=lambda name: weights[name], default=languages.ENGLISH)


def read_language() -> str:
    """Return the language of the running page, and remember it for the session's callbacks and links.

    An address without a language is in that of the session's page before it; a first one is in the browser's.
    """
    mine = session()
    mine.preferred_language = mine.preferred_language or find_preferred(st.context.headers.get("accept-language") or "")
    mine.language = find_language(st.query_params.to_dict(), mine.language or mine.preferred_language)
    return mine.language


def write_language() -> dict[str, str]:
    """Return the language as a query: empty where English is what the browser would get anyway."""
    mine = session()
    is_usual = {mine.language, mine.preferred_language} <= {languages.ENGLISH, ""}
    return {} if is_usual else {LANGUAGE_KEY: mine.language}


def find_session_language() -> str:
    """Return the language of the session whose callback runs on this thread, else the usual one."""
    context = get_script_run_ctx(suppress_warning=True)
    return "" if context is None else session().language


languages.FALLBACK = find_session_language


class Languages:
    """Middleware: what a request's answer says is in the language that the query names, else in English."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        query = dict(parse_qsl(scope.get("query_string", b"").decode("ascii", "replace")))
        with use_language(find_language(query)):
            await self.app(scope, receive, send)
