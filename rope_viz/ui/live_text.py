"""The part of the page Recall in which a real model reads a text of the user, where the model is installed."""

from __future__ import annotations

import streamlit as st

from rope_viz.figures.recall import TEXTS
from rope_viz.models.local_models import MODELS
from rope_viz.pictures import recall
from rope_viz.pictures.picture_request import Now
from rope_viz.pictures.recall_choices import COMPARE
from rope_viz.tiny_lm.checkpoints import MAIN_METHODS
from rope_viz.tiny_lm.measure_text import MOST, ROWS, TextLosses, TextRun
from rope_viz.ui import measurement_button, page

LONGEST = 12_000
"""Characters of a text: more than `MOST` tokens of English have."""
FIELD = "recall.text"


def reading_button(now: Now) -> None:
    """Show the text field, the button and the picture; or how to install the model where it is missing."""
    model = MODELS["smollm2"]
    if not model.is_there:
        page.paragraph(TEXTS("live.install"))
        return
    page.paragraph(TEXTS("live.about", most=MOST))
    st.text_area(
        TEXTS("live.field"),
        key=FIELD,
        placeholder=TEXTS("live.placeholder", least=2 * ROWS),
        max_chars=LONGEST,
        height=120,
    )
    chosen = dict.fromkeys(("none", now.spec.scaling.name, *now[COMPARE]))
    methods = tuple(method for method in chosen if method in MAIN_METHODS)
    found = measurement_button.run_button(
        "recall",
        TEXTS("live.button"),
        lambda: TextRun(model.weights, st.session_state.get(FIELD, ""), methods),
        pack=TextLosses.pack,
    )
    if found is not None:
        page.picture_sentence(recall.live_loss)
        page.show(recall.live_loss)
        page.paragraph(TEXTS("real.caveat"))
