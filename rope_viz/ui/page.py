"""The pieces a page is made of: its head, its controls, the places of its pictures, its text."""

from __future__ import annotations

import functools
import html
import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from rope_viz.figures.words import glossary
from rope_viz.pictures.choices import Number
from rope_viz.pictures.page import Page, Picture
from rope_viz.pictures.picture_request import Choice, Now
from rope_viz.pictures.registry import PAGES
from rope_viz.ui import controls as controls_of_model
from rope_viz.ui import state, widgets
from rope_viz.ui.components.picture import place


def now(page: Page) -> Now:
    """The model and the choices of a page, for what is no picture: text and code."""
    return state.now(page.name)


def start(title: str, sentence: str = "", *, says: Picture | None = None) -> None:
    """The page's title and, below it, a sentence: its own, or that of a picture, which may be shown further down."""
    st.title(title, anchor=False)
    _say(sentence, says)


def controls(*choices: Choice[Any]) -> None:
    """The widgets of some of the page's choices, of each where it has a meaning beside the rest.

    Sliders beside each other are one component: each would cost a run as much as a picture's place.
    """
    for sliders, group in itertools.groupby(choices, lambda choice: isinstance(choice, Number)):
        each = list(group)
        if sliders:
            widgets.sliders([choice for choice in each if isinstance(choice, Number)], _now(each[0]))
            continue
        for choice in each:
            widgets.control(choice, _now(choice))


def _now(choice: Choice[Any]) -> Now:
    return state.now(choice.key.partition(".")[0])


def show(picture: Picture) -> None:
    """The place of a picture. Nothing is drawn by a run: the browser asks for it, by its address."""
    at = state.now(picture.page)
    if not picture.refuses(at):
        place(picture, at)


def legend(sentence: str) -> None:
    """What the marks of the picture mean, in a line beside it; the long text stands below."""
    marked = glossary.linked_html(html.escape(sentence), terms=glossary.WORDS)
    st.html(f'<p class="rv-legend">{marked}</p>')


def onward(name: str, label: str) -> None:
    """The page's one next step, with the same model."""
    link(name, f"{label} →")


def words() -> None:
    """All words of the field, at the end of a page."""
    with st.expander("Words", key="words"):
        st.markdown("\n".join(f"- **{term}**: {sentence}" for term, sentence in glossary.WORDS.items()))


def under(*names: str) -> None:
    """On a narrow screen, where the sidebar covers the picture: the knobs of the model that matter for it."""
    controls_of_model.under(names)


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
            st.markdown(glossary.linked(part))


def starts(points: Sequence[tuple[str, str, str, str]]) -> None:
    """Start points (name, story, page, model): links to a model on the page where its story shows."""
    section("Start with a model")
    for index in range(0, len(points), 3):
        for column, (name, story, where, model) in zip(st.columns(3), points[index : index + 3], strict=False):
            column.markdown(f"[**{name}**](/{where}?model={model})  \n{story}")


def questions(answers: Mapping[str, str]) -> None:
    """What each page answers, by its address."""
    section("What each page answers")
    st.markdown("\n".join(f"- [**{PAGES[where]}**](/{where}): {question}" for where, question in ordered(answers)))


def ordered(answers: Mapping[str, str]) -> list[tuple[str, str]]:
    """The pages in the order of the menu."""
    return sorted(answers.items(), key=lambda each: list(PAGES).index(each[0]))


def section(title: str, sentence: str = "", *, says: Picture | None = None) -> None:
    """A second heading and, below it, a sentence: its own, or that of a picture, which may be shown further down."""
    st.header(title, anchor=False)
    _say(sentence, says)


def says(picture: Picture) -> None:
    """The place of a picture's sentence, where it stands under no heading."""
    _say("", picture)


def say(sentence: str) -> None:
    """A sentence under the last thing shown."""
    st.markdown(sentence)


def row() -> Any:
    """A line of a page's own few controls; wraps on a small screen."""
    return st.container(horizontal=True, vertical_alignment="center", gap="medium")


def columns(*shares: int) -> Any:
    """Columns beside each other with these shares of the width; below each other on a small screen."""
    return st.columns(shares, gap="medium")


def link(
    name: str, label: str, query: Mapping[str, str] | None = None, *, more: Mapping[str, str] | None = None
) -> None:
    """A link to a page of the app, in the same tab: the choice goes along, or is what `query` says.

    `more` are choices of that page that it opens with.
    """
    at = (state.link_query() if query is None else dict(query)) | dict(more or {})
    st.page_link(state.page(name), label=label, query_params=at)


def lead(name: str, label: str) -> None:
    """The one button of a page that leads to another."""
    if st.button(f"**{label}**", key=f"lead.{name}"):
        st.switch_page(state.page(name))


def code(source: str) -> None:
    """Python to copy."""
    st.code(source, language="python", wrap_lines=True)


def badge(text: str) -> None:
    """A fact about the current model, set apart."""
    st.badge(text)


def _say(sentence: str, says: Picture | None) -> None:
    if sentence:
        st.markdown(glossary.linked(sentence))
    if says is not None:
        refusal = says.refuses(state.now(says.page))
        if refusal:
            st.markdown(refusal)
        else:
            st.html(f'<p class="rv-says" data-says="{says.address}"></p>')
