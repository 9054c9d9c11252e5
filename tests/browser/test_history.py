"""Back and reload restore the choice and the scroll position; links open at the top."""

import pytest
from playwright.sync_api import expect

from rope_viz.pages.registry import titles

SCROLL_TOP = "document.querySelector('[data-testid=stMain]').scrollTop"


def check_home(view, query):
    expect(view.page.locator("h1")).to_contain_text("RoPE rotates")
    view.settle()
    assert view.page.url == f"{view.url}/{query}"
    explore = view.page.locator("[data-door=explore]").get_attribute("href")
    assert ("base=77000" in explore) == bool(query)


@pytest.mark.parametrize("width", [1440, 390])
def test_link_opens_at_the_top_and_back_restores_the_scroll(visit, width):
    view = visit(width=width, height=500, has_touch=width < 600).open("/?base=77000")
    link = view.page.locator("main").get_by_role("link", name="Precision", exact=True).first
    # The scroll position at the click, which itself may scroll the link into view.
    view.page.evaluate(f"addEventListener('click', () => (window.__place = {SCROLL_TOP}), true)")
    link.click()
    expect(view.page.locator("h1")).to_have_text(titles()["precision"])
    view.settle()
    assert view.page.evaluate("window.__place") > 100
    assert view.page.evaluate(SCROLL_TOP) == 0
    view.page.go_back()
    check_home(view, "?base=77000")
    view.until(f"Math.abs({SCROLL_TOP} - window.__place) < 4")


def test_reload_restores_the_scroll_position(visit):
    view = visit().open("/runtimes?base=77000")
    view.page.evaluate("document.querySelector('[data-testid=stMain]').scrollTop = 900")
    view.settle()
    view.page.reload()
    view.settle()
    view.until("Math.abs(document.querySelector('[data-testid=stMain]').scrollTop - 900) < 3")
    view.open("/runtimes?base=77000")
    assert view.page.evaluate("document.querySelector('[data-testid=stMain]').scrollTop") == 0
