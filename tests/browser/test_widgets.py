"""The module on a plain page and in saved pages: pictures move without Python, in light and dark, wide and narrow."""

import base64
import contextlib
import functools
import http.server
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect

from rope_viz import RopeSpec, model_specs
from rope_viz.cli.main import main
from rope_viz.figures import hands
from rope_viz.picture import export
from rope_viz.reports.draw import read_figure
from rope_viz.widgets import Clocks, Decay, Hands
from tests.browser.figure_tools import pick
from tests.browser.test_every_page import find_violations
from tests.widgets.test_notebook import run_cell

ROOT = Path(__file__).parents[2]
YARN = model_specs("qwen3-8b-yarn")[""]


@contextlib.contextmanager
def serving(folder):
    """Serve a folder by Python's own server, and give its address."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{site.server_address[1]}"
    finally:
        site.shutdown()
        site.server_close()


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """The address of the example page with the module next to it."""
    folder = tmp_path_factory.mktemp("course")
    assert main(["widget", "-o", str(folder / "rope-viz.js")]) == 0
    shutil.copy(ROOT / "examples" / "course_page.html", folder)
    with serving(folder) as address:
        yield f"{address}/course_page.html"


@pytest.fixture
def open_page(chromium):
    """open_page(address, width=…, theme=…) opens a page; the test fails if the page had an error."""
    problems, contexts = [], []

    def start(address, *, width=1440, theme="light", offline=False):
        context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, offline=offline)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: message.type == "error" and problems.append(message.text))
        page.goto(address)
        return page

    yield start
    for context in contexts:
        context.close()
    assert [problem for problem in problems if "favicon" not in problem and "404" not in problem] == []


def drag(page, root, name, share):
    """Drag the thumb of a slider to a share of its track, and return the value that the slider then shows."""
    slider = page.locator(f"{root} input[data-do='{name}']")
    slider.hover()  # waits until it rests
    box = slider.bounding_box()
    at = slider.evaluate("node => Number(node.value) / Number(node.max)")
    inner, y = box["width"] - 16, box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 8 + at * inner, y)
    page.mouse.down()
    page.mouse.move(box["x"] + 8 + share * inner, y, steps=4)
    page.mouse.up()
    return slider.evaluate("node => node.closest('label').querySelector('output').textContent")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_a_plain_page_shows_clocks_and_hands_of_the_one_module(width, theme, course, open_page):
    page = open_page(course, width=width, theme=theme)
    page.wait_for_selector("#clocks .rv-clocks[data-drawn]")
    page.wait_for_selector("#hands .rv-hands[data-drawn]")
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") == 0
    assert find_violations(page, {}) == []
    ground = page.evaluate("getComputedStyle(document.querySelector('.rv-widget')).getPropertyValue('--st-text-color')")
    assert ground.lower() == ("#e6e9ee" if theme == "dark" else "#1b1f24")


def test_a_slider_of_a_plain_page_gives_exact_frequencies(course, open_page):
    page = open_page(course)
    page.wait_for_selector("#clocks .rv-clocks[data-drawn]")
    read = "document.querySelector('#clocks .rv-clocks').__clocks.data.first"
    np.testing.assert_allclose(page.evaluate(read), RopeSpec(base=500_000.0).inv_freq(), rtol=1e-14)
    base = float(drag(page, "#clocks", "base", 0.9))
    assert base > 1e7
    np.testing.assert_allclose(page.evaluate(read), RopeSpec(base=base).inv_freq(), rtol=1e-14)


def test_hands_of_a_plain_page_show_the_pairs_of_python(course, open_page):
    page = open_page(course)
    page.wait_for_selector("#hands .rv-hands[data-drawn]")
    for share in (0.2, 0.7):
        base = float(drag(page, "#hands", "base", share))
        message = hands.message(RopeSpec(base=base, context=4096))
        shown = page.evaluate("document.querySelector('#hands .rv-hands').__hands.data")
        assert {name: shown[name] for name in ("pair", "few", "last")} == {
            name: message[name] for name in ("pair", "few", "last")
        }
        assert shown["title"] == message["title"]


def test_a_dragged_word_moves_a_hand_of_a_plain_page(course, open_page):
    page = open_page(course)
    page.wait_for_selector("#hands .rv-hands[data-drawn]")
    word = page.locator("#hands [data-do=query]")
    box = word.bounding_box()
    before = page.locator("#hands .rv-hands").get_attribute("data-query")
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + 3 * box["width"], box["y"] + box["height"] / 2, steps=4)
    page.mouse.up()
    expect(page.locator("#hands .rv-hands")).not_to_have_attribute("data-query", before)


def test_an_unknown_picture_is_named(course, open_page):
    page = open_page(course)
    script = """import("./rope-viz.js").then(({ show }) => show(document.body, "x")).catch((error) => error.message)"""
    assert page.evaluate(script) == "There is no x: use one of clocks, hands."


def test_a_shadow_tree_has_the_style_of_the_page(course, open_page):
    """Some notebooks show an output in a shadow tree, which the page's CSS does not reach."""
    page = open_page(course)
    page.evaluate("""async () => {
        const host = document.body.appendChild(document.createElement("section"));
        const { show } = await import("./rope-viz.js");
        show(host.attachShadow({ mode: "open" }).appendChild(document.createElement("div")), "clocks");
    }""")
    page.locator("section").scroll_into_view_if_needed()  # out of view nothing is drawn
    page.wait_for_selector("section .rv-clocks[data-drawn]")
    heights = "[...document.querySelectorAll('#clocks .rv-bar')].map((node) => node.clientHeight)"
    inside = heights.replace("document", "document.querySelector('section').shadowRoot").replace("#clocks ", "")
    page.wait_for_function(f"JSON.stringify({inside}) === JSON.stringify({heights})")


def test_saved_clocks_move_without_python(tmp_path, open_page):
    Clocks(RopeSpec()).save_html(tmp_path / "clocks.html")
    page = open_page((tmp_path / "clocks.html").as_uri(), offline=True)
    page.wait_for_selector(".rv-clocks[data-drawn]")
    read = "document.querySelector('.rv-clocks').__clocks.data.first"
    base = float(drag(page, "#picture", "base", 0.8))
    np.testing.assert_allclose(page.evaluate(read), RopeSpec(base=base).inv_freq(), rtol=1e-14)
    before = page.evaluate("document.querySelector('.rv-clocks').__clocks.m")
    page.wait_for_function("(m) => document.querySelector('.rv-clocks').__clocks.m !== m", arg=before)  # it plays


def test_saved_hands_of_a_scaled_model_step_through_exact_values(tmp_path, open_page):
    Hands(YARN).save_html(tmp_path / "hands.html")
    page = open_page((tmp_path / "hands.html").as_uri(), offline=True)
    page.wait_for_selector(".rv-hands[data-drawn]")
    drag(page, "#picture", "scaling.factor", 0.5)
    shown = page.evaluate("document.querySelector('.rv-hands').__hands.data.inv_freq")
    assert not np.array_equal(shown, YARN.inv_freq(YARN.target))


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_a_saved_curve_moves_without_python(width, theme, tmp_path, open_page):
    Decay(RopeSpec()).save_html(tmp_path / "decay.html")
    page = open_page((tmp_path / "decay.html").as_uri(), offline=True, width=width, theme=theme)
    page.wait_for_selector(".rv-chart[data-drawn]")
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") == 0
    curve = "document.querySelector('.rv-plot')._fullData.map((trace) => trace.y && Array.from(trace.y).slice(0, 50))"
    before = page.evaluate(curve)
    drag(page, "#picture", "base", 0.9)
    page.wait_for_function("document.querySelector('.rv-chart').dataset.drawn > 1")
    assert page.evaluate(curve) != before
    assert page.locator(".rv-chart").get_attribute("data-theme") == theme


@pytest.mark.parametrize(
    ("address", "picture"),
    [
        ("/scaling?model=qwen3-8b-yarn&scaling.show=wavelength", "scaling/comparison"),
        ("/rotation?model=qwen3-8b-yarn&rotation.at=2048,0", "rotation/turning"),
    ],
)
def test_share_copies_a_cell_with_the_very_picture(visit, address, picture):
    view = visit(permissions=["clipboard-read", "clipboard-write"]).open(address)
    pick(view.page.locator(f'[data-picture="{picture}"]'), "share", "notebook")
    expect(view.page.get_by_role("menuitem", name="Copied")).to_be_visible()
    made = run_cell(view.page.evaluate("navigator.clipboard.readText()"))
    found, request, _ = read_figure(picture + address[address.index("?") :])
    assert base64.b64decode(made._picture) == export.render(found, request, "packed")
