"""The kinds of pictures on a page: a figure, the clocks, a sentence; mounted by a run, sent while a knob moves."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import dataclass

import plotly.graph_objects as go

from rope_viz.figures import theme
from rope_viz.ui import state
from rope_viz.ui.components import chart, clocks
from rope_viz.ui.components.live import Now

Pin = Callable[[int], None]


def toggle_pin(pair: int) -> None:
    """Pin a pair, or let go of the one that is pinned."""
    state.choose(pin=None if pair == state.chosen().pin else pair)


@dataclass(frozen=True)
class Sentence:
    """A sentence with the current numbers in it."""

    sentence: str

    def mount(self, now: Now, name: str) -> None:
        """Its place on the page is all there is of it."""

    def packed(self, now: Now, name: str) -> bytes:
        """The message that says it anew."""
        return chart.framed({"sentence": prose(self.sentence)})


@dataclass(frozen=True)
class Figure:
    """A figure with its toolbar and the sentence that says what to look for.

    `key` is its own among all figures, and the stem of its downloads; `title` is its accessible name. `zooms` sends the
    visible x range back (`Now.view`; the figure's own range stays the whole one, to which a reset leads); `pins` names
    the axis ("x" or "y") whose value is what a click hands to `on_pin`: the pair, to be pinned.
    """

    fig: go.Figure
    key: str
    title: str
    sentence: str = ""
    zooms: bool = False
    pins: str = ""
    on_pin: Pin = toggle_pin

    def mount(self, now: Now, name: str) -> None:
        """Draw it on the page."""
        chart.mount(self.key, self.packed(now, name), height=int(self.fig.layout.height), on_pin=self.on_pin)

    def packed(self, now: Now, name: str) -> bytes:
        """The message that redraws it."""
        message = {
            "picture": name,
            "sentence": prose(self.sentence),
            "title": self.title,
            "file": file(self.key, now),
            "spec": now.chosen.spec_json,
            "zooms": self.zooms,
            "pins": self.pins,
            "twins": theme.DARK,
        }
        return chart.pack(self.fig, message, quick=now.live)


@dataclass(frozen=True)
class Clocks:
    """The turning pairs and the sentence over them; where they rest stands in the address."""

    key: str
    sentence: str = ""
    mode: str = "turn"
    plain: bool = True
    compact: bool = False

    def mount(self, now: Now, name: str) -> None:
        """Draw them on the page."""
        at, begin = f"{self.key.partition('.')[0]}.at", clocks.STARTS[self.mode]
        clocks.mount(
            self.key,
            self._message(now, name, _positions(state.local(at))),
            on_pin=toggle_pin,
            on_rest=lambda m, n: state.keep(at, f"{m},{n}", default=",".join(map(str, begin.values()))),
        )

    def packed(self, now: Now, name: str) -> bytes:
        """The message that redraws them; the hands stay where they are."""
        return chart.framed(self._message(now, name, None) | {"sentence": prose(self.sentence)})

    def _message(self, now: Now, name: str, start: tuple[int, int] | None) -> dict[str, object]:
        return clocks.message(
            now.spec,
            file=file(self.key, now),
            pin=now.pin,
            mode=self.mode,
            plain=self.plain,
            compact=self.compact,
            start=start,
        ) | {"picture": name}


def file(key: str, now: Now) -> str:
    """The stem of a picture's downloads."""
    return f"rope-{key.replace('.', '-')}_{now.chosen.file}"


def prose(sentence: str) -> str:
    """A sentence as HTML: of Markdown it has **bold**, *emphasis* and `code` only."""
    out, end = [], 0
    for found in MARKS.finditer(sentence):
        code, bold, emphasis = found.groups()
        tag = "code" if code else "strong" if bold else "em"
        inner = html.escape(code) if code else prose(bold or emphasis)
        out.append(f"{html.escape(sentence[end : found.start()])}<{tag}>{inner}</{tag}>")
        end = found.end()
    return "".join([*out, html.escape(sentence[end:])])


MARKS = re.compile(r"`([^`]+)`|\*\*(.+?)\*\*|\*(\S.*?)\*")


def _positions(written: str | None) -> tuple[int, int] | None:
    """The positions of query and key in a link, None where it holds none."""
    words = (written or "").split(",")
    if len(words) != 2 or not all(word.isdecimal() and len(word) < 9 for word in words):
        return None
    m, n = (min(int(word), clocks.LAST_POSITION) for word in words)
    return m, n
