"""The static site opens from a folder: no request to a host, no error, no sideways scroll, no axe violation."""

import pytest
from playwright.sync_api import expect

from rope_viz.cli.main import main
from tests.browser.test_every_page import find_violations

PAGES = ("index.html", "learn.html", "differences.html", "models.html", "models/qwen3-8b.html", "404.html")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of a site of one model, whose address is not known."""
    out = tmp_path_factory.mktemp("site") / "out"
    assert main(["site", "qwen3-8b", "-o", str(out)]) == 0
    return out


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_pages_open_from_a_folder(width, theme, site, chromium):
    context = chromium.new_context(viewport={"width": width, "height": 844}, color_scheme=theme, offline=True)
    page = context.new_page()
    problems, requests = [], []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("requestfailed", lambda request: problems.append(request.url))
    page.on("request", lambda request: requests.append(request.url))
    for name in PAGES:
        page.goto((site / name).as_uri())
        if name.startswith("models/"):
            page.locator("#scaling-comparison").scroll_into_view_if_needed()
            page.wait_for_selector("#scaling-comparison .main-svg")
        if name == "index.html":
            page.wait_for_selector(".rv-hands[data-drawn]")
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") == 0, name
        problems += [(name, *found) for found in find_violations(page, {})]
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(15, 18, 22)"
        assert dark == (theme == "dark"), name
    context.close()
    assert problems == []
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []


def test_own_sentence_goes_from_home_into_the_address(site, chromium):
    page = chromium.new_page()
    page.goto((site / "index.html").as_uri())
    page.locator("[data-do=own]").click()
    page.get_by_role("textbox").fill("dogs bite men")
    page.keyboard.press("Enter")
    expect(page.locator(".rv-word")).to_have_text(["dogs", "bite", "men"])
    assert "#words=dogs%20bite%20men" in page.url
    page.reload()
    expect(page.locator(".rv-word")).to_have_text(["dogs", "bite", "men"])
    page.close()


def test_a_cell_leads_to_its_reason_and_home_to_every_page(site, chromium):
    page = chromium.new_page()
    page.goto((site / "index.html").as_uri())
    for title, file in (("Learn it", "learn"), ("Who computes", "differences"), ("Models", "models")):
        page.locator(".rv-doors a", has_text=title).click()
        page.wait_for_url(f"**/{file}.html")
        page.locator("nav a", has_text="Home").click()
        page.wait_for_url("**/index.html")
    page.goto((site / "differences.html").as_uri())
    cell = page.locator(".verdicts .differs a").first
    target = cell.get_attribute("href")[1:]
    reason = page.locator(f"[id='{target}']")
    cell.click()
    assert reason.evaluate("node => node.matches(':target')")
    assert "differently" in reason.inner_text()
    page.close()
