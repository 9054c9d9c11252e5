"""The part of the page Recall in which a real model reads a text of the user, where the model is installed."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from rope_viz.models.identity.local_models import MODELS
from rope_viz.pages.recall import real_model as real_recall
from rope_viz.pages.recall.choices import COMPARE, KEYS, MEASURED, REPORT
from rope_viz.pages.recall.figures import TEXTS
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.real_models.measure_text import TextRun
from rope_viz.real_models.text_results import DEPTHS, LEAST, MOST, MOST_DIGITS, TextResult
from rope_viz.tiny_lm.checkpoints import MAIN_METHODS
from rope_viz.ui import page
from rope_viz.ui.measurement_button import run_button

LONGEST = 12_000
"""Characters of a text: more than `MOST` tokens of English have."""
FIELD, KEY_FIELD = "live.text", "live.key"


def show_own_losses(request: PictureRequest) -> None:
    """Show the real model's reading of a user's text, or instead the losses of the user's measured model in a file."""
    if request[MEASURED] is None:
        read_own_text(request)
    else:
        page.paragraph(TEXTS("live.file"))
    page.controls(MEASURED)
    if request[MEASURED] is not None:
        page.picture_sentence(real_recall.live_loss)
        page.show(real_recall.live_loss)


def find_weights() -> Path | None:
    """Return the real model's file; where it is missing, show how to install it and return None."""
    model = MODELS["smollm2"]
    if model.is_there:
        return model.weights
    page.paragraph(TEXTS("live.install"))
    return None


def read_own_text(request: PictureRequest) -> None:
    """Show the text field, the buttons and their results; or how to install the model where it is missing."""
    weights = find_weights()
    if weights is None:
        return
    chosen = dict.fromkeys(("none", request.spec.scaling.name, *request[COMPARE]))
    methods = [method for method in chosen if method in MAIN_METHODS]
    page.paragraph(TEXTS("live.about", most=MOST))
    placeholder = TEXTS("live.placeholder", least=LEAST)
    st.text_area(TEXTS("live.field"), key=FIELD, placeholder=placeholder, max_chars=LONGEST, height=120)

    def start(key: str | None = None) -> TextRun:
        return TextRun(weights, st.session_state.get(FIELD, ""), methods, key)

    if run_button("recall", TEXTS("live.button"), start, pack=TextResult.pack, choice=REPORT.key):
        page.picture_sentence(real_recall.live_loss)
        page.show(real_recall.live_loss)
        page.paragraph(TEXTS("real.caveat"))
    page.paragraph(TEXTS("live.keys_about", depths=len(DEPTHS)))
    st.text_input(TEXTS("live.key_field"), key=KEY_FIELD, value="48213", max_chars=MOST_DIGITS)

    def ask() -> TextRun:
        return start(st.session_state.get(KEY_FIELD, ""))

    if run_button("recall.keys", TEXTS("live.keys_button"), ask, pack=TextResult.pack, choice=KEYS.key):
        page.picture_sentence(real_recall.live_keys)
        page.show(real_recall.live_keys)
        page.paragraph(TEXTS("real.caveat"))
