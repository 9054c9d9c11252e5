"""What differs between two models: RoPE, frequencies, layers that rotate, and memory."""

from __future__ import annotations

import streamlit as st

from rope_viz.models import spec_url
from rope_viz.models.catalog import catalog
from rope_viz.own_files import config_link
from rope_viz.own_files.admit import admit_text
from rope_viz.own_files.outside import SentContent
from rope_viz.pages import compare
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.texts import Texts
from rope_viz.texts.sentences import remove_period
from rope_viz.ui import controls, page, query_params, state, upload
from rope_viz.ui.notes import warn
from rope_viz.ui.session import session
from rope_viz.ui.visitors import session_reader

TEXTS = Texts("compare")


def show() -> None:
    """Show the page."""
    request = page.picture_request(compare.PAGE)
    _cut_old_link(request)
    problem = compare.problem(request)
    if problem:
        page.start(TEXTS("needs_title"), problem)
        _models(request)
        return
    first, second = (side.name for side in compare.found(request).sides)
    page.start(str(TEXTS("heading", first=first, second=second)), says=compare.differences)
    _models(request)
    page.show(compare.differences)
    page.picture_sentence(compare.ratio)
    page.controls(compare.LENGTH)
    page.show(compare.ratio)
    page.legend(TEXTS("legend"))
    page.next_page_link("model", TEXTS("next_page"))
    page.end("compare")


def _cut_old_link(request: PictureRequest) -> None:
    """Write the second config anew into the address, which is copied, if a link of an older release held more."""
    text, second = state.local(compare.WITH.key), request[compare.WITH]
    if text and text not in catalog() and second.own is not None and second.name != text:
        state.set_param(compare.WITH.key, second.name, default="")


def _models(request: PictureRequest) -> None:
    """Show the menus of both models, the button that swaps them, and the field for a second config."""
    with st.container(key="models", horizontal=True, vertical_alignment="bottom", gap="small"):
        with st.container(width=280):
            controls.model_menu()
        with st.container(width=280):
            _second_menu(request)
        st.button(TEXTS("swap"), key="swap", icon=":material/swap_horiz:", on_click=_swap, args=(request,))
        with st.popover(TEXTS("first"), key="first"):
            upload.drop_field()
            upload.paste_field()
            upload.state_of_config()
        with st.popover(TEXTS("own"), key="second"):
            _second_config()
    if problem := session().problems.pop("second", ""):
        warn(problem)


def _second_menu(request: PictureRequest) -> None:
    """Show the menu of second models, the user's own first."""
    key, value = "choice.compare.with", request[compare.WITH].name
    names = {name: model.name for name, model in catalog().items()}
    if value not in names:
        names = {value: TEXTS("own_name")} | names
    st.session_state[key] = value

    def changed() -> None:
        _take(st.session_state[key], request)

    st.selectbox(TEXTS("choices.with"), list(names), format_func=names.__getitem__, key=key, on_change=changed)


def _second_config() -> None:
    """Show fields to drop or paste the second config."""
    st.file_uploader(TEXTS("dropped"), key="second.file", on_change=_dropped)
    with st.form("second.form", border=False):
        st.text_area(TEXTS("pasted"), key="second.text", height=140)
        st.form_submit_button(TEXTS("use"), on_click=_pasted, width="stretch")


def _dropped() -> None:
    file = st.session_state["second.file"]
    if file is not None:
        _read(file.getvalue())


def _pasted() -> None:
    _read(st.session_state["second.text"] or "")


def _read(content: str | bytes) -> None:
    """Make a config the second model, or say why it is none."""
    query_params.catch_up()
    try:
        text = config_link.write_config(session_reader().read_outside(SentContent(admit_text, content))[0])
    except ValueError as error:
        session().problems["second"] = str(TEXTS("refused", error=remove_period(str(error))))
        return
    if not text:
        session().problems["second"] = str(TEXTS("too_long"))
        return
    _take(text)


def _take(text: str, request: PictureRequest | None = None) -> None:
    default = "" if request is None else compare.WITH.default(request).name
    state.set_param(compare.WITH.key, text, default=default)
    # The two models may have another length in common.
    state.set_param(compare.LENGTH.key, "", default="")
    state.frame_too()


def _swap(request: PictureRequest) -> None:
    """Make the second model the first (a callback)."""
    query_params.catch_up()
    first, second = request.model, request[compare.WITH]
    if first == spec_url.CUSTOM:
        first = "" if request.own is None else config_link.write_config(request.own)
        if not first:
            session().problems["second"] = str(TEXTS("too_long"))
            return
    if second.own is None:
        state.choose_model(second.name, spec_url.main_layer_of(second.name))
    else:
        state.adopt(second.own)
    _take(first)


show()
