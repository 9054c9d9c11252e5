"""Run pages without a browser, given by their address."""

import json
from functools import cache
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from rope_viz.models.identity.local_models import FOLDER_VARIABLE
from rope_viz.pages import registry
from rope_viz.pages.registry import moved
from rope_viz.picture import read_address
from rope_viz.picture.wire_format import strip_markup
from tests.addresses import check_query

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session", autouse=True)
def cached_manifests():
    """Scan the installed packages only once: a scan takes five times as long as a page."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", cache(manifest_scanner.scan_component_manifests))
        yield


@pytest.fixture(autouse=True)
def no_real_model(tmp_path, monkeypatch):
    """Hide an installed model, so that pages show the same controls on every machine."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "models"))


@pytest.fixture
def open_page():
    """open_page("scaling", model="gpt-oss-20b") runs a page as a link would; is_valid=False is for a faulty address."""

    def run(page, *, is_valid=True, **params):
        check_query(page, params, is_valid=is_valid)
        # The pages of older releases are tabs of My model.
        tab = {"extend": "why", "runtimes": "runtimes"}.get(page)
        params = ({"extend.tab": tab} if tab else {}) | params
        page = moved().get(page, (page, ""))[0]
        app = AppTest.from_file(str(ROOT / "pages" / "_frame.py"), default_timeout=60)
        app.query_params.update(params)
        if page != "home":
            app.switch_page(f"{page}.py")
        return app.run()

    return run


@pytest.fixture
def follow():
    """follow(app, model="gpt-oss-20b") runs the open page again, as a link to it or Back does."""

    def run(app, **params):
        check_query("home", params)
        app.query_params.clear()
        app.query_params.update(params)
        return app.run()

    return run


@pytest.fixture
def picture_requests():
    """picture_requests(app) returns {picture: its request} of the page."""

    def read(app):
        found = {}
        for element in app.get("bidi_component"):
            if element.proto.component_name.startswith("rope_viz_picture"):
                for address, data in json.loads(element.proto.bytes)["pictures"].items():
                    picture = registry.picture(*address.split("/"))
                    query = dict(parse_qsl(data["query"], keep_blank_values=True))
                    found[picture] = read_address.read_request(registry.page(picture.page), query)
        return found

    return read


@pytest.fixture
def rejection_card():
    """rejection_card(app) returns the HTML of the card about an unreadable config, "" without one."""
    return lambda app: next((one.value for one in app.html if 'role="alert"' in one.value), "")


@pytest.fixture
def page_text(picture_requests):
    """page_text(app) returns the text of the page and the sentences of its pictures."""

    def read(app):
        texts = [item.value for kind in ("html", "markdown") for item in app.get(kind)]
        return " ".join(
            [*texts, *(strip_markup(picture(request).sentence) for picture, request in picture_requests(app).items())]
        )

    return read
