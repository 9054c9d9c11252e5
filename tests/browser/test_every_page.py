"""Every page, light and dark, wide and narrow: no error, no sideways scroll, no other host, no axe violation.

The same visit checks that links stay in the tab and keep the user's choice, that a glossary term opens, that headings
are consecutive, that buttons are few, that every control is of a kind that a test operates (Streamlit's:
tests/pages/test_every_control.py; ours: test_every_handle.py), and that wheel and keyboard reach the page from its top
to its end (page_ends.py).
"""

import itertools
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import expect

from tests.browser.page_ends import assert_ends_are_reached
from tests.browser.test_every_handle import ALL, NAMES

PAGES = sorted(path.stem for path in (Path(__file__).parents[2] / "pages").glob("[a-z]*.py"))

# Streamlit's own elements.
NOT_OURS = ("stHeader", "stSidebarHeader", "stDataFrame", "stToolbar", "stMainMenu", "stMultiSelect", "data-baseweb")

LINKS = """() => [...document.querySelectorAll('#rv-header a[href], main a[href], [data-testid=stSidebar] a[href]')]
  .filter((anchor) => new URL(anchor.href).origin === location.origin && !anchor.getAttribute('href').startsWith('#'))
  .map((anchor) => [anchor.href, anchor.target, anchor.innerText])"""
BACKGROUND = "getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"
DARK = "rgb(15, 18, 22)"


def address(page):
    return "/" if page == "home" else f"/{page}"


@pytest.mark.parametrize("page", PAGES)
def test_page_has_no_errors_and_is_reached_to_its_end(visit, page):
    """First on a phone, then in a wide window."""
    view = visit(width=390, has_touch=True, watched=True).open(f"{address(page)}?base=77000")
    tab = view.page
    if page not in NO_FIGURE:
        expect(tab.locator(".rv-chart, .rv-table, .rv-grid, canvas, .rv-learn svg").first).to_be_visible()
        view.settle()
    assert tab.evaluate(SMALL) == [], "a finger needs 40 px"
    check_page_in_both_themes(view)
    widen(view)
    if page not in NO_FIGURE:
        box = tab.locator(".rv-chart, .rv-clocks, .rv-hands, .rv-picture-of, .rv-table, .rv-grid").first.bounding_box()
        assert box["y"] + box["height"] <= 900, "the main figure does not fit the first screen"
    check_links(view, page)
    check_controls_are_known(tab)
    check_headings(tab)
    if page != "gallery":  # its cards show all buttons to touch; test_gallery.py counts them for a mouse
        buttons = tab.evaluate(BUTTONS)
        assert len(buttons) <= MOST_BUTTONS, buttons
    check_page_in_both_themes(view)
    if page not in NO_GLOSSARY_TERM:
        check_glossary_term(view)
    tab.emulate_media(color_scheme="light", reduced_motion="reduce")
    view.settle()
    assert_ends_are_reached(view)
    assert view.errors == []


@pytest.mark.parametrize("page", PAGES)
def test_chinese_page_fits_and_has_no_violation(visit, page):
    """The same page in Chinese: first on a phone, then in a wide window."""
    view = visit(width=390, has_touch=True, watched=True).open(f"{address(page)}?lang=zh")
    assert view.page.evaluate("document.documentElement.lang").startswith("zh")
    view.settle()
    check_page_in_both_themes(view)
    widen(view)
    check_page_in_both_themes(view)


def widen(view):
    """Change the phone to a wide window without touch and with motion."""
    tab = view.page
    emulate_touch(view, False)
    view.resize(1440, 900)
    tab.emulate_media(color_scheme="light", reduced_motion="no-preference")
    view.until(f"{BACKGROUND} !== '{DARK}' && innerWidth === 1440")
    view.settle()


def emulate_touch(view, enabled):
    session = view.page.context.new_cdp_session(view.page)
    session.send("Emulation.setTouchEmulationEnabled", {"enabled": enabled})
    session.detach()


def check_page_in_both_themes(view):
    check_page(view)
    view.page.emulate_media(color_scheme="dark")
    view.until(f"{BACKGROUND} === '{DARK}'")
    view.settle()
    check_page(view, {"runOnly": ["color-contrast"]})  # the other rules give the same result in both themes


def check_page(view, options=None):
    tab = view.page
    assert tab.locator('[data-testid="stException"]').count() == 0
    for part in ("html", "[data-testid=stMain]"):
        hidden = tab.locator(part).first.evaluate("(node) => node.scrollWidth - node.clientWidth")
        assert hidden <= 0, f"{part} scrolls {hidden} px sideways"
    assert view.errors == []
    assert view.foreign_requests == []
    gaps = tab.evaluate(GAPS)
    assert [gap for gap in gaps if gap[1] > 24] == [], "a picture reserves more height than it needs"
    assert tab.evaluate(DUPLICATE_IDS) == [], "two elements have the same id"
    found = find_violations(tab, options or {})
    ours = [(rule, html[:160]) for rule, html, target in found if not any(mark in html + target for mark in NOT_OURS)]
    assert ours == []


# What a finger operates that is less than 40 px high, with its width and height.
SMALL = """() => {
  const kinds = "button, summary, [role=tab], [role=button], [role=radio], [role=switch], a[href], input, select";
  const isShown = (node) => node.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  // A link within a line has the line's height. Of a menu, the field is what a finger hits.
  const isPart = (node) => getComputedStyle(node).display.startsWith("inline")
    || node.closest("[data-testid=stSelectbox], [data-testid=stFileUploader] section");
  const measure = (node) => {
    const { width, height } = (node.closest("label") ?? node).getBoundingClientRect();
    return [width, height - 2 * Math.min(parseFloat(getComputedStyle(node, "::after").top) || 0, 0)];
  };
  return [...document.querySelectorAll(kinds)].filter((node) => isShown(node) && !isPart(node))
    .map((node) => [node.outerHTML.slice(0, 120), ...measure(node)])
    .filter(([, width, height]) => width > 2 && height > 2 && height < 39.5);
}"""

# The pixels between the lowest part of each picture and the end of its reserved height.
GAPS = """[...document.querySelectorAll(".rv-picture[data-state=shown]")].map((place) => {
  const end = place.getBoundingClientRect().bottom;
  const parts = [...place.querySelectorAll("*")].filter((part) => getComputedStyle(part).position !== "absolute");
  const boxes = parts.map((part) => part.getBoundingClientRect()).filter(({ height }) => height);
  return [place.dataset.picture, Math.round(end - Math.max(...boxes.map(({ bottom }) => bottom)))];
})"""

DUPLICATE_IDS = """[...document.querySelectorAll("[id]")].map(({ id }) => id)
  .filter((id, index, all) => all.indexOf(id) < index)"""


def find_violations(tab, options):
    """Return (rule, HTML, target) of each serious or critical violation that axe finds."""
    if not tab.evaluate("!!window.axe"):
        tab.evaluate(AXE_SCRIPT)
    return tab.evaluate(VIOLATIONS, {"resultTypes": ["violations"], **options})


VIOLATIONS = """async (options) => (await axe.run(document, options)).violations
  .filter(({ impact }) => ["serious", "critical"].includes(impact))
  .flatMap(({ id, nodes }) => nodes.map(({ html, target }) => [id, html, JSON.stringify(target)]))"""


BUTTONS = """() => [...document.querySelectorAll('button')]
  .filter((button) => button.checkVisibility({ visibilityProperty: true }))
  .filter((button) => !button.closest('#rv-header, [role=tablist]'))
  .filter((button) => !button.closest('[data-testid=stSidebar], [data-testid=stButtonGroup]'))
  .map((button) => button.innerText || button.getAttribute('aria-label'))"""
MOST_BUTTONS = 15
"""The largest number of buttons that a page may show, without those of the header, the sidebar and tabs."""

HEADINGS = """() => [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")]
  .filter((each) => each.checkVisibility() && !each.closest("[data-testid=stSidebar], dialog"))
  .map((each) => [Number(each.tagName[1]), parseFloat(getComputedStyle(each).fontSize),
    !each.closest(".st-key-learn [data-testid=stElementContainer]:has(h1)")])"""
# The third value is false for Learn's main heading, which only screen readers get.


def check_headings(tab):
    """Check that a page has one main heading, and that deeper headings follow without gaps and are smaller."""
    found = tab.evaluate(HEADINGS)
    levels = [level for level, *_ in found]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels)), levels
    visible_levels = sorted({level for level, _, is_visible in found if is_visible})
    sizes = [[size for each, size, is_visible in found if each == level and is_visible] for level in visible_levels]
    assert all(max(deeper) < min(above) for above, deeper in itertools.pairwise(sizes)), sizes


def test_headings_of_the_tabs_of_my_model_are_consecutive(visit):
    view = visit().open("/model")
    for name in ("Changes", "Runtimes", "Verify"):
        tab = view.page.get_by_role("tab", name=name)
        tab.click()
        expect(tab).to_have_attribute("aria-selected", "true")
        view.settle()
        check_headings(view.page)


def check_links(view, page):
    for href, target, text in view.page.evaluate(LINKS):
        where, query = urlsplit(href).path.strip("/"), parse_qs(urlsplit(href).query)
        assert target in ("", "_self"), f"{text} opens {href} in another tab"
        assert where in ("", *PAGES), f"{text} links to {where}, which is no page"
        assert "model" in query or query.get("base") == ["77000"] or page == "learn", f"{text} drops the choice: {href}"


GLOSSARY_LINK = 'main a[href^="#word-"]'
NO_FIGURE = {"lab", "model", "gallery"}  # pages of links, and My model, whose figures are behind tabs
NO_GLOSSARY_TERM = {
    "differences",
    "gallery",
    "home",
    "lab",
    "learn",
    "model",
    "pairings",
}  # without glossary terms, or with their own test


def check_glossary_term(view):
    term = view.page.locator(GLOSSARY_LINK).first
    term.scroll_into_view_if_needed()
    term.focus()
    view.page.keyboard.press("Enter")
    note = view.page.locator(".rv-sentence")
    assert note.inner_text().lower().startswith(term.inner_text().rstrip("s").lower())
    box = note.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 1440
    view.page.keyboard.press("Escape")
    assert note.count() == 0
    assert view.page.evaluate("document.activeElement.hash.startsWith('#word-')")
    assert "#" not in view.page.url


# Each kind is operated: links and terms here; tabs and popovers in test_doors.py; files and buttons in
# test_server_away.py; menus, texts and expanders in test_tools.py; segments in test_axes.py; lines and switches in
# test_attention.py.
OPERATED = {
    *("link", "outer link", "word", "pills and segments", "menu", "switch", "line", "text", "file", "button"),
    *("expander", "tab", "popover", "Streamlit's own"),
}

# The kind of each of Streamlit's controls; those of our scripts are in HANDLES.
CONTROLS = """() => {
  const ours = '[class^="rv-"], [class*=" rv-"]';
  return [...document.querySelectorAll('main, [data-testid=stSidebar]')].flatMap((part) => [
  ...part.querySelectorAll('button, input, textarea, select, summary, a[href], canvas, [tabindex="0"], [role=slider]'),
]).filter((at) => at.getClientRects().length && (at.tagName === 'A' || !at.closest(ours))).map((at) => {
  const up = (selector) => at.closest(selector);
  if (at.tagName === 'A' && at.hash.startsWith('#word-')) return 'word';
  if (at.tagName === 'A') return at.origin === location.origin ? 'link' : 'outer link';
  if (up('[data-testid=stButtonGroup]')) return 'pills and segments';
  if (up('[data-testid=stSelectbox], [data-testid=stMultiSelect]')) return 'menu';
  if (up('[data-testid=stCheckbox]')) return 'switch';
  if (up('[data-testid=stTextInput], [data-testid=stNumberInput]')) return 'line';
  if (up('[data-testid=stTextArea]')) return 'text';
  if (up('[data-testid=stFileUploader]')) return 'file';
  if (up('[data-testid=stButton], [data-testid=stDownloadButton], [data-testid=stFormSubmitButton]')) return 'button';
  if (at.tagName === 'SUMMARY') return 'expander';
  if (up('[role=tablist]')) return 'tab';
  if (up('[data-testid=stPopover]')) return 'popover';
  if (up('[data-testid^=stSidebar], [data-testid=stCode], [data-testid^=stTooltip]')) return "Streamlit's own";
  return at.outerHTML.slice(0, 120);
  });
}"""


def check_controls_are_known(tab):
    assert set(tab.evaluate(CONTROLS)) <= OPERATED, "operate it in a test and add its kind to OPERATED"
    assert set(tab.evaluate(NAMES)) <= ALL, "add it to HANDLES"
