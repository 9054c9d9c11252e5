"""Streamlit components with the app's own JavaScript: a small inline loader, and the script from a cached route."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from rope_viz import web
from rope_viz.storage.decode_json import is_deeper
from rope_viz.storage.limits import JSON_LEVELS
from rope_viz.texts import cache_by_language, current_language
from rope_viz.texts.languages import ENGLISH
from rope_viz.texts.outside_text import clean_values, dump_printable
from rope_viz.ui import query_params
from rope_viz.ui.components.scripts import PREFIX, version
from rope_viz.ui.components.sent_values import Check, is_number, read_message
from rope_viz.ui.session import session

# Streamlit resends inline JavaScript with every change of data, so only the loader is inline. It finds the app's root
# from Streamlit's own script, because pages may be at any depth and under a base path. It retries a script that failed
# to load, in browsers that do not remember the failure.
LOADER = f"\n{web.read_inline('loader.js')}\n"


@cache_by_language()
def component(name: str, *, root_class: str, height: int = 0) -> Any:
    """Return the mounting function of the component with script `<name>.js`; `height` px are reserved until it loads.

    Streamlit treats another height as another component and replaces its node. Components whose height varies send
    `room` in their data instead: the heights on a wide and on a narrow screen.
    """
    mount = st.components.v2.component(
        f"rope_viz_{name}_{height}" + ("" if current_language() == ENGLISH else f"_{current_language()}"),
        html=f'<div class="{root_class}" style="min-height:{height}px"></div>',
        js=LOADER % {"path": f"{PREFIX}/{version()}/{name}.js", "root": root_class},
        isolate_styles=False,
    )

    def mounted(
        key: str,
        data: Mapping[str, Any],
        take: Callable[[str, Any], None] | None = None,
        takes: Check = is_number,
        **options: Any,
    ) -> None:
        """Mount it. `take` receives the name and value of each message that the script sends (`outbox.js`).

        `takes` checks the value; a message of another kind is ignored. The script repeats a message until the data
        have its turn as "confirmed"; a repeated one is ignored.
        """

        def apply_message() -> None:
            query_params.catch_up()
            message = read_message(clean_message(st.session_state[key].get("message")), takes)
            if take and message and message.turn != session().confirmed.get(key):
                session().confirmed[key] = message.turn
                take(message.name, message.value)

        if take:
            data = {**data, "confirmed": session().confirmed.get(key)}
            options["on_message_change"] = apply_message
        # Send bytes: Streamlit searches anything else for tables, which takes a tenth of a run.
        mount(key=key, data=dump_printable(data).encode(), **options)

    return mounted


def clean_message(message: Any) -> Any:
    """Return what a script sent without lone surrogates and NUL, None if it is nested more deeply than any message."""
    return None if is_deeper(message, JSON_LEVELS) else clean_values(message)


def copy_button(key: str, label: str, text: str) -> None:
    """Show the page's main button, which copies a text."""
    data = {"label": label, "text": text}
    component("copy", root_class="rv-copy", height=40)(key, data)
