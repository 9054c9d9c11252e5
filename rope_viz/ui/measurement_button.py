"""A button that starts a measurement on the server, with its progress and last result."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st

from rope_viz.kernels.measurement_process import TEXTS, BusyError, Run
from rope_viz.models.identity.local_models import MODELS
from rope_viz.real_models import TEXTS as MODEL_TEXTS
from rope_viz.ui import query_params, state
from rope_viz.ui.notes import warn
from rope_viz.ui.session import session


def find_weights() -> Path | None:
    """Return the real model's file; where it is missing, show how to install it and return None."""
    model = MODELS["smollm2"]
    if model.is_there:
        return model.weights
    st.markdown(MODEL_TEXTS("live.install"))
    return None


def never(report: Any) -> int:
    """Show nothing before the end: the default `watch`."""
    return 0


def run_button(
    key: str,
    label: str,
    start: Callable[[], Run],
    *,
    pack: Callable[[Any], bytes],
    choice: str = "",
    watch: Callable[[Any], int] = never,
) -> Any:
    """Show the button and its progress; return this session's last finished measurement, or None.

    The result is stored as a choice, `<key>.report` if none is named, in the form that `pack` makes. `watch` returns
    the number of the state in which a running report can be shown, 0 for none; a stopped one stays as it was shown.
    """
    button, runs, reports, problems = f"run.{key}", session().runs, session().reports, session().problems

    def press() -> None:
        query_params.catch_up()
        if key in runs:
            return
        try:
            runs[key] = start()
        except BusyError:
            problems[button] = TEXTS("problems.busy")

    run = runs.get(key)
    seen = 0 if run is None else watch(run.report)
    if run is not None and not run.is_alive:
        del runs[key]
        if run.problem:
            problems[button] = run.problem
        if seen or not run.problem:
            reports[key] = run.report
        run = None
    st.button(label, on_click=press, disabled=run is not None, key=button)
    if run is not None:
        _progress(run, watch, seen)
    elif problem := problems.pop(button, ""):
        warn(problem)
    found = run.report if run is not None and seen else reports.get(key)
    # The content of a report that is still filled changes.
    same = None if run is not None else found
    state.store_blob(choice or f"{key}.report", None if found is None else pack(found), of=same)
    return found


@st.fragment(run_every=0.5)
def _progress(run: Run, watch: Callable[[Any], int], seen: int) -> None:
    """Show progress by rerunning only this fragment; rerun the whole page at the end, and for a new state to show."""
    if not run.is_alive or watch(run.report) != seen:
        st.rerun()
    st.progress(min(run.fraction, 1.0), text=TEXTS("measure.progress", fraction=run.fraction, step=run.step))
    st.button(TEXTS("measure.stop"), on_click=run.stop, key="run.stop")
