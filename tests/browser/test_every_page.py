"""Every page, light and dark, wide and narrow: no error, no sideways scroll, no other host, no axe violation.

Looked at once open: its links stay in the tab and keep what the reader chose, and a word says its sentence.
"""

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe

PAGES = sorted(path.stem for path in (Path(__file__).parents[2] / "pages").glob("[a-z]*.py"))

# Streamlit's own: the header above the sidebar, and what its data grid draws for screen readers.
NOT_OURS = ("stHeader", "stSidebarHeader", "stDataFrame", "stToolbar", "stMainMenu", "stMultiSelect", "data-baseweb")

LINKS = """() => [...document.querySelectorAll('main a[href], [data-testid=stSidebar] a[href]')]
  .filter((anchor) => new URL(anchor.href).origin === location.origin && !anchor.getAttribute('href').startsWith('#'))
  .map((anchor) => [anchor.href, anchor.target, anchor.innerText])"""
GROUND = "getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"
DARK = "rgb(15, 18, 22)"


def address(page):
    return "/" if page == "home" else f"/{page}"


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("page", PAGES)
def test_page_is_clean(visit, page, width):
    seen = visit(width=width, has_touch=width < 600, motion=width > 600).open(f"{address(page)}?base=77000")
    tab = seen.page
    assert tab.locator(".rv-chart, canvas").count() >= 1
    if width > 600:
        if page != "extend":  # that one begins with questions
            box = tab.locator(".rv-chart, .rv-clocks").first.bounding_box()
            assert box["y"] + box["height"] <= 900, "the main figure does not fit the first screen"
        no_link_leads_astray(seen, page)
    is_clean(seen)
    tab.emulate_media(color_scheme="dark")
    seen.until(f"{GROUND} === '{DARK}'")
    seen.settle()
    is_clean(seen, {"runOnly": ["color-contrast"]})  # all else that axe asks is the same in both themes
    if width > 600 and page not in WITHOUT:
        a_word_says_its_sentence_and_lets_go(seen)


def is_clean(seen, options=None):
    tab = seen.page
    assert tab.locator('[data-testid="stException"]').count() == 0
    for part in ("html", "[data-testid=stMain]"):
        hidden = tab.locator(part).first.evaluate("(node) => node.scrollWidth - node.clientWidth")
        assert hidden <= 0, f"{part} scrolls {hidden} px sideways"
    assert seen.errors == []
    assert seen.elsewhere == []
    found = Axe().run(tab, options=options).response["violations"]
    ours = [
        (rule["id"], node["html"][:160])
        for rule in found
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
        if not any(mark in node["html"] + str(node["target"]) for mark in NOT_OURS)
    ]
    assert ours == []


def no_link_leads_astray(seen, page):
    for href, target, text in seen.page.evaluate(LINKS):
        where, query = urlsplit(href).path.strip("/"), parse_qs(urlsplit(href).query)
        assert target in ("", "_self"), f"{text} opens {href} beside"
        assert where in ("", *PAGES), f"{text} leads to {where}, which is no page"
        assert "model" in query or query.get("base") == ["77000"] or page == "learn", f"{text} drops the choice: {href}"


WORD = 'main a[href^="#word-"]'
WITHOUT = {"extend", "learn"}  # a step of the tour has its own


def a_word_says_its_sentence_and_lets_go(seen):
    word = seen.page.locator(WORD).first
    word.scroll_into_view_if_needed()
    word.focus()
    seen.page.keyboard.press("Enter")
    note = seen.page.locator(".rv-sentence")
    assert note.inner_text().lower().startswith(word.inner_text().rstrip("s").lower())
    box = note.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 1440
    seen.page.keyboard.press("Escape")
    assert note.count() == 0
    assert seen.page.evaluate("document.activeElement.hash.startsWith('#word-')")
    assert "#" not in seen.page.url


def test_a_word_of_the_tour_says_its_sentence_and_lets_go(visit):
    seen = visit().open("/learn?learn.step=12")
    a_word_says_its_sentence_and_lets_go(seen)
    assert seen.errors == []
