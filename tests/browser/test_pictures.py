"""Pictures load on scroll, recover from lost connections and configs, and can be copied and embedded."""

import functools
import http.server
import json
import re
import threading

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.figure_tools import download, pick

PICTURE_STATE = "document.querySelector('[data-picture=\"{}\"]').dataset.state"
RECORD_SHIFTS = """() => {
  window.__shifts = [];
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      window.__shifts.push([entry.value, entry.sources.map(({ node }) => node?.className ?? node?.nodeName)]);
    }
  }).observe({ type: "layout-shift", buffered: true });
}"""


COUNT_DARK_PIXELS = """() => {
  const canvas = Object.assign(document.createElement("canvas"), { width: 800, height: 400 }).getContext("2d");
  canvas.drawImage(document.images[0], 0, 0, 800, 400);
  return [...canvas.getImageData(0, 0, 800, 400).data].filter((value, index) => index % 4 < 3 && value < 128).length;
}"""


def record_picture_requests(view):
    """Return a list to which every requested picture is added from now on."""
    requested = []

    def note(request):
        if "/picture/" in request.url:
            requested.append(request.url.split("/picture/")[1].split(".packed")[0])

    view.page.on("request", note)
    return requested


def test_pictures_below_the_fold_load_on_scroll(visit):
    view = visit()
    requested = record_picture_requests(view)
    view.open("/decay")
    assert "decay/curves" in requested
    assert "decay/bases" not in requested
    assert view.page.evaluate(PICTURE_STATE.format("decay/bases")) == "far"
    view.scroll_to("decay/bases")
    assert "decay/bases" in requested
    assert view.page.evaluate(PICTURE_STATE.format("decay/bases")) == "shown"
    assert view.errors == []


def test_files_download_and_choices_reload_one_picture(visit):
    view = visit().open("/scaling")
    content, _ = download(view.scroll_to("scaling/methods"), "csv")
    lines = content.decode().splitlines()
    assert next(line for line in lines if not line.startswith("#")).startswith("method,factor s,kept")
    content, _ = download(view.scroll_to("scaling/comparison"), "pdf")
    assert content.startswith(b"%PDF")

    requested = record_picture_requests(view)
    view.page.get_by_role("radio", name="Wavelengths").or_(view.page.get_by_text("Wavelengths")).first.click()
    view.settle()
    assert set(requested) == {"scaling/comparison"}


@pytest.mark.parametrize("path", ["/scaling", "/frequencies", "/model?extend.tab=runtimes"])
def test_arriving_picture_does_not_shift_the_layout(visit, path):
    view = visit()
    view.page.add_init_script(f"({RECORD_SHIFTS})()")
    view.open(path)
    view.wait_frames(40)
    shifts = view.page.evaluate("window.__shifts")
    assert sum(value for value, moved in shifts if "rv-" in str(moved)) < 0.02, shifts


@pytest.mark.parametrize("path", ["/scaling", "/frequencies"])
def test_picture_space_is_reserved_before_streamlits_scripts(chromium, server, path):
    """On a first visit, with the scripts of pills and links delayed. On a phone, where these wrap, it moves."""
    context, blocked, is_blocked = chromium.new_context(viewport={"width": 1440, "height": 900}), [], [True]

    def hold(route):
        return blocked.append(route) if is_blocked else route.continue_()

    try:
        page = context.new_page()
        page.route(re.compile(r"/(ButtonGroup|PageLink)\.[^/]*\.js$"), hold)
        view = Visit(page, server).open(path)
        view.until("document.querySelectorAll('main [data-testid=stSkeleton]').length >= 2")
        view.until("document.querySelector('main .rv-picture')")
        places = "[...document.querySelectorAll('.rv-picture, .rv-legend')].map((at) => at.getBoundingClientRect().top)"
        before = page.evaluate(places)
        is_blocked.clear()
        for route in blocked:
            route.continue_()
        expect(page.locator('main [data-testid="stSkeleton"]')).to_have_count(0)
        view.settle()
        assert page.evaluate(places) == pytest.approx(before, abs=1)
    finally:
        context.close()


def test_failed_picture_shows_an_error_and_recovers_on_retry(visit):
    view = visit()
    broken = [True]
    sentence = "This picture could not be rendered."

    def answer(route):
        return route.fulfill(status=500, body=sentence) if broken else route.continue_()

    view.page.route("**/picture/scaling/comparison.packed**", answer)
    view.open("/scaling")
    place = view.page.locator('[data-picture="scaling/comparison"]')
    expect(place.get_by_role("status")).to_contain_text(sentence)
    expect(view.page.locator('[data-picture="scaling/methods"] td').first).to_be_visible()
    broken.clear()
    place.get_by_role("button", name="Try again").click()
    view.settle()
    expect(place.get_by_role("status")).to_have_count(0)
    assert place.locator(".js-line").count() > 0


def test_drag_recovers_from_ten_seconds_offline(visit):
    view = visit().open("/frequencies")
    box = view.slider("base").bounding_box()
    middle = box["y"] + box["height"] / 2
    view.page.mouse.move(box["x"] + 0.5 * box["width"], middle)
    view.page.mouse.down()
    for step in range(10):
        view.page.mouse.move(box["x"] + (0.5 + 0.01 * step) * box["width"], middle)
        view.wait_frames(3)
    before = view.page.evaluate("document.querySelector('[data-says]').innerText")
    view.page.context.set_offline(True)
    for step in range(50):
        view.page.mouse.move(box["x"] + (0.6 - 0.005 * step) * box["width"], middle)
        view.page.wait_for_timeout(200)  # the subject: ten seconds without a connection
    view.page.context.set_offline(False)
    for step in range(10):
        view.page.mouse.move(box["x"] + (0.35 - 0.005 * step) * box["width"], middle)
        view.wait_frames(3)
    view.page.mouse.up()
    value = view.knob("base").input_value()
    view.page.wait_for_url(lambda url: f"base={value}" in url)
    view.settle()
    shown = view.page.locator('[data-picture="frequencies/wavelengths"]')
    expect(shown).to_have_attribute("data-state", "shown")
    expect(shown.get_by_role("status")).to_have_count(0)
    assert view.page.evaluate("document.querySelector('[data-says]').innerText") != before


CONFIG = {"model_type": "llama", "hidden_size": 1024, "num_attention_heads": 16, "max_position_embeddings": 4096}


def test_config_is_sent_again_to_a_server_that_lost_it(visit, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG | {"rope_theta": 77_000.0}))
    view = visit().open("/model?extend.tab=runtimes")
    methods = []

    def answer_unknown(route):
        methods.append(route.request.method)
        if route.request.method == "GET":
            return route.fulfill(status=410, body="No longer kept.", headers={"rope-viz-missing": "x"})
        return route.continue_()

    view.page.route("**/picture/runtimes/matrix.packed**own=**", answer_unknown)
    view.page.locator("[data-testid=stMain] input[type=file]").set_input_files(path)
    view.settle()
    view.scroll_to("runtimes/matrix")
    says = view.page.locator('[data-says="runtimes/matrix"]')
    expect(says).to_have_text("The config of llama, unchanged.")
    assert methods[-2:] == ["GET", "POST"]


def test_dials_survive_a_change_of_mode(visit):
    """Streamlit may replace the node of a component; the hands keep their position."""
    view = visit().open("/rotation?rotation.at=777,0")
    field = view.page.locator("[data-do=at]")
    expect(field).to_have_value("777")
    view.page.get_by_text("Query and key", exact=True).first.click()
    view.settle()
    assert view.page.locator(".rv-clocks canvas").count() == 1
    assert view.page.evaluate("document.querySelector('.rv-clocks').dataset.mode") == "score"
    expect(field).to_have_value("777")
    view.page.get_by_text("One position", exact=True).first.click()
    view.settle()
    assert view.page.evaluate("document.querySelector('.rv-clocks').dataset.mode") == "turn"
    expect(field).to_have_value("777")
    assert view.errors == []


def test_copied_address_is_that_of_the_picture(visit):
    view = visit(permissions=["clipboard-read", "clipboard-write"])
    view.open("/scaling?model=qwen3-8b-yarn&scaling.show=paper")
    pick(view.page.locator('[data-picture="scaling/comparison"]'), "share", "picture")
    expect(view.page.get_by_role("menuitem", name="Copied")).to_be_visible()
    address = view.page.evaluate("navigator.clipboard.readText()")
    wanted = "/rope-viz/picture/scaling/comparison.svg?model=qwen3-8b-yarn&scaling.show=paper"
    assert address == view.url + wanted


@pytest.fixture
def other_site(tmp_path):
    """A site of another origin that serves a folder; return its address and the folder."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    yield f"http://localhost:{site.server_port}", tmp_path
    site.shutdown()


def test_page_of_another_origin_can_show_the_picture(visit, server, other_site):
    origin, folder = other_site
    address = f"{server}/rope-viz/picture/scaling/comparison.svg?model=qwen3-8b-yarn"
    (folder / "page.html").write_text(f'<img id="picture" crossorigin="anonymous" src="{address}">')
    tab = visit(origin).page
    tab.goto(f"{origin}/page.html")
    tab.wait_for_selector("#picture")
    width, height = tab.evaluate(
        "document.querySelector('#picture').decode().then(() => { const i = document.querySelector('#picture');"
        " return [i.naturalWidth, i.naturalHeight]; })"
    )
    assert width > 500
    assert height > 200
    dark = tab.evaluate(COUNT_DARK_PIXELS)
    assert dark > 50, "the picture is empty"


@pytest.mark.parametrize("gap", [0, 400])
def test_recreated_element_retains_its_picture_and_sentence(visit, gap):
    """Streamlit recreates an element if another one is inserted above it, at once or later."""
    view = visit().open("/scaling")
    view.scroll_to("scaling/comparison")
    requested = record_picture_requests(view)
    assert view.page.evaluate(RECREATE_ELEMENTS, gap) == [True, True, 0, True, True]
    view.settle()
    assert requested == []
    assert view.errors == []


RECREATE_ELEMENTS = """async (gap) => {
  const all = (names) => [...document.querySelectorAll(names)];
  const nodes = all(".rv-picture"), drawn = nodes.map(({ dataset }) => dataset.drawn);
  const sentences = all("[data-says]").map(({ innerText }) => innerText);
  const parts = all("[data-place], [data-says]").map((old) => [old.parentElement, old.cloneNode(false).outerHTML]);
  if (gap) {
    for (const [parent] of parts) parent.innerHTML = "";
    await new Promise((go) => setTimeout(go, gap));
  }
  for (const [parent, text] of parts) parent.innerHTML = text;
  let empty = 0;
  for (let frame = 0; frame < 20; frame += 1) {
    await new Promise(requestAnimationFrame);
    empty += all("[data-place]").filter((slot) => !slot.querySelector(".rv-picture")).length;
  }
  return [
    nodes.length > 1 && nodes.every((node) => node.isConnected),
    nodes.every(({ dataset, parentElement }) => parentElement.dataset.place === dataset.picture),
    empty,
    sentences[0].length > 20 && all("[data-says]").every(({ innerText }, index) => innerText === sentences[index]),
    // A node that had no width for a while is laid out again.
    gap > 0 || nodes.every(({ dataset }, index) => dataset.drawn === drawn[index]),
  ];
}"""


def test_duplicated_element_mounts_its_picture_once(visit):
    """If an element above is removed, Streamlit inserts the place again before it removes the old one."""
    view = visit().open("/scaling")
    view.page.evaluate("""() => {
      const slot = document.querySelector('[data-place="scaling/comparison"]');
      slot.id = "once";
      // Later, so that evaluate returns even if the page hangs.
      setTimeout(() => slot.after(Object.assign(slot.cloneNode(false), { id: "twice" })), 100);
      setTimeout(() => Object.assign(slot, { id: "old" }), 500);
      setTimeout(() => slot.remove(), 1000);
    }""")
    expect(view.page.locator("#old > .rv-picture[data-state=shown]")).to_have_count(1)
    expect(view.page.locator("#twice > .rv-picture[data-state=shown]")).to_have_count(1)
    assert view.errors == []
