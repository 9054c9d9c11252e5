"""Does a model still find what it read?"""

import streamlit as st

from rope_viz.evaluation.search_process import LENGTH, STARTS, TRIALS, SearchReport, SearchRun, has_optuna
from rope_viz.figures.compared import short_label
from rope_viz.pages import recall
from rope_viz.pages.recall import bands, choices, real_model, words
from rope_viz.pages.recall.figures import TEXTS
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.real_models import TEXTS as RUN
from rope_viz.real_models.measure_text import TextRun
from rope_viz.real_models.text_results import DEPTHS, LEAST, MOST, MOST_DIGITS, TextResult
from rope_viz.texts.texts import join_list
from rope_viz.tiny_lm.checkpoints import MAIN_METHODS
from rope_viz.ui import page
from rope_viz.ui.measurement_button import find_weights, run_button

LONGEST = 12_000
"""Characters of a text: more than `MOST` tokens of English have."""
FIELD, KEY_FIELD = "live.text", "live.key"


def show() -> None:
    """Show the page."""
    page.start(TEXTS("title"), TEXTS("about"), says=recall.lengths)
    page.control_row(choices.COMPARE, choices.UP_TO)
    page.show(recall.lengths)
    page.legend(TEXTS("legend"))

    name, tab = page.tabs(choices.TAB)
    with tab:
        {"real": show_real, "pairs": show_pairs, "training": show_training, "own": show_own}[name]()
    page.end("recall")


def show_real() -> None:
    """Show what was measured with a real model."""
    page.section(TEXTS("headings.real"), says=real_model.real_loss)
    page.show(real_model.real_loss)
    page.picture_sentence(real_model.real_cost)
    page.show(real_model.real_cost)
    page.picture_sentence(real_model.short_cost)
    page.show(real_model.short_cost)
    page.paragraph(TEXTS("real.caveat"))
    page.section(TEXTS("headings.real_keys"), says=real_model.real_keys)
    page.show(real_model.real_keys)


def show_bands() -> None:
    """Show what a change of some pairs costs the real model, or the user's in a file."""
    page.section(TEXTS("headings.bands"), says=bands.band_loss)
    page.control_row(choices.GROUP, choices.CHANGE)
    page.show(bands.band_loss)
    page.picture_sentence(bands.band_needle)
    page.show(bands.band_needle)


def show_pairs() -> None:
    """Show which pairs the real model needs, which ones tiny_lm needs, and where in a text it finds facts."""
    show_bands()
    page.section(TEXTS("headings.maps"), says=recall.needle)
    page.show(recall.needle)

    page.section(TEXTS("headings.switched"), says=recall.switched)
    page.control_row(choices.BAND, choices.HOW, choices.FIRST, choices.LAST)
    page.show(recall.switched)
    page.picture_sentence(recall.carry)
    page.controls(choices.AT)
    page.show(recall.carry)

    page.section(TEXTS("headings.heads"), TEXTS("heads.about"))
    for pictures in ((recall.previous, recall.previous_pairs), (recall.finder, recall.finder_pairs)):
        for column, picture in zip(page.columns(), pictures, strict=True):
            with column:
                page.picture_sentence(picture)
                page.show(picture)


def show_training() -> None:
    """Show what fine-tuning and a search for frequencies change."""
    page.section(TEXTS("headings.recover"), says=recall.recover)
    page.controls(choices.TUNED)
    page.show(recall.recover)

    page.section(TEXTS("headings.loss"), says=recall.loss)
    page.controls(choices.READ_TO)
    page.show(recall.loss)
    page.section(TEXTS("headings.search"))
    search_frequencies(page.picture_request(choices.PAGE))


def show_own() -> None:
    """Show the user's text, read by the real model, and the user's model."""
    page.section(TEXTS("headings.live"))
    show_own_losses(page.picture_request(choices.PAGE))

    page.section(TEXTS("headings.yours"), says=recall.yours)
    page.controls(choices.ASKED)
    page.show(recall.yours)


def show_own_losses(request: PictureRequest) -> None:
    """Show the real model's reading of a user's text, or instead the losses of the user's measured model in a file."""
    if request[choices.MEASURED] is None:
        read_own_text(request)
    else:
        page.paragraph(TEXTS("live.file"))
    page.controls(choices.MEASURED)
    if request[choices.MEASURED] is not None:
        page.picture_sentence(real_model.live_loss)
        page.show(real_model.live_loss)
    if (held := request[choices.MEASURED]) is not None and held.value.bands is not None:
        show_bands()


def read_own_text(request: PictureRequest) -> None:
    """Show the text field, the buttons and their results; or how to install the model where it is missing."""
    weights = find_weights()
    if weights is None:
        return
    chosen = dict.fromkeys(("none", request.spec.scaling.name, *request[choices.COMPARE]))
    methods = [method for method in chosen if method in MAIN_METHODS]
    page.paragraph(TEXTS("live.about", most=MOST))
    placeholder = TEXTS("live.placeholder", least=LEAST)
    st.text_area(RUN("live.field"), key=FIELD, placeholder=placeholder, max_chars=LONGEST, height=120)

    def start(key: str | None = None) -> TextRun:
        return TextRun(weights, st.session_state.get(FIELD, ""), methods, key)

    if run_button("recall", RUN("live.button"), start, pack=TextResult.pack, choice=choices.REPORT.key):
        page.picture_sentence(real_model.live_loss)
        page.show(real_model.live_loss)
        page.paragraph(TEXTS("real.caveat"))
    page.paragraph(TEXTS("live.keys_about", depths=len(DEPTHS)))
    st.text_input(TEXTS("live.key_field"), key=KEY_FIELD, value="48213", max_chars=MOST_DIGITS)

    def ask() -> TextRun:
        return start(st.session_state.get(KEY_FIELD, ""))

    if run_button("recall.keys", TEXTS("live.keys_button"), ask, pack=TextResult.pack, choice=choices.KEYS.key):
        page.picture_sentence(real_model.live_keys)
        page.show(real_model.live_keys)
        page.paragraph(TEXTS("real.caveat"))


def search_frequencies(request: PictureRequest) -> None:
    """Show the button with its progress, the best frequencies so far or at the end, and the field for a file."""
    if request[choices.SEARCH_FILE] is not None:
        page.paragraph(TEXTS("search.file"))
    elif not has_optuna():
        page.paragraph(TEXTS("search.install"))
    else:
        starts = join_list([short_label(name) for name in STARTS])
        page.paragraph(TEXTS("search.about", length=LENGTH, starts=starts, trials=TRIALS))
        run_button(
            "recall.search",
            TEXTS("search.button"),
            SearchRun,
            pack=SearchReport.pack,
            choice=choices.SEARCHED.key,
            watch=count_trials,
        )
    page.picture_sentence(recall.searched)
    page.show(recall.searched)
    page.picture_sentence(recall.searched_scores)
    page.show(recall.searched_scores)
    result, _ = recall.find_search(page.picture_request(choices.PAGE))
    page.paragraph(TEXTS("search.config"))
    page.code(words.format_config(result.config), "json")
    page.controls(choices.SEARCH_FILE)


def count_trials(report: SearchReport) -> int:
    """Return the number of the best trial, counted from 1, 0 before the first one."""
    return int(report.found["best"]["trial"]) + 1 if report.found else 0


show()
