"""What `pytest` alone checks in a real Chromium: each door opens, and its main action works.

All other tests of this folder are slow: `pytest -m browser` runs both.
"""

import json

import pytest
from playwright.sync_api import expect

from rope_viz.pages.registry import doors, titles
from tests.browser.figure_tools import download
from tests.configs import QWEN3_8B


@pytest.mark.parametrize("width", [1440, 390])
def test_doors_open_their_first_page_from_home(visit, width):
    view = visit(width=width, height=844, watched=True).open("/")
    for pages in doors().values():
        view.go(titles()[pages[0]])
        assert view.page.locator("h1, .rv-learn h2").count()
    assert view.errors == []
    assert view.foreign_requests == []


@pytest.mark.parametrize("door", doors())
def test_pages_of_a_door_show_their_content(visit, door):
    view = visit().open("/")
    for page in doors()[door]:
        view.go(titles()[page])
        assert view.page.locator("main").inner_text().strip()
        assert view.page.locator("[data-testid=stException], .rv-picture[data-state=failed]").count() == 0
    assert view.errors == []


def test_dragged_word_on_home_changes_the_angle(visit):
    view = visit().open("/")
    box = view.page.locator(".rv-hands [data-do=query]").bounding_box()
    shown = view.page.locator(".rv-now")
    before = shown.inner_text()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    view.page.mouse.move(x, y)
    view.page.mouse.down()
    view.page.mouse.move(x - 100, y, steps=4)
    view.page.mouse.up()
    expect(shown).not_to_have_text(before)
    assert view.errors == []


def test_link_on_home_opens_learn_in_the_same_tab(visit):
    view = visit().open("/")
    view.page.locator("main").get_by_role("link", name="Learn").first.click()
    view.page.wait_for_url("**/learn**")
    view.settle()
    assert view.is_only_tab()
    view.page.go_back()
    expect(view.page.locator("h1")).to_contain_text("RoPE rotates")
    assert view.errors == []


def test_picture_follows_a_dragged_slider_and_is_downloaded(visit):
    view = visit().open("/frequencies")
    slider, drawn = view.slider("base").bounding_box(), view.count_draws()
    middle = slider["y"] + slider["height"] / 2
    for share in (0.5, 0.6):
        view.page.mouse.move(slider["x"] + share * slider["width"], middle)
        view.page.mouse.down()
    view.until(f"document.querySelector('.rv-chart').dataset.drawn > {drawn}")
    view.page.mouse.up()
    view.page.wait_for_url("**base=**")
    view.settle()
    content, name = download(view.page.locator(".rv-picture").first, "csv")
    assert b"pair i,plain,scaled" in content
    assert name.endswith(".csv")
    assert view.errors == []


def test_dropped_config_is_named_and_gets_its_command(visit):
    view = visit().open("/model")
    content = json.dumps(QWEN3_8B).encode()
    file = {"name": "config.json", "mimeType": "application/json", "buffer": content}
    view.page.locator("[data-testid=stFileUploader] input[type=file]").first.set_input_files(file)
    view.page.wait_for_url("**model=custom**")
    expect(view.page.locator("main h1")).to_have_text("Qwen3 8B")
    expect(view.page.locator(".st-key-command [data-testid=stCode]")).to_contain_text('"factor": 4.0')
    assert view.errors == []


def test_slider_at_the_bottom_of_a_phone_changes_the_picture(visit):
    view = visit(width=390, height=844, has_touch=True).open("/frequencies")
    drawn = view.count_draws()
    slider = view.page.locator("[data-under=base] input[type=range]")
    slider.focus()
    view.page.keyboard.press("PageUp")
    view.page.wait_for_url("**base=**")
    view.settle()
    assert view.count_draws() > drawn
    assert view.errors == []
