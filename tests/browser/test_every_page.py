"""Every page, light and dark, wide and narrow: no error, no sideways scroll, no other host, no axe violation."""

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe

PAGES = sorted(path.stem for path in (Path(__file__).parents[2] / "pages").glob("[a-z]*.py"))

# Streamlit's own: the header above the sidebar, and what its data grid draws for screen readers.
NOT_OURS = ("stHeader", "stSidebarHeader", "stDataFrame", "stToolbar", "stMainMenu", "stMultiSelect", "data-baseweb")


def address(page):
    return "/" if page == "home" else f"/{page}"


# What each width and theme changes is independent of the other: two looks see all four.
LOOKS = {"wide and light": (1440, False), "narrow and dark": (390, True)}


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("page", PAGES)
def test_page_is_clean(visit, page, look):
    width, dark = LOOKS[look]
    seen = visit(width=width, dark=dark, has_touch=width < 600).open(address(page))
    tab = seen.page
    assert tab.locator(".rv-chart, canvas").count() >= 1
    assert tab.locator('[data-testid="stException"]').count() == 0
    if width > 600 and page != "extend":  # that one begins with questions
        box = tab.locator(".rv-chart, .rv-clocks").first.bounding_box()
        assert box["y"] + box["height"] <= 900, "the main figure does not fit the first screen"
    for part in ("html", "[data-testid=stMain]"):
        hidden = tab.locator(part).first.evaluate("(node) => node.scrollWidth - node.clientWidth")
        assert hidden <= 0, f"{part} scrolls {hidden} px sideways"
    assert seen.errors == []
    assert seen.elsewhere == []
    found = Axe().run(tab).response["violations"]
    ours = [
        (rule["id"], node["html"][:160])
        for rule in found
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
        if not any(mark in node["html"] + str(node["target"]) for mark in NOT_OURS)
    ]
    assert ours == []
