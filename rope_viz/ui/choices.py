"""A page's own controls: their values stand in the address under the page's name and return with the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import streamlit as st

from rope_viz.configs.catalog import catalog
from rope_viz.configs.link import model_spec, number, text
from rope_viz.embedding.spec import Knob, RopeSpec
from rope_viz.ui import state
from rope_viz.ui.components import live
from rope_viz.ui.components.knob import knobs
from rope_viz.ui.notes import warn

JOINERS = "\u200c\u200d"
Name = TypeVar("Name", bound=str)


def pick(label: str, options: Mapping[Name, str], key: str) -> Name:
    """One of a few (name -> label), as a row of buttons; the first is the default."""
    chosen = hidden(key, options)
    first = next(iter(options))
    widget = f"pick.{key}"
    st.session_state[widget] = chosen
    st.segmented_control(
        label,
        list(options),
        required=True,
        format_func=options.__getitem__,
        key=widget,
        on_change=lambda: state.keep(key, st.session_state[widget], default=first),
        label_visibility="collapsed",
    )
    return chosen


def menu(label: str, options: Mapping[Name, str], key: str, *, width: int = 220) -> Name:
    """One of many (name -> label), as a menu with its label beside it; the first is the default."""
    chosen = hidden(key, options)
    first = next(iter(options))
    widget = f"menu.{key}"
    st.session_state[widget] = chosen
    st.selectbox(
        label,
        list(options),
        format_func=options.__getitem__,
        key=widget,
        width=width,
        on_change=lambda: state.keep(key, st.session_state[widget], default=first),
    )
    return chosen


def hidden(key: str, options: Mapping[Name, str]) -> Name:
    """The value of a control that is drawn further down."""
    written = state.local(key)
    return next((name for name in options if name == written), next(iter(options)))


def setter(key: str) -> Callable[[int], None]:
    """A callback that sets a number of the page's own, for a click in a figure."""
    return lambda value: state.keep(key, text(value), default="")


def typed(label: str, key: str, *, placeholder: str = "", most: int = 20_000) -> str:
    """A text of the reader's own, at most `most` characters. It stays in the session: an address cannot hold it."""
    widget, kept = f"typed.{key}", f"typed.kept.{key}"
    st.session_state[widget] = st.session_state.setdefault(kept, "")

    def changed() -> None:
        st.session_state[kept] = st.session_state[widget]

    st.text_area(label, key=widget, placeholder=placeholder, max_chars=most, height=80, on_change=changed)
    return str(st.session_state[kept])


def several(label: str, options: Mapping[str, str], key: str, default: Sequence[str]) -> list[str]:
    """Any number of options (name -> label), in the order they were chosen."""
    written = state.local(key)
    names = list(default) if written is None else written.split(",")
    chosen = [name for name in dict.fromkeys(names) if name in options]
    widget = f"several.{key}"
    st.session_state[widget] = chosen
    st.pills(
        label,
        list(options),
        selection_mode="multi",
        format_func=options.__getitem__,
        key=widget,
        on_change=lambda: state.keep(key, ",".join(st.session_state[widget]), default=",".join(default)),
        label_visibility="collapsed",
    )
    return chosen


def sentence(label: str, key: str, default: str, check: Callable[[str], object], *, most: int = 400) -> str:
    """A line of text of at most `most` characters; emptied, it is the default again.

    `check` raises `ValueError` with a sentence for what cannot be taken: that is shown, and the default is used.
    """
    written = clean_line(state.local(key) or "", most) or default
    widget = f"sentence.{key}"
    st.session_state[widget] = written
    st.text_input(
        label,
        key=widget,
        max_chars=most,
        on_change=lambda: state.keep(key, clean_line(st.session_state[widget], most) or default, default=default),
    )
    try:
        check(written)
    except ValueError as error:
        warn(f"Not possible: {error}. This is the sentence it began with.")
        return default
    return written


def clean_line(written: str, most: int) -> str:
    """Text as one line of printable characters, cut to `most`; the joiners that some scripts need are kept."""
    shown = (each if each.isprintable() or each in JOINERS else " " for each in written[:most])
    return " ".join("".join(shown).split())


def models(key: str, label: str = "Beside other models") -> dict[str, RopeSpec]:
    """Any number of further models from the list, name -> spec."""
    written = (state.local(key) or "").split(",")
    chosen = [name for name in dict.fromkeys(written) if name in catalog()]
    widget = f"models.{key}"
    st.session_state[widget] = chosen
    st.multiselect(
        label,
        list(catalog()),
        format_func=lambda name: catalog()[name].name,
        key=widget,
        on_change=lambda: state.keep(key, ",".join(st.session_state[widget]), default=""),
        label_visibility="collapsed",
        placeholder=label,
    )
    return {catalog()[name].name: model_spec(name) for name in chosen}


def switch(label: str, key: str, *, default: bool = False, help: str | None = None) -> bool:
    """A yes or no."""
    written = state.local(key)
    chosen = written == "yes" if written in ("yes", "no") else default
    widget = f"switch.{key}"
    st.session_state[widget] = chosen
    st.toggle(
        label,
        key=widget,
        help=help,
        on_change=lambda: state.keep(key, text(st.session_state[widget]), default=text(default)),
    )
    return chosen


def knob(key: str, knob: Knob, default: float, *, width: int = 300) -> Any:
    """A number of the page's own as a live slider; a value outside the knob's ends is brought to the nearer one.

    Gives it as it rests; a picture that is to follow it asks its `Now` for the knob of this key.
    """
    value = _linked(key, knob, default)
    slider(key, knob, value, lambda new: state.keep(key, text(new), default=text(default)), width=width)
    return int(value) if knob.integer else float(value)


def slider(key: str, knob: Knob, value: float, changed: Callable[[float], None], *, width: int = 300) -> None:
    """A live slider of the page's own; `changed` hears where it was released."""
    live.add_knob(key, knob, value)
    page, _, name = key.rpartition(".")
    with st.container(width=width):
        knobs(f"knob.{key}", {name: (knob, value)}, lambda _, new: changed(new), page=page)


def length(key: str, label: str, default: int, *, least: int = 16, most: int = 10_000_000, unit: str = "tokens") -> int:
    """A number of tokens as a live slider."""
    return int(
        knob(key, Knob(label, least, most, "", log=True, integer=True, unit=unit), min(max(default, least), most))
    )


def _linked(key: str, knob: Knob, default: float) -> float:
    try:
        value = number(state.local(key) or "")
    except ValueError:
        return default
    value = min(max(value, knob.low), knob.high)
    return round(value) if knob.integer else value
