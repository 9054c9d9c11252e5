"""Explore on a phone and on a small laptop: how much comes before the figure, and what is on the first screen."""

import pytest
from playwright.sync_api import expect

from rope_viz.pages.registry import doors

FIGURE = """() => {
  const box = (node) => node?.getBoundingClientRect();
  const place = document.querySelector('.st-key-main .rv-picture');
  const parts = place.querySelectorAll('.cartesianlayer, .heatmaplayer, canvas');
  const drawn = [...parts].map(box).filter(({ height }) => height);
  return {
    bottom: Math.max(...drawn.map(({ bottom }) => bottom)),
    top: box(place).top,
    header: box(document.getElementById('rv-header')).bottom,
    dock: box(document.querySelector('.st-key-under'))?.top,
    row: box(document.querySelector('.st-key-figure-row')).height,
    main: box(document.querySelector('[data-testid=stMain]')).top,
  };
}"""


@pytest.mark.parametrize("page", [*doors()["explore"], "precision"])
def test_phone_shows_figure_and_knob_on_the_first_screen(visit, page):
    view = visit(width=390, height=844, has_touch=True).open(f"/{page}")
    expect(view.page.locator(".st-key-under input[type=range]:visible")).to_have_count(1)
    view.settle()
    found = view.page.evaluate(FIGURE)
    assert found["header"] <= found["top"]
    assert found["bottom"] <= found["dock"]
    if page == "rotation":  # its clocks fill the screen: what is below them could not be seen
        return
    # While what belongs to the figure scrolls, the figure stays.
    view.page.evaluate("document.querySelector('[data-testid=stMain]').scrollTo(0, 150)")
    view.until("document.querySelector('[data-testid=stMain]').scrollTop > 100")
    assert view.page.evaluate(FIGURE)["top"] >= found["main"] - 1


def test_phone_has_the_desktops_names_of_knobs(visit):
    desktop, phone = visit().open("/decay"), visit(width=390, height=844, has_touch=True).open("/decay")
    names = desktop.page.locator("[data-testid=stSidebar] .rv-knob label").all_inner_texts()
    pills = phone.page.locator(".st-key-under .rv-pills button").all_inner_texts()
    assert "Original length" in pills
    assert set(pills) <= set(names)


@pytest.mark.parametrize("page", doors()["explore"])
def test_one_row_of_controls_precedes_the_figure(visit, page):
    view = visit(width=1280, height=720).open(f"/{page}?model=qwen3-8b")
    found = view.page.evaluate(FIGURE)
    # Axes has menus with labels, and a sentence of three lines.
    assert (found["row"], found["top"]) <= ((64, 330) if page == "axes" else (40, 300))
    assert found["top"] <= 330
    sidebar = view.page.locator("[data-testid=stSidebar] .st-key-select-Model")
    assert sidebar.bounding_box()["y"] - found["main"] <= 24
    method = view.page.locator(".st-key-select-Scaling-method")
    if page == "scaling":
        assert method.bounding_box()["y"] < view.page.locator(".st-key-sizes").bounding_box()["y"]
