"""The switch in the header shows the same page in another language, by mouse and by keyboard."""

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from rope_viz.pages.registry import title_of
from rope_viz.texts import use_language


def read_title(page, language):
    with use_language(language):
        return title_of(page)


@pytest.mark.parametrize("width", [1440, 390])
def test_switch_keeps_the_page_and_the_choice(visit, width):
    view = visit(width=width).open("/scaling?base=77000")
    switch = view.page.get_by_role("navigation", name="Language")
    switch.get_by_role("link", name="中文").click()
    heading = view.page.get_by_role("heading", level=1)
    expect(heading).to_have_text(read_title("scaling", "zh"))
    query = parse_qs(urlsplit(view.page.url).query)
    assert (query["lang"], query["base"]) == (["zh"], ["77000"])
    assert view.page.evaluate("document.documentElement.lang") == "zh-Hans"
    english = view.page.locator("#rv-header a[data-language=en]")
    english.focus()
    view.page.keyboard.press("Enter")
    expect(heading).to_have_text(read_title("scaling", "en"))
    assert view.errors == []


def test_links_keep_the_language(visit):
    view = visit().open("/scaling?base=77000&lang=zh")
    view.page.locator("#rv-header a[data-to=decay]").first.click()
    expect(view.page.get_by_role("heading", level=1)).to_have_text(read_title("decay", "zh"))
    view.until("new URL(location.href).searchParams.get('lang') === 'zh'")
    assert view.errors == []
