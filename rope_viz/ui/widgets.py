"""The widget of each kind of choice: drawn from its declaration, its value read from the address and written to it."""

from __future__ import annotations

from typing import Any

import streamlit as st

from rope_viz.configs.catalog import catalog
from rope_viz.pictures.choices import Choice, Line, Models, Number, Pick, Several, Switch, clean_line
from rope_viz.pictures.now import Now
from rope_viz.ui import choices, state


def control(choice: Choice[Any], now: Now) -> None:
    """The widget of a choice, where it has a meaning beside what else was chosen."""
    if not choice.when(now):
        return
    key = f"choice.{choice.key}"
    value, default = now[choice], choice.text(choice.default(now))

    def keep(value: Any) -> None:
        state.keep(choice.key, choice.text(value), default=default)

    def changed() -> None:
        new = st.session_state[key]
        keep(tuple(new) if isinstance(new, list) else new)

    if isinstance(choice, Number):
        choices.slider(choice.key, choice.ends(now), value, keep)
        return
    st.session_state[key] = list(value) if isinstance(value, tuple) else value
    options: dict[str, Any] = {"key": key, "on_change": changed, "help": choice.help or None}
    if isinstance(choice, Pick):
        names = list(choice.options)
        show = choice.options.__getitem__
        if choice.menu:
            st.selectbox(choice.label, names, format_func=show, width=choice.menu, **options)
        else:
            options["label_visibility"] = "collapsed"
            st.segmented_control(choice.label, names, required=True, format_func=show, **options)
    elif isinstance(choice, Several):
        shown = choice.shown(now)
        st.pills(
            choice.label,
            list(shown),
            selection_mode="multi",
            format_func=shown.__getitem__,
            label_visibility="collapsed",
            **options,
        )
    elif isinstance(choice, Models):
        st.multiselect(
            choice.label,
            list(catalog()),
            format_func=lambda name: catalog()[name].name,
            label_visibility="collapsed",
            placeholder=choice.label,
            **options,
        )
    elif isinstance(choice, Switch):
        st.toggle(choice.label, **options)
    elif isinstance(choice, Line):
        _line(choice, keep, key)


def _line(choice: Line, keep: Any, key: str) -> None:
    """A line of text; what cannot be taken stays in the field, and a sentence says why."""
    written = clean_line(state.local(choice.key) or "", choice.most) or choice.usual
    st.session_state[key] = written

    def changed() -> None:
        keep(clean_line(st.session_state[key], choice.most) or choice.usual)

    st.text_input(choice.label, key=key, max_chars=choice.most, on_change=changed, help=choice.help or None)
    try:
        choice.check(written)
    except ValueError as error:
        st.warning(f"Not possible: {error}. This is the sentence it began with.")
