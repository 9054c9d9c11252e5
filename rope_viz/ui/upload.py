"""The sidebar's form for the user's own config.json: a valid one becomes the model, an invalid one changes nothing."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping

import streamlit as st

from rope_viz.advice.lint.diagnose import Diagnosis, describe_refusal
from rope_viz.models import spec_url
from rope_viz.models.catalog import find_by_name
from rope_viz.models.formats.side_files import split_files
from rope_viz.models.identity.hf_cache import find_in_cache, is_model_id, model_id_of_page
from rope_viz.models.user_config import Upload
from rope_viz.own_files import own_file
from rope_viz.own_files.admit import summarise_findings
from rope_viz.own_files.outside import SentContent
from rope_viz.storage.limits import CONFIG_FILE_BYTES, DROPPED_FILE_MIB
from rope_viz.storage.read_file import read_limited
from rope_viz.texts import Texts, join
from rope_viz.texts.outside_text import clean_text
from rope_viz.ui import query_params, state
from rope_viz.ui.notes import warn
from rope_viz.ui.own_config import is_from_link, own
from rope_viz.ui.rejected_config import TEXTS as REJECTED
from rope_viz.ui.rejected_config import reject, rejected_config
from rope_viz.ui.session import session
from rope_viz.ui.visitors import session_reader, take_upload

TEXTS = Texts("sidebar")
HUB_CACHE = "ROPE_VIZ_HUB_CACHE"
"""The environment variable that `rope-viz app --hub-cache` sets to 1."""


def box() -> None:
    """Show the fields to drop or paste a config."""
    drop_field()
    state_of_config()
    if rejected_config() is None:
        _show_findings()
    paste_field()


def state_of_config() -> None:
    """Show that the last config could not be read, or offer to remove the user's config."""
    if rejected_config() is not None:
        warn(REJECTED("sidebar"))
    elif own() is not None:
        if is_from_link():
            st.caption(TEXTS("config.from_link"))
        st.button(TEXTS("config.remove"), on_click=state.forget, key="forget", width="stretch")


def drop_field(*, opens: str = "") -> None:
    """Show the field to drop a config into, and why the last one cannot be used.

    `opens` is the page that a dropped file opens, "" to stay.
    """
    dropped = f"upload.file.{session().upload_generation}"
    with st.container(key="upload"):
        st.file_uploader(
            TEXTS("config.drop"),
            key=dropped,
            help=TEXTS("config.help"),
            max_upload_size=DROPPED_FILE_MIB,
            accept_multiple_files=True,
            on_change=_dropped,
            args=(dropped, opens),
        )
    if not session().is_pasted:
        _show_problem()


def paste_field() -> None:
    """Show the field to paste a config or a model's id into, and why the last one cannot be used."""
    pasted = f"upload.text.{session().upload_generation}"
    end = "_or_id" if has_hub_cache() else ""
    with (
        st.expander(TEXTS(f"config.paste{end}"), key="paste"),
        st.form(f"upload.form.{session().upload_generation}", border=False),
    ):
        st.text_area(TEXTS(f"config.pasted{end}"), key=pasted, height=140, placeholder=TEXTS("config.example"))
        st.form_submit_button(TEXTS("config.use"), on_click=_pasted, args=(pasted,), width="stretch")
        if session().is_pasted:
            session().is_pasted = False
            _show_problem()


def _show_problem() -> None:
    if problem := session().problems.pop("upload", ""):
        warn(problem)


def _renew() -> None:
    session().upload_generation += 1


def _dropped(key: str, opens: str) -> None:
    query_params.catch_up()
    dropped = {clean_text(file.name): take_upload(file) for file in st.session_state.get(key) or ()}
    if dropped:
        _renew()  # the same file can be dropped again after a correction
        try:
            name, side = split_files(dropped)
        except ValueError as error:
            reject(next(iter(dropped)), Diagnosis((describe_refusal(error),)), _take)
            state.frame_too()
            return
        _take(dropped[name], name, side)
        if opens:
            state.open_page(opens)


def _pasted(key: str) -> None:
    query_params.catch_up()
    text = st.session_state.get(key) or ""
    session().is_pasted = True
    if _take_by_id(text) if is_model_id(text) else _take(text, REJECTED("pasted")):
        _renew()


def _take_by_id(text: str) -> bool:
    """Choose the model of the list that an id means, or load its config from this machine's Hugging Face cache.

    The cache is used only if the server was told to.
    """
    id = text.strip()
    listed = find_by_name(id)
    if listed is not None:
        state.choose_model(listed.id, spec_url.main_layer_of(listed.id))
        return True
    if not has_hub_cache():
        return _refuse(TEXTS("refused.cache_off", id=model_id_of_page(id)))
    try:
        path = find_in_cache(id)
        content = None if path is None else read_limited(path, CONFIG_FILE_BYTES)
    except (OSError, ValueError) as error:
        return _refuse(TEXTS("refused.cache", error=error))
    if content is None:
        name = model_id_of_page(id)
        return _refuse(TEXTS("refused.not_cached", id=name), TEXTS("refused.fetch", id=name.partition("@")[0]))
    return _take(content, model_id_of_page(id))


def has_hub_cache() -> bool:
    """True if this server looks up model ids in its Hugging Face cache.

    Everybody who can open the app then learns what the cache holds, so it is off unless `--hub-cache` is given. No
    header and no address shows reliably that a user is at this machine.
    """
    return os.environ.get(HUB_CACHE) == "1"


def _show_findings() -> None:
    mine = own()
    if mine is not None and state.current_choice().subject.model == spec_url.CUSTOM:
        found = summarise_findings(mine)
        if found:
            at = state.address()
            st.page_link(state.page("model"), label=TEXTS("config.findings", summary=found), query_params=at)


def _take(content: str | bytes, name: str, side: Mapping[str, bytes] | None = None) -> bool:
    """Make a config the model, with the files dropped with it, or show the card that says why it is none."""
    spec, model = state.current_choice().spec, state.current_choice().subject.name
    try:
        found, size = session_reader().read_outside(SentContent(own_file.read_file, content, spec, model, side))
        if isinstance(found, Upload):
            state.adopt(found, size)
            return True
    except ValueError as error:  # a limit was met
        found = Diagnosis((describe_refusal(error),))
    reject(name, found, functools.partial(_take, side=side))
    state.frame_too()  # the card takes the place of the page
    return False


def _refuse(*sentences: str) -> bool:
    """Show next to the field why there is no new config, and which model stays. Return False."""
    # A message at the top of a long page would be missed.
    first, *others = sentences
    still = TEXTS("refused.still", model=state.current_choice().subject.name)
    session().problems["upload"] = join(first, still, *others)
    return False
