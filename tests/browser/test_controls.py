"""Links, knobs and the chart under a real hand."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import LIMIT


def test_first_request_may_be_a_deep_link(visit, fresh_server):
    seen = visit(fresh_server).open("/frequencies?base=77000&dim=64")
    assert seen.knob("base").input_value() == "77000"
    assert seen.knob("head_dim").input_value() == "64"
    assert seen.page.locator("h1").inner_text() == "Frequencies"
    assert "of 32 pairs" in seen.page.locator("[data-testid=stMain]").inner_text()
    assert seen.errors == []


# How many pictures all charts have drawn, and whether all of them show what a held knob says.
TOTAL = "[...document.querySelectorAll('.rv-chart')].reduce((sum, { dataset }) => sum + Number(dataset.drawn ?? 0), 0)"
FOLLOWED = (
    "() => [...document.querySelectorAll('.rv-picture')].every((p) => !p.__place.requested && !p.dataset.waiting)"
)


def drag(seen, name, shares):
    """Take a knob by its middle and bring it to these shares of its track, one after the other, without letting go.

    It goes on once a picture has followed: a hand that is faster than a busy machine sees only some of them.
    """
    tab, slider = seen.page, seen.slider(name).bounding_box()
    middle = slider["y"] + slider["height"] / 2
    for index, share in enumerate(shares):
        drawn = tab.evaluate(TOTAL)
        tab.mouse.move(slider["x"] + share * slider["width"], middle)
        if index == 0:
            tab.mouse.down()
        else:
            seen.until(f"{TOTAL} > {drawn}")
    assert seen.stays(FOLLOWED, 4, LIMIT), "a picture did not follow"


def show_both(seen):
    """Scroll so that the first two figures of Frequencies are in view."""
    seen.page.evaluate("document.querySelector('[data-testid=stMain]').scrollTo(0, 360)")
    seen.until("document.querySelectorAll('.rv-chart[data-drawn]').length > 1")
    seen.settle()


def hurry(seen, knob):
    """Move a knob that is held faster than pictures can be drawn."""
    box = seen.slider(knob).bounding_box()
    for step in range(80):
        seen.page.mouse.move(box["x"] + (0.6 - 0.002 * step) * box["width"], box["y"] + box["height"] / 2)
    assert seen.stays(FOLLOWED, 4, LIMIT), "a picture did not follow"


SENTENCE = "document.querySelector('[data-says=\"frequencies/wavelengths\"]').innerText"


# How many of the first picture have been asked for at most and were not drawn yet.
AHEAD = """() => {
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
    seen = visit().open("/frequencies")
    tab = seen.page
    show_both(seen)
    tab.evaluate(AHEAD)
    before, heatmap, sentence = seen.drawn(), seen.drawn(1), tab.evaluate(SENTENCE)
    drag(seen, "base", [0.5 + 0.01 * step for step in range(20)])
    assert seen.drawn() >= before + 5, "the figure did not move while the knob was dragged"
    assert seen.drawn(1) > heatmap, "the second figure in view did not follow"
    assert tab.evaluate(SENTENCE) != sentence, "the sentence did not follow"
    assert "base=" not in tab.url, "the address must wait for the release"
    hurry(seen, "base")
    assert tab.evaluate("window.__ahead") == 2, "while one is drawn the next is on its way, and no more"
    moved = tab.evaluate(SENTENCE)
    tab.mouse.up()
    seen.settle()
    assert "base=" in tab.url
    assert tab.evaluate(SENTENCE) == moved, "the release shows what the hand saw"
    assert seen.errors == []


# The first picture's labels of all axes: what they say, where they stand, how they lie.
TICKS = """[...document.querySelector(".rv-chart").querySelectorAll(".xtick text, .ytick text")].map((label) => [
  label.textContent, label.getAttribute("transform"), label.getAttribute("text-anchor"), label.style.display,
  label.getBoundingClientRect().x, label.getBoundingClientRect().y].join())"""


@pytest.mark.parametrize(("page", "knob"), [("frequencies", "base"), ("scaling", "base"), ("decay", "base")])
def test_axis_labels_do_not_move_while_a_knob_moves(visit, page, knob):
    """They are not measured again then, so they must come out as they were."""
    seen = visit().open(f"/{page}")
    before, drawn = seen.page.evaluate(TICKS), seen.drawn()
    assert len(before) > 8
    drag(seen, knob, [0.5, 0.52, 0.54, 0.56])
    assert seen.drawn() > drawn
    assert seen.page.evaluate("document.querySelector('.rv-chart').__chart.message.moving")
    assert seen.page.evaluate(TICKS) == before
    seen.page.mouse.up()
    seen.settle()
    assert seen.page.evaluate(TICKS) == before


def test_restored_knob_restores_the_page(visit):
    seen = visit().open("/frequencies")
    tab = seen.page
    show_both(seen)
    value, sentence = seen.knob("head_dim").input_value(), tab.evaluate(SENTENCE)
    columns = "document.querySelectorAll('.rv-plot')[1].data[0].x.length"
    whole = tab.evaluate(columns)
    seen.slider("head_dim").focus()
    for key in ("ArrowRight", "ArrowLeft"):
        tab.keyboard.down(key)
        tab.wait_for_timeout(200)
    assert seen.knob("head_dim").input_value() == value
    seen.until(f"{columns} < {whole}")  # while a knob moves a heatmap is coarser
    for key in ("ArrowRight", "ArrowLeft"):
        tab.keyboard.up(key)
    seen.settle()
    assert tab.evaluate(SENTENCE) == sentence
    assert tab.evaluate(columns) == whole
    assert "dim=" not in tab.url

    # The same by mouse: a thumb that is back where it was taken makes no "change".
    slider = seen.slider("head_dim")
    box, place = slider.bounding_box(), float(slider.input_value()) / float(slider.get_attribute("max"))
    x, y = box["x"] + 8 + place * (box["width"] - 16), box["y"] + box["height"] / 2
    tab.mouse.move(x, y)
    tab.mouse.down()
    tab.mouse.move(x + 40, y)
    expect(seen.knob("head_dim")).not_to_have_value(value)
    tab.mouse.move(x, y)
    expect(seen.knob("head_dim")).to_have_value(value)
    tab.mouse.up()
    seen.settle()
    assert tab.evaluate(columns) == whole

    label = "document.querySelectorAll('.rv-plot')[1].getAttribute('aria-label')"
    seen.slider("length").scroll_into_view_if_needed()
    before = tab.evaluate(label)
    drag(seen, "length", [0.6, 0.5, 0.4])
    during = tab.evaluate(label)
    assert during != before
    assert "frequencies.length=" not in tab.url
    tab.mouse.up()
    seen.settle()
    assert tab.evaluate(label) == during
    assert "frequencies.length=" in tab.url


def test_keys_move_a_knob_and_back_undoes_it(visit):
    seen = visit().open("/scaling")
    tab = seen.page
    seen.slider("head_dim").focus()
    tab.keyboard.press("ArrowRight")
    seen.settle()
    assert seen.knob("head_dim").input_value() == "130"
    assert "dim=130" in tab.url
    tab.go_back()
    expect(seen.knob("head_dim")).to_have_value("128")


def test_the_choice_survives_a_change_of_page(visit):
    seen = visit().open("/frequencies?base=77000&frequencies.show=angle")
    seen.go("Scaling")
    assert seen.knob("base").input_value() == "77000"
    assert "base=77000" in seen.page.url
    seen.go("Frequencies")
    assert "frequencies.show=angle" in seen.page.url


def test_hostile_link_shows_a_sentence(visit):
    seen = visit().open("/scaling?dim=201&model=%3Cscript%3E&method=zzz&target=1e99")
    alerts = [item.inner_text() for item in seen.page.locator("[data-testid=stAlert]").all()]
    assert len(alerts) == 4
    assert not any("Traceback" in text for text in alerts)
    assert seen.errors == []


def test_zoom_survives_a_knob_and_typed_numbers_are_validated(visit):
    seen = visit().open("/frequencies")
    tab = seen.page
    node = "document.querySelector('.rv-plot')"
    tab.evaluate(f"window.__first = {node}; Plotly.relayout({node}, {{'xaxis.range': [10, 20]}})")
    seen.slider("base").focus()
    tab.keyboard.press("ArrowRight")
    seen.settle()
    assert tab.evaluate(f"{node} === window.__first"), "the node was replaced"
    assert tab.evaluate(f"{node}._fullLayout.xaxis.range") == [10, 20]
    tab.locator("[data-zoom=reset]").first.click()
    seen.settle()
    assert tab.evaluate(f"{node}._fullLayout.xaxis.range") == [-0.5, 63.5]

    seen.knob("target").fill("1M")
    seen.knob("target").press("Enter")
    seen.settle()
    assert "target=1048576" in tab.url
    seen.knob("base").fill("1M")
    seen.knob("base").press("Enter")
    seen.settle()
    assert "base=1000000" in tab.url
    assert seen.knob("base").input_value() == "1e6"
    seen.knob("head_dim").fill("127")
    seen.knob("head_dim").press("Enter")
    note = tab.locator("[data-knob=head_dim] .rv-note")
    assert note.inner_text() == "Head dimension: an even number."
    assert "dim=" not in tab.url.replace("rot_dim", "")


def test_a_zoom_into_the_heatmap_shows_single_positions(visit):
    seen = visit().open("/frequencies?frequencies.length=10000000")
    tab = seen.page
    node = "document.querySelectorAll('.rv-plot')[1]"
    assert tab.evaluate(f"{node}.data[0].x.length") == 800
    tab.evaluate(f"Plotly.relayout({node}, {{'xaxis.range': [9000000, 9000200]}})")
    seen.until(f"{node}.data[0].x.length < 300")
    positions = tab.evaluate(f"Array.from({node}.data[0].x)")
    assert positions[1] - positions[0] == 1
    assert 8_999_999 <= positions[0] <= 9_000_001


def test_click_pins_a_pair_in_the_link(visit):
    seen = visit().open("/frequencies?pin=21")
    shown = seen.page.evaluate("document.querySelector('.rv-plot').data.map((trace) => trace.name)")
    assert "pinned pair 21" in shown
    box = seen.page.locator(".rv-plot .nsewdrag").first.bounding_box()
    seen.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    seen.page.wait_for_url(lambda url: "pin=21" not in url)


def test_chart_uses_the_current_theme(visit):
    seen = visit(dark=True).open("/scaling")
    paper = "document.querySelector('.rv-plot')._fullLayout.paper_bgcolor.toUpperCase()"
    assert seen.page.evaluate(paper) == "#0F1216"
    seen.page.emulate_media(color_scheme="light")
    seen.until(f"{paper} === '#FFFFFF'")
