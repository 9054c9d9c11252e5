"""Who computes a model's rotary embedding differently?"""

from __future__ import annotations

import html

import streamlit as st

from rope_viz.models.catalog import Model
from rope_viz.pages import differences
from rope_viz.pages.differences import words
from rope_viz.pages.differences.figures import TEXTS
from rope_viz.picture import ROUTE
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.picture.public_address import read_public_address
from rope_viz.picture.write_address import add_language, language_query
from rope_viz.runtimes.provenance import EXECUTED_ON
from rope_viz.texts import join
from rope_viz.ui import page


def show() -> None:
    """Show the page."""
    request = page.picture_request(differences.PAGE)
    page.start(TEXTS("heading"), says=differences.matrix)
    page.control_row(differences.MODEL, differences.RUNTIME, differences.ALL)
    page.show(differences.matrix)
    page.legend(join(TEXTS("legend"), TEXTS("choose")))
    _cell(request)
    page.section(TEXTS("counts.title"), says=differences.counts)
    page.show(differences.counts)
    page.paragraph(TEXTS("counts.made", date=EXECUTED_ON))
    picture, query = differences.counts.address, language_query()
    name = f"'{picture}?{query}'" if query else picture
    address = add_language(f"{public_address()}{ROUTE}/{picture}.svg")
    page.code(f"{address}\nrope-viz figure {name} -o differences.svg", "bash")
    _badge(differences.chosen_answer(request).model)
    page.section(TEXTS("details"), says=differences.answers)
    page.show(differences.answers)
    page.end("differences")


def _cell(request: PictureRequest) -> None:
    """Show what the chosen runtime computes for the chosen model, and where to read on."""
    one = differences.chosen_answer(request)
    with st.container(key="cell"):
        st.markdown(words.describe(one))
        more = {"extend.tab": "runtimes"}
        page.link("model", TEXTS("more", model=one.model.name), {"model": one.model.id}, more=more)


def _badge(model: Model) -> None:
    """Show the badge of a model, its address as Markdown, and the command that writes it."""
    page.section(TEXTS("badge.title"), join(TEXTS("badge.model"), TEXTS("badge.about")))
    address, alt = add_language(f"rope-viz/badge/{model.id}.svg"), html.escape(TEXTS("badge.alt", model=model.name))
    # Relative to the page, because a proxy may put the app below a path.
    st.html(f'<img src="{address}" alt="{alt}" height="20">')
    link = add_language(f"{public_address()}/differences?differences.model={model.id}")
    page.code(f"[![{alt}]({public_address()}/{address})]({link})", "markdown")
    page.paragraph(TEXTS("badge.command"))
    page.code("rope-viz badge config.json -o badge.svg", "bash")


def public_address() -> str:
    """Return the address of the app as users reach it, or an example."""
    return read_public_address() or "https://host"


show()
