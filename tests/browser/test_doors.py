"""The ways of a newcomer through the doors, and what the header does on every page."""

import json
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from rope_viz.pictures.doors import TITLES
from tests.configs import QWEN3_8B

BUTTONS = """() => [...document.querySelectorAll('button')]
  .filter((button) => button.checkVisibility({ visibilityProperty: true }))
  .filter((button) => !button.closest('#rv-header, [role=tablist]'))
  .filter((button) => !button.closest('[data-testid=stSidebar], [data-testid=stButtonGroup]'))
  .map((button) => button.innerText || button.getAttribute('aria-label'))"""
MOST_BUTTONS = 15


def test_from_home_to_the_command_for_ones_own_config(visit):
    seen = visit(permissions=["clipboard-read", "clipboard-write"]).open("/")
    seen.go("My model")
    content = json.dumps(QWEN3_8B).encode()
    file = {"name": "config.json", "mimeType": "application/json", "buffer": content}
    seen.page.locator("[data-testid=stFileUploader] input[type=file]").first.set_input_files(file)
    seen.page.wait_for_url("**model=custom**")
    seen.settle()
    main = seen.page.locator("main")
    expect(main.locator("h1")).to_have_text("Qwen3 8B")
    main.get_by_role("button", name="Copy command").click()
    expect(main.get_by_role("button", name="Copied")).to_be_visible()
    command = seen.page.evaluate("navigator.clipboard.readText()")
    assert command == main.locator(".st-key-command code").inner_text().strip()
    assert '"factor": 4.0' in command, "what the makers of Qwen3 document for 128k"
    assert seen.errors == []


def test_from_home_to_scaling_with_yarn_as_a_pdf(visit):
    seen = visit().open("/")
    seen.go("Scaling")
    box = seen.page.locator("[data-testid=stSidebar]").get_by_role("combobox", name="Scaling method")
    box.click()
    seen.page.get_by_role("option", name="YaRN (as released)").click()
    seen.page.wait_for_url("**method=yarn**")
    seen.settle()
    figure = seen.page.locator(".rv-picture").first
    figure.locator("[data-do=download]").click()
    with seen.page.expect_download() as caught:
        figure.locator("[data-item=pdf]").click()
    assert caught.value.path().read_bytes().startswith(b"%PDF-")
    assert seen.errors == []


@pytest.mark.parametrize(("old", "tab"), [("extend", "Changes"), ("runtimes", "Runtimes")])
def test_a_link_to_an_old_page_opens_its_tab_and_back_leaves(visit, old, tab):
    seen = visit().open("/frequencies?model=qwen3-8b")
    seen.open(f"/{old}?model=qwen3-8b&extend.target=65536&extend.for=vllm")
    assert urlsplit(seen.page.url).path == "/model"
    expect(seen.page.locator("h1")).to_have_text("Qwen3 8B")
    expect(seen.page.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true")
    expect(seen.page.locator("main").get_by_role("textbox", name="Context needed").first).to_have_value("64k")
    seen.page.go_back()
    expect(seen.page.locator("h1")).to_have_text("Frequencies")
    seen.settle()
    assert seen.errors == []


def test_the_open_tab_is_in_the_address(visit):
    seen = visit().open("/model")
    seen.page.get_by_role("tab", name="Verify").click()
    seen.page.wait_for_url("**extend.tab=verify**")
    seen.settle()
    expect(seen.page.locator("main")).to_contain_text("rope-viz verify")
    seen.page.reload()
    seen.settle()
    expect(seen.page.get_by_role("tab", name="Verify")).to_have_attribute("aria-selected", "true")
    expect(seen.page.locator("main")).to_contain_text("rope-viz verify")
    seen.page.get_by_role("tab", name="Changes").click()
    seen.until("!location.search.includes('extend.tab')")
    assert seen.errors == []


def test_the_settings_of_the_memory_are_behind_one_button(visit):
    seen = visit().open("/model?model=qwen3-8b&extend.gpu=16")
    seen.page.locator("[data-testid=stPopover]", has_text="Change GPU").get_by_role("button").click()
    field = seen.page.get_by_role("textbox", name="Parallel requests").first
    field.fill("4")
    field.press("Enter")
    seen.page.wait_for_url("**extend.sequences=4**")
    seen.settle()
    expect(seen.page.locator(".rv-memory")).to_contain_text("KV cache, 4 requests")
    assert seen.errors == []


@pytest.mark.parametrize("path", ["/", "/scaling", "/model"])
def test_the_theme_button_changes_and_keeps_the_theme(visit, path):
    ground = "getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"
    seen = visit().open(path)
    light = seen.page.evaluate(ground)
    seen.page.locator("#rv-theme").click()
    seen.until(f"{ground} === 'rgb(15, 18, 22)'")
    seen.page.reload()
    seen.settle()
    seen.until(f"{ground} === 'rgb(15, 18, 22)'")
    seen.page.locator("#rv-theme").click()
    seen.until(f"{ground} === '{light}'")
    assert seen.errors == []


@pytest.mark.parametrize(("path", "width"), [("/recall", 1440), ("/scaling", 390)])
def test_the_model_button_opens_the_closed_sidebar(visit, path, width):
    seen = visit(width=width, height=844).open(f"{path}?model=qwen3-8b-yarn")
    chip, sidebar = seen.page.locator("#rv-chip"), seen.page.get_by_test_id("stSidebar")
    expect(chip).to_contain_text("Qwen3 8B")
    expect(chip).to_contain_text("YaRN × 4")
    expect(sidebar.get_by_role("combobox").first).not_to_be_in_viewport()
    chip.click()
    expect(sidebar.get_by_role("combobox").first).to_be_in_viewport()
    assert seen.errors == []


def test_header_links_carry_the_model_and_mark_the_page(visit):
    seen = visit().open("/scaling?base=77000")
    header = seen.page.locator("#rv-header")
    for link in header.locator("a[data-to]").all():
        assert parse_qs(urlsplit(link.get_attribute("href")).query)["base"] == ["77000"]
    expect(header.locator("[aria-current=page]")).to_have_text("Scaling")
    expect(header.locator("[data-door][aria-current]")).to_have_text("Explore")


@pytest.mark.parametrize("page", TITLES)
def test_a_page_shows_at_most_fifteen_buttons(visit, page):
    seen = visit().open("/" if page == "home" else f"/{page}")
    found = seen.page.evaluate(BUTTONS)
    assert len(found) <= MOST_BUTTONS, found
