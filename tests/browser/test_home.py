"""Home: a dragged word moves one hand, the ruler both; by mouse, touch and keys, in numbers and pixels."""

import json
import math

import numpy as np
import pytest
from playwright.sync_api import expect

from rope_viz.models.catalog import model_specs
from rope_viz.pages.registry import titles
from rope_viz.studies.scores import mean_cosine
from tests.configs import QWEN3_8B

SPEC = model_specs("llama-3.1-8b")[""]
FREQUENCIES = SPEC.inv_freq(SPEC.target)
STEP = math.degrees(FREQUENCIES[8])
HANDS = "document.querySelector('.rv-hands')"
SIZES = {"desk": (1440, 900), "laptop": (1280, 720), "phone": (390, 844)}

# The angle of both hands in degrees, from the mean of their pixels between 0.5 and 0.9 of the radius.
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


def read_numbers(view):
    """Return the numbers in the picture's data attributes, after the next frame."""
    view.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    found = view.page.evaluate(f"({{ ...{HANDS}.dataset }})")
    return {name: float(found[name]) for name in ("query", "key", "angle", "score", "offset", "pairs")}


def is_same_angle(one, other, within=0.5):
    return abs((one - other + 180) % 360 - 180) < within


def assert_consistent(view, distance, offset=0.0, key=1.0):
    """Check hands, angle, score, text and pixels against pair 8 of the model."""
    found, drawn = read_numbers(view), view.page.evaluate(PIXELS)
    assert found["offset"] == pytest.approx(offset)
    for name, position in (("key", offset + key), ("query", offset + key + distance)):
        assert is_same_angle(found[name], position * STEP, 0.02)
        assert is_same_angle(drawn[name], position * STEP), f"the hand of the {name} is drawn elsewhere"
    assert found["angle"] == pytest.approx(distance * STEP, abs=0.02)
    assert found["score"] == pytest.approx(math.cos(distance * FREQUENCIES[8]), abs=1e-4)
    score = f"{math.cos(distance * FREQUENCIES[8]):.2f}".replace("-", "−")
    expect(view.page.locator(".rv-now")).to_contain_text(f"{distance * STEP:.1f}°, score {score}.")
    return found


def find_slider(view, name):
    return view.page.locator(f".rv-hands [data-do={name}]")


def drag(view, name, cells, *, end=True):
    """Drag a word or the ruler by so many positions with the mouse."""
    box = find_slider(view, name).bounding_box()
    cell = view.page.evaluate(f"{HANDS}.__hands.cell")
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    view.page.mouse.move(x, y)
    view.page.mouse.down()
    view.page.mouse.move(x + cells * cell, y, steps=8)
    if end:
        view.page.mouse.up()


@pytest.mark.parametrize("width", [1440, 390])
def test_dragged_word_moves_one_hand_angle_and_score(visit, width):
    view = visit(width=width, height=844).open("/")
    assert_consistent(view, 6)
    drag(view, "query", -1.6, end=False)
    assert_consistent(view, 4.4)
    expect(view.page.locator(".rv-apart")).to_have_text("4.4 tokens apart")
    view.page.mouse.up()
    before = assert_consistent(view, 4)
    drag(view, "key", 2)
    after = assert_consistent(view, 2, key=3)
    assert after["query"] == before["query"], "the other hand stays"
    drag(view, "key", 9)
    assert_consistent(view, 1, key=4)  # a key does not pass its query
    drag(view, "query", 20)
    last = 11 if width == 1440 else 8
    assert_consistent(view, last - 4, key=4)
    assert view.errors == []


@pytest.mark.parametrize("dark", [False, True])
def test_dragged_ruler_turns_both_hands_and_leaves_the_angle(visit, dark):
    view = visit(dark=dark).open("/")
    before = assert_consistent(view, 6)
    drag(view, "ruler", -2.4, end=False)
    half = assert_consistent(view, 6, offset=2.4)
    view.page.mouse.up()
    drag(view, "ruler", -4)
    after = assert_consistent(view, 6, offset=6)
    for name in ("query", "key"):
        assert not is_same_angle(before[name], half[name], 20)
        assert not is_same_angle(half[name], after[name], 20)
    assert before["angle"] == half["angle"] == after["angle"]
    assert before["score"] == half["score"] == after["score"]
    drag(view, "ruler", 9)
    assert_consistent(view, 6)
    assert view.errors == []


def test_touch_drags_a_word_and_the_ruler(visit):
    view = visit(width=390, height=844, has_touch=True).open("/")
    session = view.page.context.new_cdp_session(view.page)
    cell = view.page.evaluate(f"{HANDS}.__hands.cell")
    for name, cells in (("query", -2), ("ruler", -3)):
        box = find_slider(view, name).bounding_box()
        point = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
        session.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [point]})
        for k in range(1, 9):
            moved = point | {"x": point["x"] + k * cells * cell / 8}
            session.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [moved]})
        session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    assert_consistent(view, 4, offset=3)
    session.detach()


def test_keys_move_words_and_ruler_and_announce_positions(visit):
    view = visit().open("/")
    press = view.page.keyboard.press
    query, key, ruler = (find_slider(view, name) for name in ("query", "key", "ruler"))
    query.focus()
    press("ArrowLeft")
    assert_consistent(view, 5)
    expect(query).to_have_role("slider")
    expect(query).to_have_attribute("aria-valuetext", "position 6, 5 tokens apart: angle 55.6°, score 0.57")
    key.focus()
    press("ArrowUp")
    assert_consistent(view, 4, key=2)
    expect(key).to_have_attribute("aria-valuenow", "2")
    ruler.focus()
    for _ in range(3):
        press("ArrowRight")
    press("PageUp")
    assert_consistent(view, 4, offset=13, key=2)
    description = "positions 13 to 24: both hands turned, angle 44.4°, score 0.71"
    expect(ruler).to_have_attribute("aria-valuetext", description)
    expect(key).to_have_attribute("aria-valuenow", "15")
    press("Home")
    assert_consistent(view, 4, key=2)
    query.focus()
    press("End")
    assert_consistent(view, 9, key=2)
    assert view.errors == []


def test_angle_and_score_of_several_pairs_are_those_of_the_model(visit):
    view = visit().open("/")
    for name, frequencies in (("few", FREQUENCIES[[4, 8, 12, 16]]), ("all", FREQUENCIES)):
        find_slider(view, name).click()
        found = read_numbers(view)
        assert found["pairs"] == len(frequencies)
        assert found["score"] == pytest.approx(mean_cosine(frequencies, 7)[6], abs=1e-4)
        expect(view.page.locator(".rv-now")).to_contain_text(f"score {found['score']:.2f}, the mean of their cosines")


def test_animation_is_slow_and_ends_when_the_user_acts(visit):
    view = visit(motion=True).open("/")
    measure = f"[performance.now(), Number({HANDS}.dataset.offset), {HANDS}.dataset.angle]"
    start_time, first, angle = view.page.evaluate(measure)
    view.until(f"Number({HANDS}.dataset.offset) > {first} + 3")
    end_time, last, last_angle = view.page.evaluate(measure)
    assert 0.5 < 1000 * (last - first) / (end_time - start_time) < 4, "positions per second; fewer on a busy machine"
    assert angle == last_angle
    find_slider(view, "query").focus()
    view.page.keyboard.press("ArrowLeft")
    offset = read_numbers(view)["offset"]
    assert offset == int(offset)
    assert_consistent(view, 5, offset=offset)
    view.wait_frames()
    assert read_numbers(view)["offset"] == offset
    expect(find_slider(view, "play")).to_have_text("Play")


def test_the_introduction_splits_into_four_and_all_and_ends(visit):
    view = visit(motion=True).open("/")
    for seconds, pairs in ((9.9, 4), (5.9, 64), (7.9, 1)):
        assert view.page.evaluate(f"{HANDS}.dataset.playing") == "yes"
        view.page.evaluate(f"{HANDS}.__hands.intro = {seconds}")
        view.until(f"{HANDS}.dataset.pairs === '{pairs}'")
    view.until(f"{HANDS}.dataset.playing === 'no'")
    assert view.errors == []


def test_the_introduction_can_be_paused_and_skipped(visit):
    view = visit(motion=True).open("/")
    find_slider(view, "play").click()
    view.until(f"{HANDS}.dataset.playing === 'no'")
    offset = read_numbers(view)["offset"]
    view.wait_frames()
    assert read_numbers(view)["offset"] == offset
    find_slider(view, "play").click()
    view.until(f"Number({HANDS}.dataset.offset) > {offset}")
    find_slider(view, "all").click()
    view.until(f"{HANDS}.dataset.pairs === '64'")
    assert view.page.evaluate(f"{HANDS}.__hands.intro") is None


def test_reduced_motion_stops_the_animation(visit):
    view = visit(motion=True).open("/")
    view.until(f"Number({HANDS}.dataset.offset) > 0.5")
    view.page.emulate_media(reduced_motion="reduce")
    view.until(f"{HANDS}.dataset.playing === 'no'")
    view = visit().open("/")
    drawn = view.page.evaluate(f"{HANDS}.dataset.drawn")
    view.wait_frames(40)
    assert view.page.evaluate(f"{HANDS}.dataset.drawn") == drawn
    assert read_numbers(view)["offset"] == 0
    find_slider(view, "few").click()
    view.wait_frames(10)
    assert int(view.page.evaluate(f"{HANDS}.dataset.drawn")) <= int(drawn) + 2, "a new stage appears at once"


@pytest.mark.parametrize("size", SIZES)
def test_home_fits_one_screen(visit, size):
    width, height = SIZES[size]
    view = visit(width=width, height=height, has_touch=size == "phone").open("/")
    for stage in ("one", "few", "all"):
        find_slider(view, stage).click()
        read_numbers(view)
        check_boxes(view, width, height)


def check_boxes(view, width, height):
    """Check that the parts of Home are inside the window and do not overlap."""
    boxes = [
        view.page.locator(name).bounding_box() for name in ("h1", ".rv-circle", ".rv-line", ".rv-bar", ".st-key-doors")
    ]
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= width for box in boxes)
    assert max(box["y"] + box["height"] for box in boxes) <= height
    for i, one in enumerate(boxes):
        assert all(do_not_overlap(one, other) for other in boxes[i + 1 :]), boxes


def do_not_overlap(one, other):
    """Return True if two boxes do not overlap."""
    return any(
        first[at] + first[size] <= second[at] + 0.5
        for first, second in ((one, other), (other, one))
        for at, size in (("x", "width"), ("y", "height"))
    )


@pytest.mark.parametrize("width", [1440, 390])
def test_dropped_config_opens_my_model(visit, width):
    view = visit(width=width, height=844).open("/")
    file = {"name": "config.json", "mimeType": "application/json", "buffer": json.dumps(QWEN3_8B).encode()}
    view.page.locator("main input[type=file]").set_input_files(file)
    view.page.wait_for_url("**/model?**model=custom**")
    view.settle()
    expect(view.page.locator("main h1")).to_have_text("Qwen3 8B")
    view.page.go_back()
    expect(view.page.locator("h1")).to_contain_text("RoPE rotates")
    assert view.errors == []


def test_unreadable_config_is_explained_on_my_model(visit):
    view = visit().open("/")
    file = {"name": "config.json", "mimeType": "application/json", "buffer": b'{"head_dim": 128,,}'}
    view.page.locator("main input[type=file]").set_input_files(file)
    view.page.wait_for_url("**/model**")
    expect(view.page.locator("main h1")).to_have_text("This config cannot be read")


def test_map_on_home_links_to_every_page(visit):
    view = visit().open("/?base=77000")
    links = view.page.get_by_role("navigation", name="All pages").get_by_role("link").all_inner_texts()
    assert sorted(links) == sorted(title for name, title in titles().items() if name != "home")
    doors = view.page.locator(".st-key-doors a").evaluate_all("(links) => links.map(({ pathname }) => pathname)")
    assert doors == ["/learn", "/model", "/gallery"]


def test_hands_stay_after_a_visit_to_another_page(visit):
    view = visit().open("/")
    drag(view, "query", -2)
    drag(view, "ruler", -3)
    view.go("Scaling")
    view.go("Home")
    assert_consistent(view, 4, offset=3)
    np.testing.assert_allclose(read_numbers(view)["score"], math.cos(4 * FREQUENCIES[8]), atol=1e-4)
