"""The gallery: thumbnails load, the search finds a figure, and a card opens its page or copies its command."""

from playwright.sync_api import expect

FIRST = "[...document.querySelectorAll('.rv-gallery img')].slice(0, 5).every((image) => image.naturalWidth === 448)"


def test_gallery_cards_can_be_found_opened_and_copied(visit):
    view = visit(permissions=["clipboard-read", "clipboard-write"]).open("/gallery?base=77000")
    cards = view.page.locator(".rv-gallery li:visible")
    count = cards.count()
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
