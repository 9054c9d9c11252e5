"""Heads reads a typed text if the model is installed, and shows its q and k."""

import pytest

from rope_viz.models.identity.local_models import MODELS
from rope_viz.pages import heads
from rope_viz.real_models import capture_text
from rope_viz.ui.session import KEY
from tests.pages.app_texts import texts_of
from tests.tiny_lm.gguf_writer import write_small_model

pytestmark = pytest.mark.float32_products

BUTTON, FIELD = "run.heads", "live.heads"
TEXT = "in the tin 12 " * 60


def test_without_the_model_the_page_says_how_to_get_it(open_page):
    app = open_page("heads", **{"heads.tab": "own"})
    assert not app.exception
    assert "rope-viz get-model smollm2" in texts_of(app)
    assert FIELD not in {area.key for area in app.text_area}


@pytest.fixture
def runs(monkeypatch):
    """The captures that the page starts with a small random model; they end with the test."""
    pytest.importorskip("tokenizers")
    weights, started = MODELS["smollm2"].weights, []
    weights.parent.mkdir(parents=True)
    write_small_model(weights)

    class StartedRun(capture_text.CaptureRun):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            started.append(self)

    monkeypatch.setattr(capture_text, "CaptureRun", StartedRun)
    yield started
    for run in started:
        run.stop()
        assert run.wait(30)


def read_text(app, text, runs):
    app.text_area(key=FIELD).set_value(text).run()
    app.button(key=BUTTON).click().run()
    assert app.button(key=BUTTON).disabled
    return runs[-1]


def test_text_is_read_and_its_capture_is_shown(open_page, picture_requests, runs):
    app = open_page("heads", **{"heads.tab": "own"})
    assert "rope-viz get-model" not in texts_of(app)
    assert "tiny_lm" in heads.across(picture_requests(app)[heads.across]).sentence
    assert read_text(app, TEXT, runs).wait(60)
    app.run()
    assert not app.exception
    assert not app.warning
    request = picture_requests(app)[heads.across]
    assert "on your text" in heads.across(request).sentence
    assert heads.across(request).fig.data[0].z.shape == (4, 3)
    assert heads.looked(picture_requests(app)[heads.distance]).heads.tokens == 256
    assert heads.FILE.key not in app.session_state[KEY].stored


def test_too_short_text_shows_the_minimum(open_page, picture_requests, runs):
    app = open_page("heads", **{"heads.tab": "own"})
    assert read_text(app, "in the", runs).wait(60)
    app.run()
    assert not app.exception
    assert "Paste at least 32" in " ".join(each.value for each in app.warning)
    assert "tiny_lm" in heads.across(picture_requests(app)[heads.across]).sentence


def test_stopped_reading_shows_no_capture(open_page, picture_requests, runs):
    app = open_page("heads", **{"heads.tab": "own"})
    run = read_text(app, TEXT, runs)
    run.stop()
    assert run.wait(30)
    app.run()
    assert not app.exception
    assert run.problem in [each.value for each in app.warning]
    assert "tiny_lm" in heads.across(picture_requests(app)[heads.across]).sentence
