"""The pieces a page is made of: its head, its figures with their downloads, its text."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from rope_viz.figures.scaling import alternative
from rope_viz.link import number
from rope_viz.scaling import LABELS, METHODS
from rope_viz.spec import Knob, RopeSpec
from rope_viz.ui import state
from rope_viz.ui.chart import chart
from rope_viz.ui.chart import view as chart_view
from rope_viz.ui.knob import knobs


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


@functools.cache
def text(name: str) -> str:
    """A text from `ui/texts`, Markdown with formulas; its lines are joined."""
    return (Path(__file__).parent / "texts" / f"{name}.md").read_text(encoding="utf-8")


def explain(name: str) -> None:
    """Text below the figures: what is shown and why, with its reference."""
    st.markdown(text(name))


def methods(key: str, label: str, spec: RopeSpec) -> list[RopeSpec]:
    """Further scaling methods for the same model at the same factor, any number; kept in the address."""
    names = [name for name in METHODS if name not in ("none", spec.scaling.name)]
    chosen = st.multiselect(
        label,
        names,
        default=[name for name in ("yarn", "ntk", "linear") if name in names],
        format_func=LABELS.__getitem__,
        key=key,
        bind="query-params",
        label_visibility="collapsed",
        placeholder="Compare with …",
    )
    return [other for name in chosen if (other := alternative(spec, name)) is not None]


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


def row() -> Any:
    """A line of a page's own few controls; wraps on a small screen."""
    return st.container(horizontal=True, vertical_alignment="center", gap="medium")


def length(key: str, label: str, default: int, *, least: int = 16, most: int = 10_000_000) -> int:
    """A page's own length as a live slider; it stands in the address once it is not the default."""
    live = f"live.{key}"
    value = st.session_state.get(live)
    if value is None:
        value = _linked(key, default, least, most)

    def changed(_: str, new: float, done: bool) -> None:
        st.session_state[live] = None if done else int(new)
        if done:
            st.query_params[key] = str(int(new))

    knob = Knob(label, least, most, "", log=True, integer=True, unit="tokens")
    with st.container(width=320):
        knobs(f"knob.{key}", {key: (knob, value)}, changed)
    return int(value)


def _linked(key: str, default: int, least: int, most: int) -> int:
    try:
        value = number(st.query_params.get(key, ""))
    except ValueError:
        value = default
    return int(min(max(value, least), most))
