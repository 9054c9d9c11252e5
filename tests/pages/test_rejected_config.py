"""An unreadable config: a card replaces the page until the config is repaired or dismissed."""

import json

import pytest

from rope_viz.models.model_config import from_config
from rope_viz.models.user_config import parse_config
from rope_viz.pages.registry import PAGES
from rope_viz.ui.session import KEY
from tests.configs import QWEN3_8B, yarn

SCALED = {**QWEN3_8B, "max_position_embeddings": 131_072, "rope_scaling": yarn(32_768)}
# The factor is text, and a trailing comma hides it from a strict reader.
BROKEN = json.dumps({**SCALED, "rope_scaling": {**yarn(32_768), "factor": "4.0"}}, indent=2)[:-2] + ",\n}"
LINE = next(number for number, line in enumerate(BROKEN.splitlines(), start=1) if '"factor"' in line)
TITLE = "This config cannot be read"


@pytest.fixture
def drop(open_page):
    """drop("runtimes", text) opens the page and drops the text as a file."""

    def run(page, text, name="mine.json", **params):
        app = open_page(page, **params)
        field = next(item for item in app.get("file_uploader") if item.key.startswith("upload.file"))
        return field.set_value((name, text.encode(), "application/json")).run()

    return run


@pytest.mark.parametrize("page", [page for page in PAGES if page not in ("learn", "home", "differences")])
def test_rejection_card_replaces_every_page(drop, rejection_card, picture_requests, page):
    app = drop(page, BROKEN)
    assert not app.exception
    assert TITLE in rejection_card(app)
    assert picture_requests(app) == {}
    assert list(app.main.markdown)[-1].value.startswith("No answer is shown until the file can be read.")
    assert [one.key for one in app.main.button] == ["rejected.repair", "rejected.keep"]


def test_all_problems_are_named_at_once_with_their_lines(drop, rejection_card):
    app = drop("runtimes", BROKEN)
    assert "mine.json" in rejection_card(app)
    assert "a comma before a closing bracket" in rejection_card(app)
    assert f"Line {LINE}, column 5" in rejection_card(app)
    assert "factor is the text &#x27;4.0&#x27;" in rejection_card(app)
    diff = app.session_state[KEY].rejected.diagnosis.changes.splitlines()
    assert '-    "factor": "4.0",' in diff
    assert '+    "factor": 4.0,' in diff
    assert any("rv-added" in one.value for one in app.html)


def test_repair_makes_the_repaired_config_the_model(drop, rejection_card):
    app = drop("runtimes", BROKEN)
    app.button(key="rejected.repair").click().run()
    assert not app.exception
    assert rejection_card(app) == ""
    assert app.session_state[KEY].own.config == SCALED
    assert app.session_state[KEY].choice.spec == from_config(SCALED)[""]


def test_the_downloaded_repair_is_the_same_config(drop, rejection_card):
    found = drop("runtimes", BROKEN).session_state[KEY].rejected.diagnosis
    assert parse_config(found.repaired) == SCALED
    assert found.repaired.count("\n") == BROKEN.count("\n") + 1


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{\n "model_type": "llama",\n "rope_theta": 1', "Line 3, column 17"),
        ("<html></html>", "Problem"),
        ('{"model_type": "gpt2",}', "Line 1, column 22"),
        ('{"model_type": "llama",\n "rope_theta": "big"}', "Line 2, column 2"),
    ],
)
def test_irreparable_config_offers_no_repair(drop, rejection_card, text, place):
    app = drop("extend", text)
    assert f"<dt>{place}</dt>" in rejection_card(app)
    assert [one.key for one in app.main.button] == ["rejected.keep"]


def test_a_name_and_a_key_from_a_file_are_shown_as_text(drop, rejection_card):
    app = drop("extend", '{"<b>x</b>": [1,], "rope_theta": "<i>"}', name="<script>.json")
    assert "<script>" not in rejection_card(app)
    assert "<i>" not in rejection_card(app)


def test_dismissed_card_restores_the_former_model(drop, rejection_card, page_text):
    app = drop("runtimes", BROKEN, model="kimi-k2-instruct", base="77000")
    assert "Kimi" not in " ".join(one.value for one in app.main.markdown)
    app.button(key="rejected.keep").click().run()
    assert rejection_card(app) == ""
    assert "Kimi-K2-Instruct" in page_text(app)
    assert app.query_params["base"] == "77000"


@pytest.mark.parametrize("way", ["another model", "a good file", "a link"])
def test_choosing_another_model_removes_the_card(drop, rejection_card, follow, way):
    app = drop("scaling", BROKEN)
    if way == "another model":
        app.selectbox(key="select.Model").select("qwen3-8b").run()
    elif way == "a good file":
        field = next(item for item in app.get("file_uploader") if item.key.startswith("upload.file"))
        field.set_value(("config.json", json.dumps(QWEN3_8B).encode(), "application/json")).run()
    else:
        follow(app, model="qwen3-8b")
    assert not app.exception
    assert rejection_card(app) == ""
    assert app.session_state[KEY].choice.spec.base == 1e6


def test_rejected_config_removes_the_old_findings(drop, rejection_card):
    app = drop("scaling", json.dumps({**SCALED, "rope_scaling": {**yarn(32_768), "factor": 8.0}}))
    assert [one.proto.label for one in app.sidebar.get("page_link")] != []
    field = next(item for item in app.get("file_uploader") if item.key.startswith("upload.file"))
    field.set_value(("config.json", b"{", "application/json")).run()
    assert app.sidebar.get("page_link") == []
    assert [one.value for one in app.warning] == ["Could not read this config. The page says why."]
