"""What every page stands in: the process set up once, the address followed, the sidebar, then the page."""

from __future__ import annotations

import asyncio
import functools
import gc
import importlib
import pkgutil
from collections.abc import Mapping
from pathlib import Path
from types import CodeType

import streamlit as st

from rope_viz import figures, pictures, ui
from rope_viz.models.catalog import catalog
from rope_viz.pictures import extend, registry
from rope_viz.pictures.registry import PAGES
from rope_viz.ui import controls, state
from rope_viz.ui.components import picture, shell

# Beside the package in a checkout, inside it where the app was installed.
ROOT = Path(__file__).parents[2]
ASSETS = next(at for at in (ROOT / "rope_viz" / "app" / "assets", ROOT / "assets") if at.is_dir())

STYLE = Path(__file__).with_name("frame.css")


def run(folder: Path) -> None:
    """The whole app, one call per run: the pages in `folder`, the first of them at the root."""
    menu = state.menu(folder)
    first = next(iter(PAGES))
    name = st.navigation(list(menu.values()), position="top", expanded=True).url_path or first
    icon, logo = (text(ASSETS / name) for name in ("icon.svg", "logo.svg"))
    title = "RoPE Viz" if name == first else f"{PAGES[name]} · RoPE Viz"
    st.set_page_config(page_title=title, page_icon=icon, layout="wide")
    st.logo(logo, size="large", icon_image=icon)
    st.session_state["pages folder"] = folder
    _go(menu)
    state.follow_link(name)
    state.look_again()
    st.html(f"<style>{text(STYLE)}{picture.rooms(registry.page(name).pictures.values(), state.now(name))}</style>")
    shell.mount(list(PAGES), state.link_query())
    if name != "learn":
        controls.sidebar()
    else:
        # Streamlit keeps the room of a sidebar that has become empty, and on a phone puts the menu there.
        st.html("<style>@media (min-width: 768px) { [data-testid=stSidebar] { display: none; } }</style>")
    controls.messages()
    body(folder / f"{name}.py")


def _go(menu: Mapping[str, st.Page]) -> None:
    """Where a link in a text was clicked: to its page, in this tab and session."""
    asked = shell.asked()
    if asked is not None and asked[0] in PAGES:
        st.switch_page(menu[asked[0]], query_params=asked[1] or None)


@st.fragment
def body(path: Path) -> None:
    """The page in a fragment of its own: its own controls run only this, the sidebar and the frame stand still.

    `Page.run` may be called once per run of the whole app, a fragment runs more often; so the page's code is run here.
    """
    if st.session_state.pop("whole run", False):
        st.rerun()
    state.look_again()
    with picture.places():
        exec(code(path), {"__name__": "__main__", "__file__": str(path)})


@functools.cache
def text(path: Path) -> str:
    """A small file as its own source: an address of it would be known to this server process alone."""
    return path.read_text(encoding="utf-8")


@functools.cache
def code(path: Path) -> CodeType:
    """A page, compiled once per process."""
    return compile(path.read_text(encoding="utf-8"), str(path), "exec")


def warm() -> None:
    """Import what the pages need, then take it out of the garbage collector's rounds: it stays for good.

    Once per process, before the first reader comes.
    """
    for package in (figures, pictures, ui):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    gc.collect()
    gc.freeze()


async def ahead() -> None:
    """What the models of the list answer on Extend as they stand, worked out before a reader asks for it.

    The answer takes such a run a third of its time: each is a few milliseconds, between what readers want.
    """
    for model in catalog():
        now = registry.read(extend.PAGE, {"model": model})
        if not await asyncio.to_thread(extend.problem, now):
            await asyncio.to_thread(extend.answer, now)
