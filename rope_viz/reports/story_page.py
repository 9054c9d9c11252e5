"""HTML pages that need no session and no network: the story of Learn, one of its scenes, and the picture of Home."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from rope_viz import __version__
from rope_viz.figures import theme
from rope_viz.figures.hands import TEXTS
from rope_viz.own_files.outside import HERE, Reader
from rope_viz.pages import home
from rope_viz.pages.learn import figures as learn
from rope_viz.pages.registry import text_of
from rope_viz.picture import read_address
from rope_viz.picture.export import script
from rope_viz.picture.outputs import Clocks
from rope_viz.texts import cache_by_language
from rope_viz.texts.outside_text import dump_printable, printable
from rope_viz.texts.texts import language_code
from rope_viz.web import read_inline

STYLE = f"\n{read_inline('story.css')}\n"
FONT = "'Source Sans 3', 'Source Sans Pro', system-ui, 'Segoe UI', Roboto, 'Noto Sans', sans-serif"


@cache_by_language(learn.SCENES + 1)
def story_page(only: int = 0, app: str | None = None, *, head: str = "", above: str = "") -> bytes:
    """Return the page: all scenes, or one scene (`only`, 1 to 8) with a link to the whole story.

    `app` is the address of the app, which links begin with; None for a page without such links. `head` is HTML for the
    page's head, `above` for above its title.
    """
    data: dict[str, Any] = learn.message(only or 1) | {"only": only, "app": app, "outside": True}
    data["whole"] = f"{app or ''}/learn?learn.scene={only}"
    title = data["scenes"][only - 1]["texts"]["title"] if only else data["title"]
    below = "" if only else f"<footer>RoPE Viz {__version__}</footer>"
    return wrap_picture("learn", data, title, str(data["title"]), below=below, head=head, above=above)


def home_page(message: Mapping[str, Any], app: str) -> bytes:
    """Return the picture of Home alone, with a link to the app at the address `app`. `message` is of figures.hands."""
    link = f'<a href="{html.escape(app)}" target="_blank">{html.escape(text_of("home", "whole"))}</a>'
    below = f"<footer>{link}</footer>"
    return wrap_picture("hands", message, str(message["title"]), str(TEXTS("headline")), below=below)


def draw_home(query: dict[str, str], reader: Reader = HERE) -> bytes:
    """Return the page of Home's picture. Raise `ValueError` with a sentence for a query that cannot be read."""
    drawn = home.turning(read_address.read_request(home.PAGE, query, reader=reader))
    assert isinstance(drawn, Clocks)
    return home_page(drawn.message, f"../?{urlencode(query)}" if query else "../")


def wrap_picture(
    name: str, data: Mapping[str, Any], title: str, heading: str, *, below: str, head: str = "", above: str = ""
) -> bytes:
    """Return a page with a title and a picture that a script draws; `head`, `above` and `below` are further HTML."""
    light, dark = (_colours(dark=each) for each in (False, True))
    body = dump_printable(data).replace("<", "\\u003c")
    start = f'show({{ root: document.querySelector(".rv-{name}"), memory: {{}} }}, {body});'
    # The picture reads its colours when it is shown, so a changed theme shows it again.
    again = 'matchMedia("(prefers-color-scheme: dark)").addEventListener("change", run);'
    text = (
        f'<!DOCTYPE html><html lang="{language_code()}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)} · RoPE Viz</title><style>:root {{ {light}; --st-font: {FONT} }}"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}{STYLE}</style>{head}</head>"
        f'<body>{above}<main><h1>{html.escape(heading)}</h1><div class="rv-{name}"></div>{below}</main>'
        f'<script type="module">{script(name)}\nconst run = () => {start}\nrun();\n{again}</script></body></html>'
    )
    return printable(text).encode()


def _colours(*, dark: bool) -> str:
    named = {"background": theme.BACKGROUND, "text": theme.TEXT}
    shown = {name: theme.DARK[colour] if dark else colour for name, colour in named.items()}
    return "; ".join(
        [
            *(f"--st-{name}-color: {colour}" for name, colour in shown.items()),
            f"color-scheme: {'dark' if dark else 'light'}",
        ]
    )
