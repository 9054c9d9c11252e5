"""The card that a page shows instead of its content while the user's last config cannot be read."""

from __future__ import annotations

import html
from collections.abc import Callable

import streamlit as st

from rope_viz.advice.lint.diagnose import Diagnosis, Problem
from rope_viz.models.formats.json_repair import join_lines
from rope_viz.texts import Texts
from rope_viz.texts.outside_text import printable
from rope_viz.ui import query_params
from rope_viz.ui.session import Rejected, session

TEXTS = Texts("rejected")
KEY = "rejected"


def reject(name: str, diagnosis: Diagnosis, repair: Callable[[str, str], object]) -> None:
    """Show the card from the next run on. `repair` is called with the repaired text and the name of the file."""
    session().rejected = Rejected(name, diagnosis, repair)


def rejected_config() -> Rejected | None:
    """Return the file that could not be read, None after another choice."""
    return session().rejected


def dismiss() -> None:
    """Show the page again."""
    session().rejected = None


def show_card(rejected: Rejected, model: str) -> None:
    """Show what is wrong, the repair if there is one, and the way back to `model`."""
    found = rejected.diagnosis
    with st.container(key=KEY):
        rows = "".join(_row(problem) for problem in found.problems)
        name = html.escape(printable(rejected.name))
        st.html(
            f'<div role="alert" class="rv-rejected"><h1>{TEXTS("title")}</h1>'
            f"<dl><dt>{TEXTS('file')}</dt><dd><strong>{name}</strong></dd>{rows}</dl></div>"
        )
        shown = found.changes if found.repaired else found.excerpt
        if shown:
            heading = TEXTS("after" if found.repaired else "around")
            lines = "".join(map(_line, shown.splitlines()))
            # Streamlit's own colours of a diff have too little contrast.
            st.html(
                f'<p>{heading}</p><pre class="rv-diff" tabindex="0" role="region" aria-label="{heading}">{lines}</pre>'
            )
        with st.container(horizontal=True):
            if found.repaired:
                st.button(TEXTS("repair"), key="rejected.repair", on_click=_repair)
                st.download_button(
                    TEXTS("download"),
                    found.repaired,
                    file_name="config.json",
                    mime="application/json",
                    on_click="ignore",
                    key="rejected.download",
                )
            st.button(TEXTS("keep", model=model), key="rejected.keep", on_click=_keep)
    st.markdown(TEXTS("waiting"))


def _repair() -> None:
    query_params.catch_up()
    rejected = rejected_config()
    if rejected is not None:
        rejected.repair(rejected.diagnosis.repaired, rejected.name)


def _keep() -> None:
    query_params.catch_up()
    dismiss()


def _row(problem: Problem) -> str:
    """Return a problem as a row of the list: where, why, and what to do."""
    key = f"<code>{html.escape(printable(problem.key[:80]))}</code><br>" if problem.key else ""
    to_do = TEXTS("to_do", to_do=problem.to_do)
    return f"<dt>{_place(problem)}</dt><dd>{key}{html.escape(problem.reason)}<br>{html.escape(to_do)}</dd>"


def _line(line: str) -> str:
    """Return a line of a diff or an excerpt, coloured if it is removed or added."""
    kind = {"-": ' class="rv-removed"', "+": ' class="rv-added"'}.get(line[:1], "")
    return f"<span{kind}>{html.escape(line)}\n</span>"


def _place(problem: Problem) -> str:
    if not problem.lines:
        return TEXTS("problem")
    if problem.column:
        return TEXTS("line_column", line=problem.lines[0], column=problem.column)
    return TEXTS("lines" if len(problem.lines) > 1 else "line", lines=join_lines(problem.lines))
