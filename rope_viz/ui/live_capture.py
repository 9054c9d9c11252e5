"""The part of the page Heads in which a real model reads a text of the user, where the model is installed."""

from __future__ import annotations

import streamlit as st

from rope_viz.pages.heads import FILE, LIVE
from rope_viz.pages.heads.figures import TEXTS
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.real_models.capture_text import LEAST, MOST, CaptureReport, CaptureRun
from rope_viz.real_models.capture_text import TEXTS as RUN
from rope_viz.ui import page
from rope_viz.ui.live_text import find_weights
from rope_viz.ui.measurement_button import run_button

LONGEST = 2_000
"""Characters of a text: more than `MOST` tokens of English have."""
FIELD = "live.heads"


def capture_own_text(request: PictureRequest) -> None:
    """Show the text field and the button; or that a file is shown; or how to install the model where it is missing."""
    if request[FILE] is not None:
        page.paragraph(TEXTS("live.file"))
        return
    weights = find_weights()
    if weights is None:
        return
    page.paragraph(TEXTS("live.about", most=MOST))
    placeholder = TEXTS("live.placeholder", least=LEAST)
    st.text_area(RUN("live.field"), key=FIELD, placeholder=placeholder, max_chars=LONGEST, height=120)

    def start() -> CaptureRun:
        return CaptureRun(weights, st.session_state.get(FIELD, ""))

    run_button("heads", RUN("live.button"), start, pack=CaptureReport.pack, choice=LIVE.key)
