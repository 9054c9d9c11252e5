"""Streamlit's files are sent compressed and complete, and the first page has a placeholder."""

import gzip
import json
import re
from pathlib import Path
from urllib.parse import urljoin

import pytest
import streamlit
from starlette.applications import Starlette
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.testclient import TestClient

from rope_viz.pages import registry
from rope_viz.pages.registry import groups_of, titles
from rope_viz.picture import read_address
from rope_viz.serving import server
from rope_viz.ui.components.scripts import IMPORT, NAMES, list_needed, source, version

STATIC = Path(streamlit.__file__).parent / "static"
ENTRY = re.search(r"static/js/index\.[\w-]+\.js", (STATIC / "index.html").read_text(encoding="utf-8"))[0]


@pytest.fixture(scope="module")
def client():
    routes = [
        Mount("/static", StaticFiles(directory=STATIC / "static")),
        Route("/_stcore/host-config", lambda request: JSONResponse({"allowedOrigins": [], "blockErrorDialogs": False})),
        Route("/rotation/_stcore/host-config", lambda request: PlainTextResponse("Not Found", 404)),
        Route("/health", lambda request: PlainTextResponse("ok")),
        Route("/{path:path}", lambda request: FileResponse(STATIC / "index.html")),
    ]
    return TestClient(Starlette(routes=routes, middleware=server.middleware()))


def test_streamlit_scripts_are_compressed_losslessly(client):
    answer = client.get(f"/{ENTRY}")
    content = (STATIC / ENTRY).read_bytes()
    assert answer.headers["content-encoding"] == "gzip"
    assert int(answer.headers["content-length"]) < len(content) / 2.5
    assert "accept-encoding" in answer.headers["vary"].lower()
    assert answer.content == content
    assert client.get(f"/{ENTRY}").content == content


@pytest.mark.parametrize("headers", [{"accept-encoding": "identity"}, {"range": "bytes=0-99"}], ids=str)
def test_script_is_plain_for_clients_without_gzip(client, headers):
    answer = client.get(f"/{ENTRY}", headers=headers)
    assert "content-encoding" not in answer.headers
    assert answer.content == (STATIC / ENTRY).read_bytes()[: 100 if "range" in headers else None]


def test_unchanged_file_is_answered_with_304(client):
    tag = client.get(f"/{ENTRY}").headers["etag"]
    assert client.get(f"/{ENTRY}", headers={"if-none-match": tag}).status_code == 304


def test_first_page_has_a_placeholder_and_preloads_no_font(client):
    answer = client.get("/frequencies")
    assert "<b>RoPE Viz</b> is loading" in answer.text
    assert "<title>RoPE Viz</title>" in answer.text
    assert 'rel="preload"' not in answer.text
    assert int(answer.headers["content-length"]) == len(gzip.compress(answer.content, 9, mtime=0))
    assert client.get("/health").text == "ok"
    assert client.get("/health").headers.get("content-encoding") is None


@pytest.mark.parametrize("path", ["decay/x", "x/y/z", "scene/x", "scaling/static/js/x.js", "x/<b>"])
def test_unknown_address_is_a_404_with_links_to_the_pages(client, path):
    answer = client.get(f"/{path}")
    assert answer.status_code == 404
    assert "No such page" in answer.text
    assert "<b>" not in answer.text.replace("<b>&#x27;", "")
    for link in re.findall(r'href="([^"]*)"', answer.text):
        assert urljoin(f"/{path}", link).strip("/") in ("", *titles())


def test_streamlit_shows_no_dialog_over_the_page(client):
    assert client.get("/_stcore/host-config").json() == {"allowedOrigins": [], "blockErrorDialogs": True}


def test_missing_settings_are_answered_with_404(client):
    """Streamlit's client looks for them next to a deep link first."""
    answer = client.get("/rotation/_stcore/host-config")
    assert answer.status_code == 404
    assert answer.text == "Not Found"


def test_the_first_page_names_a_picture_for_every_page(client):
    first = json.loads(re.search(r"const FIRST = (.*);", client.get("/").text)[1])
    assert [page or "home" for page in first] == [page for page in titles() if groups_of(page)]
    for page, (address, draws) in first.items():
        picture = registry.picture(*address.split("/"))
        assert f"{draws}.js" in NAMES
        assert picture.page in groups_of(page or "home")
        assert not picture.refuses(read_address.read_request(registry.page(picture.page), {}))


@pytest.mark.parametrize(
    ("path", "address"),
    [
        ("scaling", "scaling/comparison.packed"),
        ("frequencies?model=qwen3-8b&utm_source=x&pin=3", "frequencies/wavelengths.packed?model=qwen3-8b&pin=3"),
        ("attention?attention.sentence=a~b*c", "attention/maps.packed?attention.sentence=a%7Eb*c"),
        ("decay?decay.length=none", ""),
        ("scaling?config=x", ""),
        ("scaling?present=maps", ""),
        ("model", ""),
        ("lab", ""),
    ],
)
def test_first_page_requests_its_picture_by_the_browsers_address(client, path, address):
    found = re.search(r"ropeVizEarly = .*\(\"\./rope-viz/picture/(.*?)\"\)</script>", client.get(f"/{path}").text)
    if not address:
        assert found is None
        return
    mark = "&" if "?" in address else "?"
    assert found[1] == f"{address}{mark}v={version()}"


@pytest.mark.parametrize("kind", ["", "chart", "clocks", "hands", "learn", "table"])
def test_all_scripts_of_a_first_picture_are_preloaded(kind):
    needed = list_needed(kind)
    imported = {name for each in needed for name in IMPORT.findall(source(each).decode())}
    assert imported <= set(needed) <= set(NAMES)
    assert "picture_style.js" in needed
