"""Text sections of My model: the recognised config, the file and flags to write, and the check snippets."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from rope_viz.advice.plan.extension_plan import ExtensionPlan
from rope_viz.advice.plan.runtime_instructions import Instructions, format_diff
from rope_viz.figures.words import plain, plain_with_footnote
from rope_viz.pages.model.extend import words
from rope_viz.texts import Texts
from rope_viz.ui import configs

TEXTS = Texts("model/extend")


def have(plan: ExtensionPlan) -> None:
    """Show which model the config is, which of its lengths are wrong, and the check's findings."""
    st.markdown(words.have(plan))
    if plan.recognised.mistakes:
        st.markdown(words.list_mistakes(plan))
    configs.listed_findings(plan.found)


def file(plan: ExtensionPlan) -> None:
    """Show the new config.json as a diff, or why the page offers no file."""
    st.markdown(words.describe_support(plan))
    if plan.file.fragment:
        changed = format_diff(plan.config, plan.file.config)
        st.code(changed, language="diff", wrap_lines=True, height=360 if changed.count("\n") > 20 else "content")
    if not plan.file.fit:
        st.markdown(TEXTS("no_download", problem=plain(plan.file.findings[0].message)))


def runtimes(plan: ExtensionPlan) -> None:
    """Show how to configure each runtime, and whether that has the intended effect."""
    if not plan.instructions:
        st.markdown(TEXTS("no_runtime"))
    for one in plan.instructions:
        st.subheader(one.name, anchor=False)
        proof = plain_with_footnote(one.proof, one.made.known.source.rstrip("."))
        st.markdown(proof.replace("Checked:", "**Checked:**"))
        if one.text and one.text not in one.command:
            st.code(one.text, language=one.language, wrap_lines=True, height=_height(one.text))
        st.code(one.command, language="bash", wrap_lines=True)
        for note in one.notes:
            st.caption(plain(note))


def checks(plan: ExtensionPlan) -> None:
    """Show a verification snippet per runtime, the log line to look for, and the passkey test."""
    st.markdown(TEXTS("verify"))
    for one in plan.instructions:
        st.subheader(TEXTS("verify_in", name=one.name), anchor=False)
        _check(one, plan.verify_command)
    st.markdown(TEXTS("passkey"))
    server = "rope-viz evaluate --server extended=http://localhost:8000/v1 -o recall.json"
    st.code(server, language="bash", wrap_lines=True)


def _check(one: Instructions, command: str) -> None:
    shell = one.runtime == "llama.cpp"
    st.code(one.check, language="bash" if shell else "python", wrap_lines=True, height=_height(one.check))
    if not shell:
        st.code(command, language="bash", wrap_lines=True)
    if one.log:
        st.markdown(TEXTS("log", line=one.log))


def _height(text: str) -> int | Literal["content"]:
    return 320 if text.count("\n") > 14 or len(text) > 1600 else "content"
