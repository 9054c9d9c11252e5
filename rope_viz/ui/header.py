"""The header of every page: the four doors, the tabs of the open door, and the theme button.

It is part of the first page that the server sends, so it is there before Streamlit's scripts. `header.js` sets its
links.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path

from streamlit import config

from rope_viz import web
from rope_viz.pages.registry import doors, title_of
from rope_viz.texts import Texts

TEXTS = Texts("app")
HERE = Path(__file__).parent
COLOURS = ("primaryColor", "backgroundColor", "secondaryBackgroundColor", "textColor")

MARK = """<svg viewBox="0 0 64 64" width="28" height="28" aria-hidden="true"><circle cx="32" cy="32" r="24" fill="none"
 stroke="currentColor" stroke-width="5" opacity=".6"/><path d="M32 32V12" stroke="var(--rv-query)" stroke-width="7"
 stroke-linecap="round"/><path d="m32 32 15 9" stroke="var(--rv-key)" stroke-width="7" stroke-linecap="round"/></svg>"""
THEME = """<svg viewBox="0 0 24 24" width="20" height="20" aria-hidden="true"><circle cx="12" cy="12" r="8.5"
 fill="none" stroke="currentColor" stroke-width="2"/><path d="M12 3.5a8.5 8.5 0 0 1 0 17z"
 fill="currentColor"/></svg>"""


@functools.cache
def html() -> str:
    """Return the header and the tabs of every door; `header.js` shows those of the open one."""
    links = "".join(
        f'<a data-door="{door}" data-to="{pages[0]}">{TEXTS(f"doors.{door}")}</a>' for door, pages in doors().items()
    )
    tabs = ""
    for door, pages in doors().items():
        if len(pages) > 1:
            tab = "".join(f'<a data-to="{name}">{title_of(name)}</a>' for name in pages)
            tabs += f'<div data-of="{door}" hidden>{tab}</div>'
    return (
        f'<header id="rv-header"><a class="rv-skip" href="#stMain">{TEXTS("header.skip")}</a>'
        f'<a class="rv-logo" data-to="" aria-label="RoPE Viz">{MARK}<span>RoPE Viz</span></a>'
        f'<nav aria-label="{TEXTS("header.doors")}">{links}</nav>'
        f'<nav id="rv-tabs" aria-label="{TEXTS("header.pages")}" hidden>{tabs}</nav>'
        f'<div class="rv-actions"><button type="button" id="rv-chip" title="{TEXTS("header.model")}"><b></b>'
        f'<span></span></button><span id="rv-share"></span>'
        f'<button type="button" id="rv-theme" aria-label="{TEXTS("header.theme")}" '
        f'title="{TEXTS("header.theme")}">{THEME}</button></div></header>'
        f"<style>{(HERE / 'header.css').read_text(encoding='utf-8')}</style>"
    )


@functools.cache
def script() -> str:
    """Return the script that sets the header's links and changes the theme."""
    themes = {
        # `base` is 0 for light and 1 for dark in Streamlit's messages.
        name: {key: config.get_option(f"theme.{name}.{key}") for key in COLOURS}
        | {"base": base, "baseFontSize": config.get_option("theme.baseFontSize")}
        for base, name in enumerate(("light", "dark"))
    }
    text = (web.FOLDER / "inline" / "header.js").read_text(encoding="utf-8")
    named = {page: door for door, pages in doors().items() for page in pages}
    return text.replace("DOORS[", f"({json.dumps(named)})[", 1).replace("THEMES", json.dumps(themes), 1)
