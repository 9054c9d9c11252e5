"""Keyboard only: from Home to Learn, and through a page, with a name at every focus stop.

The accessibility trees of both are in `accessibility/`; `ROPE_VIZ_WRITE=1` rewrites them.
"""

import os
import re
from pathlib import Path

from playwright.sync_api import expect

from rope_viz.pages.registry import titles

TREES = Path(__file__).parent / "accessibility"
FOCUSED_ELEMENT = """() => {
  const at = document.activeElement;
  const named = at.getAttribute('aria-label') || at.labels?.[0]?.innerText;
  const name = named || at.innerText || at.title || at.placeholder || '';
  return { tag: at.tagName, name: name.trim() };
}"""


def tab_to(view, name, *, key="Tab"):
    """Press Tab until an element whose name begins with `name` has the focus; return the names of all stops."""
    names = []
    for _ in range(90):
        view.page.keyboard.press(key)
        stop = view.page.evaluate(FOCUSED_ELEMENT)
        assert stop["tag"] != "BODY", f"{name} cannot be focused: {names}"
        assert stop["name"], f"a stop without a name after {names[-3:]}"
        names.append(stop["name"])
        if stop["name"].startswith(name):
            return names
    raise AssertionError(f"{name} was not reached: {names}")


def accessibility_tree(view):
    """Return the accessibility tree of the page without the parts of drawings, which have a name."""
    found = view.page.locator("main").aria_snapshot()
    return re.sub(r"\n *- (/url: |img: |img$|text: At (position|query) ).*", "", found, flags=re.MULTILINE)


def assert_snapshot(name, found):
    """Compare an accessibility tree with the stored one, or store it."""
    file = TREES / f"{name}.txt"
    if os.environ.get("ROPE_VIZ_WRITE"):
        file.write_text(found + "\n", encoding="utf-8")
    assert found == file.read_text(encoding="utf-8").rstrip("\n"), "if this is intended, ROPE_VIZ_WRITE=1 stores it"


def test_learn_is_reached_from_home_by_keyboard_alone(visit):
    """test_learn.py completes its scenes by keys."""
    view = visit().open("/")
    press = view.page.keyboard.press
    press("Tab")
    assert view.page.evaluate(FOCUSED_ELEMENT)["name"] == "Skip to main content"
    press("Enter")
    stops = tab_to(view, "Learn it")
    assert len(stops) == 10, f"the link is not the first after the picture: {stops}"
    press("Enter")
    expect(view.page.locator(".rv-learn h2")).to_have_text("The same word twice")
    view.settle()
    assert view.page.evaluate("document.activeElement.tagName") == "MAIN", "the focus was lost"
    tab_to(view, "2\u2002One hand")
    tab_to(view, "both the same")
    press("Enter")
    tab_to(view, "The word whose query is compared", key="Shift+Tab")
    tab_to(view, "2\u2002One hand →")
    press("Enter")
    expect(view.page.locator(".rv-learn h2")).to_be_focused()
    expect(view.page.locator(".rv-learn h2")).to_have_text("One hand on a circle")
    assert view.errors == []
    assert_snapshot("learn", accessibility_tree(view))


def test_page_is_operable_by_keyboard_with_named_focus_stops(visit):
    view = visit().open("/frequencies")
    press = view.page.keyboard.press
    stops = tab_to(view, titles()["frequencies"])
    assert len(stops) <= 8, f"the tabs are far from the start: {stops}"
    tab_to(view, "What Base does")
    answer = view.page.locator(".rv-sentence")
    expect(answer).to_have_count(0)
    press("Enter")
    expect(answer).to_be_focused()
    press("Escape")
    expect(answer).to_have_count(0)
    stops = tab_to(view, "Wavelength of every pair")
    assert {"Target length", "Scaling method"} <= set(stops)
    announcement = view.page.locator(".rv-point-announced").first
    press("ArrowRight")
    expect(announcement).to_contain_text("pair 0")
    press("ArrowRight")
    expect(announcement).to_contain_text("pair 1")
    press("Enter")
    view.page.wait_for_url("**pin=1*")
    view.settle()
    tab_to(view, "Next: what scaling does")
    tab_to(view, "cos mθᵢ of every pair")
    press("ArrowRight")
    expect(view.page.locator(".rv-point-announced").nth(1)).to_have_text(re.compile("^position .*, pair 0, cos "))
    assert view.errors == []
    # Pictures further down are not loaded yet.
    assert_snapshot("frequencies", accessibility_tree(view).split('\n  - heading "Every pair in numbers"')[0])
