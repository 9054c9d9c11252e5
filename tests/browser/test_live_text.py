"""Heads and Recall read a typed text, with a small random model instead of the real one."""

import pytest
from playwright.sync_api import expect

from rope_viz.models.identity.local_models import FOLDER_VARIABLE, MODELS
from tests.browser.processes import running_server
from tests.tiny_lm.gguf_writer import write_small_model

pytest.importorskip("tokenizers")
TEXT = "in the tin 12 " * 60


@pytest.fixture(scope="module")
def server_with_model(tmp_path_factory):
    """Return the address of a server with a small random model in the folder of `get-model`."""
    folder = tmp_path_factory.mktemp("models")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FOLDER_VARIABLE, str(folder))
        weights = MODELS["smollm2"].weights
        weights.parent.mkdir()
        write_small_model(weights)
        with running_server() as started:
            yield started.url


def test_typed_text_is_read_and_its_heads_are_shown(visit, server_with_model):
    view = visit(server_with_model, height=4000).open("/heads?heads.tab=own")  # all pictures are in view
    heads = view.page
    field, sentence = heads.get_by_role("textbox", name="Your text"), heads.locator('[data-says="heads/across"]')
    field.fill("in the")
    field.blur()
    heads.get_by_role("button", name="Read my text").click()
    expect(heads.get_by_text("at least 32")).to_be_visible()
    field.fill(TEXT)
    field.blur()
    heads.get_by_role("button", name="Read my text").click()
    expect(sentence).to_contain_text("on your text", timeout=30_000)
    expect(heads.locator('[data-says="heads/distance"]')).to_contain_text("Head")


def test_typed_text_is_read_and_its_loss_and_pass_key_are_shown(visit, server_with_model):
    recall = visit(server_with_model).open("/recall?recall.tab=own").page
    field, read = recall.get_by_role("textbox", name="Your text"), recall.get_by_role("button", name="Read my text")
    field.fill("in the")
    field.blur()
    read.click()
    expect(recall.get_by_text("at least 256")).to_be_visible()
    field.fill(TEXT)
    field.blur()
    read.click()
    sentence = recall.locator('[data-says="recall/live_loss"]')
    expect(sentence).to_contain_text("your text")
    expect(sentence).to_contain_text("tokens")
    recall.get_by_role("button", name="Hide and ask").click()
    expect(recall.locator('[data-says="recall/live_keys"]')).to_contain_text("48213")
