"""A newcomer's first steps through the doors, and the header of every page."""

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from tests.configs import QWEN3_8B


def test_own_config_gets_its_command_starting_from_home(visit):
    view = visit(permissions=["clipboard-read", "clipboard-write"]).open("/")
    view.go("My model")
    view.drop(QWEN3_8B)
    view.page.wait_for_url("**model=custom**")
    view.settle()
    main = view.page.locator("main")
    expect(main.locator("h1")).to_have_text("Qwen3 8B")
    main.get_by_role("button", name="Copy command").click()
    expect(main.get_by_role("button", name="Copied")).to_be_visible()
    command = view.page.evaluate("navigator.clipboard.readText()")
    assert command == main.locator(".st-key-command code").inner_text().strip()
    assert '"factor": 4.0' in command, "the factor that Qwen3 documents for 128k"
    assert view.errors == []


@pytest.mark.parametrize(("old", "tab"), [("extend", "Changes"), ("runtimes", "Runtimes")])
def test_old_page_link_opens_its_tab_and_back_leaves_it(visit, old, tab):
    view = visit().open("/frequencies?model=qwen3-8b")
    view.open(f"/{old}?model=qwen3-8b&extend.target=65536&extend.for=vllm")
    assert urlsplit(view.page.url).path == "/model"
    expect(view.page.locator("h1")).to_have_text("Qwen3 8B")
    expect(view.page.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true")
    expect(view.page.locator("main").get_by_role("textbox", name="Context needed").first).to_have_value("64k")
    view.page.go_back()
    expect(view.page.locator("h1")).to_have_text("Frequencies")
    view.settle()
    assert view.errors == []


def test_open_tab_is_in_the_address(visit):
    view = visit().open("/model")
    view.page.get_by_role("tab", name="Verify").click()
    view.page.wait_for_url("**extend.tab=verify**")
    view.settle()
    expect(view.page.locator("main")).to_contain_text("rope-viz verify")
    view.page.reload()
    view.settle()
    expect(view.page.get_by_role("tab", name="Verify")).to_have_attribute("aria-selected", "true")
    expect(view.page.locator("main")).to_contain_text("rope-viz verify")
    view.page.get_by_role("tab", name="Changes").click()
    view.until("!location.search.includes('extend.tab')")
    assert view.errors == []


def test_memory_settings_are_behind_one_button(visit):
    view = visit().open("/model?model=qwen3-8b&extend.gpu=16")
    view.page.locator("[data-testid=stPopover]", has_text="Change GPU").get_by_role("button").click()
    field = view.page.get_by_role("textbox", name="Parallel requests").first
    field.fill("4")
    field.press("Enter")
    view.page.wait_for_url("**extend.sequences=4**")
    view.settle()
    expect(view.page.locator(".rv-memory")).to_contain_text("KV cache, 4 requests")
    assert view.errors == []


@pytest.mark.parametrize("path", ["/", "/scaling", "/model"])
def test_theme_button_changes_and_stores_the_theme(visit, path):
    ground = "getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"
    view = visit().open(path)
    light = view.page.evaluate(ground)
    view.page.locator("#rv-theme").click()
    view.until(f"{ground} === 'rgb(15, 18, 22)'")
    view.page.reload()
    view.settle()
    view.until(f"{ground} === 'rgb(15, 18, 22)'")
    view.page.locator("#rv-theme").click()
    view.until(f"{ground} === '{light}'")
    assert view.errors == []


@pytest.mark.parametrize(("path", "width"), [("/precision", 1440), ("/scaling", 390)])
def test_the_model_button_opens_the_closed_sidebar(visit, path, width):
    view = visit(width=width, height=844).open(f"{path}?model=qwen3-8b-yarn")
    chip, sidebar = view.page.locator("#rv-chip"), view.page.get_by_test_id("stSidebar")
    expect(chip).to_contain_text("Qwen3 8B")
    expect(chip).to_contain_text("YaRN × 4")
    expect(sidebar.get_by_role("combobox").first).not_to_be_in_viewport()
    chip.click()
    expect(sidebar.get_by_role("combobox").first).to_be_in_viewport()
    assert view.errors == []


def test_header_links_carry_the_model_and_mark_the_page(visit):
    view = visit().open("/scaling?base=77000")
    header = view.page.locator("#rv-header")
    for link in header.locator("a[data-to]").all():
        assert parse_qs(urlsplit(link.get_attribute("href")).query)["base"] == ["77000"]
    expect(header.locator("[aria-current=page]")).to_have_text("Scaling")
    expect(header.locator("[data-door][aria-current]")).to_have_text("Explore")
