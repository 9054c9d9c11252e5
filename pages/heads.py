"""Which pairs does a real model's head use?"""

import streamlit as st

from rope_viz.pages import heads
from rope_viz.pages.heads.figures import TEXTS
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.real_models import TEXTS as RUN
from rope_viz.real_models.capture_text import LEAST, MOST, CaptureReport, CaptureRun
from rope_viz.ui import page
from rope_viz.ui.measurement_button import find_weights, run_button

LONGEST = 2_000
"""Characters of a text: more than `MOST` tokens of English have."""
FIELD = "live.heads"


def show() -> None:
    """Show the page."""
    page.start(TEXTS("title"), says=heads.jobs)
    page.controls(heads.CHOSEN)
    page.show(heads.jobs)
    page.legend(TEXTS("real.legend", **heads.THRESHOLDS))
    name, tab = page.tabs(heads.TAB)
    with tab:
        {"head": show_head, "whole": show_whole, "own": show_own}[name]()
    page.link("model", TEXTS("vectors"), more={"extend.tab": "why"})
    page.end("heads")


def show_head() -> None:
    """Show what the chosen head of the real model does, and what each method changes."""
    page.section(TEXTS("headings.uses"), says=heads.uses)
    for column, picture in zip(page.columns(), (heads.uses, heads.changed), strict=True):
        with column:
            page.show(picture)
    page.picture_sentence(heads.changed)
    is_own = heads.own_model(page.picture_request(heads.PAGE)) is not None
    page.paragraph(TEXTS("real.own_caveat" if is_own else "real.caveat"))

    page.section(TEXTS("headings.sentence"), says=heads.sentence)
    page.controls(heads.ROTATION)
    page.show(heads.sentence)


def show_whole() -> None:
    """Show what all layers of a model carry, the heads of one, and the curve that the centres of q and k give."""
    page.section(TEXTS("headings.groups"), says=heads.groups)
    page.control_row(heads.CHANGE, heads.MEASURE)
    page.show(heads.groups)

    page.section(TEXTS("headings.layers"), says=heads.layers)
    page.paragraph(TEXTS("whole.about"))
    page.controls(heads.FILE)
    page.controls(heads.CARRIES)
    page.show(heads.layers)
    page.legend(TEXTS("whole.legend"))

    page.section(TEXTS("headings.carried"), says=heads.carried)
    page.controls(heads.OF_LAYER)
    page.show(heads.carried)

    page.section(TEXTS("headings.concentration"), says=heads.concentration)
    page.show(heads.concentration)
    page.section(TEXTS("rebuilt_title"), says=heads.rebuilt)
    page.controls(heads.OF_HEAD)
    page.show(heads.rebuilt)
    page.legend(TEXTS("whole.rebuilt_legend"))


def show_own() -> None:
    """Show the fields for a model or text of the user's, and the heads captured from it."""
    page.controls(heads.MEASURED)
    page.section(TEXTS("headings.own"), says=heads.across)
    page.controls(heads.FILE)
    capture_own_text(page.picture_request(heads.PAGE))
    page.control_row(heads.SHOW, heads.LAYER)
    page.show(heads.across)
    page.legend(TEXTS("legend"))

    page.section(TEXTS("headings.head"), says=heads.distance)
    page.controls(heads.HEAD)
    page.show(heads.distance)
    for column, picture in zip(page.columns(), (heads.attention, heads.pairs), strict=True):
        with column:
            page.show(picture)


def capture_own_text(request: PictureRequest) -> None:
    """Show the text field and the button; or that a file is shown; or how to install the model where it is missing."""
    if request[heads.FILE] is not None:
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

    run_button("heads", RUN("live.button"), start, pack=CaptureReport.pack, choice=heads.LIVE.key)


show()
