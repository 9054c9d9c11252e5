"""Pinned curves: three bases in one figure by clicks, in the address, and removed again."""

from playwright.sync_api import expect

from rope_viz.reports.draw import figure
from tests.browser.figure_tools import download


def set_base(view, value):
    field = view.page.locator("[data-testid=stSidebar]").get_by_label("Base, typed")
    field.fill(value)
    field.press("Enter")
    view.page.wait_for_url(lambda url: f"base={value}" in url or value == "500000")


def test_pinned_bases_equal_the_figure_of_their_address(visit):
    view = visit().open("/decay")
    view.page.get_by_role("button", name="Pin this curve").click()
    view.page.wait_for_url("**variant1=*")
    set_base(view, "10000")
    view.page.get_by_role("button", name="Pin this curve").click()
    view.page.wait_for_url("**variant2=*")
    set_base(view, "1000000")
    expect(view.page.get_by_role("button", name="base 10,000")).to_be_visible()
    view.until("document.querySelector('.rv-plot')?.data?.some((line) => line.name.startsWith('base 1,000,000'))")
    content, name = download(view.page.locator(".rv-picture").first, "svg")
    assert content == figure("decay/curves?base=1e6&variant1=base=5e5&variant2=base=1e4")
    assert "2-pinned" in name
    view.page.get_by_role("button", name="base 10,000").click()
    view.page.wait_for_url(lambda url: "variant2" not in url)
    assert "variant1" in view.page.url
    assert view.errors == []


def test_pinned_curves_stay_on_another_page(visit):
    view = visit().open("/decay?variant1=base=1e4&variant3=model=qwen3-8b")
    view.page.get_by_role("link", name="Scaling", exact=True).click()
    view.page.wait_for_url("**/scaling?*variant3*")
    view.until("document.querySelector('.rv-plot')?.data?.some((line) => line.name.startsWith('Qwen3 8B'))")
    assert view.errors == []
