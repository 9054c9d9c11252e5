"""How exactly, and how fast, are q and k rotated for real?"""

import streamlit as st

from rope_viz.kernels.measurement_process import TEXTS as RUN
from rope_viz.kernels.measurement_process import Run
from rope_viz.pages import kernels
from rope_viz.pages.kernels import words
from rope_viz.pages.kernels.figures import TEXTS
from rope_viz.ui import page
from rope_viz.ui.measurement_button import run_button

page.start(TEXTS("title"), says=kernels.errors)
page.show(kernels.errors)
page.mobile_knobs("base", "head_dim")
page.legend(TEXTS("legend"))
page.next_page_link("model", TEXTS("next_page"))

card = kernels.read_card(page.picture_request(kernels.PAGE))
page.section(TEXTS("headings.card", device=card.device, measured=card.measured), says=kernels.cards)
page.controls(kernels.CARD)
page.show(kernels.cards)
page.picture_sentence(kernels.card_times)
page.show(kernels.card_times)

page.section(TEXTS("headings.measure"), words.explain_measurement())
page.control_row(kernels.PAIRING, kernels.DTYPE, kernels.TOKENS, kernels.DEVICE, kernels.COMPILE)
workload = kernels.workload(page.picture_request(kernels.PAGE))
report = run_button("kernels", RUN("measure.button"), lambda: Run(**workload), pack=kernels.pack_report)
if report:
    page.picture_sentence(kernels.speeds)
    page.show(kernels.speeds)
    page.picture_sentence(kernels.ways)
    page.show(kernels.ways)
    page.section(TEXTS("headings.agreement"), says=kernels.agreement)
    page.show(kernels.agreement)
    st.download_button(
        TEXTS("download"),
        kernels.pack_report(report),
        file_name="rope-kernels.json",
        mime="application/json",
        on_click="ignore",
        key="download.rope-kernels",
    )

page.explain("kernels")
page.section(TEXTS("headings.code"))
page.end("kernels/code")
