"""A source is a numbered footnote that opens by mouse, keys and touch."""

from playwright.sync_api import expect

# The source of the trained length of Qwen3 8B in its catalog entry.
SOURCE = "arXiv 2505.09388, section 3.2 (long-context stage); QwenLM/Qwen3 docs/source/inference/transformers.md"
NUMBER = "a => getComputedStyle(a, '::before').content"


def test_footnote_opens_its_source_by_mouse_and_keys(visit):
    view = visit().open("/model?model=qwen3-8b")
    first, note = view.page.locator('a[href="#source"]').first, view.page.locator(".rv-sentence")
    assert first.evaluate(NUMBER) == "counter(rv-source)"
    box = first.bounding_box()
    assert box["width"] < 30, "the source is hidden behind its number"
    first.hover()
    expect(note).to_have_text(SOURCE)
    view.page.locator("h1").hover()
    expect(note).to_have_count(0)
    first.focus()
    view.page.keyboard.press("Enter")
    expect(note).to_have_text(SOURCE)
    expect(note).to_be_focused()
    view.page.keyboard.press("Escape")
    expect(note).to_have_count(0)
    expect(first).to_be_focused()
    assert "#source" not in view.page.url


def test_footnote_in_a_table_opens_a_link(visit):
    view = visit().open("/model?extend.tab=why&model=qwen3-8b")
    table = view.scroll_to("extend/ways")
    table.locator('a[href="#source"]').first.click()
    link = view.page.locator(".rv-sentence a")
    expect(link).to_have_attribute("href", "https://arxiv.org/abs/2505.09388")
    expect(link).to_have_attribute("rel", "noopener")


def test_tap_opens_and_closes_a_footnote(visit):
    view = visit(width=390, height=844, has_touch=True).open("/model?model=qwen3-8b")
    first, note = view.page.locator('a[href="#source"]').first, view.page.locator(".rv-sentence")
    first.tap()
    expect(note).to_have_text(SOURCE)
    inside = note.bounding_box()
    assert inside["x"] >= 0
    assert inside["x"] + inside["width"] <= 390
    first.tap()
    expect(note).to_have_count(0)
