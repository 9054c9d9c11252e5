"""The pieces a page is made of: its head, its figures with their downloads, its text."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from rope_viz.spec import RopeSpec
from rope_viz.ui import controls, state
from rope_viz.ui.chart import chart
from rope_viz.ui.chart import view as chart_view
from rope_viz.ui.clocks import LAST_POSITION, STARTS
from rope_viz.ui.clocks import clocks as show_clocks


def head(title: str, sentence: str) -> RopeSpec:
    """The page's title and the sentence that says what to look for; gives the current spec."""
    start(title)(sentence)
    return state.chosen().spec


def start(title: str) -> Callable[[str], Any]:
    """The page's title and a place for its sentence, which may depend on controls below: call it with the text."""
    st.title(title, anchor=False)
    place = st.container()
    return place.markdown


def spec() -> RopeSpec:
    """The current spec."""
    return state.chosen().spec


def pin() -> int | None:
    """The pinned pair."""
    return state.chosen().pin


def live() -> bool:
    """Whether a knob is moving right now."""
    return state.chosen().live


def show(fig: go.Figure, key: str, title: str, **options: Any) -> None:
    """A figure with its toolbar; `title` is what a screen reader says, `options` are those of `ui.chart.chart`."""
    now = state.chosen()
    options.setdefault("on_pin", toggle_pin)
    file = f"rope-{key.replace('.', '-')}_{now.file}"
    chart(fig, key=key, title=title, file=file, spec=now.spec_json, quick=now.live, **options)


def clocks(key: str, **options: Any) -> None:
    """The turning pairs; where they rest stands in the address. `options` are those of `ui.clocks.clocks`."""
    now = state.chosen()
    at, begin = f"{key.partition('.')[0]}.at", STARTS[options.get("mode", "turn")]
    show_clocks(
        now.spec,
        key=key,
        file=f"rope-{key.replace('.', '-')}_{now.file}",
        pin=now.pin,
        on_pin=toggle_pin,
        start=_positions(state.local(at)),
        on_rest=lambda m, n: state.keep(at, f"{m},{n}", default=",".join(map(str, begin.values()))),
        **options,
    )


def toggle_pin(pair: int) -> None:
    """Pin a pair, or let go of the one that is pinned."""
    state.choose(pin=None if pair == state.chosen().pin else pair)


def view(key: str, full: tuple[float, float]) -> tuple[float, float] | None:
    """The x range the reader has zoomed a figure to, None for all of it."""
    return chart_view(key, full)


@functools.cache
def text(name: str) -> str:
    """A text from `ui/texts`, Markdown with formulas; its lines are joined."""
    return (Path(__file__).parent / "texts" / f"{name}.md").read_text(encoding="utf-8")


def explain(name: str) -> None:
    """Text below the figures: what is shown and why, with its reference; code in it wraps and can be copied."""
    for index, part in enumerate(re.split(r"```python\n(.*?)```", text(name), flags=re.DOTALL)):
        if index % 2:
            code(part.rstrip())
        elif part.strip():
            st.markdown(part)


def starts(points: Sequence[tuple[str, str, str, str]]) -> None:
    """Start points (name, story, page, model): links to a model on the page where its story shows."""
    section("Start with a model")
    for index in range(0, len(points), 3):
        for column, (name, story, where, model) in zip(st.columns(3), points[index : index + 3], strict=False):
            column.markdown(f"[**{name}**](/{where}?model={model})  \n{story}")


def questions(answers: Mapping[str, str]) -> None:
    """What each page answers, by its address."""
    section("What each page answers")
    lines = [f"- [**{where.capitalize()}**](/{where}): {question}" for where, question in answers.items()]
    st.markdown("\n".join(lines))


def section(title: str, sentence: str = "") -> None:
    """A second heading with what to look for."""
    st.header(title, anchor=False)
    if sentence:
        st.markdown(sentence)


def follow(draw: Callable[[], None]) -> Callable[[], None]:
    """Draw a part of the page now, and it alone again while a knob of the sidebar moves: the sentence and its figure.

    A decorator. The part must ask `spec()`, `pin()` and `live()` itself; what it takes from around it stands still.
    The knobs are drawn with it: a widget runs again the fragment that drew it, and only that.
    """

    def part() -> None:
        if state.settling():
            state.settle(False)
            st.rerun()
        controls.knob_columns()
        draw()

    st.session_state["follows"] = True
    st.fragment(part, key=state.PICTURE)()
    return draw


def say(sentence: str) -> None:
    """A sentence under the last thing shown."""
    st.markdown(sentence)


def row() -> Any:
    """A line of a page's own few controls; wraps on a small screen."""
    return st.container(horizontal=True, vertical_alignment="center", gap="medium")


def columns(*shares: int) -> Any:
    """Columns beside each other with these shares of the width; below each other on a small screen."""
    return st.columns(shares, gap="medium")


def lines(*texts: str) -> None:
    """Short statements, one below the other."""
    st.markdown("\n".join(f"- {text}" for text in texts))


def code(source: str) -> None:
    """Python to copy."""
    st.code(source, language="python", wrap_lines=True)


def badge(text: str) -> None:
    """A fact about the current model, set apart."""
    st.badge(text)


def _positions(written: str | None) -> tuple[int, int] | None:
    """The positions of query and key in a link, None where it holds none."""
    words = (written or "").split(",")
    if len(words) != 2 or not all(word.isdecimal() and len(word) < 9 for word in words):
        return None
    m, n = (min(int(word), LAST_POSITION) for word in words)
    return m, n
