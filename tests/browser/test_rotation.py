"""The clocks in a real browser: seen by their pixels, computed as the core computes them."""

import math

import mpmath
import numpy as np
import pytest
from playwright.sync_api import expect

from rope_viz.models.catalog import model_specs
from rope_viz.studies import scores
from rope_viz.ui.components.scripts import PREFIX, version
from tests.browser.figure_tools import pick

SPEC = model_specs("llama-3.1-8b")[""]
SCORE = "/rotation?rotation.show=score&rotation.at=1040,1024"
STATE = "document.querySelector('.rv-clocks').dataset"


def canvas(seen):
    return seen.page.locator(".rv-clocks canvas")


def picture(seen, left=0.0, right=1.0, top=0.0):
    """The pixels on the screen, of a part of the canvas."""
    box = canvas(seen).bounding_box()
    clip = {"x": box["x"] + left * box["width"], "y": box["y"] + top, "height": box["height"] - top}
    return seen.page.screenshot(clip=clip | {"width": (right - left) * box["width"]})


def press(seen, name):
    seen.page.locator(f".rv-clocks [data-do={name}]").click()


def module(seen, expression, *arguments):
    """The value of an expression over what dials.js exports, in the browser."""
    address = f"{PREFIX}/{version()}/dials.js"
    body = f"async (given) => {{ const dials = await import('{address}'); return {expression}; }}"
    return seen.page.evaluate(body, list(arguments))


def at_rest(seen, m, n=None):
    seen.until(f"{STATE}.m === '{m}'" + (f" && {STATE}.n === '{n}'" if n is not None else ""))
    return float(seen.page.evaluate(f"{STATE}.score"))


@pytest.fixture
def still(visit):
    """A visit that starts paused."""
    return lambda path, **options: visit(**options).open(path)


def test_script_angles_and_scores_are_exact_to_ten_million(still):
    seen = still("/rotation")
    inv_freq = SPEC.inv_freq(SPEC.target)
    rates = [float(f) / math.tau for f in inv_freq]
    for position in (1, 4095, 131_071, 9_999_999, 10_000_000):
        found = module(seen, "given[0].map((rate) => dials.computeTurn(given[1], rate))", rates, position)
        with mpmath.workdps(40):
            exact = [mpmath.mpf(float(f)) * position / (2 * mpmath.pi) for f in inv_freq]
            errors = [abs((mpmath.mpf(a) - b) - mpmath.nint(a - b)) for a, b in zip(found, exact, strict=True)]
        assert max(errors) < 1e-9

    exact = scores.mean_cosine(inv_freq, 1_000_001)
    for distance in (0, 1, 16, 4096, 131_072, 1_000_000):
        found = module(seen, "dials.computeScore(given[0], given[1])", distance, rates)
        assert found == pytest.approx(exact[distance], abs=1e-9)


def test_score_of_the_dials_matches_the_core_and_ignores_shifts(still):
    seen = still(SCORE)
    before = at_rest(seen, 1040, 1024)
    dials, bars = picture(seen, 0, 0.6, 40), picture(seen, 0.75, 1, 40)
    press(seen, "more")
    assert at_rest(seen, 1041, 1025) == before
    assert picture(seen, 0, 0.6, 40) != dials
    assert picture(seen, 0.75, 1, 40) == bars
    press(seen, "less")
    expected = scores.mean_cosine(SPEC.inv_freq(SPEC.target), 200)
    assert at_rest(seen, 1040, 1024) == pytest.approx(expected[16], abs=1e-12)
    press(seen, "m")
    press(seen, "more")
    assert at_rest(seen, 1041, 1024) == pytest.approx(expected[17], abs=1e-12)
    assert picture(seen, 0.75, 1, 40) != bars
    seen.settle()
    assert "rotation.at=1041%2C1024" in seen.page.url


def test_playback_animates_without_server_messages(visit):
    seen = visit(motion=True)
    received = []
    seen.page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: received.append(frame)))
    seen.open("/rotation")
    before, frames = len(received), int(seen.page.evaluate(f"{STATE}.drawn"))
    seen.until(f"Number({STATE}.drawn) > {frames + 30}")
    assert len(received) == before

    first = picture(seen, top=40)
    for _ in range(50):
        if picture(seen, top=40) != first:
            break
    else:
        pytest.fail("nothing moved")
    press(seen, "play")
    seen.settle()
    held = picture(seen)
    seen.page.wait_for_timeout(400)
    assert picture(seen) == held


def test_position_survives_a_knob_and_keys_control_the_dials(still):
    seen = still("/rotation?rotation.at=100,0")
    before = picture(seen, top=40)
    seen.slider("base").focus()
    seen.page.keyboard.press("ArrowRight")
    seen.settle()
    assert seen.page.locator("[data-do=at]").input_value() == "100"
    assert picture(seen, top=40) != before

    keys, play = seen.page.keyboard, seen.page.locator("[data-do=play]")
    canvas(seen).focus()
    keys.press("ArrowRight")
    at_rest(seen, 101)
    keys.press("Shift+ArrowLeft")
    at_rest(seen, 1)
    keys.press("Space")
    expect(play).to_have_text("Pause")
    keys.press("Space")
    expect(play).to_have_text("Play")
    keys.press("ArrowDown")
    keys.press("Enter")
    seen.page.wait_for_url("**pin=1*")


def test_pin_enters_the_link_and_shows_on_frequencies(still):
    seen = still("/rotation")
    box = canvas(seen).bounding_box()
    seen.page.mouse.click(box["x"] + 40, box["y"] + 70)
    seen.page.wait_for_url("**pin=0*")
    seen.page.reload()
    seen.settle()
    assert seen.page.locator(".rv-now").inner_text().startswith("pair 0, kept")
    seen.go("Frequencies")
    shown = seen.page.evaluate("document.querySelector('.rv-plot').data.map((trace) => trace.name)")
    assert "pinned pair 0" in shown


def test_a_tap_pins_on_a_narrow_screen(still):
    seen = still("/rotation", width=390, height=844, has_touch=True)
    box = canvas(seen).bounding_box()
    seen.page.touchscreen.tap(box["x"] + 26, box["y"] + 62)
    seen.page.wait_for_url("**pin=0*")
    assert seen.errors == []


def test_back_returns_to_the_position_before(still):
    seen = still("/rotation?rotation.at=100,0")
    press(seen, "more")
    at_rest(seen, 101)
    seen.page.wait_for_url("**101*")
    seen.page.wait_for_timeout(2100)  # an answer to our own move is told from Back by its time
    seen.page.go_back()
    at_rest(seen, 100)


def test_reduced_motion_starts_paused_at_any_typed_position(still):
    seen = still("/rotation")
    expect(seen.page.locator("[data-do=play]")).to_have_text("Play")
    held = picture(seen)
    seen.page.wait_for_timeout(300)
    assert picture(seen) == held

    field = seen.page.locator("[data-do=at]")
    field.fill("10000000")
    field.press("Enter")
    at_rest(seen, 10_000_000)
    expect(seen.page.locator("[data-do=loop]")).to_have_attribute("aria-pressed", "false")
    said = seen.page.locator(".rv-announced")
    expect(said).to_contain_text("At position 10,000,000: pair 0 has made 1.59M turns")


def test_mode_change_is_one_history_step_and_preserves_the_key(still):
    seen = still("/rotation?rotation.at=300,20")
    steps = seen.page.evaluate("history.length")
    for name, hands in (("Query and key", (300, 20)), ("One position", (300, 20))):
        seen.page.locator("main").get_by_role("radio", name=name).click()
        at_rest(seen, *hands)
        seen.settle()
    assert seen.page.evaluate("history.length") == steps + 2

    seen.open("/rotation?method=none")
    seen.page.locator("main").get_by_role("radio", name="Query and key").click()
    at_rest(seen, 8192, 8176)
    seen.page.wait_for_url("**rotation.at=8192%2C8176")
    seen.settle()
    seen.page.go_back()
    seen.page.wait_for_url("**/rotation?method=none")
    seen.settle()
    assert seen.errors == []


def test_playback_loops_at_the_target_length(visit):
    seen = visit(motion=True).open("/rotation?trained=64&target=128&method=none&rotation.at=100,0")
    assert seen.page.locator("[data-do=play]").inner_text() == "Play"
    seen.page.locator("[data-do=play]").click()
    seen.until("document.querySelector('[data-do=at]').value > 105")
    seen.until("document.querySelector('[data-do=at]').value < 60")
    assert int(seen.page.locator("[data-do=scrub]").get_attribute("max")) == 128


# In every frame: the position that the heading on the canvas shows, and the one in the number field.
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


def test_heading_and_number_field_agree_while_playing(visit):
    seen = visit(motion=True).open("/rotation")
    pairs = seen.page.evaluate(POSITIONS)
    assert len({heading for heading, _ in pairs}) > 1
    assert [field for _, field in pairs] == [heading for heading, _ in pairs]


def test_each_download_arrives(visit, chromium, tmp_path):
    seen = visit(motion=True).open("/rotation")
    files = {kind: downloaded(seen, kind) for kind in ("png", "video", "html")}
    assert seen.errors == []
    assert all(name.startswith("rope-rotation-clocks_llama-3.1-8b_d128_base500000") for name, _ in files.values())
    assert files["png"][1].startswith(b"\x89PNG\r\n\x1a\n")
    name, film = files["video"]
    assert film.startswith(b"\x1aE\xdf\xa3") if name.endswith("webm") else film[4:8] == b"ftyp"
    assert len(film) > 20_000
    page = tmp_path / "clocks.html"
    page.write_bytes(files["html"][1])
    plays_alone(chromium, page)


def downloaded(seen, kind):
    """Name and content of the file that an item of the dials' menu gives."""
    with seen.page.expect_download() as caught:
        pick(seen.page.locator('[data-picture="rotation/turning"]'), "download", kind)
        if kind == "video":
            stop = seen.page.get_by_role("button", name="Stop and save")
            expect(stop).to_be_visible()
            frames = int(seen.page.evaluate(f"{STATE}.drawn"))
            seen.until(f"Number({STATE}.drawn) > {frames + 40}")
            stop.click()
    return caught.value.suggested_filename, caught.value.path().read_bytes()


def plays_alone(chromium, path):
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


def test_drawn_hand_has_the_exact_angle(still):
    """At position 1 the first pair's hand stands at one radian, counted from the right against the clock."""
    seen = still("/rotation?rotation.at=1,0&method=none")
    colour = "(d) => { const c = document.querySelector('.rv-clocks canvas'), k = c.width / c.clientWidth;"
    colour += " return [...c.getContext('2d').getImageData(d[0] * k, d[1] * k, 1, 1).data.slice(0, 3)]; }"
    dial = seen.page.evaluate("document.querySelector('.rv-picture').__place.memory.clocks.place.dials[0]")
    across, up = 0.6 * dial["r"] * math.cos(1), 0.6 * dial["r"] * math.sin(1)
    on, off = [dial["x"] + across, dial["y"] - up], [dial["x"] + across, dial["y"] + up]
    inked, face = (np.array(seen.page.evaluate(colour, point)) for point in (on, off))
    assert np.ptp(inked) > 60, "the hand is coloured"
    assert np.ptp(face) < 20, "the face is grey"
