"""The pieces a page is made of: its head, its figures with their downloads, its text."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator as Place

from rope_viz.embedding.spec import RopeSpec
from rope_viz.pictures import kinds, registry
from rope_viz.pictures.choices import Choice
from rope_viz.pictures.page import Picture
from rope_viz.ui import state, tables, widgets
from rope_viz.ui.components import live
from rope_viz.ui.pictures import Clocks, Figure, Sentence, prose

Now = live.Now
__all__ = ["Clocks", "Figure", "Now", "Sentence"]


def start(title: str, sentence: str = "", *, says: Picture | None = None) -> Place:
    """The page's title and, below it, a sentence: its own, or that of a picture, which may be shown further down."""
    st.title(title, anchor=False)
    return _place(sentence, says)


def spec() -> RopeSpec:
    """The current spec."""
    return state.chosen().spec


def follow(place: Place | None = None) -> Callable[[live.Draw], live.Draw]:
    """Show a picture that also follows a knob of the sidebar or of the page while it moves.

    A decorator of the function that draws it, which is called now, and again when a knob moves, but then without a
    session: what depends on the choice it must take from the `Now` it gets. Its sentence stands in `place` or above.
    """

    def show(draw: live.Draw) -> live.Draw:
        name, shown = draw.__name__, live.shown()
        picture = draw(shown.resting)
        shown.draws[name] = draw
        if picture.sentence:
            # The number of the run makes every run say it anew, whatever was said while a knob moved.
            alone = f' data-picture="{name}"' if isinstance(picture, Sentence) else ""
            names = f'data-says="{name}" data-run="{live.reader().runs}"{alone}'
            (place or st).html(f'<p class="rv-says" {names}>{prose(picture.sentence)}</p>')
        picture.mount(shown.resting, name)
        return draw

    return show


def controls(*choices: Choice[Any]) -> None:
    """The widgets of some of the page's choices."""
    if choices:
        now = state.now(registry.page(choices[0].key.partition(".")[0]))
        for choice in choices:
            widgets.control(choice, now)


def show(picture: Figure | Picture) -> None:
    """The place of a picture of this page; or a figure that no knob changes."""
    if isinstance(picture, Figure):
        picture.mount(live.shown().resting, "")
        return
    of = registry.page(picture.page)
    resting = state.now(of)
    place = st.session_state.get("places", {}).get(picture.address)

    def draw(now: live.Now) -> live.Picture:
        own = {**resting.values} | {key: value for key, value in now.own.items() if key in resting.values}
        at = dataclasses.replace(resting, spec=now.spec, pin=now.pin, coarse=now.live)
        drawn = picture(registry.settle(at, of.choices, own))
        if isinstance(drawn, kinds.Table):
            return Sentence(drawn.sentence)
        assert isinstance(drawn, kinds.Figure)
        key = f"{picture.page}.{drawn.variant or picture.name}"
        return Figure(drawn.fig, key, drawn.title, drawn.sentence, picture.zooms, drawn.pins)

    draw.__name__ = picture.name
    follow(place)(draw)
    if picture.kind is kinds.Table:
        drawn = picture(resting)
        assert isinstance(drawn, kinds.Table)
        tables.table(drawn.columns, picture.name, height=picture.height)


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


def section(title: str, sentence: str = "", *, says: Picture | None = None) -> Place:
    """A second heading and, below it, a sentence: its own, or that of a picture, which may be shown further down."""
    st.header(title, anchor=False)
    return _place(sentence, says)


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


def _place(sentence: str, says: Picture | None) -> Place:
    place = st.container()
    if sentence:
        place.markdown(sentence)
    if says is not None:
        st.session_state.setdefault("places", {})[says.address] = place
    return place
