"""The widget of each kind of choice, created from its declaration; its value is stored in the address."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from rope_viz.figures.words import plain
from rope_viz.pages import registry
from rope_viz.picture import choices as picture_choices
from rope_viz.picture.choices import (
    Borders,
    Menu,
    Number,
    Pick,
    Pieces,
    Several,
    StoredChoice,
    Switch,
    TextLine,
    clean_line,
)
from rope_viz.picture.picture_request import Choice, PictureRequest
from rope_viz.storage.limits import TEXT_FIELD_CHARACTERS
from rope_viz.texts import Texts
from rope_viz.ui import state
from rope_viz.ui.components import navigation
from rope_viz.ui.components.knob import knobs
from rope_viz.ui.components.prompt import prompt
from rope_viz.ui.components.sections import sections
from rope_viz.ui.notes import warn
from rope_viz.ui.popovers import record_shown
from rope_viz.ui.session import session
from rope_viz.ui.visitors import take_upload

TEXTS = Texts("app")
SLIDER, GAP = 300, 16
"""Pixels: the width of a slider, and the gap to the next."""


def control(choice: Choice[Any], request: PictureRequest) -> None:
    """Show the widget of a choice that is not a number, if the choice currently applies."""
    if not choice.when(request):
        return
    key = f"choice.{choice.key}"
    value, default = request[choice], choice.text(choice.default(request))

    def keep(value: Any) -> None:
        state.set_param(choice.key, choice.text(value), default=default)
        page = registry.page(choice.key.partition(".")[0])
        if page.sees(state.picture_request(page.name)) != page.sees(request):
            state.frame_too()  # the sidebar shows only what the page depends on

    def changed() -> None:
        if is_old():
            return
        new = st.session_state[key]
        if isinstance(choice, Several):
            # Hidden options stay selected.
            new = (*new, *(name for name in value if name not in choice.visible(request)))
        # After a restart the server may receive a label that its predecessor offered.
        with contextlib.suppress(ValueError):
            keep(choice.parse(choice.text(tuple(new) if isinstance(new, list) else new)))

    if isinstance(choice, StoredChoice):
        return _texts_or_file(choice, request)
    if isinstance(choice, Borders):
        return _bar(choice, request, keep)
    if isinstance(choice, Pieces):
        return _pieces(choice, request, keep)
    st.session_state[key] = list(value) if isinstance(value, tuple) else value
    is_old = record_shown(key)
    options: dict[str, Any] = {"key": key, "on_change": changed, "help": choice.help or None}
    unlabelled = {**options, "label_visibility": "collapsed"}
    if isinstance(choice, Pick):
        shown = choice.shown(request)
        names, show = list(shown), shown.__getitem__
        if choice.menu:
            st.selectbox(choice.label, names, format_func=show, width=choice.menu, **options)
        else:
            st.segmented_control(choice.label, names, required=True, format_func=show, **unlabelled)
    elif isinstance(choice, Menu):
        entries = choice.entries(request)
        names, show = list(entries), entries.__getitem__
        if len(names) < 3:
            st.segmented_control(choice.label, names, required=True, format_func=show, **options)
        else:
            st.selectbox(choice.label, names, format_func=show, width=choice.width, **options)
    elif isinstance(choice, Several):
        shown = choice.visible(request)
        if not shown:
            return
        st.session_state[key] = [name for name in value if name in shown]
        show = shown.__getitem__
        st.pills(choice.label, list(shown), selection_mode="multi", format_func=show, **unlabelled)
    elif isinstance(choice, Switch):
        st.toggle(choice.label, **options)
    elif isinstance(choice, TextLine):
        _line(choice, keep, key)


def sliders(choices: Sequence[Number], request: PictureRequest, *, under: bool = False) -> None:
    """Show the sliders of one page's numbers that currently apply, side by side where there is room.

    `under`: show them only on a narrow screen, one at a time at the bottom edge.
    """
    shown = {choice.name: choice for choice in choices if choice.when(request)}
    if not shown:
        return

    def keep(name: str, value: Any) -> None:
        choice = shown[name]
        if choice.shared:
            state.set_size(choice.shared, value)
            return
        # A default that depends on the model may be another one tomorrow: what was typed is kept in any case.
        default = "" if callable(choice.usual) else choice.text(choice.default(request))
        state.set_param(choice.key, choice.text(value), default=default)

    page = choices[0].key.partition(".")[0]
    ends = {name: (choice.ends(request), request[choice]) for name, choice in shown.items()}
    if under:
        knobs("under", ends, keep, page=page, under=True)
        return
    with st.container(width=SLIDER * len(shown) + GAP * (len(shown) - 1)):
        knobs(f"knob.{choices[0].key}", ends, keep, page=page, across=True)


def _bar(choice: Borders, request: PictureRequest, keep: Callable[[Any], None]) -> None:
    def changed(text: str) -> None:
        with contextlib.suppress(ValueError):  # the bar's own values always parse
            keep(choice.resolve(choice.parse(text), request))

    with st.container(width=520):
        counts: tuple[int, ...] = request[choice]
        sections(choice.key, dict(zip(choice.shares(request), counts, strict=True)), changed)


def _texts_or_file(choice: StoredChoice[Any], request: PictureRequest) -> None:
    """Show text fields or a file box; unusable content stays, with a warning that says why it is not shown."""
    if choice.suffixes:
        _file(choice)
    elif choice.typed is not None:
        _texts(choice, choice.typed(request))
    held = state.picture_request(choice.key.partition(".")[0])[choice]
    problem = session().problems.pop(choice.key, "")
    try:
        if held is not None:
            choice.check(held, request)
    except ValueError as error:
        problem = str(error)
    if problem:
        warn(TEXTS("controls.refused", instead=choice.instead, error=problem))
    elif held is None and choice.suffixes and choice.missing:
        # A file too large for the browser's storage is lost on reload, and the address does not say so.
        st.markdown(choice.missing)


def _texts(choice: StoredChoice[Any], fields: Mapping[str, tuple[str, str]]) -> None:
    texts = session().texts.setdefault(choice.key, {})
    turn = navigation.generation(choice.key)
    keys = {name: f"choice.{choice.key}.{name}{f'.{turn}' if turn else ''}" for name in fields}

    def changed() -> None:
        if turn != navigation.generation(choice.key):
            return  # ignore the change event of fields that are about to be replaced
        texts.update({name: st.session_state[key] for name, key in keys.items()})
        filled = {name: text for name, text in texts.items() if text.strip()}
        state.store_blob(choice.key, json.dumps(filled).encode() if filled else None)
        state.frame_too()  # the frame tells the browser what to store

    for name, (label, placeholder) in fields.items():
        st.session_state[keys[name]] = texts.get(name, "")
        st.text_area(
            label,
            key=keys[name],
            placeholder=placeholder,
            max_chars=TEXT_FIELD_CHARACTERS,
            height=80,
            on_change=changed,
        )


def _file(choice: StoredChoice[Any]) -> None:
    key = f"choice.{choice.key}"

    def changed() -> None:
        dropped = st.session_state[key]
        content = None if dropped is None else picture_choices.filed(dropped.name, take_upload(dropped))
        forget()
        try:
            if content is not None:
                state.store_readable(choice, content)
        except ValueError as error:
            session().problems[choice.key] = str(error)

    def forget() -> None:
        state.store_blob(choice.key, None)
        state.frame_too()  # the frame tells the browser what to store

    types = [suffix[1:] for suffix in choice.suffixes]
    dropped = st.file_uploader(choice.label, type=types, key=key, help=choice.help or None, on_change=changed)
    if dropped is None and (content := state.blob(choice.key)) is not None:
        # The browser restored it, and no script can put a file into the box.
        st.markdown(TEXTS("controls.stored_file", name=plain(picture_choices.name_of(content))))
        st.button(TEXTS("controls.remove_file"), key=f"forget.{choice.key}", on_click=forget)


def _tidy(choice: TextLine | Pieces, text: str | None) -> str:
    return clean_line(text or "", choice.most) or choice.usual


def _line(choice: TextLine, keep: Callable[[Any], None], key: str) -> None:
    text = _tidy(choice, state.local(choice.key))
    st.session_state[key] = text

    def changed() -> None:
        keep(_tidy(choice, st.session_state[key]))

    st.text_input(
        choice.label,
        key=key,
        max_chars=choice.most,
        on_change=changed,
        help=choice.help or None,
        label_visibility="visible" if choice.help else "collapsed",
    )
    try:
        choice.check(text)
    except ValueError as error:
        warn(TEXTS("controls.default_line", error=error))


def _pieces(choice: Pieces, request: PictureRequest, keep: Callable[[Any], None]) -> None:
    """Show a line as cards, one per piece; an unusable text stays in its field, with a warning."""
    text = _tidy(choice, state.local(choice.key))
    parts, problem = None, ""
    try:
        parts = [dict(part) for part in choice.parts(text)]
    except ValueError as error:
        problem = str(error)

    def changed(line: str) -> None:
        keep(_tidy(choice, line))

    limits = {"most": choice.count, "longest": choice.most}
    prompt(choice.key, text, parts, changed, kinds=list(choice.kinds(request)), **limits)
    if problem:
        warn(TEXTS("controls.default_prompt", error=problem))
