"""A link that contains a config, copied in one browser and opened in another on another server."""

import json

import pytest
from playwright.sync_api import expect

from tests.browser.figure_tools import pick
from tests.configs import LLAMA_3_1_8B, QWEN3_8B

CONFIGS = {
    "qwen3-8b": (QWEN3_8B, "Recognised by its numbers: Qwen3 8B", "Trained length: 32,768 tokens", "Trained", "32k"),
    "llama-3.1-8b": (LLAMA_3_1_8B, "Recognised by its numbers: Llama 3.1 8B", "8,192 tokens are", "Original", "8k"),
}


def drop(view, config):
    view.drop(config)
    view.page.wait_for_url("**config=*")
    view.settle()


def copy_link(view):
    view.page.locator("#rv-share button").first.click()
    view.page.get_by_role("menuitem", name="Copy link (your config is in it)").click()
    expect(view.page.get_by_role("menuitem", name="Copied")).to_be_visible()
    return view.page.evaluate("navigator.clipboard.readText()")


@pytest.mark.parametrize("name", CONFIGS)
def test_copied_link_opens_the_config_on_another_server(visit, second_server, server, name):
    config, model, trained, label, length = CONFIGS[name]
    view = visit(permissions=["clipboard-read", "clipboard-write"]).open("/model?extend.tab=why")
    drop(view, {**config, "project_codename": "ultramarine"})
    link = copy_link(view)
    assert len(link) < 4000
    there = visit(second_server)
    page = there.page
    page.goto(link.replace(server, second_server))
    main = page.locator("main")
    expect(main).to_contain_text(model)
    expect(main).to_contain_text(trained)
    for door, title in (("Explore", "Rotation"), ("Scaling", "Scaling")):
        page.locator("#rv-header").get_by_role("link", name=door, exact=True).click()
        page.wait_for_url(f"**/{title.lower()}?*config=*")
        expect(page.locator("main h1")).to_have_text(title)
        expect(page.get_by_label(f"{label} length, typed")).to_have_value(length)
    page.go_back()
    page.go_back()
    expect(main).to_contain_text(model)
    page.reload()
    expect(main).to_contain_text(trained)
    assert there.errors == []


def test_opening_a_link_keeps_the_stored_config(visit):
    """The link contains its config, so the stored file of the user stays."""
    view = visit(permissions=["clipboard-read", "clipboard-write"]).open("/scaling")
    drop(view, LLAMA_3_1_8B)
    own = "localStorage.getItem('rope-viz.own')"
    view.until(f"{own} !== null")
    stored, link = view.page.evaluate(own), copy_link(view)
    drop(view, QWEN3_8B)
    view.until(f"{own} !== {json.dumps(stored)}")
    last = view.page.evaluate(own)
    view.page.goto(link)
    view.settle()
    expect(view.knob("base")).to_have_value("500000")
    assert view.page.evaluate(own) == last
    assert view.errors == []


def test_copied_picture_address_works_on_another_server(visit, second_server, server):
    view = visit(permissions=["clipboard-read", "clipboard-write"]).open("/model?extend.tab=why")
    drop(view, QWEN3_8B)
    figure = view.scroll_to("extend/speeds")
    pick(figure, "share", "picture")
    expect(figure.locator("[data-item=picture]")).to_contain_text("Copied")
    address = view.page.evaluate("navigator.clipboard.readText()")
    assert "config=" in address
    assert "own=" not in address
    answer = view.page.request.get(address.replace(server, second_server))
    assert (answer.status, answer.headers["content-type"]) == (200, "image/svg+xml")


def test_dropped_config_stays_when_a_tab_is_opened(visit):
    """The menu of models of the sidebar lies in a closed popover on My model."""
    view = visit().open("/scaling")
    view.page.locator("#rv-header").get_by_role("link", name="My model", exact=True).click()
    view.page.wait_for_url("**/model*")
    view.settle()
    drop(view, QWEN3_8B)
    heading = view.page.locator("main h1").inner_text()
    for tab in ("Why", "Runtimes"):
        view.page.get_by_role("tab", name=tab).click()
        view.page.wait_for_url(f"**extend.tab={tab.lower()}*")
        view.settle()
        assert "config=" in view.page.url
        expect(view.page.locator("main h1")).to_have_text(heading)
    assert view.errors == []
