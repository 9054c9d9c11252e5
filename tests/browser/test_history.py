"""Back, Forward and where a page opens: one click is one step back, to the same choice and place on the page."""

import pytest
from playwright.sync_api import expect

from rope_viz.pictures.doors import TITLES
from rope_viz.pictures.learn_steps import STEPS

TOP = "document.querySelector('[data-testid=stMain]').scrollTop"


def home(seen, query):
    expect(seen.page.locator("h1")).to_contain_text("RoPE rotates")
    seen.settle()
    assert seen.page.url == f"{seen.url}/{query}"
    explore = seen.page.locator("[data-door=explore]").get_attribute("href")
    assert ("base=77000" in explore) == bool(query)


def step(seen, number):
    expect(seen.page.locator("h1")).to_have_text(f"{number}. {STEPS[number - 1].title}")
    seen.settle()
    assert f"learn.step={number}" in seen.page.url


def enter(seen, way):
    if way == "door":
        seen.page.locator("main").get_by_role("link").first.click()
    else:
        seen.page.get_by_role("link", name="Learn", exact=True).first.click()
    step(seen, 1)
    seen.page.get_by_role("button", name="Next").click()
    step(seen, 2)


@pytest.mark.parametrize(("way", "query"), [("door", "?base=77000"), ("menu", "")])
def test_back_leaves_the_tour_step_by_step_to_home(visit, way, query):
    seen = visit().open(f"/{query}")
    before = seen.page.evaluate("history.length")
    enter(seen, way)
    assert seen.page.evaluate("history.length") == before + 2
    seen.page.go_back()
    step(seen, 1)
    assert "model=llama-2-7b" in seen.page.url
    seen.page.go_back()
    home(seen, query)
    seen.page.go_forward()
    step(seen, 1)
    seen.page.go_forward()
    step(seen, 2)
    # Both at once: what the run of step 1 still writes must not stay in Home's address, nor take Forward away.
    seen.page.evaluate("(history.back(), history.back())")
    seen.page.wait_for_url(f"{seen.url}/{query}")
    home(seen, query)
    seen.page.go_forward()
    step(seen, 1)
    assert seen.errors == []


def test_step_opened_on_a_page_applies_to_that_page(visit):
    """Its model is then the reader's; what he had before is still there for Back."""
    seen = visit().open("/?base=77000")
    seen.page.locator("main").get_by_role("link").first.click()
    step(seen, 1)
    seen.page.get_by_text("Open in Attention").click()
    expect(seen.page.locator("h1")).to_have_text("Attention")
    seen.settle()
    assert "model=llama-2-7b" in seen.page.url
    seen.page.go_back()
    step(seen, 1)
    seen.page.go_back()
    home(seen, "?base=77000")


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
