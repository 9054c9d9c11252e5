"""The page Learn: a step of the tour, its picture with the knobs of its task, and the way on."""

from __future__ import annotations

from typing import Any

import streamlit as st

from rope_viz.figures.words import glossary
from rope_viz.models import spec_url
from rope_viz.pictures import learn
from rope_viz.pictures.learn_steps import STEPS, Step
from rope_viz.pictures.registry import PAGES
from rope_viz.ui import controls, page, state
from rope_viz.ui.page import now

THEN = "recall"
"""Where the last step leads: what all of it is for."""


def show() -> None:
    """The current step."""
    number = int(now(learn.PAGE)[learn.STEP])
    step = STEPS[number - 1]
    _begin(number, step)
    at = state.now(step.page)
    st.title(f"{number}. {step.title}", anchor=False)
    _ways(number, step)
    st.markdown(glossary.linked(step.says(at)))
    _task(step)
    page.show(step.picture)
    if step.knobs or step.choices:
        with page.row():
            controls.column(f"tour.{number}", step.knobs)
            page.controls(*step.choices)


def _begin(number: int, step: Step) -> None:
    """Take the step's own address where the reader comes without one; Back and Forward find it as it was left."""
    named = learn.STEP.key in st.query_params
    written = any(key in spec_url.KEYS or "." in key for key in st.query_params if key != learn.STEP.key)
    if written or (named and st.session_state.get("tour") == number):
        st.session_state["tour"] = number
        return
    _go(number)


def _go(number: int) -> None:
    state.open_tour(number, {learn.STEP.key: str(number), **STEPS[number - 1].query})


def _leave() -> None:
    """After the last step, with its model. Not by what the button says: the same one led to this step in this run."""
    state.leave(THEN)


def _task(step: Step) -> None:
    """What to do, and once it was done, what it shows."""
    reached = state.now(step.page)
    if step.done(step.start, reached):
        st.success(f"**Done.** {step.praise(reached)}", icon=":material/check:")
    else:
        st.info(f"**Try it.** {step.task}", icon=":material/touch_app:")


def _ways(number: int, step: Step) -> None:
    """Where the reader is, Back, Next, and the page that the picture comes from."""
    with page.row():
        st.markdown(f"Step {number} of {len(STEPS)}")
        st.button("Back", on_click=_go, args=(number - 1,), disabled=number == 1, key="tour.back", shortcut="b")
        options: dict[str, Any] = {"key": "tour.next", "shortcut": "n", "help": "Key: n"}
        if number < len(STEPS):
            st.button("Next", on_click=_go, args=(number + 1,), **options)
        else:
            st.button(f"Next: {PAGES[THEN]}", on_click=_leave, **options)
        if step.page != learn.PAGE.name:
            query = {key: value for key, value in st.query_params.items() if key != learn.STEP.key}
            page.link(step.page, f"Open in {PAGES[step.page]}", query)
