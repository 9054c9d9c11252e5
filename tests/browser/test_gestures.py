"""Wheel and pinch on a figure: they zoom about the place where they are, and the page still scrolls."""

from playwright.sync_api import expect

PLOT = "document.querySelector('.rv-plot')"
RANGE = f"{PLOT}._fullLayout.xaxis.range.slice()"
SCROLLED = "document.querySelector('[data-testid=stMain]').scrollTop"
# The value on the x axis at a place in the window.
AXIS = f"{PLOT}._fullLayout.xaxis"
VALUE = f"(x) => {AXIS}.p2l(x - {PLOT}.getBoundingClientRect().left - {AXIS}._offset)"


def place_in(seen, across, along):
    # The script that listens came, and the figure is where it stays: in sight, away from the edges.
    seen.until(f"{PLOT}.parentNode.querySelector('.rv-point-announced') !== null")
    seen.page.evaluate(f"{PLOT}.scrollIntoView({{ block: 'center' }})")
    seen.settle()
    box = seen.page.locator(".rv-plot .nsewdrag").first.bounding_box()
    return round(box["x"] + across * box["width"]), round(box["y"] + along * box["height"])


def test_wheel_with_ctrl_zooms_about_the_pointer(visit):
    seen = visit().open("/frequencies")
    reset, whole = seen.page.locator("[data-zoom=reset]").first, seen.page.evaluate(RANGE)
    expect(reset).to_be_hidden()
    x, y = place_in(seen, 0.25, 0.5)
    under = seen.page.evaluate(VALUE, x)
    seen.page.mouse.move(x, y)
    seen.page.keyboard.down("Control")
    seen.page.mouse.wheel(0, -400)
    seen.until(f"{RANGE}[1] - {RANGE}[0] < {0.6 * (whole[1] - whole[0])}")
    seen.settle()
    assert abs(seen.page.evaluate(VALUE, x) - under) < 0.01
    expect(reset).to_be_visible()
    seen.page.mouse.wheel(0, 3000)
    seen.page.keyboard.up("Control")
    seen.until(f"{RANGE}[0] === {whole[0]} && {RANGE}[1] === {whole[1]}")
    expect(reset).to_be_hidden()


def test_a_plain_wheel_over_a_figure_scrolls_the_page(visit):
    seen = visit().open("/frequencies")
    whole = seen.page.evaluate(RANGE)
    seen.page.mouse.move(*place_in(seen, 0.5, 0.5))
    seen.page.mouse.wheel(0, 200)
    seen.until(f"{SCROLLED} > 50")
    seen.settle()
    assert seen.page.evaluate(RANGE) == whole


def touch(seen, *frames):
    session = seen.page.context.new_cdp_session(seen.page)
    for index, points in enumerate(frames):
        kind = "touchStart" if not index else "touchMove"
        points = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(points)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def test_two_fingers_zoom_and_one_finger_scrolls(visit):
    seen = visit(width=390, height=844, has_touch=True).open("/frequencies")
    whole = seen.page.evaluate(RANGE)
    x, y = place_in(seen, 0.5, 0.5)
    under = seen.page.evaluate(VALUE, x)
    touch(seen, *([(x - gap, y), (x + gap, y)] for gap in (30, 40, 50, 60, 75, 90)))
    seen.until(f"{RANGE}[1] - {RANGE}[0] < {0.5 * (whole[1] - whole[0])}")
    seen.settle()
    assert abs(seen.page.evaluate(VALUE, x) - under) < 1.0
    expect(seen.page.locator("[data-zoom=reset]").first).to_be_visible()
    narrow = seen.page.evaluate(RANGE)
    touch(seen, *([(x, y - 20 * step)] for step in range(10)))
    seen.until(f"{SCROLLED} > 50")
    assert seen.page.evaluate(RANGE) == narrow
