"""Back, Forward and where a page opens: one click is one step back, to the same choice and place on the page."""

import pytest
from playwright.sync_api import expect

from rope_viz.pictures.doors import TITLES

TOP = "document.querySelector('[data-testid=stMain]').scrollTop"


def home(seen, query):
    expect(seen.page.locator("h1")).to_contain_text("RoPE rotates")
    seen.settle()
    assert seen.page.url == f"{seen.url}/{query}"
    explore = seen.page.locator("[data-door=explore]").get_attribute("href")
    assert ("base=77000" in explore) == bool(query)


@pytest.mark.parametrize("width", [1440, 390])
def test_link_opens_at_the_top_and_back_restores_the_scroll(visit, width):
    seen = visit(width=width, height=500, has_touch=width < 600).open("/?base=77000")
    link = seen.page.locator("main").get_by_role("link", name="Precision", exact=True).first
    # Where it stands when it is clicked: the click itself may bring it into view.
    seen.page.evaluate(f"addEventListener('click', () => (window.__place = {TOP}), true)")
    link.click()
    expect(seen.page.locator("h1")).to_have_text(TITLES["precision"])
    seen.settle()
    assert seen.page.evaluate("window.__place") > 100
    assert seen.page.evaluate(TOP) == 0
    seen.page.go_back()
    home(seen, "?base=77000")
    seen.until(f"Math.abs({TOP} - window.__place) < 4")


def test_reload_restores_the_scroll_position(visit):
    seen = visit().open("/runtimes?base=77000")
    seen.page.evaluate("document.querySelector('[data-testid=stMain]').scrollTop = 900")
    seen.settle()
    seen.page.reload()
    seen.settle()
    seen.until("Math.abs(document.querySelector('[data-testid=stMain]').scrollTop - 900) < 3")
    seen.open("/runtimes?base=77000")
    assert seen.page.evaluate("document.querySelector('[data-testid=stMain]').scrollTop") == 0
