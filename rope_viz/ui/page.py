"""The pieces a page is made of: its head, its figures with their downloads, its text."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import streamlit as st

from rope_viz.spec import RopeSpec
from rope_viz.ui import state
from rope_viz.ui.chart import chart
from rope_viz.ui.chart import view as chart_view


def head(title: str, sentence: str) -> RopeSpec:
    """The page's title and the sentence that says what to look for; gives the current spec."""
    st.title(title, anchor=False)
    st.markdown(sentence)
    return state.chosen().spec


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
    chart(
        fig,
        key=key,
        title=title,
        file=f"rope-{key.replace('.', '-')}_{now.file}",
        spec=now.spec_json,
        on_pin=lambda pair: state.choose(pin=None if pair == state.chosen().pin else pair),
        quick=now.live,
        **options,
    )


def view(key: str, full: tuple[float, float]) -> tuple[float, float] | None:
    """The x range the reader has zoomed a figure to, None for all of it."""
    return chart_view(key, full)


def pick(label: str, options: dict[str, str], key: str) -> str:
    """One of a few, as a row of buttons; kept in the address."""
    first = next(iter(options))
    chosen = st.segmented_control(
        label,
        list(options),
        default=first,
        required=True,
        format_func=options.__getitem__,
        key=key,
        bind="query-params",
        label_visibility="collapsed",
    )
    return chosen or first


def explain(text: str) -> None:
    """Text below the figures: what is shown and why, with its reference."""
    st.markdown(text)
