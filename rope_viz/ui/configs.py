"""Parts of a page that show a config: its findings, and downloads."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from rope_viz.advice.lint import Finding, check, repair
from rope_viz.advice.plan.runtime_matrix import RuntimeCase
from rope_viz.figures.words import footnote, plain
from rope_viz.models import spec_url
from rope_viz.texts import Texts, cache_by_language
from rope_viz.texts.sentences import end_sentence
from rope_viz.ui import state
from rope_viz.ui.own_config import is_from_link

TEXTS = Texts("app")


def findings(question: RuntimeCase) -> None:
    """Show all findings of the check, worst first, and offer the repaired config."""
    text = json.dumps(question.clean)
    found = _check(text)
    listed_findings(found)
    if not found:
        return
    if any(one.repaired is not None for one in found):
        download(TEXTS("findings.download"), _repaired(text), "repaired")
    else:
        st.markdown(TEXTS("findings.no_repair"))


# Cached: a page runs with every click, and the check takes half of the time.
@cache_by_language(64)
def _check(text: str) -> tuple[Finding, ...]:
    return tuple(check(json.loads(text)))


@functools.lru_cache(64)
def _repaired(text: str) -> dict[str, Any]:
    return repair(json.loads(text))


def listed_findings(found: Sequence[Finding]) -> None:
    """Show the findings, one line each."""
    if not found:
        st.markdown(TEXTS("findings.none"))
        return
    st.markdown("\n".join(f"- {_finding(one)}" for one in found))


def download(label: str, config: Mapping[str, Any], name: str, *, stretch: bool = False) -> None:
    """Offer a config for download, unless it is part of one that came with a link.

    `stretch`: by a button as wide as its column.
    """
    if is_from_link() and state.current_choice().subject.model == spec_url.CUSTOM:
        st.markdown(TEXTS("link.no_download"))
        return
    st.download_button(
        label,
        json.dumps(config, indent=2, ensure_ascii=False) + "\n",
        file_name="config.json",
        mime="application/json",
        on_click="ignore",
        key=f"download.config.{name}",
        width="stretch" if stretch else "content",
    )


def _finding(one: Finding) -> str:
    place = f" · `{one.key.replace('`', '')[:80]}`" if one.key else ""
    effect = one.effect
    size = f" {TEXTS('findings.effect', ratio=effect.ratio, pair=effect.pair)}" if effect else ""
    first = one.message.split(" ")[0]
    # A sentence that begins with a key keeps the key's lower case.
    message = one.message if "_" in first else one.message[:1].upper() + one.message[1:]
    severity = TEXTS(f"findings.{one.severity}")
    return f"**{severity}**{place}: {plain(end_sentence(message))}{size}{footnote(one.source)}"
