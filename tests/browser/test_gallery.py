"""The gallery: thumbnails load, the search finds a figure, and a card opens its page or copies its command."""

import shlex

from playwright.sync_api import expect

from rope_viz.cli.main import main
from rope_viz.pages.registry import doors
from tests.browser.test_every_page import BUTTONS, MOST_BUTTONS

FIRST = "[...document.querySelectorAll('.rv-gallery img')].slice(0, 5).every((image) => image.naturalWidth === 448)"


def test_gallery_cards_can_be_found_opened_and_copied(visit):
    view = visit(permissions=["clipboard-read", "clipboard-write"]).open("/gallery?base=77000")
    cards = view.page.locator(".rv-gallery li:visible")
    count = cards.count()
    assert len(view.page.evaluate(BUTTONS)) <= MOST_BUTTONS
    view.until(FIRST)
    view.page.get_by_label("Find a figure").last.fill("frequencies/heatmap")
    expect(cards).to_have_count(1)
    cards.first.locator("a").focus()
    cards.first.get_by_role("button", name="Command").click()
    view.until("navigator.clipboard.readText().then((text) => text.startsWith('rope-viz figure frequencies/heatmap'))")
    view.page.get_by_label("Find a figure").last.fill("")
    expect(cards).to_have_count(count)
    view.page.get_by_role("button", name="My model", exact=False).last.click()
    expect(view.page.locator(".rv-gallery h2:visible")).to_have_count(1)
    view.page.locator(".rv-gallery li:visible a").first.click()
    view.page.wait_for_url("**/model?**")
    assert view.errors == []


def test_a_command_copied_in_chinese_draws_the_figure_in_chinese(visit, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    view = visit(permissions=["clipboard-read", "clipboard-write"]).open("/gallery?lang=zh")
    view.page.locator(".rv-filter input").fill("rotation/pairings")
    card = view.page.locator(".rv-gallery li:visible").first
    card.locator("a").focus()
    card.locator("button.command").click()
    view.until("navigator.clipboard.readText().then((text) => text.startsWith('rope-viz figure'))")
    command = view.page.evaluate("navigator.clipboard.readText()").replace(".svg", ".csv")
    assert main(shlex.split(command)[1:]) == 0
    assert "模型" in next(tmp_path.glob("*.csv")).read_text(encoding="utf-8-sig")
    assert view.errors == []


def test_make_a_figure_on_home_opens_the_gallery(visit):
    view = visit().open("/")
    view.page.get_by_role("link", name="Make a figure").click()
    view.page.wait_for_url("**/gallery*")
    expect(view.page.locator(".rv-gallery li").first).to_be_visible()


def test_lab_overview_shows_pages_and_their_models(visit):
    view = visit().open("/lab")
    cards = view.page.locator(".rv-gallery li")
    expect(cards).to_have_count(len(doors()["lab"]) - 1)
    view.until(
        "[...document.querySelectorAll('.rv-gallery img')].slice(0, 4).every((each) => each.naturalWidth === 448)"
    )
    expect(cards.filter(has_text="Heads")).to_contain_text("SmolLM2 135M")
    expect(view.page.locator(".rv-gallery a[href*='/pairings']")).to_contain_text("All models of the list")
    expect(view.page.locator("#rv-chip")).to_be_hidden()  # the page shows no model
    cards.filter(has_text="Heads").locator("a").click()
    view.page.wait_for_url("**/heads*")
    view.settle()
    expect(view.page.locator("#rv-chip")).not_to_contain_text("Llama 3.1 8B")
    assert view.errors == []
