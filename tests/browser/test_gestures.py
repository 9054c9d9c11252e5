"""Wheel and pinch zoom a figure about the pointer, and the page still scrolls."""

from playwright.sync_api import expect

PLOT = "document.querySelector('.rv-plot')"
RANGE = f"{PLOT}._fullLayout.xaxis.range.slice()"
SCROLLED = "document.querySelector('[data-testid=stMain]').scrollTop"
# The value on the x axis at a pixel of the window.
AXIS = f"{PLOT}._fullLayout.xaxis"
VALUE = f"(x) => {AXIS}.p2l(x - {PLOT}.getBoundingClientRect().left - {AXIS}._offset)"


def point_in_figure(view, across, along):
    # Wait for the script that handles gestures, and center the figure.
    view.until(f"{PLOT}.parentNode.querySelector('.rv-point-announced') !== null")
    view.page.evaluate(f"{PLOT}.scrollIntoView({{ block: 'center' }})")
    view.settle()
    box = view.page.locator(".rv-plot .nsewdrag").first.bounding_box()
    return round(box["x"] + across * box["width"]), round(box["y"] + along * box["height"])


def test_wheel_with_ctrl_zooms_about_the_pointer(visit):
    view = visit().open("/frequencies")
    reset, whole = view.page.locator("[data-zoom=reset]").first, view.page.evaluate(RANGE)
    expect(reset).to_be_hidden()
    x, y = point_in_figure(view, 0.25, 0.5)
    under = view.page.evaluate(VALUE, x)
    view.page.mouse.move(x, y)
    view.page.keyboard.down("Control")
    view.page.mouse.wheel(0, -400)
    view.until(f"{RANGE}[1] - {RANGE}[0] < {0.6 * (whole[1] - whole[0])}")
    view.settle()
    assert abs(view.page.evaluate(VALUE, x) - under) < 0.01
    expect(reset).to_be_visible()
    view.page.mouse.wheel(0, 3000)
    view.page.keyboard.up("Control")
    view.until(f"{RANGE}[0] === {whole[0]} && {RANGE}[1] === {whole[1]}")
    expect(reset).to_be_hidden()


def test_a_plain_wheel_over_a_figure_scrolls_the_page(visit):
    view = visit().open("/frequencies")
    whole = view.page.evaluate(RANGE)
    view.page.mouse.move(*point_in_figure(view, 0.5, 0.5))
    view.page.mouse.wheel(0, 200)
    view.until(f"{SCROLLED} > 50")
    view.settle()
    assert view.page.evaluate(RANGE) == whole


def touch(view, *frames):
    session = view.page.context.new_cdp_session(view.page)
    for index, points in enumerate(frames):
        kind = "touchStart" if not index else "touchMove"
        points = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(points)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def test_two_fingers_zoom_and_one_finger_scrolls(visit):
    view = visit(width=390, height=844, has_touch=True).open("/frequencies")
    whole = view.page.evaluate(RANGE)
    x, y = point_in_figure(view, 0.5, 0.5)
    under = view.page.evaluate(VALUE, x)
    touch(view, *([(x - gap, y), (x + gap, y)] for gap in (30, 40, 50, 60, 75, 90)))
    view.until(f"{RANGE}[1] - {RANGE}[0] < {0.5 * (whole[1] - whole[0])}")
    view.settle()
    assert abs(view.page.evaluate(VALUE, x) - under) < 1.0
    expect(view.page.locator("[data-zoom=reset]").first).to_be_visible()
    narrow = view.page.evaluate(RANGE)
    touch(view, *([(x, y - 20 * step)] for step in range(10)))
    view.until(f"{SCROLLED} > 50")
    assert view.page.evaluate(RANGE) == narrow
