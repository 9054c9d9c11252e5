"""A reader's own config.json in the sidebar: dropped or pasted, it becomes the model; refused, nothing changes."""

from __future__ import annotations

import streamlit as st

from rope_viz.advice.lint import check, summary
from rope_viz.configs import link
from rope_viz.configs.upload import parse, read_upload
from rope_viz.ui import state
from rope_viz.ui.notes import warn

HELP = (
    "A model's config.json, of either generation, or only its rope_scaling. It becomes the model on every page, "
    "never leaves this server, and is kept in your browser until you forget it there."
)

# MiB. Far above what is read as a config, and any kind of file: Streamlit would refuse without a visible word.
ACCEPTED = 64


def box() -> None:
    """Where a config is dropped, and where it is pasted."""
    turn = st.session_state.get("upload.turn", 0)
    dropped = f"upload.file.{turn}"
    with st.container(key="upload"):
        st.file_uploader(
            "Drop your config.json",
            key=dropped,
            help=HELP,
            max_upload_size=ACCEPTED,
            on_change=_dropped,
            args=(dropped,),
        )
    if state.own() is not None:
        st.button("Forget my config", on_click=state.forget, key="forget", width="stretch")
    problem = st.session_state.pop("upload.problem", "")
    if problem:
        warn(problem)
    _found()
    pasted = f"upload.text.{turn}"
    with st.expander("Paste a config", key="paste"), st.form(f"upload.form.{turn}", border=False):
        st.text_area(
            "config.json or rope_scaling",
            key=pasted,
            height=140,
            placeholder='{"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}',
        )
        st.form_submit_button("Use this config", on_click=_pasted, args=(pasted,), width="stretch")


def _dropped(key: str) -> None:
    file = st.session_state.get(key)
    if file is not None:
        # The field is made anew: it is empty again, and the same file may be dropped once more after a correction.
        st.session_state["upload.turn"] = st.session_state.get("upload.turn", 0) + 1
        _take(file.getvalue())


def _pasted(key: str) -> None:
    if _take(st.session_state.get(key) or ""):
        st.session_state["upload.turn"] = st.session_state.get("upload.turn", 0) + 1


def _found() -> None:
    """What the check finds in the config that was taken, in numbers, with the way to the page that says it."""
    mine = state.own()
    if mine is not None and state.chosen().model == link.CUSTOM:
        told = summary(check(mine.config))
        if told:
            at = state.link_query()
            st.page_link(state.folder() / "extend.py", label=f"{told}: see Extend", query_params=at)


def _take(content: str | bytes) -> bool:
    now = state.chosen()
    try:
        state.adopt(read_upload(content, now.spec, state.name()))
    except ValueError as error:
        # Said beside the box: at the top of a long page the reader would not see it.
        st.session_state["upload.problem"] = f"Your config was not taken: {error}.{refused(content)}"
        return False
    return True


def refused(content: str | bytes) -> str:
    """What the check finds in a config that was not taken, beside the reason itself; empty where it cannot be read."""
    try:
        found = [one for one in check(parse(content)) if one.rule != "unreadable"]
    except ValueError:
        return ""
    told = summary(found)
    return f" The check also finds {told}: {' '.join(one.message for one in found[:3])}" if told else ""
