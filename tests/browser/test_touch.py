"""Touch: a sideways drag moves a slider, a vertical swipe does not, and a phone has sliders at its bottom edge."""

import pytest
from playwright.sync_api import expect


@pytest.fixture
def phone(visit):
    return lambda path: visit(width=390, height=844, has_touch=True).open(path)


def drag_finger(view, start, end, steps=8):
    """Drag a finger along a line by touch events."""
    session = view.page.context.new_cdp_session(view.page)

    def send(kind, points):
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    send("touchStart", [{"x": start[0], "y": start[1]}])
    for step in range(1, steps + 1):
        point = [a + (b - a) * step / steps for a, b in zip(start, end, strict=True)]
        send("touchMove", [{"x": point[0], "y": point[1]}])
    send("touchEnd", [])


def middle_of(place, share=0.5):
    place.scroll_into_view_if_needed()
    box = place.bounding_box()
    return box["x"] + share * box["width"], box["y"] + box["height"] / 2


SCROLLED = "document.querySelector('[data-testid=stMain]').scrollTop"


def test_vertical_swipe_moves_no_slider(phone):
    """On the slider of the clocks it scrolls the page; in the fixed dock it does nothing."""
    view = phone("/rotation?rotation.at=100,0")
    address = view.page.url
    for knob in ("[data-under=base] input[type=range]", "[data-do=scrub]"):
        for share in (0.15, 0.85):
            view.page.evaluate(f"{SCROLLED} = 0")
            slider = view.page.locator(knob)
            x, y = middle_of(slider, share)
            value, scrolled = slider.input_value(), view.page.evaluate(SCROLLED)
            drag_finger(view, (x, y), (x + 8, y - 240))
            if knob == "[data-do=scrub]":
                view.until(f"{SCROLLED} > {scrolled + 50}")
            view.settle()
            assert slider.input_value() == value, (knob, share)
            assert view.page.url == address, (knob, share)


def test_sideways_drag_moves_the_knob_and_a_tap_does_not(phone):
    view = phone("/frequencies")
    slider = view.page.locator("[data-under=base] input[type=range]")
    x, y = middle_of(slider, 0.3)
    before = view.page.evaluate("document.querySelector('.rv-plot').getAttribute('aria-label')"), view.count_draws()
    drag_finger(view, (x, y), (x + 150, y + 20))
    view.page.wait_for_url("**base=**")
    view.settle()
    assert view.count_draws() > before[1]
    written = view.page.locator("[data-under=base] input[type=text]").input_value()
    assert view.page.locator("[data-knob=base] input[type=text]").input_value() == written

    x, y = middle_of(slider, 0.9)
    address, value = view.page.url, slider.input_value()
    view.page.touchscreen.tap(x, y)
    view.settle()
    assert slider.input_value() == value
    assert view.page.url == address
    assert view.errors == []


def test_the_dock_appears_only_on_a_phone_with_one_slider(visit):
    view = visit().open("/frequencies")
    assert view.page.locator("[data-under]").count() == 0
    view.resize(390, 844)
    view.until("document.querySelectorAll('[data-under]').length > 2")
    expect(view.page.locator("[data-under]:visible")).to_have_attribute("data-under", "base")
    view.page.locator(".rv-pills [data-name=target]").click()
    expect(view.page.locator("[data-under]:visible")).to_have_attribute("data-under", "target")
    expect(view.page.locator(".rv-pills [aria-pressed=true]")).to_have_attribute("data-name", "target")


def test_narrow_picture_has_its_own_shapes_and_legend(phone):
    node = "document.querySelector('.js-plotly-plot')"
    view = phone("/frequencies")
    names = view.page.evaluate(f"{node}._fullLayout.shapes.map((shape) => shape.label?.text ?? '')")
    assert "↑ never a whole turn<br>in training: 29" in names
    assert "never a whole turn in training: 29" not in names
    view = phone("/attention")
    place = view.page.locator('[data-picture="attention/lengths"]')
    place.scroll_into_view_if_needed()
    view.settle()
    boxes = [place.locator(each).bounding_box() for each in (".xtitle", ".legend")]
    title, legend = ((box["y"], box["y"] + box["height"]) for box in boxes)
    assert title[1] <= legend[0]
