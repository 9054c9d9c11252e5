"""Home: a word moves one hand, the ruler both; by mouse, touch and keys, seen in the numbers and in the pixels."""

import json
import math

import numpy as np
import pytest
from playwright.sync_api import expect

from rope_viz.models.catalog import model_specs
from rope_viz.pictures.doors import TITLES
from rope_viz.studies.scores import mean_cosine
from tests.configs import QWEN3_8B

SPEC = model_specs("llama-3.1-8b")[""]
RATES = SPEC.inv_freq(SPEC.target)
STEP = math.degrees(RATES[8])
PLACE = "document.querySelector('.rv-hands')"
SIZES = {"desk": (1440, 900), "laptop": (1280, 720), "phone": (390, 844)}

# The angle of both hands, in degrees, from the middle of their pixels between half and nine tenths of the circle.
PIXELS = """() => {
  const root = document.querySelector(".rv-hands"), s = root.__hands, { dpr } = s.place;
  const [cx, cy, r] = s.clocks[0][0].map((value) => value * dpr), { width, height } = s.canvas;
  const { data } = s.ctx.getImageData(0, 0, width, height), sums = { query: [0, 0], key: [0, 0] };
  const colour = (name) => parseInt(root.style.getPropertyValue(`--${name}`).slice(1), 16);
  const colours = Object.keys(sums).map((name) => [name, colour(name)]);
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) {
    const away = Math.hypot(x + 0.5 - cx, y + 0.5 - cy), at = 4 * (y * width + x);
    if (away < 0.5 * r || away > 0.9 * r) continue;
    for (const [name, colour] of colours) {
      if ([16, 8, 0].some((shift, k) => Math.abs(data[at + k] - ((colour >> shift) & 255)) > 8)) continue;
      sums[name][0] += x + 0.5 - cx;
      sums[name][1] += cy - y - 0.5;
    }
  }
  return Object.fromEntries(Object.entries(sums).map(([name, [x, y]]) => [name, (Math.atan2(y, x) * 180) / Math.PI]));
}"""


def numbers(seen):
    """Return what the picture says of itself."""
    seen.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    found = seen.page.evaluate(f"({{ ...{PLACE}.dataset }})")
    return {name: float(found[name]) for name in ("query", "key", "angle", "score", "offset", "pairs")}


def same_angle(one, other, within=0.5):
    return abs((one - other + 180) % 360 - 180) < within


def assert_consistent(seen, distance, offset=0.0, key=1.0):
    """Hands, angle, score and text are those of the model's pair 8, and the pixels show the same."""
    found, drawn = numbers(seen), seen.page.evaluate(PIXELS)
    assert found["offset"] == pytest.approx(offset)
    for name, position in (("key", offset + key), ("query", offset + key + distance)):
        assert same_angle(found[name], position * STEP, 0.02)
        assert same_angle(drawn[name], position * STEP), f"the hand of the {name} is drawn elsewhere"
    assert found["angle"] == pytest.approx(distance * STEP, abs=0.02)
    assert found["score"] == pytest.approx(math.cos(distance * RATES[8]), abs=1e-4)
    score = f"{math.cos(distance * RATES[8]):.2f}".replace("-", "−")
    expect(seen.page.locator(".rv-now")).to_contain_text(f"{distance * STEP:.1f}°, score {score}.")
    return found


def slider(seen, name):
    return seen.page.locator(f".rv-hands [data-do={name}]")


def drag(seen, name, cells, *, end=True):
    """Drag a word or the ruler so many positions with the mouse, in small moves."""
    box = slider(seen, name).bounding_box()
    cell = seen.page.evaluate(f"{PLACE}.__hands.cell")
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    seen.page.mouse.move(x, y)
    seen.page.mouse.down()
    seen.page.mouse.move(x + cells * cell, y, steps=8)
    if end:
        seen.page.mouse.up()


@pytest.mark.parametrize("width", [1440, 390])
def test_dragged_word_moves_one_hand_angle_and_score(visit, width):
    seen = visit(width=width, height=844).open("/")
    assert_consistent(seen, 6)
    drag(seen, "query", -1.6, end=False)
    assert_consistent(seen, 4.4)
    expect(seen.page.locator(".rv-apart")).to_have_text("4.4 tokens apart")
    seen.page.mouse.up()
    before = assert_consistent(seen, 4)
    drag(seen, "key", 2)
    after = assert_consistent(seen, 2, key=3)
    assert after["query"] == before["query"], "the other hand stays"
    drag(seen, "key", 9)
    assert_consistent(seen, 1, key=4)  # a key does not pass its query
    drag(seen, "query", 20)
    last = 11 if width == 1440 else 8
    assert_consistent(seen, last - 4, key=4)
    assert seen.errors == []


@pytest.mark.parametrize("dark", [False, True])
def test_dragged_ruler_turns_both_hands_and_leaves_the_angle(visit, dark):
    seen = visit(dark=dark).open("/")
    before = assert_consistent(seen, 6)
    drag(seen, "ruler", -2.4, end=False)
    half = assert_consistent(seen, 6, offset=2.4)
    seen.page.mouse.up()
    drag(seen, "ruler", -4)
    after = assert_consistent(seen, 6, offset=6)
    for name in ("query", "key"):
        assert not same_angle(before[name], half[name], 20)
        assert not same_angle(half[name], after[name], 20)
    assert before["angle"] == half["angle"] == after["angle"]
    assert before["score"] == half["score"] == after["score"]
    drag(seen, "ruler", 9)
    assert_consistent(seen, 6)
    assert seen.errors == []


def test_touch_drags_a_word_and_the_ruler(visit):
    seen = visit(width=390, height=844, has_touch=True).open("/")
    session = seen.page.context.new_cdp_session(seen.page)
    cell = seen.page.evaluate(f"{PLACE}.__hands.cell")
    for name, cells in (("query", -2), ("ruler", -3)):
        box = slider(seen, name).bounding_box()
        point = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
        session.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [point]})
        for k in range(1, 9):
            moved = point | {"x": point["x"] + k * cells * cell / 8}
            session.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [moved]})
        session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    assert_consistent(seen, 4, offset=3)
    session.detach()


def test_keys_move_words_and_ruler_and_say_where_they_are(visit):
    seen = visit().open("/")
    press = seen.page.keyboard.press
    query, key, ruler = (slider(seen, name) for name in ("query", "key", "ruler"))
    query.focus()
    press("ArrowLeft")
    assert_consistent(seen, 5)
    expect(query).to_have_role("slider")
    expect(query).to_have_attribute("aria-valuetext", "position 6, 5 tokens apart: angle 55.6°, score 0.57")
    key.focus()
    press("ArrowUp")
    assert_consistent(seen, 4, key=2)
    expect(key).to_have_attribute("aria-valuenow", "2")
    ruler.focus()
    for _ in range(3):
        press("ArrowRight")
    press("PageUp")
    assert_consistent(seen, 4, offset=13, key=2)
    told = "positions 13 to 24: both hands turned, angle 44.4°, score 0.71"
    expect(ruler).to_have_attribute("aria-valuetext", told)
    expect(key).to_have_attribute("aria-valuenow", "15")
    press("Home")
    assert_consistent(seen, 4, key=2)
    query.focus()
    press("End")
    assert_consistent(seen, 9, key=2)
    assert seen.errors == []


def test_angle_and_score_of_several_pairs_are_those_of_the_model(visit):
    seen = visit().open("/")
    for name, rates in (("few", RATES[[4, 8, 12, 16]]), ("all", RATES)):
        slider(seen, name).click()
        found = numbers(seen)
        assert found["pairs"] == len(rates)
        assert found["score"] == pytest.approx(mean_cosine(rates, 7)[6], abs=1e-4)
        expect(seen.page.locator(".rv-now")).to_contain_text(f"score {found['score']:.2f}, the mean of their cosines")


def test_it_moves_slowly_by_itself_until_the_user_takes_over(visit):
    seen = visit(motion=True).open("/")
    measure = f"[performance.now(), Number({PLACE}.dataset.offset), {PLACE}.dataset.angle]"
    begun, first, angle = seen.page.evaluate(measure)
    seen.until(f"Number({PLACE}.dataset.offset) > {first} + 3")
    ended, last, still = seen.page.evaluate(measure)
    assert 0.5 < 1000 * (last - first) / (ended - begun) < 4, "positions per second; a busy machine has fewer"
    assert angle == still
    slider(seen, "query").focus()
    seen.page.keyboard.press("ArrowLeft")
    offset = numbers(seen)["offset"]
    assert offset == int(offset)
    assert_consistent(seen, 5, offset=offset)
    seen.page.wait_for_timeout(500)
    assert numbers(seen)["offset"] == offset
    expect(slider(seen, "play")).to_have_text("Play")


def test_the_introduction_splits_into_four_and_all_and_ends(visit):
    seen = visit(motion=True).open("/")
    for seconds, pairs in ((9.9, 4), (5.9, 64), (7.9, 1)):
        assert seen.page.evaluate(f"{PLACE}.dataset.playing") == "yes"
        seen.page.evaluate(f"{PLACE}.__hands.intro = {seconds}")
        seen.until(f"{PLACE}.dataset.pairs === '{pairs}'")
    seen.until(f"{PLACE}.dataset.playing === 'no'")
    assert seen.errors == []


def test_the_introduction_can_be_paused_and_skipped(visit):
    seen = visit(motion=True).open("/")
    slider(seen, "play").click()
    seen.until(f"{PLACE}.dataset.playing === 'no'")
    offset = numbers(seen)["offset"]
    seen.page.wait_for_timeout(400)
    assert numbers(seen)["offset"] == offset
    slider(seen, "play").click()
    seen.until(f"Number({PLACE}.dataset.offset) > {offset}")
    slider(seen, "all").click()
    seen.until(f"{PLACE}.dataset.pairs === '64'")
    assert seen.page.evaluate(f"{PLACE}.__hands.intro") is None


def test_reduced_motion_stops_it(visit):
    seen = visit(motion=True).open("/")
    seen.until(f"Number({PLACE}.dataset.offset) > 0.5")
    seen.page.emulate_media(reduced_motion="reduce")
    seen.until(f"{PLACE}.dataset.playing === 'no'")
    seen = visit().open("/")
    drawn = seen.page.evaluate(f"{PLACE}.dataset.drawn")
    seen.page.wait_for_timeout(700)
    assert seen.page.evaluate(f"{PLACE}.dataset.drawn") == drawn
    assert numbers(seen)["offset"] == 0
    slider(seen, "few").click()
    seen.page.wait_for_timeout(200)
    assert int(seen.page.evaluate(f"{PLACE}.dataset.drawn")) <= int(drawn) + 2, "a new stage appears at once"


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("stage", ["one", "few", "all"])
def test_home_fits_one_screen(visit, size, stage):
    width, height = SIZES[size]
    seen = visit(width=width, height=height, has_touch=size == "phone").open("/")
    slider(seen, stage).click()
    numbers(seen)
    boxes = [
        seen.page.locator(name).bounding_box() for name in ("h1", ".rv-circle", ".rv-line", ".rv-bar", ".st-key-doors")
    ]
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= width for box in boxes)
    assert max(box["y"] + box["height"] for box in boxes) <= height
    for i, one in enumerate(boxes):
        assert all(are_apart(one, other) for other in boxes[i + 1 :]), boxes


def are_apart(one, other):
    """Whether two boxes do not overlap."""
    return any(
        first[at] + first[size] <= second[at] + 0.5
        for first, second in ((one, other), (other, one))
        for at, size in (("x", "width"), ("y", "height"))
    )


@pytest.mark.parametrize("width", [1440, 390])
def test_dropped_config_opens_my_model(visit, width):
    seen = visit(width=width, height=844).open("/")
    file = {"name": "config.json", "mimeType": "application/json", "buffer": json.dumps(QWEN3_8B).encode()}
    seen.page.locator("main input[type=file]").set_input_files(file)
    seen.page.wait_for_url("**/model?**model=custom**")
    seen.settle()
    expect(seen.page.locator("main h1")).to_have_text("Qwen3 8B")
    seen.page.go_back()
    expect(seen.page.locator("h1")).to_contain_text("RoPE rotates")
    assert seen.errors == []


def test_unreadable_config_is_explained_on_my_model(visit):
    seen = visit().open("/")
    file = {"name": "config.json", "mimeType": "application/json", "buffer": b'{"head_dim": 128,,}'}
    seen.page.locator("main input[type=file]").set_input_files(file)
    seen.page.wait_for_url("**/model**")
    expect(seen.page.locator("main h1")).to_have_text("This config cannot be read")


def test_the_map_leads_to_every_page(visit):
    seen = visit().open("/?base=77000")
    links = seen.page.get_by_role("navigation", name="All pages").get_by_role("link").all_inner_texts()
    assert sorted(links) == sorted(title for name, title in TITLES.items() if name != "home")
    doors = seen.page.locator(".st-key-doors a").evaluate_all("(links) => links.map(({ pathname }) => pathname)")
    assert doors == ["/learn", "/model", "/rotation"]


def test_hands_keep_their_place_while_another_page_is_open(visit):
    seen = visit().open("/")
    drag(seen, "query", -2)
    drag(seen, "ruler", -3)
    seen.go("Scaling")
    seen.go("Home")
    assert_consistent(seen, 4, offset=3)
    np.testing.assert_allclose(numbers(seen)["score"], math.cos(4 * RATES[8]), atol=1e-4)
