"""The controls that pin the current curve, and remove a pinned one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import streamlit as st

from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures import line_styles, theme
from rope_viz.figures.compared import Compared, compared
from rope_viz.figures.words.common import plain
from rope_viz.models.variant import MOST, Variant, write_variant
from rope_viz.picture.picture_request import Now
from rope_viz.texts import Texts
from rope_viz.ui import state
from rope_viz.ui.notes import warn

TEXTS = Texts("app")


def pin_row(now: Now, spec: RopeSpec | None = None, others: Sequence[RopeSpec] = ()) -> None:
    """Show a chip for each pinned curve, in its colour and dash, and the button that pins the current one.

    `spec` is the drawn spec if it is not that of the sidebar, `others` are further methods in the figure.
    """
    spec = now.spec if spec is None else spec
    current = Variant(now.current.model, now.current.layer, spec, now.current.name)
    curves = compared(spec, others, now.variants, current=current)
    pinned = dict(zip(now.variants, curves[1 + len(others) :], strict=True))
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="pinned"):
        if pinned:
            st.html(f"<style>{''.join(_chip_style(number, each) for number, each in pinned.items())}</style>")
        for number, each in pinned.items():
            remove = TEXTS("variants.unpin", name=each.label)
            options: dict[str, Any] = {"icon": ":material/close:", "icon_position": "right", "help": remove}
            st.button(plain(each.label), key=f"unpin.{number}", on_click=unpin_curve, args=(number,), **options)
        is_full, is_pinned = len(now.variants) >= MOST, current in now.variants.values()
        label, about = TEXTS("variants.pin"), TEXTS("variants.pin_help")
        blocked = is_full or is_pinned
        options = {"icon": ":material/keep:", "help": about, "disabled": blocked}
        st.button(label, key="pin.curve", on_click=pin_curve, args=(current,), **options)
        if blocked:
            st.caption(TEXTS("variants.full" if is_full else "variants.pinned"))
    if problem := st.session_state.pop("unpinnable", ""):
        warn(problem)


def pin_curve(curve: Variant) -> None:
    """Pin a curve under the first free number (a callback)."""
    pinned = state.current_choice().variants
    free = next((number for number in range(1, MOST + 1) if number not in pinned), None)
    try:
        write_variant(curve)
    except ValueError as error:
        st.session_state["unpinnable"] = str(error)
        return
    if free is not None:
        state.choose(variants=dict(sorted({**pinned, free: curve}.items())))
        state.frame_too()  # the links of the header carry it


def unpin_curve(number: int) -> None:
    """Remove a pinned curve (a callback)."""
    pinned = state.current_choice().variants
    state.choose(variants={each: curve for each, curve in pinned.items() if each != number})
    state.frame_too()


def _chip_style(number: int, curve: Compared) -> str:
    """Return CSS that gives a chip the colour and dash of its curve, in both themes."""
    strokes = " ".join(f"{length:g}" for length in line_styles.strokes(curve.dash))
    path = f'<path d="M0 2H28" stroke="#000" stroke-width="2.5" stroke-dasharray="{strokes}"/>'
    line = f'<svg xmlns="http://www.w3.org/2000/svg" width="28" height="4">{path}</svg>'
    chip = f".st-key-unpin-{number}"
    return (
        f'{chip} {{ --rv-curve: {curve.colour}; --rv-line: url("data:image/svg+xml,{quote(line)}") }}'
        f'[data-theme="dark"] {chip} {{ --rv-curve: {theme.DARK[curve.colour]} }}'
    )
