"""Preview tags of a link use absolute addresses of the configured public address only."""

import html
import io
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
import streamlit
from PIL import Image
from starlette.applications import Starlette
from starlette.responses import FileResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from rope_viz.cli.app import environment, read_address
from rope_viz.pages.registry import titles
from rope_viz.picture import public_address
from rope_viz.reports import preview
from rope_viz.serving import server

FIRST = Path(streamlit.__file__).parent / "static" / "index.html"
PUBLIC = "https://example.org/rope"


@pytest.fixture
def client():
    routes = [*server.routes(), Route("/{path:path}", lambda request: FileResponse(FIRST))]
    return TestClient(Starlette(routes=routes, middleware=server.middleware()))


def read_tags(client, address):
    text = client.get(address).text
    return {
        name: html.unescape(value) for name, value in re.findall(r'<meta property="([^"]*)" content="([^"]*)">', text)
    }


@pytest.mark.parametrize("page", titles())
def test_every_page_has_a_preview_whose_picture_is_drawn(page, client, monkeypatch):
    monkeypatch.setenv(public_address.SETTING, PUBLIC)
    path = "" if page == "home" else page
    found = read_tags(client, f"/{path}")
    if page != "learn":
        assert found["og:url"] == f"{PUBLIC}/{path}"
        assert found["og:title"] == ("RoPE Viz" if page == "home" else f"{titles()[page]} · RoPE Viz")
    assert found["og:description"].startswith("RoPE rotates each token’s query and key by its position")
    if page in ("lab", "gallery", "axes", "kernels"):
        return  # the Lab and the gallery have no picture; those of the others take long
    assert found["og:image"].startswith(f"{PUBLIC}/rope-viz/picture/")
    answer = client.get(found["og:image"].removeprefix(PUBLIC))
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/png"), answer.text[:200]
    assert [int.from_bytes(answer.content[at : at + 4], "big") for at in (16, 20)] == [1200, 630]


def test_preview_image_uses_the_choices_of_the_link(client, monkeypatch):
    monkeypatch.setenv(public_address.SETTING, PUBLIC)
    found = read_tags(client, "/frequencies?model=qwen3-8b-yarn&pin=3&extend.tab=why&utm=1")
    address = urlsplit(found["og:image"])
    assert address.path == "/rope/rope-viz/picture/frequencies/wavelengths.png"
    assert parse_qs(address.query)["model"] == ["qwen3-8b-yarn"]
    assert parse_qs(address.query)["pin"] == ["3"]


@pytest.mark.parametrize("query", ["learn.scene=6", "learn.step=9"])
def test_each_scene_of_learn_has_its_own_preview(query, client, monkeypatch):
    monkeypatch.setenv(public_address.SETTING, PUBLIC)
    found = read_tags(client, f"/learn?{query}")
    assert found["og:title"] == "Beyond the trained length · RoPE Viz"
    assert found["og:url"] == f"{PUBLIC}/learn?learn.scene=6"
    assert urlsplit(found["og:image"]).path == "/rope/rope-viz/picture/learn/scene6.png"
    assert client.get(found["og:image"].removeprefix(PUBLIC)).headers["content-type"] == "image/png"


@pytest.mark.parametrize("query", ["model=%22%3E%3Cscript%3E", "dim=1e999", "model=" + 7000 * "x"])
def test_unreadable_link_has_the_preview_of_the_page(query, client, monkeypatch):
    monkeypatch.setenv(public_address.SETTING, PUBLIC)
    assert read_tags(client, f"/frequencies?{query}") == read_tags(client, "/frequencies")


def test_without_a_public_address_there_are_no_tags(client):
    assert "og:" not in client.get("/", headers={"host": "attacker.example"}).text


def test_public_address_is_checked_and_given_to_the_server():
    assert read_address("--public-url", "https://example.org/rope/") == PUBLIC
    assert environment("", public=PUBLIC)[public_address.SETTING] == PUBLIC
    assert public_address.SETTING not in environment("")
    for wrong in ("example.org", "ftp://example.org", "https://", "https://example.org/?a=1", "https://[::1"):
        with pytest.raises(ValueError, match=r"--public-url|IPv6"):
            read_address("--public-url", wrong)


def test_previews_show_our_name_and_figures_do_not(client, monkeypatch):
    monkeypatch.setenv(public_address.SETTING, PUBLIC)
    assert preview.write_mark(PUBLIC) == "RoPE Viz · example.org/rope"
    assert preview.write_mark("") == "RoPE Viz"
    path = urlsplit(read_tags(client, "/frequencies")["og:image"]).path.removeprefix("/rope")
    marked, other = (read_png(client, f"{path}?preview=1"), read_png(client, f"{path}?width=1200&height=630&dpi=96"))
    for image in (marked, other):
        assert image.text["Software"].startswith("RoPE Viz ")
        assert image.text["Source"].startswith(f"{PUBLIC}/frequencies")
    corners = [np.asarray(image.convert("L").crop((900, 608, 1190, 628))) for image in (marked, other)]
    assert [bool((corner < 128).any()) for corner in corners] == [True, False]


def test_svg_and_pdf_name_the_address_in_their_metadata(client, monkeypatch):
    monkeypatch.setenv(public_address.SETTING, PUBLIC)
    address = "/rope-viz/picture/frequencies/wavelengths"
    svg = client.get(f"{address}.svg").text
    assert f"<dc:source>{PUBLIC}/frequencies" in svg
    assert f"/Subject ({PUBLIC}/frequencies".encode() in client.get(f"{address}.pdf").content


def read_png(client, address):
    return Image.open(io.BytesIO(client.get(address).content))
