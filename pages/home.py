"""The first page: the two gestures that explain RoPE, three doors, and a map of all pages."""

from __future__ import annotations

import json

import streamlit as st

from rope_viz.figures import hands
from rope_viz.pages import home
from rope_viz.pages.registry import doors, title_of
from rope_viz.texts import Texts
from rope_viz.ui import page, upload

TEXTS = Texts("home")


def show() -> None:
    """Show the page."""
    with st.container(key="home"):
        page.start(hands.TEXTS("headline"))
        page.show(home.turning)
    drop = json.dumps(TEXTS("doors.drop"), ensure_ascii=False)
    st.html(f"<style>.st-key-doors {{ --rv-drop: {drop} }}</style>")
    with st.container(key="doors"):
        _door("learn", "learn", TEXTS("doors.learn_about"))
        with st.container(key="door"):
            _door("model", "model")
            upload.drop_field(opens="model")
        _door("figure", "gallery", TEXTS("doors.figure_about"))
    st.html(f'<nav class="rv-map" aria-label="{TEXTS("map")}"><dl>{"".join(map(_pages_of, doors()))}</dl></nav>')


def _door(name: str, to: str, about: str = "") -> None:
    """Show a link to a page that answers what a user came for, with one line about it."""
    line = f"<p>{about}</p>" if about else ""
    st.html(f'<div class="rv-door"><a href="/{to}">{TEXTS(f"doors.{name}")}</a>{line}</div>')


def _pages_of(door: str) -> str:
    pages = doors()[door]
    links = [f'<a href="/{name}">{title_of(name)}</a>' for name in pages]
    if len(pages) == 1:
        return f"<div><dt>{links[0]}</dt></div>"
    return f"<div><dt>{page.TEXTS(f'doors.{door}')}</dt>{''.join(f'<dd>{link}</dd>' for link in links)}</div>"


show()
