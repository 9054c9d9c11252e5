"""Recall reads a typed text if the model is installed, and otherwise says how to get it."""

from rope_viz.models.identity.local_models import MODELS
from tests.pages.app_texts import texts_of


def test_without_the_model_the_page_says_how_to_get_it(open_page):
    app = open_page("recall", **{"recall.tab": "own"})
    assert not app.exception
    assert "rope-viz get-model smollm2" in texts_of(app)
    assert "live.text" not in {area.key for area in app.text_area}


def test_with_the_model_a_text_and_a_key_can_be_entered(open_page):
    weights = MODELS["smollm2"].weights
    weights.parent.mkdir(parents=True)
    weights.write_bytes(b"")
    app = open_page("recall", **{"recall.tab": "own"})
    assert not app.exception
    assert "live.text" in {area.key for area in app.text_area}
    assert {"run.recall", "run.recall.keys"} <= {button.key for button in app.button}
    assert "rope-viz get-model" not in texts_of(app)
