"""Heads reads a typed text, with a small random model instead of the real one."""

import pytest
from playwright.sync_api import expect

from rope_viz.models.local_models import FOLDER_VARIABLE, MODELS
from tests.browser.processes import running_server
from tests.tiny_lm.gguf_writer import write_small_model

pytest.importorskip("tokenizers")


@pytest.fixture
def page(chromium, tmp_path, monkeypatch):
    """The page Heads of a server with a small random model in the folder of `get-model`."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    weights = MODELS["smollm2"].weights
    weights.parent.mkdir()
    write_small_model(weights)
    with running_server() as started:
        context = chromium.new_context(viewport={"width": 1440, "height": 4000})  # all pictures are in view
        page = context.new_page()
        page.goto(started.url + "/heads")
        yield page
        context.close()


def test_typed_text_is_read_and_its_heads_are_shown(page):
    field, sentence = page.get_by_label("Your text"), page.locator('[data-says="heads/across"]')
    field.fill("in the")
    field.blur()
    page.get_by_role("button", name="Read my text").click()
    expect(page.get_by_text("at least 32")).to_be_visible()
    field.fill("in the tin 12 " * 60)
    field.blur()
    page.get_by_role("button", name="Read my text").click()
    expect(sentence).to_contain_text("on your text", timeout=30_000)
    expect(page.locator('[data-says="heads/distance"]')).to_contain_text("Head")
