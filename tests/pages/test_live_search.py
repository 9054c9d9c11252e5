"""Recall searches for frequencies in its own process, shows the best so far, and reads the file of a search."""

import pytest

from rope_viz.evaluation import search_process
from rope_viz.pages import recall
from rope_viz.tiny_lm import checkpoints
from tests.pages.app_texts import texts_of
from tests.waiting import wait_until

pytestmark = pytest.mark.float32_products

BUTTON = "run.recall.search"


def test_without_optuna_the_page_says_what_to_install(open_page, monkeypatch):
    monkeypatch.setattr(search_process, "has_optuna", lambda: False)
    app = open_page("recall", **{"recall.tab": "training"})
    assert not app.exception
    assert "pip install 'rope-viz[search]'" in texts_of(app)
    assert BUTTON not in {button.key for button in app.button}


@pytest.fixture
def short_search(monkeypatch):
    """Let the page search at 512 tokens with four trials and two held-out texts."""
    pytest.importorskip("optuna")
    started = []

    class ShortRun(search_process.SearchRun):
        def __init__(self):
            super().__init__(512, 4, 2)
            started.append(self)

    monkeypatch.setattr(search_process, "SearchRun", ShortRun)
    yield started
    for run in started:
        run.stop()
        assert run.wait(30)


def test_button_searches_and_the_page_shows_the_result(open_page, picture_requests, short_search):
    app = open_page("recall", **{"recall.tab": "training"})
    assert "example that we ran" in recall.searched(picture_requests(app)[recall.searched]).sentence
    app.button(key=BUTTON).click().run()
    assert app.button(key=BUTTON).disabled
    (run,) = short_search
    wait_until(lambda: run.report.found or not run.is_alive, 100, "result of a trial")
    assert run.is_alive, run.problem
    app.run()
    assert "After" in recall.searched(picture_requests(app)[recall.searched]).sentence
    assert run.wait(100)
    app.run()
    assert not app.exception
    assert not app.warning
    assert not app.button(key=BUTTON).disabled
    request = picture_requests(app)[recall.searched]
    assert "After 4 trials" in recall.searched(request).sentence
    assert "held-out" in recall.searched(request).sentence
    assert '"max_position_embeddings": 512' in " ".join(each.value for each in app.code)


def test_stopped_search_shows_the_best_result(open_page, picture_requests, short_search):
    app = open_page("recall", **{"recall.tab": "training"})
    app.button(key=BUTTON).click().run()
    (run,) = short_search
    wait_until(lambda: run.report.found or not run.is_alive, 100, "result of a trial")
    run.stop()
    assert run.wait(30)
    app.run()
    assert not app.exception
    assert run.problem in [each.value for each in app.warning]
    request = picture_requests(app)[recall.searched]
    assert "the best frequencies give" in recall.searched(request).sentence


def upload(app, name, content):
    field = next(each for each in app.get("file_uploader") if "choice.recall.search" in each.proto.id)
    field.set_value((name, content, "application/json")).run()


def test_search_file_replaces_the_search_button(open_page, picture_requests):
    app = open_page("recall", **{"recall.tab": "training"})
    content = (checkpoints.FOLDER / "searched.json").read_bytes().replace(b'"tiny"', b'"mine"')
    upload(app, "search.json", content)
    assert not app.exception
    assert "'mine'" in recall.searched(picture_requests(app)[recall.searched]).sentence
    assert "Remove the file" in texts_of(app)
    assert BUTTON not in {button.key for button in app.button}


def test_wrong_file_is_refused_with_a_reason(open_page, picture_requests):
    app = open_page("recall", **{"recall.tab": "training"})
    upload(app, "recall.json", b'{"answers": []}')
    assert not app.exception
    assert "not the result of a search" in " ".join(each.value for each in app.warning)
    assert "example that we ran" in recall.searched(picture_requests(app)[recall.searched]).sentence
