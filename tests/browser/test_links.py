"""Links inside the app stay in the tab and keep the user's choice, under any path prefix."""

import json
from urllib.parse import urlsplit

from playwright.sync_api import expect

from rope_viz.pages.registry import titles
from tests.configs import llama


def follow_link(view, link, page):
    link.click()
    view.page.wait_for_url(f"**/{page}**")
    if page not in ("model", "compare"):  # their headings are names of models
        view.until(f"document.querySelector('h1')?.innerText === '{titles()[page]}'")
    view.settle()


def test_dropped_config_is_used_on_linked_pages(visit, tmp_path):
    """A link in a list and one in a text."""
    config = llama(max_position_embeddings=32768)
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config | {"_name_or_path": "me/mine", "rope_theta": 31337.0}), encoding="utf-8")
    view = visit().open("/scaling")
    view.page.locator("input[type=file]").set_input_files(file)
    expect(view.knob("base")).to_have_value("31337")
    view.settle()
    view.page.evaluate("window.__here = true")
    view.go("Home")
    main = view.page.locator("main")
    follow_link(view, main.get_by_role("link", name="Rotation", exact=True).first, "rotation")
    view.page.go_back()
    view.until("document.querySelector('h1')?.innerText.startsWith('RoPE rotates')")
    view.settle()
    follow_link(view, main.get_by_role("link", name="My model", exact=True), "model")
    expect(main).to_contain_text("base 31,337")
    assert view.page.evaluate("window.__here"), "the page was reloaded"
    assert view.is_only_tab()
    assert view.errors == []


def test_links_preserve_path_prefix_and_choice(visit, new_server):
    view = visit(new_server(base="deep/rope")).open("/?base=77000")
    follow_link(view, view.page.locator("main").get_by_role("link", name="Scaling", exact=True), "scaling")
    assert urlsplit(view.page.url).path == "/deep/rope/scaling"
    expect(view.knob("base")).to_have_value("77000")
