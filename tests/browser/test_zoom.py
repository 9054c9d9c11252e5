"""Zoom: ticks follow, lines keep their names, Plotly shows no message, and Reset restores the picture."""

import pytest

# The strip of layers is above the pictures of My model's tabs.
PLACE = '.rv-picture:not([data-picture="extend/layers"]) .rv-plot'
PLOT = f"document.querySelector('{PLACE}')"
TICKS = f"[...{PLOT}.querySelectorAll('.$tick text')].map((label) => label.textContent)"
NAMES = f"[...{PLOT}.querySelectorAll('.annotation-text')].map((label) => label.textContent)"
PICTURES = {
    "/scaling?model=qwen3-8b&target=131072": 3,
    "/scaling?scaling.show=wavelength": 3,
    "/scaling?scaling.show=paper": 3,
    "/decay": 2,
    "/decay?decay.log=no": 3,
    "/frequencies": 3,
    "/runtimes?model=kimi-k2-instruct": 3,
}


def read_labels(view, axis):
    return view.page.evaluate(TICKS.replace("$", axis))


def zoom(view, key, times=1):
    for _ in range(times):
        view.page.locator(PLACE).first.press(key)
        view.settle()


@pytest.mark.parametrize("address", PICTURES)
def test_ticks_and_names_follow_a_zoom(visit, address):
    view = visit().open(address)
    if address.startswith("/runtimes"):
        view.scroll_to("runtimes/curves")
    before = read_labels(view, "x"), read_labels(view, "y"), view.page.evaluate(NAMES)
    for _ in range(PICTURES[address]):
        zoom(view, "+")
        assert len(read_labels(view, "x")) >= 3
        assert len(read_labels(view, "y")) >= 3
        assert view.page.evaluate(NAMES)
        outside = f"""[...{PLOT}.querySelectorAll('.annotation')].filter((label) => {{
            const [at, all] = [label, {PLOT}].map((node) => node.getBoundingClientRect());
            return at.left < all.left - 1 || at.right > all.right + 1 || at.top < all.top - 1 || at.bottom > all.bottom;
        }}).map((label) => label.textContent)"""
        assert view.page.evaluate(outside) == []
    zoom(view, "0")
    assert (read_labels(view, "x"), read_labels(view, "y"), view.page.evaluate(NAMES)) == before
    assert view.errors == []


def test_ticks_of_a_zoomed_length_are_powers_of_two(visit):
    view = visit().open("/decay?decay.length=131072")
    zoom(view, "+", 2)
    sizes = {"k": 1 << 10, "M": 1 << 20}
    for label in read_labels(view, "x"):
        value = float(label.rstrip("kM").replace(",", "")) * sizes.get(label[-1], 1)
        assert value.is_integer()
        assert not int(value) & (int(value) - 1)


def test_a_zoom_by_the_mouse_shows_no_message(visit):
    view = visit().open("/scaling?model=qwen3-8b&target=131072")
    box = view.page.locator(".rv-plot .nsewdrag").first.bounding_box()
    x, y = box["x"] + 0.4 * box["width"], box["y"] + 0.3 * box["height"]
    view.page.mouse.move(x, y)
    view.page.mouse.down()
    view.page.mouse.move(x + 90, y + 90, steps=5)
    view.page.mouse.up()
    view.until(f"{PLOT}.layout.xaxis.range[0] > 10")
    view.settle()
    assert view.page.locator(".plotly-notifier .notifier-note").count() == 0
    assert len(read_labels(view, "x")) >= 3
    assert len(read_labels(view, "y")) >= 3


@pytest.mark.parametrize("address", ["/scaling", "/frequencies"])
def test_band_labels_are_above_the_grid(visit, address):
    view = visit().open(address)
    layers = """[...document.querySelectorAll('.rv-plot .shape-label, .rv-plot .shape-group text')]
        .filter((label) => /^(kept|blended|divided)/.test(label.textContent))
        .map((label) => label.closest('.layer-above') !== null)"""
    found = view.page.evaluate(layers)
    assert found
    assert all(found)
