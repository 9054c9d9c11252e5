"""Touch: a sideways drag moves a slider, a vertical swipe does not, and a phone has sliders at its bottom edge."""

import pytest
from playwright.sync_api import expect


@pytest.fixture
def phone(visit):
    return lambda path: visit(width=390, height=844, has_touch=True).open(path)


def finger(seen, start, end, steps=8):
    """A finger as the browser gets it from the system: down, along a line, up."""
    session = seen.page.context.new_cdp_session(seen.page)

    def send(kind, points):
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    send("touchStart", [{"x": start[0], "y": start[1]}])
    for step in range(1, steps + 1):
        at = [a + (b - a) * step / steps for a, b in zip(start, end, strict=True)]
        send("touchMove", [{"x": at[0], "y": at[1]}])
    send("touchEnd", [])


def middle(place, share=0.5):
    place.scroll_into_view_if_needed()
    box = place.bounding_box()
    return box["x"] + share * box["width"], box["y"] + box["height"] / 2


SCROLLED = "document.querySelector('[data-testid=stMain]').scrollTop"


def test_vertical_swipe_moves_no_slider(phone):
    """On the clocks' slider it scrolls the page. The dock stands still, so there it does nothing."""
    seen = phone("/rotation?rotation.at=100,0")
    address = seen.page.url
    for knob in ("[data-under=base] input[type=range]", "[data-do=scrub]"):
        for share in (0.15, 0.85):
            seen.page.evaluate(f"{SCROLLED} = 0")
            slider = seen.page.locator(knob)
            x, y = middle(slider, share)
            value, scrolled = slider.input_value(), seen.page.evaluate(SCROLLED)
            finger(seen, (x, y), (x + 8, y - 240))
            if knob == "[data-do=scrub]":
                seen.until(f"{SCROLLED} > {scrolled + 50}")
            seen.settle()
            assert slider.input_value() == value, (knob, share)
            assert seen.page.url == address, (knob, share)


def test_sideways_drag_moves_the_knob_and_a_tap_does_not(phone):
    seen = phone("/frequencies")
    slider = seen.page.locator("[data-under=base] input[type=range]")
    x, y = middle(slider, 0.3)
    before = seen.page.evaluate("document.querySelector('.rv-plot').getAttribute('aria-label')"), seen.drawn()
    finger(seen, (x, y), (x + 150, y + 20))
    seen.page.wait_for_url("**base=**")
    seen.settle()
    assert seen.drawn() > before[1]
    written = seen.page.locator("[data-under=base] input[type=text]").input_value()
    assert seen.page.locator("[data-knob=base] input[type=text]").input_value() == written

    x, y = middle(slider, 0.9)
    address, value = seen.page.url, slider.input_value()
    seen.page.touchscreen.tap(x, y)
    seen.settle()
    assert slider.input_value() == value
    assert seen.page.url == address
    assert seen.errors == []


def test_the_dock_appears_only_on_a_phone_with_one_slider(visit):
    seen = visit().open("/frequencies")
    assert seen.page.locator("[data-under]").count() == 0
    seen.resize(390, 844)
    seen.until("document.querySelectorAll('[data-under]').length > 2")
    expect(seen.page.locator("[data-under]:visible")).to_have_attribute("data-under", "base")
    seen.page.locator(".rv-pills [data-name=target]").click()
    expect(seen.page.locator("[data-under]:visible")).to_have_attribute("data-under", "target")
    expect(seen.page.locator(".rv-pills [aria-pressed=true]")).to_have_attribute("data-name", "target")


def test_narrow_picture_has_its_own_shapes_and_legend(phone):
    node = "document.querySelector('.js-plotly-plot')"
    seen = phone("/frequencies")
    names = seen.page.evaluate(f"{node}._fullLayout.shapes.map((shape) => shape.label?.text ?? '')")
    assert "↑ never a whole turn<br>in training: 29" in names
    assert "never a whole turn in training: 29" not in names
    seen = phone("/attention")
    place = seen.page.locator('[data-picture="attention/lengths"]')
    place.scroll_into_view_if_needed()
    seen.settle()
    boxes = [place.locator(each).bounding_box() for each in (".xtitle", ".legend")]
    title, legend = ((box["y"], box["y"] + box["height"]) for box in boxes)
    assert title[1] <= legend[0]
