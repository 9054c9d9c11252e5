"""The frame around every page: navigation, the choice read from the address, the sidebar and the page body."""

from __future__ import annotations

import asyncio
import functools
import gc
import importlib
import json
import pkgutil
from collections.abc import Mapping
from pathlib import Path
from types import CodeType

import streamlit as st

from rope_viz import figures, pages, reports, ui
from rope_viz import picture as kit
from rope_viz.embedding.spec import short_repr
from rope_viz.models.catalog import catalog
from rope_viz.pages import registry
from rope_viz.pages.differences.figures import list_answers
from rope_viz.pages.model import extend
from rope_viz.pages.registry import ORDER, door_of, groups_of, pictures_on, title_of, titles
from rope_viz.picture import read_address
from rope_viz.picture.choices import Number
from rope_viz.picture.outputs import Clocks
from rope_viz.picture.page import Picture
from rope_viz.texts import Texts, use_language
from rope_viz.texts.languages import list_languages
from rope_viz.ui import controls, state, upload, widgets
from rope_viz.ui.components import navigation, picture, scripts
from rope_viz.ui.components.component import component
from rope_viz.ui.components.picture import place
from rope_viz.ui.language import read_language
from rope_viz.ui.notes import warn
from rope_viz.ui.rejected_config import rejected_config, show_card
from rope_viz.ui.session import session
from rope_viz.ui.visitors import take_refusal

MAIN = "1"

POSITIONS = ("position", "m", "at", "offset")
"""Names of the choices that are a position or a distance in tokens."""

LENGTHS = ("context", "target")


def _words_of_style() -> str:
    """Return the variables of the style sheet that hold words."""
    texts = controls.TEXTS
    size = texts("config.size", size=st.get_option("server.maxUploadSize"))
    words = {"drop": texts("config.drop_hint"), "upload": texts("config.upload"), "size": size}
    return "; ".join(f"--rv-{name}: {json.dumps(text, ensure_ascii=False)}" for name, text in words.items())


def find_presented(page: str) -> Picture | None:
    """Return the picture that the address asks to present, None for none. Show a warning for an unknown one."""
    name = st.query_params.get(state.PRESENTED)
    if name is None:
        return None
    found = {each.name: each for group in groups_of(page) for each in registry.page(group).pictures.values()}
    drawn = {
        each: picture for each, picture in found.items() if not picture.refuses(state.picture_request(picture.page))
    }
    usual = [each for each in (*pictures_on(page), *drawn.values()) if each.name in drawn]
    presented = next(iter(usual), None) if name == MAIN else drawn.get(name)
    if presented is None:
        warn(TEXTS("present.unknown", name=short_repr(name), pictures=", ".join(drawn) or TEXTS("present.none")))
    return presented


def show_presented(page: str, picture: Picture) -> None:
    """Show a picture with its sentence, and below it the sliders and the script that listens to the keys."""
    request = state.picture_request(picture.page)
    positions = [
        each for each in picture.uses if isinstance(each, Number) and each.name in POSITIONS and each.when(request)
    ]
    with st.container(key="present"):
        st.title(title_of(page), anchor=False)
        st.html(f'<p class="rv-says" data-says="{picture.address}"></p>')
        place(picture, request)
        with st.container(key="present-bar"):
            if positions:
                widgets.sliders(positions[:1], request)
            length = controls.presented_knobs(LENGTHS)
            data = {
                "picture": picture.address,
                "position": positions[0].name if positions else "",
                "clocks": picture.kind is Clocks,
                "length": length,
            }
            component("present", root_class="rv-present", height=44)("present keys", data, take_message)


def take_message(name: str, value: object) -> None:
    """Show the page again (a callback)."""
    if name == "leave":
        state.present("")


# The repository root in a checkout; the installed package has its assets inside.
ROOT = Path(__file__).parents[2]
ASSETS = next(at for at in (ROOT / "rope_viz" / "app" / "assets", ROOT / "assets") if at.is_dir())

STYLE = Path(__file__).with_name("frame.css")
TEXTS = Texts("app")


def run(folder: Path) -> None:
    """Run the whole app once: the pages in `folder`, the first of them at the root address."""
    with use_language(read_language()):
        _run(folder)


def _run(folder: Path) -> None:
    menu = state.menu(folder)
    name = st.navigation(list(menu.values()), position="hidden").url_path or ORDER[0]
    icon = read_text(ASSETS / "icon.svg")
    title = "RoPE Viz" if name == ORDER[0] else TEXTS("page_title", page=title_of(name))
    # In the Lab the panel with the model is closed until the button in the header opens it.
    st.set_page_config(
        page_title=title,
        page_icon=icon,
        layout="wide",
        initial_sidebar_state="collapsed" if door_of(name) == "lab" else "auto",
    )
    session().folder = folder
    _go(menu)
    state.follow_link(name)
    state.invalidate()
    shown = {group: registry.page(group).pictures.values() for group in groups_of(name)}
    rooms = "".join(picture.rooms(pictures, state.picture_request(group)) for group, pictures in shown.items())
    st.html(f"<style>:root {{ {_words_of_style()} }}{read_text(STYLE)}{rooms}</style>")
    door = door_of(name)
    chip = controls.describe_choice(name)
    navigation.mount(name, list(titles()), state.address(), chip, controls.copied_texts())
    presented = find_presented(name)
    if presented is None and (door == "explore" or (door == "lab" and controls.shows_model(name))):
        controls.sidebar(name)
        st.html('<div class="rv-chip-place"></div>')
    rejected = rejected_config() if door not in ("", "learn") else None
    if rejected is not None:
        show_card(rejected, state.current_choice().subject.name)
        if door == "model":
            upload.drop_field()
        return
    controls.messages()
    session().needs_whole_run = False  # this is one
    if presented is None:
        run_page(folder / f"{name}.py")
    else:
        with picture.places():
            show_presented(name, presented)


def _go(menu: Mapping[str, st.Page]) -> None:
    """Follow a clicked in-app link, in this tab and session."""
    link = navigation.clicked_link()
    if link is not None and link[0] in menu:
        st.switch_page(menu[link[0]], query_params=link[1] or None)


@st.fragment
def run_page(path: Path) -> None:
    """Run a page as a fragment, so that its own controls rerun only the page and not the sidebar.

    `Page.run` may be called only once per run of the app, and a fragment runs more often. So the code is executed here.
    """
    if session().needs_whole_run:
        st.rerun()
    state.invalidate()
    controls.address_messages()
    with use_language(read_language()), picture.places():
        if refusal := take_refusal():
            warn(refusal)
        exec(compile_page(path), {"__name__": "__main__", "__file__": str(path)})


@functools.cache
def read_text(path: Path) -> str:
    """Return a small file's text, to be inlined: a Streamlit media address is valid in one server process only."""
    return path.read_text(encoding="utf-8")


@functools.cache
def compile_page(path: Path) -> CodeType:
    """Compile a page, once per process."""
    return compile(path.read_text(encoding="utf-8"), str(path), "exec")


def warm() -> None:
    """Import every module the pages need, then freeze them out of garbage collection.

    Call once per process, before the first request.
    """
    for package in (figures, kit, pages, reports, ui):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    gc.collect()
    gc.freeze()


async def ahead() -> None:
    """Compute before a user asks: what the first page in a language needs, and My model's answers.

    The event loop would compute the first for a page's address, in some 0.3 s. An answer for an unchanged catalog model
    is a third of such a run. Each takes a few milliseconds, computed between requests.
    """
    for language in list_languages():
        with use_language(language):
            await asyncio.to_thread(scripts.version)
            await asyncio.to_thread(list_answers)

    for model in catalog():
        request = read_address.read_request(extend.PAGE, {"model": model})
        if not await asyncio.to_thread(extend.problem, request):
            await asyncio.to_thread(extend.answer, request)
