"""Who computes a model's rotary embedding differently?"""

from __future__ import annotations

import streamlit as st

from rope_viz.pages import differences
from rope_viz.pages.differences import words
from rope_viz.pages.differences.figures import TEXTS
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.ui import page


def show() -> None:
    """Show the page."""
    request = page.picture_request(differences.PAGE)
    page.start(TEXTS("heading"), says=differences.matrix)
    page.control_row(differences.MODEL, differences.RUNTIME, differences.ALL)
    page.show(differences.matrix)
    page.legend(TEXTS("legend"))
    _cell(request)
    page.section(TEXTS("details"), says=differences.answers)
    page.show(differences.answers)
    page.section(TEXTS("counts.title"), says=differences.counts)
    page.show(differences.counts)
    page.end("differences")


def _cell(request: PictureRequest) -> None:
    """Show what the chosen runtime computes for the chosen model, and where to read on."""
    one = differences.chosen_answer(request)
    with st.container(key="cell"):
        st.markdown(words.describe(one))
        more = {"extend.tab": "runtimes"}
        page.link("model", TEXTS("more", model=one.model.name), {"model": one.model.id}, more=more)


show()
