"""The clocks in a browser: their pixels change as they should, and their numbers are those of the core."""

import base64
import io
import math
import re
from urllib.parse import parse_qs, urlsplit

import mpmath
import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect

from rope_viz.models.catalog import model_specs
from rope_viz.studies import scores
from rope_viz.ui.components.scripts import PREFIX, version
from tests.browser.figure_tools import customise, download, pick

SPEC = model_specs("llama-3.1-8b")[""]
SCORE = "/rotation?rotation.show=score&rotation.at=1040,1024"
STATE = "document.querySelector('.rv-clocks').dataset"


def find_canvas(view):
    return view.page.locator(".rv-clocks canvas")


def screenshot(view, left=0.0, right=1.0, top=0.0):
    """Return a screenshot of a part of the canvas."""
    box = find_canvas(view).bounding_box()
    clip = {"x": box["x"] + left * box["width"], "y": box["y"] + top, "height": box["height"] - top}
    return view.page.screenshot(clip=clip | {"width": (right - left) * box["width"]})


def click_button(view, name):
    view.page.locator(f".rv-clocks [data-do={name}]").click()


def evaluate_clocks(view, expression, *arguments):
    """Evaluate an expression over the exports of dials.js in the browser."""
    address = f"{PREFIX}/{version()}/dials.js"
    body = f"async (given) => {{ const dials = await import('{address}'); return {expression}; }}"
    return view.page.evaluate(body, list(arguments))


def wait_for_position(view, m, n=None):
    view.until(f"{STATE}.m === '{m}'" + (f" && {STATE}.n === '{n}'" if n is not None else ""))
    return float(view.page.evaluate(f"{STATE}.score"))


@pytest.fixture
def paused_visit(visit):
    """A visit that starts paused."""
    return lambda path, **options: visit(**options).open(path)


def test_script_angles_and_scores_are_exact_to_ten_million(paused_visit):
    view = paused_visit("/rotation")
    inv_freq = SPEC.inv_freq(SPEC.target)
    rates = [float(f) / math.tau for f in inv_freq]
    for position in (1, 4095, 131_071, 9_999_999, 10_000_000):
        found = evaluate_clocks(view, "given[0].map((rate) => dials.computeTurn(given[1], rate))", rates, position)
        with mpmath.workdps(40):
            exact = [mpmath.mpf(float(f)) * position / (2 * mpmath.pi) for f in inv_freq]
            errors = [abs((mpmath.mpf(a) - b) - mpmath.nint(a - b)) for a, b in zip(found, exact, strict=True)]
        assert max(errors) < 1e-9

    exact = scores.mean_cosine(inv_freq, 1_000_001)
    for distance in (0, 1, 16, 4096, 131_072, 1_000_000):
        found = evaluate_clocks(
            view, "dials.computeScore(given[0], given[1])", distance, [float(f) / math.tau for f in inv_freq]
        )
        assert found == pytest.approx(exact[distance], abs=1e-9)


def test_score_of_the_dials_matches_the_core_and_ignores_shifts(paused_visit):
    view = paused_visit(SCORE)
    before = wait_for_position(view, 1040, 1024)
    dials, bars = screenshot(view, 0, 0.6, 40), screenshot(view, 0.75, 1, 40)
    click_button(view, "more")
    assert wait_for_position(view, 1041, 1025) == before
    assert screenshot(view, 0, 0.6, 40) != dials
    assert screenshot(view, 0.75, 1, 40) == bars
    click_button(view, "less")
    expected = scores.mean_cosine(SPEC.inv_freq(SPEC.target), 200)
    assert wait_for_position(view, 1040, 1024) == pytest.approx(expected[16], abs=1e-12)
    click_button(view, "m")
    click_button(view, "more")
    assert wait_for_position(view, 1041, 1024) == pytest.approx(expected[17], abs=1e-12)
    assert screenshot(view, 0.75, 1, 40) != bars
    view.settle()
    assert "rotation.at=1041%2C1024" in view.page.url


# In every frame, the position in the heading on the canvas and that in the number field.
POSITIONS = """() => new Promise((done) => {
  const pairs = [], write = CanvasRenderingContext2D.prototype.fillText;
  let heading = null;
  CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
    heading = /^position ([\\d,]+)$/.exec(text)?.[1].replaceAll(",", "") ?? heading;
    return write.call(this, text, ...rest);
  };
  new MutationObserver(() => Promise.resolve().then(() => {
    if (heading !== null) pairs.push([heading, document.querySelector("[data-do=at]").value]);
    if (pairs.length === 20) done(pairs);
  })).observe(document.querySelector(".rv-clocks"), { attributes: true, attributeFilter: ["data-drawn"] });
})"""


def test_playback_animates_without_server_messages(visit):
    view = visit(motion=True)
    received = []
    view.page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: received.append(frame)))
    view.open("/rotation")
    before, frames = len(received), int(view.page.evaluate(f"{STATE}.drawn"))
    view.until(f"Number({STATE}.drawn) > {frames + 30}")
    assert len(received) == before

    first = screenshot(view, top=40)
    for _ in range(50):
        if screenshot(view, top=40) != first:
            break
    else:
        pytest.fail("nothing moved")
    pairs = view.page.evaluate(POSITIONS)
    assert len({heading for heading, _ in pairs}) > 1
    assert [field for _, field in pairs] == [heading for heading, _ in pairs]
    click_button(view, "play")
    view.settle()
    before = screenshot(view)
    view.wait_frames()
    assert screenshot(view) == before


def test_position_survives_a_knob_and_keys_control_the_dials(paused_visit):
    view = paused_visit("/rotation?rotation.at=100,0")
    before = screenshot(view, top=40)
    view.slider("base").focus()
    view.page.keyboard.press("ArrowRight")
    view.settle()
    assert view.page.locator("[data-do=at]").input_value() == "100"
    assert screenshot(view, top=40) != before

    keys, play = view.page.keyboard, view.page.locator("[data-do=play]")
    find_canvas(view).focus()
    keys.press("ArrowRight")
    wait_for_position(view, 101)
    keys.press("Shift+ArrowLeft")
    wait_for_position(view, 1)
    keys.press("Space")
    expect(play).to_have_text("Pause")
    keys.press("Space")
    expect(play).to_have_text("Play")
    keys.press("ArrowDown")
    expect(view.page.locator(".rv-announced")).to_contain_text("pair 1,")
    keys.press("Enter")
    view.page.wait_for_url("**pin=1*")


def test_pin_enters_the_link_and_shows_on_frequencies(paused_visit):
    view = paused_visit("/rotation")
    box = find_canvas(view).bounding_box()
    view.page.mouse.click(box["x"] + 40, box["y"] + 70)
    view.page.wait_for_url("**pin=0*")
    view.page.reload()
    view.settle()
    assert view.page.locator(".rv-now").inner_text().startswith("pair 0, kept")
    view.go("Frequencies")
    shown = view.page.evaluate("document.querySelector('.rv-plot').data.map((trace) => trace.name)")
    assert "pinned pair 0" in shown


def test_a_tap_pins_on_a_narrow_screen(paused_visit):
    view = paused_visit("/rotation", width=390, height=844, has_touch=True)
    box = find_canvas(view).bounding_box()
    view.page.touchscreen.tap(box["x"] + 26, box["y"] + 62)
    view.page.wait_for_url("**pin=0*")
    assert view.errors == []


def test_back_returns_to_the_position_before(paused_visit):
    view = paused_visit("/rotation?rotation.at=100,0")
    click_button(view, "more")
    wait_for_position(view, 101)
    view.page.wait_for_url("**101*")
    view.page.wait_for_timeout(2100)  # the subject: an older address that returns later than 2 s is from Back
    view.page.go_back()
    wait_for_position(view, 100)


def test_reduced_motion_starts_paused_at_any_typed_position(paused_visit):
    view = paused_visit("/rotation")
    expect(view.page.locator("[data-do=play]")).to_have_text("Play")
    before = screenshot(view)
    view.wait_frames()
    assert screenshot(view) == before

    field = view.page.locator("[data-do=at]")
    field.fill("10000000")
    field.press("Enter")
    wait_for_position(view, 10_000_000)
    expect(view.page.locator("[data-do=loop]")).to_have_attribute("aria-pressed", "false")
    announcement = view.page.locator(".rv-announced")
    expect(announcement).to_contain_text("At position 10,000,000: pair 0 has made 1.59M turns")


def test_mode_change_is_one_history_step_and_preserves_the_key(paused_visit):
    view = paused_visit("/rotation?rotation.at=300,20")
    steps = view.page.evaluate("history.length")
    for name, hands in (("Query and key", (300, 20)), ("One position", (300, 20))):
        view.page.locator("main").get_by_role("radio", name=name).click()
        wait_for_position(view, *hands)
        view.settle()
    assert view.page.evaluate("history.length") == steps + 2

    view.open("/rotation?method=none")
    view.page.locator("main").get_by_role("radio", name="Query and key").click()
    wait_for_position(view, 8192, 8176)
    view.page.wait_for_url("**rotation.at=8192%2C8176")
    view.settle()
    view.page.go_back()
    view.page.wait_for_url("**/rotation?method=none")
    view.settle()
    assert view.errors == []


def test_playback_loops_at_the_target_length(visit):
    view = visit(motion=True).open("/rotation?trained=128&target=128&method=none&rotation.at=100,0")
    assert view.page.locator("[data-do=play]").inner_text() == "Play"
    view.page.locator("[data-do=play]").click()
    view.until("document.querySelector('[data-do=at]').value > 105")
    view.until("document.querySelector('[data-do=at]').value < 60")
    assert int(view.page.locator("[data-do=scrub]").get_attribute("max")) == 128


def test_dials_download_as_png_video_and_html(visit, chromium, tmp_path):
    view = visit(motion=True).open("/rotation")
    files = {kind: download_file(view, kind) for kind in ("png", "video", "html")}
    assert view.errors == []
    assert all(name.startswith("rope-rotation-clocks_llama-3.1-8b_d128_base500000") for name, _ in files.values())
    image = Image.open(io.BytesIO(files["png"][1]))
    image.load()  # which checks the sums of all chunks
    assert image.text == {"Software": "RoPE Viz"}
    name, film = files["video"]
    assert film.startswith(b"\x1aE\xdf\xa3") if name.endswith("webm") else film[4:8] == b"ftyp"
    assert len(film) > 20_000
    assert count_marked_pixels(chromium, film, name) > 100
    page = tmp_path / "clocks.html"
    page.write_bytes(files["html"][1])
    check_plays_offline(chromium, page)


def count_marked_pixels(chromium, film, name):
    """Count the pixels of the film's lower right corner that have not the background's colour."""
    page = chromium.new_page()
    address = f"data:video/{name.rpartition('.')[2]};base64,{base64.b64encode(film).decode()}"
    found = page.evaluate(MARKED, address)
    page.close()
    return found


MARKED = """async (address) => {
  const film = Object.assign(document.createElement("video"), { muted: true, src: address });
  await film.play();
  await new Promise((resolve) => film.requestVideoFrameCallback(resolve));
  const { videoWidth: w, videoHeight: h } = film, x = new OffscreenCanvas(120, 18).getContext("2d");
  x.drawImage(film, w - 130, h - 20, 120, 18, 0, 0, 120, 18);
  const { data } = x.getImageData(0, 0, 120, 18);
  let count = 0;
  for (let at = 0; at < data.length; at += 4) if (Math.abs(data[at] - data[0]) > 60) count++;
  return count;
}"""


def download_file(view, kind):
    """Download an item of the dials' menu; return its name and content."""
    with view.page.expect_download() as caught:
        pick(view.page.locator('[data-picture="rotation/turning"]'), "download", kind)
        if kind == "video":
            stop = view.page.get_by_role("button", name="Stop and save")
            expect(stop).to_be_visible()
            frames = int(view.page.evaluate(f"{STATE}.drawn"))
            view.until(f"Number({STATE}.drawn) > {frames + 40}")
            stop.click()
    return caught.value.suggested_filename, caught.value.path().read_bytes()


def check_plays_offline(chromium, path):
    page = chromium.new_context(offline=True).new_page()
    errors, requests = [], []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(path.as_uri())
    page.wait_for_selector(".rv-clocks[data-drawn]")
    first = page.locator("canvas").screenshot()
    moved = any(page.locator("canvas").screenshot() != first for _ in range(20))
    assert moved
    assert errors == []
    assert all(url.startswith(("file:", "data:", "blob:")) for url in requests)
    page.context.close()


def test_drawn_hand_has_the_exact_angle(paused_visit):
    """At position 1 the first hand is at one radian, counter-clockwise from the right."""
    view = paused_visit("/rotation?rotation.at=1,0&method=none")
    colour = "(d) => { const c = document.querySelector('.rv-clocks canvas'), k = c.width / c.clientWidth;"
    colour += " return [...c.getContext('2d').getImageData(d[0] * k, d[1] * k, 1, 1).data.slice(0, 3)]; }"
    dial = view.page.evaluate("document.querySelector('.rv-picture').__place.memory.clocks.place.dials[0]")
    across, up = 0.6 * dial["r"] * math.cos(1), 0.6 * dial["r"] * math.sin(1)
    on, off = [dial["x"] + across, dial["y"] - up], [dial["x"] + across, dial["y"] + up]
    inked, face = (np.array(view.page.evaluate(colour, point)) for point in (on, off))
    assert np.ptp(inked) > 60, "the hand has no colour"
    assert np.ptp(face) < 20, "the face is not grey"


def test_files_of_playing_hands_show_the_moment_of_the_click(visit):
    """The server draws them, and the page's address follows the hands only at rest."""
    view = visit(motion=True).open("/rotation")
    place = view.page.locator("[data-picture='rotation/turning']")
    view.until("Number(document.querySelector('.rv-clocks [data-do=at]').value) > 20")
    with view.page.expect_response(lambda answer: "/rotation/turning.svg?" in answer.url) as found:
        download(place, "svg")
    at = int(parse_qs(urlsplit(found.value.url).query)["rotation.at"][0].split(",")[0])
    assert found.value.ok
    assert 20 < at <= view.page.evaluate("document.querySelector('.rv-clocks').__clocks.m")
    customise(place)
    address = view.page.locator("#rv-export-address")
    expect(address).to_have_value(re.compile(r"rotation\.at="))
    shown = address.input_value()
    with view.page.expect_response(lambda answer: "/rotation/turning.pdf?" in answer.url) as found:
        view.page.locator(".rv-export [data-save=pdf]").click()
    assert parse_qs(urlsplit(found.value.url).query)["rotation.at"] == parse_qs(urlsplit(shown).query)["rotation.at"]
