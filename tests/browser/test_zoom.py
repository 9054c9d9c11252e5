"""Zoom: ticks follow it, lines keep their names, Plotly shows no message, and Reset restores the whole picture."""

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


def labels(seen, axis):
    return seen.page.evaluate(TICKS.replace("$", axis))


def zoom(seen, key, times=1):
    for _ in range(times):
        seen.page.locator(PLACE).first.press(key)
        seen.settle()


@pytest.mark.parametrize("address", PICTURES)
def test_ticks_and_names_follow_a_zoom(visit, address):
    seen = visit().open(address)
    if address.startswith("/runtimes"):
        seen.look("runtimes/curves")
    before = labels(seen, "x"), labels(seen, "y"), seen.page.evaluate(NAMES)
    for _ in range(PICTURES[address]):
        zoom(seen, "+")
        assert len(labels(seen, "x")) >= 3
        assert len(labels(seen, "y")) >= 3
        assert seen.page.evaluate(NAMES)
        outside = f"""[...{PLOT}.querySelectorAll('.annotation')].filter((label) => {{
            const [at, all] = [label, {PLOT}].map((node) => node.getBoundingClientRect());
            return at.left < all.left - 1 || at.right > all.right + 1 || at.top < all.top - 1 || at.bottom > all.bottom;
        }}).map((label) => label.textContent)"""
        assert seen.page.evaluate(outside) == []
    zoom(seen, "0")
    assert (labels(seen, "x"), labels(seen, "y"), seen.page.evaluate(NAMES)) == before
    assert seen.errors == []


def test_ticks_of_a_zoomed_length_are_powers_of_two(visit):
    seen = visit().open("/decay?decay.length=131072")
    zoom(seen, "+", 2)
    sizes = {"k": 1 << 10, "M": 1 << 20}
    for label in labels(seen, "x"):
        value = float(label.rstrip("kM").replace(",", "")) * sizes.get(label[-1], 1)
        assert value.is_integer()
        assert not int(value) & (int(value) - 1)


def test_a_zoom_by_the_mouse_shows_no_message(visit):
    seen = visit().open("/scaling?model=qwen3-8b&target=131072")
    box = seen.page.locator(".rv-plot .nsewdrag").first.bounding_box()
    x, y = box["x"] + 0.4 * box["width"], box["y"] + 0.3 * box["height"]
    seen.page.mouse.move(x, y)
    seen.page.mouse.down()
    seen.page.mouse.move(x + 90, y + 90, steps=5)
    seen.page.mouse.up()
    seen.until(f"{PLOT}.layout.xaxis.range[0] > 10")
    seen.settle()
    assert seen.page.locator(".plotly-notifier .notifier-note").count() == 0
    assert len(labels(seen, "x")) >= 3
    assert len(labels(seen, "y")) >= 3


@pytest.mark.parametrize("address", ["/scaling", "/frequencies"])
def test_band_labels_are_above_the_grid(visit, address):
    seen = visit().open(address)
    layers = """[...document.querySelectorAll('.rv-plot .shape-label, .rv-plot .shape-group text')]
        .filter((label) => /^(kept|blended|divided)/.test(label.textContent))
        .map((label) => label.closest('.layer-above') !== null)"""
    found = seen.page.evaluate(layers)
    assert found
    assert all(found)
