"""Without a mouse: from Home to the scenes of Learn, and a page, with a name at every stop.

What a screen reader is given of both stands in `accessibility/`: `ROPE_VIZ_WRITE=1` writes it anew.
"""

import os
import re
from pathlib import Path

from playwright.sync_api import expect

from rope_viz.pictures.doors import TITLES

TREES = Path(__file__).parent / "accessibility"
FOCUSED = """() => {
  const at = document.activeElement;
  const named = at.getAttribute('aria-label') || at.labels?.[0]?.innerText;
  const name = named || at.innerText || at.title || at.placeholder || '';
  return { tag: at.tagName, name: name.trim() };
}"""


def tab_to(seen, name, *, key="Tab"):
    """Press Tab (or Shift+Tab) until the focus stands on what begins with this name; gives the names on the way."""
    names = []
    for _ in range(90):
        seen.page.keyboard.press(key)
        stop = seen.page.evaluate(FOCUSED)
        assert stop["tag"] != "BODY", f"{name} is no stop of the keyboard: {names}"
        assert stop["name"], f"a stop without a name after {names[-3:]}"
        names.append(stop["name"])
        if stop["name"].startswith(name):
            return names
    raise AssertionError(f"{name} was not reached: {names}")


def tree(seen):
    """What a screen reader is given of the page's own part; not the letters within a drawing, which has a name."""
    found = seen.page.locator("main").aria_snapshot()
    return re.sub(r"\n *- (/url: |img: |img$|text: At (position|query) ).*", "", found, flags=re.MULTILINE)


def same(name, found):
    """Hold what a screen reader is given against what was written down."""
    file = TREES / f"{name}.txt"
    if os.environ.get("ROPE_VIZ_WRITE"):
        file.write_text(found + "\n", encoding="utf-8")
    assert found == file.read_text(encoding="utf-8").rstrip("\n"), "meant? ROPE_VIZ_WRITE=1 writes it anew"


def test_learn_is_reached_from_home_by_keyboard_alone(visit):
    """How its scenes are completed by keys is seen in test_learn.py."""
    seen = visit().open("/")
    press = seen.page.keyboard.press
    press("Tab")
    assert seen.page.evaluate(FOCUSED)["name"] == "Skip to main content"
    press("Enter")
    way = tab_to(seen, "Learn it")
    assert len(way) == 8, f"the way in is not the first after the picture: {way}"
    press("Enter")
    expect(seen.page.locator(".rv-learn h2")).to_have_text("The same word twice")
    seen.settle()
    assert seen.page.evaluate("document.activeElement.tagName") == "MAIN", "the focus was lost with Home"
    tab_to(seen, "2\u2002One hand")
    tab_to(seen, "The word that asks")
    tab_to(seen, "both the same")
    tab_to(seen, "2\u2002One hand →")
    press("Enter")
    expect(seen.page.locator(".rv-learn h2")).to_be_focused()
    expect(seen.page.locator(".rv-learn h2")).to_have_text("One hand on a circle")
    assert seen.errors == []
    same("learn", tree(seen))


def test_page_is_operable_by_keyboard_with_named_focus_stops(visit):
    seen = visit().open("/frequencies")
    press = seen.page.keyboard.press
    way = tab_to(seen, TITLES["frequencies"])
    assert len(way) <= 8, f"the tabs are far from the start: {way}"
    tab_to(seen, "What Base does")
    answer = seen.page.locator(".rv-sentence")
    expect(answer).to_have_count(0)
    press("Enter")
    expect(answer).to_be_focused()
    press("Escape")
    expect(answer).to_have_count(0)
    way = tab_to(seen, "Wavelength of every pair")
    assert {"Target length", "Scaling method"} <= set(way)
    heard = seen.page.locator(".rv-point-announced").first
    press("ArrowRight")
    expect(heard).to_contain_text("pair 0")
    press("ArrowRight")
    expect(heard).to_contain_text("pair 1")
    press("Enter")
    seen.page.wait_for_url("**pin=1*")
    seen.settle()
    tab_to(seen, "Next: what scaling does")
    tab_to(seen, "cos mθᵢ of every pair")
    press("ArrowRight")
    expect(seen.page.locator(".rv-point-announced").nth(1)).to_have_text(re.compile("^position .*, pair 0, cos "))
    assert seen.errors == []
    # What lies further down is asked for when it comes near.
    same("frequencies", tree(seen).split('\n  - heading "Every pair in numbers"')[0])


def test_arrow_keys_on_the_dials_announce_the_chosen_pair(visit):
    seen = visit().open("/rotation")
    seen.page.locator(".rv-clocks canvas").focus()
    seen.page.keyboard.press("ArrowDown")
    expect(seen.page.locator(".rv-announced")).to_have_text(re.compile("^pair 1,"))
