"""The page Learn: one step with its picture, the knobs of its task, and the navigation."""

from __future__ import annotations

from typing import Any

import streamlit as st

from rope_viz.figures.words import glossary
from rope_viz.models import spec_url
from rope_viz.pictures import learn
from rope_viz.pictures.doors import TITLES
from rope_viz.pictures.learn_steps import STEPS, Step
from rope_viz.ui import controls, page, state
from rope_viz.ui.page import now

THEN = "recall"
"""The page that follows the last step."""


def show() -> None:
    """Show the current step."""
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
    """Open the step's own state unless the address already carries one, as after Back and Forward."""
    named = learn.STEP.key in st.query_params
    written = any(key in spec_url.KEYS or "." in key for key in st.query_params if key != learn.STEP.key)
    if written or (named and st.session_state.get("tour") == number):
        st.session_state["tour"] = number
        return
    _go(number)


def _go(number: int) -> None:
    state.open_tour(number, {learn.STEP.key: str(number), **STEPS[number - 1].query})


def _task(step: Step) -> None:
    """Show the task or, once it is done, its result."""
    reached = state.now(step.page)
    if step.done(step.start, reached):
        st.success(f"**Done.** {step.praise(reached)}", icon=":material/check:")
    else:
        st.info(f"**Try it.** {step.task}", icon=":material/touch_app:")


def _ways(number: int, step: Step) -> None:
    """Show the step number, Back, Next, and a link to the page that the picture comes from."""
    with page.row():
        st.markdown(f"Step {number} of {len(STEPS)}")
        st.button("Back", on_click=_go, args=(number - 1,), disabled=number == 1, key="tour.back", shortcut="b")
        options: dict[str, Any] = {"key": "tour.next", "shortcut": "n", "help": "Key: n"}
        if number < len(STEPS):
            st.button("Next", on_click=_go, args=(number + 1,), **options)
        else:
            # Another callback than `_go`, because one button serves two steps in a run.
            st.button(f"Next: {TITLES[THEN]}", on_click=state.open_page, args=(THEN,), **options)
        if step.page != learn.PAGE.name:
            query = {key: value for key, value in st.query_params.items() if key != learn.STEP.key}
            page.link(step.page, f"Open in {TITLES[step.page]}", query)
