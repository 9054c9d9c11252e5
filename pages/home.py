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
        _door("learn", TEXTS("doors.learn_about"))
        with st.container(key="door"):
            _door("model")
            upload.drop_field(opens="model")
        _door("explore", TEXTS("doors.explore_about"))
    st.html(f'<nav class="rv-map" aria-label="{TEXTS("map")}"><dl>{"".join(map(_pages_of, doors()))}</dl></nav>')


def _door(door: str, about: str = "") -> None:
    """Show a link to the first page of a door, with one line about it."""
    line = f"<p>{about}</p>" if about else ""
    st.html(f'<div class="rv-door"><a href="/{doors()[door][0]}">{TEXTS(f"doors.{door}")}</a>{line}</div>')


def _pages_of(door: str) -> str:
    pages = doors()[door]
    links = [f'<a href="/{name}">{title_of(name)}</a>' for name in pages]
    if len(pages) == 1:
        return f"<div><dt>{links[0]}</dt></div>"
    return f"<div><dt>{page.TEXTS(f'doors.{door}')}</dt>{''.join(f'<dd>{link}</dd>' for link in links)}</div>"


show()
