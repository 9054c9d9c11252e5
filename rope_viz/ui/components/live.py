"""The pictures that follow a moving knob: the browser asks for them on a route of ours, without a run of the page.

On every run a page registers how its pictures are drawn from a `Now`. While a knob moves, `live.js` asks `answer` for
the pictures in view, one after the other, with the value under the hand; the session changes on release only.
"""

from __future__ import annotations

import dataclasses
import secrets
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import streamlit as st
from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.responses import Response

from rope_viz.configs import link
from rope_viz.embedding.spec import Knob, RopeSpec, knobs, require_number
from rope_viz.ui import state
from rope_viz.ui.components.chart import View, clipped


@dataclass(frozen=True)
class Now:
    """What a picture is drawn from: the choice as it rests, or (`live`) as a knob under the hand would make it.

    A function that draws takes all of the reader's choice from here, for it also runs where there is no session.
    """

    chosen: state.Chosen
    own: dict[str, float] = field(default_factory=dict)
    views: dict[str, Any] = field(default_factory=dict)
    live: bool = False

    @property
    def spec(self) -> RopeSpec:
        """The current spec."""
        return self.chosen.spec

    @property
    def pin(self) -> int | None:
        """The pinned pair."""
        return self.chosen.pin

    def knob(self, key: str) -> int:
        """The value of one of the page's own knobs that count."""
        return int(self.own[key])

    def view(self, key: str, full: View) -> View | None:
        """The x range the reader has zoomed a figure to, None where the whole of `full` is shown."""
        if not self.live:
            self.views[key] = st.session_state.get(key)
        return clipped(self.views.get(key), full)


class Picture(Protocol):
    """What a page can show while a knob moves."""

    @property
    def sentence(self) -> str:
        """What to look for, with the current numbers in it."""

    def mount(self, now: Now, name: str) -> None:
        """Put it on the page under this name."""

    def packed(self, now: Now, name: str) -> bytes:
        """The message that redraws it."""


Draw = Callable[[Now], Picture]


@dataclass(frozen=True)
class Shown:
    """What a run shows: the choice it rests on, the page's own knobs, and how its pictures are drawn."""

    resting: Now
    knobs: dict[str, Knob] = field(default_factory=dict)
    draws: dict[str, Draw] = field(default_factory=dict)


@dataclass(eq=False)
class Reader:
    """One reader, by a name that cannot be guessed, and what the last run showed."""

    token: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    runs: int = 0
    shown: Shown | None = None


# A reader is held by the session alone, and with it gone.
_readers: weakref.WeakValueDictionary[str, Reader] = weakref.WeakValueDictionary()


def reader() -> Reader:
    """The reader of this session."""
    found = st.session_state.get("reader")
    if not isinstance(found, Reader):
        found = st.session_state["reader"] = Reader()
        _readers[found.token] = found
    return found


def begin() -> None:
    """Forget what the last run showed: the page is about to register its own."""
    reader().runs += 1
    # All at once: an answer on another thread has what the one run showed, or the other.
    reader().shown = Shown(Now(state.chosen()))


def shown() -> Shown:
    """What this run shows so far."""
    found = reader().shown
    assert found is not None, "the frame calls begin() before the page"
    return found


def add_knob(key: str, knob: Knob, value: float) -> None:
    """Register one of the page's own knobs, so that pictures can ask for it and follow it."""
    shown().knobs[key] = knob
    shown().resting.own[key] = value


def moved(shown: Shown, name: str, written: str) -> Now:
    """The choice with one knob somewhere else; raises `ValueError` for what that knob cannot give."""
    resting = shown.resting
    spec = resting.spec
    knob = (knobs(spec) | knobs(spec.scaling) | shown.knobs).get(name)
    if knob is None:
        raise ValueError(f"{name} is no knob of this page")
    value = link.number(written)
    require_number(value, knob.label, least=knob.low, most=knob.high, integer=knob.integer)
    if name in shown.knobs:
        return dataclasses.replace(resting, own=resting.own | {name: value}, live=True)
    spec = link.moved(spec, name, value)
    pin = resting.pin if resting.pin is not None and resting.pin < spec.pairs else None
    return dataclasses.replace(resting, chosen=dataclasses.replace(resting.chosen, spec=spec, pin=pin), live=True)


AT_ONCE = CapacityLimiter(2)


async def answer(request: Request) -> Response:
    """The route: few pictures at a time, so that readers who drag leave the runs of all others their share."""
    return await to_thread.run_sync(drawn, request, limiter=AT_ONCE)


def drawn(request: Request) -> Response:
    """One picture with one knob moved; nothing where the page has gone on or the value cannot be."""
    reader = _readers.get(request.path_params["token"])
    name, asked = request.path_params["name"], request.query_params
    now = reader.shown if reader is not None else None
    draw = now.draws.get(name) if now is not None else None
    if now is None or draw is None:
        return Response(status_code=204)
    try:
        at = moved(now, asked.get("knob", ""), asked.get("value", ""))
        content = draw(at).packed(at, name)
    except ValueError:
        return Response(status_code=204)
    return Response(content, media_type="application/octet-stream", headers={"cache-control": "no-store"})
