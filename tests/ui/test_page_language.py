"""The language of pages, pictures and scripts: the address's, else the browser's; what the server sends follows it."""

import json
import re
import threading
from pathlib import Path

import pytest
import streamlit
from starlette.applications import Starlette
from starlette.responses import FileResponse
from starlette.routing import Route
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

from rope_viz.pages import registry
from rope_viz.picture import export, read_address, write_address
from rope_viz.serving import link_preview, picture_route, server
from rope_viz.serving.render_process import FileJob, Reading
from rope_viz.serving.render_workers import render_packed
from rope_viz.texts import Texts, current_language, use_language
from rope_viz.ui.components.scripts import PREFIX, language_of, version
from rope_viz.ui.language import find_language, find_preferred

ROOT = Path(__file__).parents[2]
INDEX = Path(streamlit.__file__).parent / "static" / "index.html"
CHINESE = {"accept-language": "zh-CN,zh;q=0.9,en;q=0.8"}
DECAY = registry.picture("decay", "curves")


def read_entry(key, language, page="app"):
    with use_language(language):
        return str(Texts(page)(key))


@pytest.fixture(scope="module")
def client():
    routes = [*server.routes(""), Route("/{path:path}", lambda request: FileResponse(INDEX))]
    return TestClient(Starlette(routes=routes, middleware=server.middleware()))


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("en-US,en;q=0.9,zh;q=0.8", "en"),
        ("de,zh-TW;q=0.5", "zh"),
        ("de, fr;q=0.5", "en"),
        ("zh;q=0, *", "en"),
        ("zh;q=much", "en"),
        ("", "en"),
    ],
)
def test_browser_prefers_a_language_that_has_texts(accepted, language):
    assert find_preferred(accepted) == language


def test_address_precedes_the_browser_and_unknown_is_english():
    assert find_language({}, "zh") == "zh"
    assert find_language({"lang": "en"}, "zh") == "en"
    assert find_language({"lang": "fr"}, "zh") == "en"


@pytest.mark.parametrize(
    ("path", "headers", "language"),
    [
        ("/decay", {}, "en"),
        ("/decay", CHINESE, "zh"),
        ("/decay?lang=zh", {}, "zh"),
        ("/decay?lang=en", CHINESE, "en"),
        ("/decay?lang=fr", CHINESE, "en"),
        ("/no/such/page?lang=zh", {}, "zh"),
    ],
)
def test_first_page_is_in_the_language(client, path, headers, language):
    page = client.get(path, headers=headers).text
    assert f'<html lang="{read_entry("code", language, "language")}">' in page
    if "no/such" in path:
        assert read_entry("not_found.title", language) in page
        return
    assert f">{read_entry('doors.explore', language)}</a>" in page
    links = dict(re.findall(r'data-language="(\w+)"[^>]*?( aria-current="true"|) aria-label', page))
    assert {name for name, mark in links.items() if mark} == {language}
    (early,) = re.findall(r'\}\)\)\(("[^"]*")\)', page)
    assert ("lang=zh" in json.loads(early)) == (language == "zh")
    assert f"{PREFIX}/{read_version(language)}/" in page


def read_version(language):
    with use_language(language):
        return version()


def test_scripts_have_the_texts_of_their_address(client):
    for language in ("en", "zh"):
        assert language_of(read_version(language)) == language
        answer = client.get(f"{PREFIX}/{read_version(language)}/texts.js")
        assert json.dumps(read_entry("picture.retry", language)) in answer.text
    assert client.get(f"{PREFIX}/{read_version('en')}-fr/texts.js").status_code == 404


@pytest.fixture
def gallery(monkeypatch):
    """Give the test processes of its own: those of another test may have other settings."""
    new = picture_route.Gallery()
    monkeypatch.setattr(picture_route, "GALLERY", new)
    yield new
    new.shut_down()


@pytest.mark.usefixtures("gallery")
def test_pictures_and_errors_follow_the_address(client):
    def get(query, form="json"):
        return client.get(f"{PREFIX}/picture/decay/curves.{form}?{query}")

    english, chinese = get("model=qwen3-8b"), get("model=qwen3-8b&lang=zh")
    for answer, language in ((english, "en"), (chinese, "zh")):
        request = read_address.read_request(registry.page("decay"), {"model": "qwen3-8b", "lang": language})
        assert answer.content == export.render(DECAY, request, "json")
    assert english.headers["etag"] != chinese.headers["etag"]
    assert get("model=qwen3-8b", "csv").text != get("model=qwen3-8b&lang=zh", "csv").text
    refused = get("lang=zh&model=nothing")
    assert refused.status_code == 400
    assert refused.text != get("model=nothing").text
    unknown = get("lang=fr")
    assert (unknown.status_code, "choose en, zh" in unknown.text) == (400, True)


def test_english_address_has_no_language():
    english = read_address.read_request(registry.page("decay"), {"model": "qwen3-8b"})
    chinese = read_address.read_request(registry.page("decay"), {"model": "qwen3-8b", "lang": "zh"})
    assert "lang" not in write_address.query(english, DECAY)
    assert write_address.query(chinese, DECAY)["lang"] == "zh"
    assert DECAY.cache_key(english) != DECAY.cache_key(chinese)


def test_jobs_carry_the_language_to_other_processes():
    with use_language("zh"):
        assert FileJob("decay", "curves", "svg", None, {}).language == Reading(len, ()).language == "zh"
    request = read_address.read_request(registry.page("decay"), {"lang": "zh"})
    assert render_packed("decay", "curves", {"lang": "zh"}) == export.compressed(DECAY, request, "packed")


def test_link_preview_is_in_the_language(monkeypatch):
    monkeypatch.setenv("ROPE_VIZ_PUBLIC_URL", "https://rope.example.org")
    with use_language("zh"):
        tags = link_preview.tags("decay", "model=qwen3-8b&lang=zh", DECAY)
    assert "https://rope.example.org/decay?lang=zh" in tags
    assert "lang=zh&amp;model=qwen3-8b" in tags.replace("model=qwen3-8b&amp;lang=zh", "lang=zh&amp;model=qwen3-8b")
    assert read_entry("title", "zh", "decay") in tags


@pytest.fixture
def open_page():
    def run(page, **params):
        app = AppTest.from_file(str(ROOT / "pages" / "_frame.py"), default_timeout=60)
        app.query_params.update(params)
        app.switch_page(f"{page}.py")
        return app.run()

    return run


def list_components(app, name):
    """Return the data of the components of a name."""
    found = [each.proto for each in app.get("bidi_component") if each.proto.component_name.startswith(name)]
    return [json.loads(each.bytes) for each in found]


def test_page_and_its_links_are_in_the_language_of_the_address(open_page):
    app = open_page("decay", lang="zh", model="qwen3-8b")
    assert app.title[0].value == read_entry("title", "zh", "decay")
    assert "lang=zh" in list_components(app, "rope_viz_navigation")[0]["query"]
    (pictures,) = list_components(app, "rope_viz_picture")
    assert all("lang=zh" in each["query"] for each in pictures["pictures"].values())
    assert [each.value for each in app.warning] == []
    with use_language("zh"):  # the labels that this thread sends
        app.selectbox(key="select.Model").set_value("llama-3.1-8b").run()
    assert app.query_params["lang"] == "zh"
    assert app.title[0].value == read_entry("title", "zh", "decay")


def test_unknown_language_is_english_without_an_error(open_page):
    app = open_page("decay", lang="fr")
    assert app.title[0].value == "Decay"
    assert not app.exception
    assert "lang" not in list_components(app, "rope_viz_navigation")[0]["query"]


def test_callback_is_in_the_language_of_its_session(open_page, enter_session):
    from rope_viz.ui.session import session

    enter_session()
    assert current_language() == "en"
    session().language = "zh"
    assert current_language() == "zh"
    found = []
    thread = threading.Thread(target=lambda: found.append(current_language()))
    thread.start()
    thread.join()
    assert found == ["en"], "a thread without a session"


def test_every_page_runs_in_chinese(open_page):
    problems = {}
    for page in registry.ORDER[1:]:
        app = open_page(page, lang="zh")
        if app.exception or app.title[0].value == read_title(page, "en"):
            problems[page] = [each.message for each in app.exception]
    assert problems == {}


def read_title(page, language):
    with use_language(language):
        return registry.title_of(page)
