"""Building blocks of a page: title, controls, pictures and text."""

from __future__ import annotations

import contextlib
import html
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import streamlit as st

from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures import glossary, line_styles, theme
from rope_viz.figures.compared import Compared, compared
from rope_viz.figures.words import plain
from rope_viz.models.variant import MOST, Variant, write_variant
from rope_viz.pages.registry import title_of
from rope_viz.picture.choices import Number, Pick, Several
from rope_viz.picture.page import Page, Picture
from rope_viz.picture.picture_request import Choice, PictureRequest, share_variant
from rope_viz.texts import Texts
from rope_viz.ui import controls as controls_of_model
from rope_viz.ui import state, widgets
from rope_viz.ui.components.picture import place
from rope_viz.ui.notes import warn
from rope_viz.ui.popovers import popover
from rope_viz.ui.session import session


def pin_row(request: PictureRequest, spec: RopeSpec | None = None, others: Sequence[RopeSpec] = ()) -> None:
    """Show a chip for each pinned curve, in its colour and dash, and the button that pins the current one.

    `spec` is the drawn spec if it is not that of the sidebar, `others` are further methods in the figure.
    """
    spec = request.spec if spec is None else spec
    current = share_variant(request.subject._replace(spec=spec))
    curves = compared(spec, others, request.variants, current=current)
    pinned = dict(zip(request.variants, curves[1 + len(others) :], strict=True))
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="pinned", width="content"):
        if pinned:
            st.html(f"<style>{''.join(_chip_style(number, each) for number, each in pinned.items())}</style>")
        for number, each in pinned.items():
            remove = TEXTS("variants.unpin", name=each.label)
            options: dict[str, Any] = {"icon": ":material/close:", "icon_position": "right", "help": remove}
            st.button(plain(each.label), key=f"unpin.{number}", on_click=unpin_curve, args=(number,), **options)
        is_full, is_pinned = len(request.variants) >= MOST, current in request.variants.values()
        label, about = TEXTS("variants.pin"), TEXTS("variants.pin_help")
        blocked = is_full or is_pinned
        options = {"icon": ":material/keep:", "help": about, "disabled": blocked}
        st.button(label, key="pin.curve", on_click=pin_curve, args=(current,), **options)
        if blocked:
            st.caption(TEXTS("variants.full" if is_full else "variants.pinned"))
    if problem := session().problems.pop("pin", ""):
        warn(problem)


def pin_curve(curve: Variant) -> None:
    """Pin a curve under the first free number (a callback)."""
    pinned = state.current_choice().variants
    free = next((number for number in range(1, MOST + 1) if number not in pinned), None)
    try:
        write_variant(curve)
    except ValueError as error:
        session().problems["pin"] = str(error)
        return
    if free is not None:
        state.choose(variants=dict(sorted({**pinned, free: curve}.items())))
        state.frame_too()  # the links of the header carry it


def unpin_curve(number: int) -> None:
    """Remove a pinned curve (a callback)."""
    pinned = state.current_choice().variants
    state.choose(variants={each: curve for each, curve in pinned.items() if each != number})
    state.frame_too()


def _chip_style(number: int, curve: Compared) -> str:
    """Return CSS that gives a chip the colour and dash of its curve, in both themes."""
    strokes = " ".join(f"{length:g}" for length in line_styles.strokes(curve.dash))
    path = f'<path d="M0 2H28" stroke="#000" stroke-width="2.5" stroke-dasharray="{strokes}"/>'
    line = f'<svg xmlns="http://www.w3.org/2000/svg" width="28" height="4">{path}</svg>'
    chip = f".st-key-unpin-{number}"
    return (
        f'{chip} {{ --rv-curve: {curve.colour}; --rv-line: url("data:image/svg+xml,{quote(line)}") }}'
        f'[data-theme="dark"] {chip} {{ --rv-curve: {theme.DARK[curve.colour]} }}'
    )


TEXTS = Texts("app")


def picture_request(page: Page) -> PictureRequest:
    """Return the model and the choices of a page, for its text and code."""
    return state.picture_request(page.name)


def start(title: str, sentence: str = "", *, says: Picture | None = None) -> None:
    """Show the page's title and, below it, `sentence` or the sentence of the picture `says`."""
    st.title(title, anchor=False)
    _say(sentence, says)


def controls(*choices: Choice[Any]) -> None:
    """Show the widgets of those choices that currently apply.

    Neighbouring sliders share one component, because each component costs a run as much as a picture.
    """
    for sliders, group in itertools.groupby(choices, lambda choice: isinstance(choice, Number)):
        each = list(group)
        if sliders:
            widgets.sliders([choice for choice in each if isinstance(choice, Number)], _now(each[0]))
            continue
        for choice in each:
            widgets.control(choice, _now(choice))


def control_row(*choices: Choice[Any]) -> None:
    """Show widgets side by side; they wrap on a small screen."""
    with row():
        controls(*choices)


@contextlib.contextmanager
def main_figure() -> Iterator[None]:
    """Put the title, a row of controls and the main figure inside; on a phone the figure comes first and stays."""
    with st.container(key="main"):
        yield


def figure_row(*, has_labels: bool = False) -> Any:
    """Return the one row of controls above the main figure; on a phone it scrolls sideways."""
    align: Any = "bottom" if has_labels else "center"
    return st.container(key="figure-row", horizontal=True, vertical_alignment=align, gap="small")


def tabs(choice: Pick[Any]) -> tuple[Any, Any]:
    """Show the options of a choice as tabs; return the open one's name and container. The others are not computed."""
    request = _now(choice)
    key, default = f"choice.{choice.key}", choice.default(request)
    st.session_state[key] = choice.options[request[choice]]

    def opened() -> None:
        label = st.session_state[key]
        name = next((name for name, each in choice.options.items() if each == label), default)
        state.set_param(choice.key, name, default=default)

    found = dict(zip(choice.options, st.tabs(list(choice.options.values()), key=key, on_change=opened), strict=True))
    name = next((name for name, tab in found.items() if tab.open), request[choice])
    return name, found[name]


def more_controls(key: str, *choices: Choice[Any]) -> None:
    """Show the widgets of those choices that currently apply in a popover; its label is an entry of the app's texts."""
    shown = [choice for choice in choices if choice.when(_now(choice))]
    if shown:
        with popover(TEXTS(f"controls.{key}"), f"more-{key}"):
            for choice in shown:
                if isinstance(choice, Pick | Several):
                    st.caption(choice.label)
                controls(choice)


def _now(choice: Choice[Any]) -> PictureRequest:
    return state.picture_request(choice.key.partition(".")[0])


def show(picture: Picture) -> None:
    """Reserve the place of a picture. The browser requests the picture itself by its address."""
    at = state.picture_request(picture.page)
    if not picture.refuses(at):
        place(picture, at)


def legend(sentence: str) -> None:
    """Show one line that explains the marks of a picture."""
    marked = glossary.linked_html(html.escape(sentence), terms=glossary.SLUG)
    st.html(f'<p class="rv-legend">{marked}</p>')


def next_page_link(name: str, label: str) -> None:
    """Show the link to the next page, with the same model."""
    link(name, f"{label} →")


def words() -> None:
    """Show the whole glossary, at the end of a page."""
    with st.expander(TEXTS("glossary"), key="words"):
        st.markdown("\n".join(f"- **{term}**: {sentence}" for term, sentence in glossary.meanings().items()))


def mobile_knobs(*names: str) -> None:
    """Show these knobs below the picture on a narrow screen, where the sidebar covers it."""
    controls_of_model.mobile_knobs(names)


def mobile_sliders(*choices: Number) -> None:
    """Show these sliders of the page below the picture on a narrow screen, where the sidebar has none."""
    widgets.sliders(choices, _now(choices[0]), under=True)


def explain(name: str) -> None:
    """Show the explanation below the figures; its code blocks wrap and can be copied."""
    parts = re.split(r"```(\w+)\n(.*?)```", Texts(name).entries["explain.text"], flags=re.DOTALL)
    # Between two code blocks: a text, the language of the next block, and the block.
    for words, language, source in itertools.zip_longest(parts[::3], parts[1::3], parts[2::3]):
        if words.strip():
            st.markdown(glossary.linked(words))
        if source is not None:
            code(source.rstrip(), language)


def end(name: str) -> None:
    """Show the explanation of a page and the whole glossary, at its end."""
    explain(name)
    words()


def section(title: str, sentence: str = "", *, says: Picture | None = None) -> None:
    """Show a second-level heading and, below it, `sentence` or the sentence of the picture `says`."""
    st.header(title, anchor=False)
    _say(sentence, says)


def picture_sentence(picture: Picture) -> None:
    """Reserve a place for a picture's sentence, without a heading."""
    _say("", picture)


def paragraph(sentence: str) -> None:
    """Show a sentence."""
    st.markdown(sentence)


def row() -> Any:
    """Return a row for a few controls; it wraps on a small screen."""
    return st.container(horizontal=True, vertical_alignment="center", gap="medium")


def columns() -> Any:
    """Return two columns; they stack on a small screen."""
    return st.columns(2, gap="medium")


def link(
    name: str, label: str = "", query: Mapping[str, str] | None = None, *, more: Mapping[str, str] | None = None
) -> None:
    """Show a link to a page of the app, opened in the same tab; its label is the page's title by default.

    It carries the current choice, or `query` instead, and in addition `more`, choices of the linked page.
    """
    at = (state.address() if query is None else dict(query)) | dict(more or {})
    st.page_link(state.page(name), label=label or title_of(name), query_params=at)


def code(source: str, language: str = "python") -> None:
    """Show code to copy, with the colours of its language."""
    st.code(source, language=language, wrap_lines=True)


def badge(text: str) -> None:
    """Show a fact about the current model as a badge."""
    st.badge(text)


def _say(sentence: str, says: Picture | None) -> None:
    if sentence:
        st.markdown(glossary.linked(sentence))
    if says is not None:
        refusal = says.refuses(state.picture_request(says.page))
        if refusal:
            st.markdown(refusal)
        else:
            st.html(f'<p class="rv-says" data-says="{says.address}"></p>')
