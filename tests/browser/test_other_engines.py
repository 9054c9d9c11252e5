"""Firefox and WebKit (Safari's engine) draw every page, follow a drag and download files.

Each is started once for the file. If one is not installed, its tests are skipped; in CI they fail.
"""

import urllib.request

import pytest

from rope_viz.pages.registry import titles
from rope_viz.texts import Texts
from tests.addresses import check_address
from tests.browser.engines import ANSWER_SECONDS, ENGINES, find_missing_programs
from tests.waiting import wait_until

# Only Firefox logs that our policy blocks the WebAssembly of Streamlit's client.
NOT_OURS = "blocked WebAssembly"


@pytest.fixture(scope="module", params=ENGINES)
def running_engine(request, tmp_path_factory):
    """Return a function that returns the running browser, or a new one after a crash."""
    if missing := find_missing_programs(request.param):
        pytest.skip(f"{request.param} cannot be run: {', '.join(missing)} not found")
    running = []

    def start():
        if not (running and running[-1].is_alive()):
            running.append(ENGINES[request.param](tmp_path_factory.mktemp(request.param)))
        return running[-1]

    yield start
    for browser in running:
        browser.close()


@pytest.fixture
def engine(running_engine):
    """The browser, with its cache."""
    return running_engine()


IS_SETTLED = """(() => {
  const app = document.querySelector('[data-testid="stApp"]');
  const pictures = [...document.querySelectorAll(".rv-picture")];
  const isInView = ({ left, right, top, bottom }) =>
    right > 0 && left < innerWidth && bottom > 0 && top < innerHeight && right > left;
  if (pictures.some((node) => node.dataset.state === "far" && isInView(node.getBoundingClientRect()))) return false;
  return app?.dataset.testScriptState === "notRunning" && app.dataset.testConnectionState === "CONNECTED"
    && !document.querySelector("[data-moving]") && document.querySelector("h1")
    && pictures.every(({ dataset }) => ["shown", "far", "failed"].includes(dataset.state) && !dataset.waiting)
    && pictures.every(({ dataset }) => dataset.state !== "shown" || dataset.drawn);
})()"""

# [picture, whether it has lines, cells or pixels] of each shown picture.
DRAWN_PICTURES = """(() => {
  const LINES = ":is(.main-svg, .rv-picture-of svg)";
  const wide = (node) => node.getBoundingClientRect().width > 100;
  const text = (node) => node.innerText.trim();
  const ink = (node) => node.width
    && node.getContext("2d").getImageData(0, 0, node.width, node.height).data.some(Boolean);
  return [...document.querySelectorAll('.rv-picture[data-state="shown"]')].map((place) => {
    const found = (what, holds) => [...place.querySelectorAll(what)].some(holds);
    const drawn = found(`${LINES} path, ${LINES} line, .main-svg image`, wide);
    const hasContent = drawn || found("td", text) || found("canvas", ink);
    return [place.dataset.picture, Boolean(hasContent)];
  });
})()"""
FAILED = '[...document.querySelectorAll(".rv-failed, [data-testid=stException]")].map((node) => node.innerText)'

HEADINGS = {
    "home": str(Texts("hands")("headline")),
    "learn": str(Texts("learn")("heading")),
    "differences": str(Texts("differences")("heading")),
    "compare": "Llama 3.1 8B and Qwen3 8B",
}
"""{page: its heading}, if that is not its title; that of My model is the model's name."""
WITHOUT_PICTURES = {"model", "lab", "gallery"}


def open_address(engine, url):
    """Open an address and wait until the page is settled."""
    check_address(url)
    engine.errors.clear()
    engine.open(url)
    settle(engine)


def go_to(engine, server, page):
    """Open a page by the header, or by its address if the app is not open yet."""
    path = "" if page == "home" else page
    link = f"[...document.querySelectorAll('#rv-header a')].find(({{ pathname }}) => pathname === '/{path}')"
    if not (engine.run("location.origin") == server and engine.run(f"Boolean({link}) && location.search !== ''")):
        return open_address(engine, f"{server}/{path}?base=77000")
    engine.errors.clear()
    engine.run(f"{link}.click()")
    current = f"document.querySelector(`#rv-header [data-to='{path}'][aria-current]`)"
    engine.wait_until(f"location.pathname === '/{path}' && Boolean({current})")
    if page != "model":
        engine.wait_until(f"document.querySelector('h1')?.innerText === {heading_of(page)!r}")
    return settle(engine)


def heading_of(page):
    return HEADINGS.get(page, titles()[page])


def settle(engine):
    """Wait until the page was settled five times in a row: a run may follow a run."""
    states = [False] * 5

    def is_settled():
        states.append(engine.run(IS_SETTLED))
        return all(states[-5:])

    wait_until(is_settled, ANSWER_SECONDS, "settled page")


def list_errors(engine):
    return [line for line in engine.errors if NOT_OURS not in line]


@pytest.mark.parametrize("page", titles())
def test_every_page_is_drawn(engine, server, page):
    go_to(engine, server, page)
    if page not in WITHOUT_PICTURES:
        # On a busy machine the first picture may come after the page is settled.
        engine.wait_until("Boolean(document.querySelector('.rv-picture[data-state=shown]'))")
        settle(engine)
    assert page == "model" or engine.run('document.querySelector("h1").innerText') == heading_of(page)
    assert page == "learn" or engine.run(BASE_IN_ADDRESS) == 77000
    view = dict(engine.run(DRAWN_PICTURES))
    assert all(view.values()), view
    assert engine.run(FAILED) == []
    assert engine.run("document.documentElement.scrollWidth - innerWidth") <= 0
    assert list_errors(engine) == []


SENTENCE = "document.querySelector('[data-says=\"frequencies/wavelengths\"]').innerText"
LINE = "document.querySelector('[data-picture=\"frequencies/wavelengths\"] .js-line')?.getAttribute('d')"
KNOB = "Number(document.querySelector('[data-knob=base] input[type=text]').value)"
BASE_IN_ADDRESS = "Number(new URLSearchParams(location.search).get('base'))"
THUMB = """(() => {
  const slider = document.querySelector("[data-knob=base] input[type=range]");
  const { left, top, width, height } = slider.getBoundingClientRect();
  return [left, top + height / 2, width];
})()"""


def test_picture_follows_the_drag_and_link_follows_the_release(engine, server):
    open_address(engine, f"{server}/frequencies?model=llama-3.1-8b")
    engine.wait_until("Boolean(document.querySelector('[data-knob=base] input[type=range]'))")
    left, middle, width = engine.run(THUMB)
    engine.move(left + 0.5 * width, middle)
    engine.press()
    for step in range(1, 5):
        # Plotly may be replacing the line at this moment.
        sentence, line = engine.wait_until(f"{LINE} && [{SENTENCE}, {LINE}]")
        engine.move(left + (0.5 + 0.05 * step) * width, middle)
        # Wait until the picture has followed.
        engine.wait_until(f"{SENTENCE} !== {sentence!r} && {LINE} && {LINE} !== {line!r}")
        assert "base=" not in engine.run("location.search"), "the address must wait for the release"
    value = engine.run(KNOB)
    engine.release()
    engine.wait_until(f"{BASE_IN_ADDRESS} === {value}")
    settle(engine)
    assert engine.run(KNOB) == value
    assert engine.run(FAILED) == []
    assert list_errors(engine) == []


VIDEO_TYPES = "['video/mp4;codecs=avc1.42E01F', 'video/webm;codecs=vp9', 'video/webm']"


def download(engine, picture, form):
    """Download a file of the page's first figure; return its name and bytes."""
    before = set(engine.finished_downloads())
    open_menu(engine, picture)
    engine.run(f"document.querySelector('[data-picture=\"{picture}\"] [data-item={form}]').click()")
    wait_until(lambda: set(engine.finished_downloads()) - before, 60, f"{picture} as {form}")
    (path,) = set(engine.finished_downloads()) - before
    name, content = path.name, path.read_bytes()
    path.unlink()  # a second file of this name would get a number
    return name, content


def open_menu(engine, picture):
    menu = f"document.querySelector('[data-picture=\"{picture}\"] .rv-menu')"
    engine.wait_until(f"Boolean({menu})")
    if not engine.run(f"{menu}.matches(':popover-open')"):
        engine.run(f"document.querySelector('[data-picture=\"{picture}\"] [data-do=download]').click()")
    engine.wait_until(f"{menu}.matches(':popover-open')")


@pytest.mark.parametrize("form", ["csv", "pdf", "png"])
def test_downloaded_file_equals_its_address(engine, server, form):
    if engine.run("location.href") != (url := f"{server}/scaling?model=qwen3-8b-yarn"):
        open_address(engine, url)
    name, content = download(engine, "scaling/comparison", form)
    with urllib.request.urlopen(f"{server}/rope-viz/picture/scaling/comparison.{form}?model=qwen3-8b-yarn") as answer:
        assert content == answer.read()
        assert name in answer.headers["content-disposition"]
    assert list_errors(engine) == []


def test_dials_are_saved_as_png_and_video_where_possible(engine, server):
    open_address(engine, f"{server}/rotation")
    name, content = download(engine, "rotation/turning", "png")
    assert name.endswith(".png")
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    assert len(content) > 20_000
    records_video = engine.run(f"{VIDEO_TYPES}.some((kind) => window.MediaRecorder?.isTypeSupported(kind))")
    open_menu(engine, "rotation/turning")
    assert engine.run("Boolean(document.querySelector('.rv-clocks [data-item=video]'))") is records_video
    assert list_errors(engine) == []
