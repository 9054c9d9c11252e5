"""Every link inside the app stays in the tab and preserves the user's choice, under any path prefix."""

import json
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import expect

from rope_viz.pictures.doors import TITLES
from tests.configs import llama


def go(seen, link, page):
    link.click()
    seen.page.wait_for_url(f"**/{page}**")
    if page != "model":  # whose heading is the name of the model
        seen.until(f"document.querySelector('h1')?.innerText === '{TITLES[page]}'")
    seen.settle()


def test_dropped_config_is_used_on_linked_pages(visit, tmp_path):
    """Both kinds of link: one of a list, one within a text."""
    config = llama(max_position_embeddings=32768)
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config | {"_name_or_path": "me/mine", "rope_theta": 31337.0}), encoding="utf-8")
    seen = visit().open("/scaling")
    seen.page.locator("input[type=file]").set_input_files(file)
    expect(seen.knob("base")).to_have_value("31337")
    seen.settle()
    seen.page.evaluate("window.__here = true")
    seen.go("Home")
    main = seen.page.locator("main")
    go(seen, main.get_by_role("link", name="Rotation", exact=True).first, "rotation")
    seen.page.go_back()
    seen.until("document.querySelector('h1')?.innerText.startsWith('RoPE rotates')")
    seen.settle()
    go(seen, main.get_by_role("link", name="My model", exact=True), "model")
    expect(main).to_contain_text("base 31,337")
    assert seen.page.evaluate("window.__here"), "the page was loaded anew"
    assert seen.is_alone()
    assert seen.errors == []


def test_first_link_on_home_opens_learn(visit):
    seen = visit().open("/")
    first = seen.page.locator("main").get_by_role("link").first
    assert "Learn" in first.inner_text()
    first.click()
    seen.page.wait_for_url("**/learn**")
    seen.until("document.querySelector('.rv-learn h2')?.innerText === 'The same word twice'")


def test_links_preserve_path_prefix_and_choice(visit, new_server):
    seen = visit(new_server(base="deep/rope")).open("/?base=77000")
    go(seen, seen.page.locator("main").get_by_role("link", name="Scaling", exact=True), "scaling")
    assert urlsplit(seen.page.url).path == "/deep/rope/scaling"
    assert seen.knob("base").input_value() == "77000"


def test_links_in_texts_name_pages_of_the_app():
    """A link of Markdown is completed by the browser; what it names must be a page."""
    texts = Path(__file__).parents[2] / "rope_viz" / "ui" / "texts"
    for path in texts.glob("*.md"):
        for part in path.read_text(encoding="utf-8").split("](/")[1:]:
            assert part.split(")")[0].split("?")[0].split("#")[0] in TITLES


def test_every_page_has_one_next_step_in_this_tab(visit):
    seen = visit().open("/frequencies?base=77000")
    seen.page.get_by_role("link", name="Next: what scaling does").click()
    seen.page.wait_for_url("**/scaling**")
    seen.settle()
    assert "base=77000" in seen.page.url
    assert seen.is_alone()
