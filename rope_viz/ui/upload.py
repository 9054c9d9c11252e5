"""The sidebar's form for the user's own config.json: a valid one becomes the model, an invalid one changes nothing."""

from __future__ import annotations

import re

import streamlit as st

from rope_viz.advice.lint import summary
from rope_viz.advice.lint.check_text import check_text
from rope_viz.models import spec_url
from rope_viz.models.hf_cache import find_in_cache, is_model_id, model_id_of_page
from rope_viz.models.user_config import LARGEST
from rope_viz.multi_axis.read_upload import read_upload
from rope_viz.ui import configs, query_params, state
from rope_viz.ui.notes import warn

HELP = (
    "A model's config.json, of either generation, or only its rope_scaling. It becomes the model on every page, "
    "never leaves this server, and is kept in your browser until you forget it there."
)

EXAMPLE = 'Qwen/Qwen3-8B, or {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}'
HOME = ("localhost", "127.0.0.1", "[::1]", "::1")

# MiB: far above the limit of a config, with any file type, because Streamlit itself rejects files without a message.
ACCEPTED = 64


def box() -> None:
    """Show the fields to drop or paste a config."""
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
    problem, typed = st.session_state.pop("upload.problem", ""), st.session_state.pop("upload.typed", False)
    if problem and not typed:
        warn(problem)
    _show_findings()
    pasted = f"upload.text.{turn}"
    with st.expander("Paste a config, or a model's id", key="paste"), st.form(f"upload.form.{turn}", border=False):
        st.text_area(
            "config.json or rope_scaling, or a model's id in the local Hugging Face cache",
            key=pasted,
            height=140,
            placeholder=EXAMPLE,
        )
        st.form_submit_button("Use this config", on_click=_pasted, args=(pasted,), width="stretch")
        if problem and typed:
            warn(problem)


def _dropped(key: str) -> None:
    query_params.catch_up()
    file = st.session_state.get(key)
    if file is not None:
        # Make a new, empty field, so that the same file can be dropped again after a correction.
        st.session_state["upload.turn"] = st.session_state.get("upload.turn", 0) + 1
        _take(file.getvalue())


def _pasted(key: str) -> None:
    query_params.catch_up()
    text = st.session_state.get(key) or ""
    st.session_state["upload.typed"] = True
    if _take_by_id(text) if is_model_id(text) else _take(text):
        st.session_state["upload.turn"] = st.session_state.get("upload.turn", 0) + 1


def _take_by_id(text: str) -> bool:
    """Load a model's config by its id from this machine's Hugging Face cache, only for users at this machine."""
    id = text.strip()
    if not at_home():
        problem = "a model's id is looked up in the cache of the machine that serves, for readers at that machine alone"
        st.session_state["upload.problem"] = f"Your config was not taken: {problem}. Drop its config.json."
        return False
    try:
        path = find_in_cache(id)
        content = None if path is None else path.read_bytes()[: LARGEST + 1]
    except (OSError, ValueError) as error:
        st.session_state["upload.problem"] = f"Your config was not taken: the cache cannot be read, {error}."
        return False
    if content is None:
        name = model_id_of_page(id)
        st.session_state["upload.problem"] = (
            f"Your config was not taken: {name} is not in the local Hugging Face cache of the machine that serves. "
            f"There, hf download {name.partition('@')[0]} config.json fetches it; or drop the file."
        )
        return False
    return _take(content)


def at_home() -> bool:
    """True if the user sits at the serving machine; others must not learn what its cache holds.

    A proxy on this machine passes the original host name on, or adds a forwarding header.
    """
    headers = st.context.headers
    host = re.sub(r":\d+$", "", headers.get("Host", "localhost"))
    passed_on = any(name in headers for name in ("X-Forwarded-For", "X-Real-IP", "Forwarded", "Via"))
    return host in HOME and not passed_on and st.context.ip_address in (None, *HOME)


def _show_findings() -> None:
    """Show a summary of the check's findings in the user's config, with a link to the details."""
    mine = state.own()
    if mine is not None and state.current_choice().model == spec_url.CUSTOM:
        found = configs.summed_up(mine.config)
        if found:
            at = state.link_query()
            st.page_link(state.page("extend"), label=f"{found}: see Extend", query_params=at)


def _take(content: str | bytes) -> bool:
    now = state.current_choice()
    try:
        state.adopt(read_upload(content, now.spec, state.name()))
    except ValueError as error:
        # Shown next to the field, because a message at the top of a long page would be missed.
        st.session_state["upload.problem"] = f"Your config was not taken: {error}.{refused(content)}"
        return False
    return True


def refused(content: str | bytes) -> str:
    """Summarise the check's findings in a rejected config; "" if it is unreadable."""
    try:
        found = check_text(content)[1]
    except ValueError:
        return ""
    others = [one.message for one in found if one.rule not in ("not-computable", "no-rope")][:3]
    return f" The check finds {summary(found)} in it{': ' if others else '.'}{' '.join(others)}" if found else ""
