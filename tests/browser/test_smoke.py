"""What `pytest` alone checks in a real Chromium: each door opens, and its main action works.

All other tests of this folder are slow: `pytest -m browser` runs both.
"""

import json

import pytest
from playwright.sync_api import expect

from rope_viz.pictures.doors import DOORS, TITLES
from tests.browser.figure_tools import download
from tests.configs import QWEN3_8B


@pytest.mark.parametrize("width", [1440, 390])
def test_doors_open_their_first_page_from_home(visit, width):
    seen = visit(width=width, height=844, watched=True).open("/")
    for pages in DOORS.values():
        seen.go(TITLES[pages[0]])
        assert seen.page.locator("h1, .rv-learn h2").count()
    assert seen.errors == []
    assert seen.elsewhere == []


@pytest.mark.parametrize("door", DOORS)
def test_pages_of_a_door_show_their_content(visit, door):
    seen = visit().open("/")
    for page in DOORS[door]:
        seen.go(TITLES[page])
        assert seen.page.locator("main").inner_text().strip()
        assert seen.page.locator("[data-testid=stException], .rv-picture[data-state=failed]").count() == 0
    assert seen.errors == []


def test_dragged_word_on_home_changes_the_angle(visit):
    seen = visit().open("/")
    box = seen.page.locator(".rv-hands [data-do=query]").bounding_box()
    shown = seen.page.locator(".rv-now")
    before = shown.inner_text()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    seen.page.mouse.move(x, y)
    seen.page.mouse.down()
    seen.page.mouse.move(x - 100, y, steps=4)
    seen.page.mouse.up()
    expect(shown).not_to_have_text(before)
    assert seen.errors == []


def test_link_on_home_opens_learn_in_the_same_tab(visit):
    seen = visit().open("/")
    seen.page.locator("main").get_by_role("link", name="Learn").first.click()
    seen.page.wait_for_url("**/learn**")
    seen.settle()
    assert seen.is_alone()
    seen.page.go_back()
    expect(seen.page.locator("h1")).to_contain_text("RoPE rotates")
    assert seen.errors == []


def test_picture_follows_a_dragged_slider_and_is_downloaded(visit):
    seen = visit().open("/frequencies")
    slider, drawn = seen.slider("base").bounding_box(), seen.drawn()
    middle = slider["y"] + slider["height"] / 2
    for share in (0.5, 0.6):
        seen.page.mouse.move(slider["x"] + share * slider["width"], middle)
        seen.page.mouse.down()
    seen.until(f"document.querySelector('.rv-chart').dataset.drawn > {drawn}")
    seen.page.mouse.up()
    seen.page.wait_for_url("**base=**")
    seen.settle()
    content, name = download(seen.page.locator(".rv-picture").first, "csv")
    assert b"pair i,plain,scaled" in content
    assert name.endswith(".csv")
    assert seen.errors == []


def test_dropped_config_is_named_and_gets_its_command(visit):
    seen = visit().open("/model")
    content = json.dumps(QWEN3_8B).encode()
    file = {"name": "config.json", "mimeType": "application/json", "buffer": content}
    seen.page.locator("[data-testid=stFileUploader] input[type=file]").first.set_input_files(file)
    seen.page.wait_for_url("**model=custom**")
    expect(seen.page.locator("main h1")).to_have_text("Qwen3 8B")
    expect(seen.page.locator(".st-key-command [data-testid=stCode]")).to_contain_text('"factor": 4.0')
    assert seen.errors == []


def test_slider_at_the_bottom_of_a_phone_changes_the_picture(visit):
    seen = visit(width=390, height=844, has_touch=True).open("/frequencies")
    drawn = seen.drawn()
    slider = seen.page.locator("[data-under=base] input[type=range]")
    slider.focus()
    seen.page.keyboard.press("PageUp")
    seen.page.wait_for_url("**base=**")
    seen.settle()
    assert seen.drawn() > drawn
    assert seen.errors == []
