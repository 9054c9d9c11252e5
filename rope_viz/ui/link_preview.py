"""Open Graph tags of a page: the picture, title and sentence that other sites show for a link (https://ogp.me)."""

from __future__ import annotations

import html
import os
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlencode

from rope_viz.pictures import registry
from rope_viz.pictures.doors import TITLES
from rope_viz.pictures.page import Picture
from rope_viz.texts import Texts
from rope_viz.ui.components.scripts import PREFIX

APP, HOME = Texts("app"), Texts("home")
SETTING = "ROPE_VIZ_PUBLIC_URL"
"""The address of the app as users reach it, without a slash at its end. The Host header is not trusted for that."""
SIZE = {"width": "1200px", "height": "630px", "dpi": "96"}
"""The size that the large previews of most sites have."""


def tags(page: str, query: str, picture: Picture | None) -> str:
    """Return the tags of a page, "" without a public address; `query` is the address's, `picture` the page's first."""
    public = os.environ.get(SETTING, "")
    if not public or page not in TITLES:
        return ""
    path = "" if page == "home" else page
    values = {
        "og:type": "website",
        "og:site_name": "RoPE Viz",
        "og:title": "RoPE Viz" if page == "home" else APP("page_title", page=TITLES[page]),
        "og:description": HOME("title"),
        "og:url": f"{public}/{path}",
    }
    if picture is not None:
        asked = urlencode({**_query_of(picture, dict(parse_qsl(query))), **SIZE})
        values["og:image"] = f"{public}{PREFIX}/picture/{picture.address}.png?{asked}"
        values |= {"og:image:width": SIZE["width"][:-2], "og:image:height": SIZE["height"][:-2]}
        values["twitter:card"] = "summary_large_image"
    escaped = {name: html.escape(value) for name, value in values.items()}
    return "".join(f'<meta property="{name}" content="{value}">' for name, value in escaped.items())


def _query_of(picture: Picture, query: Mapping[str, str]) -> dict[str, str]:
    """Return what of a page's address its picture depends on, {} for one that is long or cannot be read."""
    page = registry.page(picture.page)
    if sum(map(len, query.values())) > registry.LONGEST:
        return {}
    known = {*registry.MODEL_KEYS, "pin", *(choice.key for choice in page.choices)}
    try:
        now = registry.read_request(page, {key: value for key, value in query.items() if key in known})
        return registry.link_query(now, picture)
    except (KeyError, ValueError):
        return {}
