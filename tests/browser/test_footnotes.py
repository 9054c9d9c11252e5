"""A source is a numbered footnote that opens by mouse, keys and touch; heading levels are consecutive."""

import itertools

import pytest
from playwright.sync_api import expect

from rope_viz.pictures.doors import TITLES

# The source of the trained length of Qwen3 8B in its catalog entry.
SOURCE = "arXiv 2505.09388, section 3.2 (long-context stage); QwenLM/Qwen3 docs/source/inference/transformers.md"
NUMBER = "a => getComputedStyle(a, '::before').content"
HEADINGS = """() => [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")]
  .filter((each) => each.checkVisibility() && !each.closest("[data-testid=stSidebar], dialog"))
  .map((each) => [Number(each.tagName[1]), parseFloat(getComputedStyle(each).fontSize),
    !each.closest(".st-key-learn [data-testid=stElementContainer]:has(h1)")])"""
# The third value is false for Learn's main heading, which only screen readers get.


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


@pytest.mark.parametrize("page", [*TITLES, *(f"model?extend.tab={tab}" for tab in ("why", "runtimes", "verify"))])
def test_headings_do_not_jump_levels(visit, page):
    view = visit().open(f"/{'' if page == 'home' else page}")
    found = view.page.evaluate(HEADINGS)
    levels = [level for level, *_ in found]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels)), levels
    # A deeper heading is smaller than any above it.
    seen_levels = sorted({level for level, _, is_seen in found if is_seen})
    sizes = [[size for each, size, is_seen in found if each == level and is_seen] for level in seen_levels]
    assert all(max(deeper) < min(above) for above, deeper in itertools.pairwise(sizes)), sizes
