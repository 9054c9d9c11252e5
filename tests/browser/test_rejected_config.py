"""A broken config: its card, the repair by mouse and keyboard, and a typed length that stays."""

import json
import re

import pytest
from playwright.sync_api import expect

from tests.browser.page_ends import SIZES, assert_ends_are_reached
from tests.browser.test_every_page import check_page_in_both_themes
from tests.browser.test_keyboard import tab_to
from tests.configs import QWEN3_8B, yarn
from tests.pages.test_rejected_config import BROKEN, LINE
from tests.pages.test_shared_lengths import GEMMA_3_27B


def find_card(view):
    return view.page.get_by_role("alert").filter(has_text="This config cannot be read")


@pytest.mark.parametrize("width", [1440, 390])
def test_rejection_card_is_accessible_and_repairs(visit, width):
    view = visit(width=width, height=900, has_touch=width < 600, watched=True).open("/model?extend.tab=runtimes")
    view.drop(BROKEN.encode(), "mine.json")
    expect(find_card(view)).to_contain_text("mine.json")
    expect(find_card(view)).to_contain_text("a comma before a closing bracket")
    expect(find_card(view)).to_contain_text(f"Line {LINE}, column 5")
    main = view.page.locator("[data-testid=stMain]")
    expect(main.locator(".rv-diff .rv-added").first).to_contain_text('"factor": 4.0')
    agree = re.compile(r"\d of \d agree")
    assert not agree.search(main.inner_text())
    view.settle()
    check_page_in_both_themes(view)
    with view.page.expect_download() as caught:
        main.get_by_role("button", name="Download repaired file").click()
    assert json.loads(caught.value.path().read_bytes())["rope_scaling"] == yarn(32_768)
    main.get_by_role("button", name="Repair and continue").click()
    view.page.wait_for_url("**model=custom**")
    expect(find_card(view)).to_have_count(0)
    view.settle()
    expect(main.get_by_role("tab", name=agree)).to_be_visible()
    assert view.errors == []


def test_rejection_card_stays_on_other_pages_and_takes_keys(visit):
    view = visit().open("/scaling")
    view.drop(BROKEN.encode())
    expect(find_card(view)).to_be_visible()
    view.go("My model")
    expect(find_card(view)).to_be_visible()
    assert_ends_are_reached(view)
    view.resize(*SIZES[0])
    view.settle()
    tab_to(view, "Repair and continue")
    view.page.keyboard.press("Enter")
    view.page.wait_for_url("**model=custom**")
    expect(find_card(view)).to_have_count(0)
    expect(view.page.locator("h1")).to_have_text("Qwen3 8B")
    assert "/model?" in view.page.url
    assert view.errors == []


def test_a_typed_length_survives_dropped_files(visit):
    view = visit().open("/model")
    field = view.page.locator("[data-testid=stMain]").get_by_role("textbox", name="Context needed").first
    expect(field).to_have_value("128k")
    field.fill("128k")
    field.press("Enter")
    view.page.wait_for_url("**target=131072**")
    for config in (GEMMA_3_27B, QWEN3_8B):
        view.drop(config)
        view.page.wait_for_url("**model=custom**")
        view.settle()
        expect(field).to_have_value("128k")
    assert view.page.locator("[data-testid=stSidebar] [data-knob]").count() == 0
    assert view.errors == []
