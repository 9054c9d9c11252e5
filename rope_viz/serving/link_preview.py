"""The link preview of a page of the app: the picture, title and sentence that other sites show for a link."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl, urlencode

from rope_viz.figures import hands
from rope_viz.pages import learn, registry
from rope_viz.pages.registry import titles
from rope_viz.picture import read_address, write_address
from rope_viz.picture.page import Picture
from rope_viz.picture.public_address import read_public_address
from rope_viz.reports.preview import NAME, format_tags
from rope_viz.storage.limits import LINK_CHARACTERS, WRITTEN_ADDRESS_CHARACTERS
from rope_viz.texts import Texts, current_language
from rope_viz.ui.components.scripts import PREFIX

APP = Texts("app")
KEY = "preview"
"""The key of a picture's address that asks for the link preview."""


def tags(page: str, query: str, picture: Picture | None) -> str:
    """Return the tags of a page, "" without a public address; `query` is the address's, `picture` the page's first."""
    public = read_public_address()
    if not public or page not in titles():
        return ""
    path, title, given = "" if page == "home" else page, titles()[page], dict(parse_qsl(query))
    if page == learn.PAGE.name:
        scene = _scene_of(given)
        title, path = str(learn.figures.TEXTS(f"scene{scene}.title")), f"{page}?{learn.SCENE.key}={scene}"
        picture = registry.picture(page, f"scene{scene}")
    image = ""
    if picture is not None:
        asked = urlencode({**_query_of(picture, given), KEY: "1"})
        image = f"{public}{PREFIX}/picture/{picture.address}.png?{asked}"
    title = NAME if page == "home" else str(APP("page_title", page=title))
    url = write_address.add_language(f"{public}/{path}")
    return format_tags(title, str(hands.TEXTS("headline")), url=url, image=image, public=public)


def _scene_of(query: Mapping[str, str]) -> int:
    """Return the scene that an address of Learn opens, the first one if it names none."""
    if learn.OLD_KEY in query:
        return int(learn.scene_of_step(query[learn.OLD_KEY]))
    try:
        return int(learn.SCENE.near(query[learn.SCENE.key]))
    except (KeyError, ValueError):
        return 1


def _query_of(picture: Picture, query: Mapping[str, str]) -> dict[str, str]:
    """Return what of a page's address its picture depends on, {} for one that is long or cannot be read.

    Contents from outside are not read here: their keys are passed on.
    """
    page = registry.page(picture.page)
    if sum(map(len, query.values())) > WRITTEN_ADDRESS_CHARACTERS + LINK_CHARACTERS:
        return {}
    known = {*read_address.MODEL_KEYS, *read_address.STORED_KEYS, "pin", *(choice.key for choice in page.choices)}
    query = {key: value for key, value in query.items() if key in known}
    if read_address.needs_reading(page, query):
        # The address of the picture is read behind the border.
        return query | write_address.write_language(current_language())
    try:
        return write_address.link_query(read_address.read_request(page, query), picture)
    except (KeyError, ValueError):
        return {}
