"""Links, knobs and charts under mouse and keyboard."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import LIMIT

# The number of draws of all charts, and whether all show the value of the dragged knob.
DRAW_COUNT = (
    "[...document.querySelectorAll('.rv-chart')].reduce((sum, { dataset }) => sum + Number(dataset.drawn ?? 0), 0)"
)
ALL_FOLLOWED = (
    "() => [...document.querySelectorAll('.rv-picture')].every((at) => !at.__place.requested && !at.dataset.waiting)"
)


def drag(view, name, shares):
    """Drag a knob to these shares of its track, one after the other, without releasing it.

    Each move waits until a picture was drawn, since a busy machine skips values of a faster drag.
    """
    tab, slider = view.page, view.slider(name).bounding_box()
    middle = slider["y"] + slider["height"] / 2
    for index, share in enumerate(shares):
        drawn = tab.evaluate(DRAW_COUNT)
        tab.mouse.move(slider["x"] + share * slider["width"], middle)
        if index == 0:
            tab.mouse.down()
        else:
            view.until(f"{DRAW_COUNT} > {drawn}")
    assert view.becomes_true(ALL_FOLLOWED, 4, LIMIT), "a picture did not follow"


def show_two_figures(view):
    """Scroll so that the first two figures of Frequencies are in view."""
    view.page.evaluate("document.querySelector('[data-testid=stMain]').scrollTo(0, 360)")
    view.until("document.querySelectorAll('.rv-chart[data-drawn]').length > 1")
    view.settle()


def drag_fast(view, knob):
    """Drag a knob faster than pictures can be drawn."""
    box = view.slider(knob).bounding_box()
    for step in range(80):
        view.page.mouse.move(box["x"] + (0.6 - 0.002 * step) * box["width"], box["y"] + box["height"] / 2)
    assert view.becomes_true(ALL_FOLLOWED, 4, LIMIT), "a picture did not follow"


SENTENCE = "document.querySelector('[data-says=\"frequencies/wavelengths\"]').innerText"


# The largest number of requests of the first picture that were open at once.
COUNT_OPEN_REQUESTS = """() => {
  let open = (window.__ahead = 0);
  const ask = window.fetch;
  window.fetch = (...given) => {
    if (String(given[0]).includes("frequencies/wavelengths")) window.__ahead = Math.max(window.__ahead, ++open);
    return ask(...given);
  };
  const drawn = new MutationObserver(() => (open -= 1));
  drawn.observe(document.querySelector(".rv-chart"), { attributes: true, attributeFilter: ["data-drawn"] });
}"""


def test_picture_follows_the_drag_and_link_follows_the_release(visit):
    view = visit().open("/frequencies")
    tab = view.page
    show_two_figures(view)
    tab.evaluate(COUNT_OPEN_REQUESTS)
    before, heatmap, sentence = view.count_draws(), view.count_draws(1), tab.evaluate(SENTENCE)
    drag(view, "base", [0.5 + 0.01 * step for step in range(20)])
    assert view.count_draws() >= before + 5, "the figure did not move while the knob was dragged"
    assert view.count_draws(1) > heatmap, "the second figure in view did not follow"
    assert tab.evaluate(SENTENCE) != sentence, "the sentence did not follow"
    assert "base=" not in tab.url, "the address must wait for the release"
    drag_fast(view, "base")
    assert tab.evaluate("window.__ahead") == 2, "at most one picture is drawn and the next one requested"
    moved = tab.evaluate(SENTENCE)
    tab.mouse.up()
    view.settle()
    assert "base=" in tab.url
    assert tab.evaluate(SENTENCE) == moved, "the release must not change the sentence"
    assert view.errors == []


# The axis labels of the first picture: text, position and anchor.
TICKS = """[...document.querySelector(".rv-chart").querySelectorAll(".xtick text, .ytick text")].map((label) => [
  label.textContent, label.getAttribute("transform"), label.getAttribute("text-anchor"), label.style.display,
  label.getBoundingClientRect().x, label.getBoundingClientRect().y].join())"""


@pytest.mark.parametrize(("page", "knob"), [("frequencies", "base"), ("scaling", "base"), ("decay", "base")])
def test_axis_labels_do_not_move_while_a_knob_moves(visit, page, knob):
    """Labels are not measured again during a drag."""
    view = visit().open(f"/{page}")
    before, drawn = view.page.evaluate(TICKS), view.count_draws()
    assert len(before) > 8
    drag(view, knob, [0.5, 0.52, 0.54, 0.56])
    assert view.count_draws() > drawn
    assert view.page.evaluate("document.querySelector('.rv-chart').__chart.message.moving")
    assert view.page.evaluate(TICKS) == before
    view.page.mouse.up()
    view.settle()
    assert view.page.evaluate(TICKS) == before


def test_knob_moved_back_restores_the_page(visit):
    view = visit().open("/frequencies")
    tab = view.page
    show_two_figures(view)
    value, sentence = view.knob("head_dim").input_value(), tab.evaluate(SENTENCE)
    columns = "document.querySelectorAll('.rv-plot')[1].data[0].x.length"
    whole = tab.evaluate(columns)
    view.slider("head_dim").focus()
    tab.keyboard.down("ArrowRight")
    view.until(f"{columns} < {whole}")  # while a knob moves a heatmap is coarser
    tab.keyboard.down("ArrowLeft")
    expect(view.knob("head_dim")).to_have_value(value)
    for key in ("ArrowRight", "ArrowLeft"):
        tab.keyboard.up(key)
    view.settle()
    assert tab.evaluate(SENTENCE) == sentence
    assert tab.evaluate(columns) == whole
    assert "dim=" not in tab.url

    # The same by mouse: a thumb that returns to its start fires no "change" event.
    slider = view.slider("head_dim")
    box, place = slider.bounding_box(), float(slider.input_value()) / float(slider.get_attribute("max"))
    x, y = box["x"] + 8 + place * (box["width"] - 16), box["y"] + box["height"] / 2
    tab.mouse.move(x, y)
    tab.mouse.down()
    tab.mouse.move(x + 40, y)
    expect(view.knob("head_dim")).not_to_have_value(value)
    tab.mouse.move(x, y)
    expect(view.knob("head_dim")).to_have_value(value)
    tab.mouse.up()
    view.settle()
    assert tab.evaluate(columns) == whole

    label = "document.querySelectorAll('.rv-plot')[1].getAttribute('aria-label')"
    view.slider("length").scroll_into_view_if_needed()
    before = tab.evaluate(label)
    drag(view, "length", [0.6, 0.5, 0.4])
    during = tab.evaluate(label)
    assert during != before
    assert "frequencies.length=" not in tab.url
    tab.mouse.up()
    view.settle()
    assert tab.evaluate(label) == during
    assert "frequencies.length=" in tab.url


def test_keys_move_a_knob_and_back_undoes_it(visit):
    view = visit().open("/scaling")
    tab = view.page
    view.slider("head_dim").focus()
    tab.keyboard.press("ArrowRight")
    view.settle()
    assert view.knob("head_dim").input_value() == "130"
    assert "dim=130" in tab.url
    tab.go_back()
    expect(view.knob("head_dim")).to_have_value("128")


def test_zoom_survives_a_knob_and_typed_numbers_are_validated(visit):
    view = visit().open("/frequencies")
    tab = view.page
    node = "document.querySelector('.rv-plot')"
    tab.evaluate(f"window.__first = {node}; Plotly.relayout({node}, {{'xaxis.range': [10, 20]}})")
    view.slider("base").focus()
    tab.keyboard.press("ArrowRight")
    view.settle()
    assert tab.evaluate(f"{node} === window.__first"), "the node was replaced"
    assert tab.evaluate(f"{node}._fullLayout.xaxis.range") == [10, 20]
    tab.locator("[data-zoom=reset]").first.click()
    view.settle()
    assert tab.evaluate(f"{node}._fullLayout.xaxis.range") == [-0.5, 63.5]

    view.knob("target").fill("1M")
    view.knob("target").press("Enter")
    view.settle()
    assert "target=1048576" in tab.url
    view.knob("base").fill("1M")
    view.knob("base").press("Enter")
    view.settle()
    assert "base=1000000" in tab.url
    assert view.knob("base").input_value() == "1e6"
    view.knob("head_dim").fill("127")
    view.knob("head_dim").press("Enter")
    note = tab.locator("[data-knob=head_dim] .rv-note")
    assert note.inner_text() == "Head dimension: an even number."
    assert "dim=" not in tab.url.replace("rot_dim", "")


def test_a_zoom_into_the_heatmap_shows_single_positions(visit):
    view = visit().open("/frequencies?frequencies.length=10000000")
    tab = view.page
    node = "document.querySelectorAll('.rv-plot')[1]"
    assert tab.evaluate(f"{node}.data[0].x.length") == 800
    tab.evaluate(f"Plotly.relayout({node}, {{'xaxis.range': [9000000, 9000200]}})")
    view.until(f"{node}.data[0].x.length < 300")
    positions = tab.evaluate(f"Array.from({node}.data[0].x)")
    assert positions[1] - positions[0] == 1
    assert 8_999_999 <= positions[0] <= 9_000_001


def test_click_pins_a_pair_in_the_link(visit):
    view = visit().open("/frequencies?pin=21")
    shown = view.page.evaluate("document.querySelector('.rv-plot').data.map((trace) => trace.name)")
    assert "pinned pair 21" in shown
    box = view.page.locator(".rv-plot .nsewdrag").first.bounding_box()
    view.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    view.page.wait_for_url(lambda url: "pin=21" not in url)


def test_chart_uses_the_current_theme(visit):
    view = visit(dark=True).open("/scaling")
    paper = "document.querySelector('.rv-plot')._fullLayout.paper_bgcolor.toUpperCase()"
    assert view.page.evaluate(paper) == "#0F1216"
    view.page.emulate_media(color_scheme="light")
    view.until(f"{paper} === '#FFFFFF'")
