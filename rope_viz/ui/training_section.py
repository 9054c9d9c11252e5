"""The tab Training of My model: trainers against servers, and what makes the chosen server match."""

from __future__ import annotations

import streamlit as st

from rope_viz.advice.training.make_match import Remedy
from rope_viz.advice.training.match_training import Match, describe_match
from rope_viz.advice.verify.identify_rotation import identify, read_values
from rope_viz.figures.words import footnote, plain
from rope_viz.pages.model import runtimes
from rope_viz.pages.model.runtimes.words import TEXTS, describe_rotation
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.runtimes.releases import format_version
from rope_viz.ui import page
from rope_viz.ui.notes import warn

LARGEST = 64
"""MiB that the field accepts: above the limit of such a file, because Streamlit rejects files without a message."""


def show(request: PictureRequest) -> None:
    """Show the matrix and the chosen cell."""
    problem = runtimes.unmatched(request)
    if problem:
        page.paragraph(problem)
        return
    page.controls(runtimes.AT, runtimes.VLLM, runtimes.SGLANG)
    page.picture_sentence(runtimes.training)
    page.show(runtimes.training)
    page.legend(TEXTS("legend"))
    match = runtimes.chosen_match(request)
    with st.container(key="match"):
        _match(match)
        _remedy(match, runtimes.chosen_remedy(request))
        st.caption(TEXTS("command"))
        page.code(write_command(match), "bash")
    _identify(request)


def _match(match: Match) -> None:
    """Show by how much the chosen trainer and server differ, and why."""
    training, server = match.training, match.emulation
    page.section(TEXTS("pair", trainer=training.name, server=server.name))
    st.markdown(plain(describe_match(match)))
    rules = [plain(rule.text) for rule in training.rules]
    source = f"{TEXTS(f'evidence.{training.evidence}')}: {training.trainer.source}"
    st.markdown("\n".join(f"- {text}" for text in [*rules[:-1], *(f"{text}{footnote(source)}" for text in rules[-1:])]))


def _remedy(match: Match, remedy: Remedy) -> None:
    """Show what makes the server compute what was trained, or why nothing does."""
    st.subheader(TEXTS("match.title"), anchor=False)
    server = match.emulation.name
    if remedy.reason:
        st.markdown(plain(remedy.reason))
    if not remedy.text:
        return
    key = "closest" if not remedy.matches else "config" if remedy.is_config else "options"
    st.markdown(TEXTS(f"match.{key}", server=plain(server)))
    with st.container(key="remedy"):
        page.code(remedy.text, "json" if remedy.is_config else "bash")


def _identify(request: PictureRequest) -> None:
    """Show the field to drop frequencies or rotated vectors into, and what they are."""
    page.section(TEXTS("identify.title"))
    file = st.file_uploader(
        TEXTS("identify.drop"), key="identify.file", help=TEXTS("identify.help"), max_upload_size=LARGEST
    )
    if file is None:
        return
    try:
        values = read_values(file.name, file.getvalue())
    except ValueError as error:
        warn(TEXTS("identify.refused", problem=str(error).rstrip(".")))
        return
    asked = runtimes.config_in_question(request)
    try:
        found = identify(values, asked.clean, asked.layer)
    except ValueError as error:
        warn(TEXTS("identify.uncompared", problem=str(error).rstrip(".")))
        return
    with st.container(key="identified"):
        st.markdown(describe_rotation(found))


def write_command(match: Match) -> str:
    """Return the command that makes the same comparison."""
    training, server = match.training, match.emulation
    release = f"{training.trainer.name}={training.version}"
    return f"rope-viz match config.json --trainer {release} --server {server.runtime}={format_version(server.version)}"
