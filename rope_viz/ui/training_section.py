"""The tab Training of My model: trainers against servers, and what makes the chosen server match."""

from __future__ import annotations

import streamlit as st

from rope_viz.advice.match_training import describe_match
from rope_viz.figures.words.common import plain
from rope_viz.figures.words.training import TEXTS
from rope_viz.pictures import runtimes
from rope_viz.pictures.picture_request import Now
from rope_viz.ui import page


def show(now: Now) -> None:
    """Show the matrix and the chosen cell."""
    problem = runtimes.unmatched(now)
    if problem:
        page.paragraph(problem)
        return
    page.controls(runtimes.AT, runtimes.VLLM, runtimes.SGLANG)
    page.picture_sentence(runtimes.training)
    page.show(runtimes.training)
    page.legend(TEXTS("legend"))
    _chosen(now)


def _chosen(now: Now) -> None:
    """Show the match of the chosen trainer and server."""
    match = runtimes.chosen_match(now)
    training, server = match.training, match.emulation
    st.subheader(plain(TEXTS("pair", trainer=training.name, server=server.name)), anchor=False)
    st.markdown(plain(describe_match(match)))
