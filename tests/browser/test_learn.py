"""Learn: every scene is completed by mouse, by touch and by keys; text and picture say the same, and are right."""

import math
import time
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pytest
from playwright.sync_api import expect

from rope_viz.figures import learn
from rope_viz.pictures.story_page import story_page
from tests.browser.test_every_page import is_clean, violations

STORY = learn.message()
TITLES = [scene["texts"]["title"] for scene in STORY["scenes"]]
LLAMA, SMOL = (base ** (-np.arange(pairs) / pairs) for base, pairs in ((500_000.0, 64), (100_000.0, 32)))
STEP = math.degrees(LLAMA[8])
ROOT = "document.querySelector('.rv-learn')"

# Scene: the slider of its task, a value that completes it, and keys that lead there.
TASKS = {
    1: ("asks", 2, ["Home", "ArrowRight", "ArrowRight"]),
    2: ("at", 6, ["Home", "PageUp", "PageUp"]),
    3: ("offset", 10, ["PageUp"]),
    4: ("b", 16, ["ArrowRight"] * 4),
    5: ("base", 10_000, ["Home"]),
    6: ("at", 13_000, ["End"]),
}
# Where the value of a slider is on the screen: x and y of its thumb, and x of the value.
PLACE = f"""([name, value]) => {{
  const {{ thumbs, states, at }} = {ROOT}.__learn, {{ row }} = thumbs[name];
  const thumb = document.querySelector(`.rv-thumb[data-do=${{name}}]`), tall = thumb.getBoundingClientRect();
  const {{ left, right, width }} = thumb.parentElement.getBoundingClientRect(), room = width - 52;
  const {{ log }} = Math, y = tall.top + tall.height / 2;
  if (row.ruler) return [right - 30, y, right - 30 - (value * room) / row.cells];
  const place = (to) => left + 26 + room * (row.log ? log(to / row.low) / log(row.high / row.low)
    : (to - row.low) / (row.high - row.low));
  return [place(states[at - 1].v[name]), y, place(value)];
}}"""


def scene_shown(seen, number):
    expect(seen.page.locator(".rv-learn h2")).to_have_text(TITLES[number - 1])
    seen.until(f"{ROOT}.dataset.scene === '{number}' && {ROOT}.dataset.drawn")


def facts(seen):
    """Return what the picture says of itself."""
    seen.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return seen.page.evaluate(f"({{ ...{ROOT}.dataset }})")


class Mouse:
    width = 1440

    def __init__(self, seen):
        self.page = seen.page

    def press(self, found):
        found.click()

    def slide(self, name, value, keys):
        x, y, to = self.page.evaluate(PLACE, [name, value])
        self.page.mouse.move(x, y)
        self.page.mouse.down()
        self.page.mouse.move((x + to) / 2, y, steps=4)
        self.page.mouse.move(to, y, steps=4)
        self.page.mouse.up()


class Keys(Mouse):
    def press(self, found):
        found.focus()
        self.page.keyboard.press("Enter")

    def slide(self, name, value, keys):
        self.page.locator(f".rv-learn [role=slider][data-do={name}]").focus()
        for key in keys:
            self.page.keyboard.press(key)


class Touch(Mouse):
    width = 390

    def press(self, found):
        """Tap until a click comes of it: after a drag, or as a long press on a busy machine, Chromium makes none."""
        node = found.element_handle()
        node.evaluate("(node) => node.addEventListener('click', () => (node.clicked = true), { capture: true })")
        for _ in range(20):
            node.tap()
            end = time.monotonic() + 2
            while time.monotonic() < end:
                if node.evaluate("(node) => Boolean(node.clicked)"):
                    return
                self.page.wait_for_timeout(50)
        raise AssertionError("no tap made a click")

    def slide(self, name, value, keys):
        x, y, to = self.page.evaluate(PLACE, [name, value])
        session = self.page.context.new_cdp_session(self.page)
        session.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
        for share in np.linspace(0.125, 1, 8):
            point = {"x": x + share * (to - x), "y": y}
            session.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [point]})
        session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        session.detach()


def complete(seen, hands, number):
    """Predict and do the task of the open scene; the segment above then says that it is complete."""
    story = seen.page.locator(".rv-learn")
    scene = STORY["scenes"][number - 1]
    wrong = (scene["texts"]["right"] + 1) % 3 if number == 2 else scene["texts"]["right"]
    hands.press(story.locator(f"[data-answer='{wrong}']"))
    expect(story.locator(".rv-why").first).to_have_text(scene["texts"]["why"])
    if number in TASKS:
        hands.slide(*TASKS[number])
    elif number == 7:
        for method in ("linear", "ntk", "yarn"):
            hands.press(story.locator(f"[data-do=method][value={method}]"))
    else:
        for at, question in enumerate(scene["numbers"]["quiz"], start=1):
            expect(story.locator(".rv-quiz")).to_contain_text(question["question"])
            hands.press(story.locator(f"[data-quiz='{question['right']}']"))
            expect(story.locator(".rv-quiz .rv-why")).to_have_text(question["why"])
            if at < 5:
                hands.press(story.locator("[data-do=more]"))
        expect(story.locator(".rv-quiz")).to_contain_text("5 of 5 right.")
    seen.until(f"{ROOT}.dataset.done === 'true'")
    expect(story.locator(f"[data-step='{number}']")).to_have_class("rv-over")


def complete_all(seen, hands):
    for number in range(1, 9):
        scene_shown(seen, number)
        complete(seen, hands, number)
        if number < 8:
            hands.press(seen.page.locator(".rv-learn [data-do=next]"))


@pytest.mark.parametrize("way", [Mouse, Touch, Keys])
def test_every_scene_is_completed(visit, way):
    seen = visit(width=way.width, height=844, has_touch=way is Touch).open("/learn")
    hands = way(seen)
    complete_all(seen, hands)
    assert seen.page.locator(".rv-learn .rv-over").count() == 8
    assert seen.errors == []
    seen.settle()
    hands.press(seen.page.locator(".rv-learn a.rv-next"))
    seen.page.wait_for_url("**/model**")


def slide_by_keys(seen, name, keys):
    Keys(seen).slide(name, 0, keys)


def sentence(seen):
    facts(seen)
    return seen.page.locator(".rv-see p").inner_text()


def test_sentences_follow_the_sliders_and_are_right(visit):
    seen = visit().open("/learn?learn.scene=2")
    slide_by_keys(seen, "at", ["End"])
    assert sentence(seen).startswith(f"11 × {STEP:.2f}° = {11 * STEP:.1f}°.")
    assert f"{11 * STEP:.1f}°" in seen.page.locator(".rv-picture-of").inner_text()
    seen.open("/learn?learn.scene=3")
    slide_by_keys(seen, "offset", ["PageUp"] * 10)
    assert sentence(seen).startswith("Both words are 100 positions further, at 101 and 107.")
    assert f"{6 * STEP:.1f}° and the score {math.cos(6 * LLAMA[8]):.2f}" in sentence(seen)
    slide_by_keys(seen, "content", ["PageUp"] * 3)
    assert f"score {math.cos(6 * LLAMA[8] + math.pi / 2):.2f}".replace("-", "−") in sentence(seen)
    seen.open("/learn?learn.scene=5")
    for key, base in (("Home", 1e4), ("End", 1e7)):
        slide_by_keys(seen, "base", [key])
        count = int(np.sum(8192 * base ** (-np.arange(64) / 64) < 2 * math.pi))
        assert f"{count} of 64 hands" in sentence(seen)
    assert seen.errors == []


def rounded(value):
    """A number with two decimals as by JavaScript's toFixed: a half goes up."""
    return str(Decimal(value).quantize(Decimal("0.01"), ROUND_HALF_UP))


def test_sentence_of_scene_6_is_judged_on_the_circle(visit):
    """A hand that comes round to the grey again is not called new, and no position of training has a new one."""
    seen = visit().open("/learn?learn.scene=6")
    loss = learn.read_measurements()["loss"]["methods"]
    for at in (0, 4096, 8064, 8191, 8320, 12_000, 16_383):
        seen.page.evaluate(f"{ROOT}.__learn.states[5].v.at = {at}")
        seen.page.locator(".rv-learn [data-answer]").first.click()
        found, rates = facts(seen), SMOL[list(learn.SEEN_PAIRS)]
        share = 8192 * rates / (2 * math.pi)
        new = int(np.sum((share < 1) & ((at * rates / (2 * math.pi)) % 1 > share)))
        assert int(found["unseen"]) == new == (3 if at > 8192 else 0)
        assert found["plain"] == rounded(loss["none"][at // 1024])
        assert found["repaired"] == rounded(loss["yarn"][at // 1024])


def test_back_goes_one_scene_back_and_a_link_opens_the_same(visit):
    seen = visit().open("/?base=77000")
    opened = seen.page.evaluate("history.length")
    seen.page.locator("main").get_by_role("link").first.click()
    scene_shown(seen, 1)
    seen.settle()
    before = seen.page.evaluate("history.length")
    assert before == opened + 1
    for number in (2, 3):
        seen.page.locator(".rv-learn [data-do=next]").click()
        scene_shown(seen, number)
        seen.page.wait_for_url(f"**learn.scene={number}**")
        seen.settle()
    assert seen.page.evaluate("history.length") == before + 2
    seen.page.go_back()
    scene_shown(seen, 2)
    seen.page.go_back()
    scene_shown(seen, 1)
    seen.page.go_back()
    expect(seen.page.locator("h1")).to_contain_text("RoPE rotates")
    seen.settle()
    assert seen.page.url == f"{seen.url}/?base=77000"
    seen.page.go_forward()
    scene_shown(seen, 1)
    seen.page.go_forward()
    scene_shown(seen, 2)
    seen.settle()
    seen.page.reload()
    scene_shown(seen, 2)
    assert seen.errors == []


@pytest.mark.parametrize(("step", "scene"), [(1, 1), (4, 3), (9, 6), (12, 7)])
def test_old_link_opens_the_scene_that_took_it_over(visit, step, scene):
    seen = visit().open(f"/learn?learn.step={step}&model=llama-2-7b&target=16384")
    scene_shown(seen, scene)
    seen.until("!location.search.includes('learn.step')")
    assert seen.page.locator("[data-testid=stAlert]").count() == 0


def test_learning_leaves_the_users_model_alone(visit):
    seen = visit().open("/scaling?model=qwen3-8b-yarn")
    seen.go("Learn")
    seen.page.locator(".rv-learn [data-do=next]").click()
    scene_shown(seen, 2)
    seen.settle()
    seen.go("Scaling")
    assert "model=qwen3-8b-yarn" in seen.page.url


@pytest.mark.parametrize("width", [1440, 390])
def test_every_scene_is_clean_in_axe_and_fits_its_width(visit, width):
    seen = visit(width=width, height=844, dark=width == 390, watched=True).open("/learn")
    for number in range(1, 9):
        scene_shown(seen, number)
        seen.page.locator(".rv-learn [data-answer='1']").click()
        seen.page.locator(".rv-maths summary").click()
        seen.settle()
        is_clean(seen)
        if number < 8:
            seen.page.locator(".rv-learn [data-do=next]").click()


def test_the_file_works_without_server_and_network(visit, tmp_path):
    file = tmp_path / "learn.html"
    file.write_bytes(story_page())
    seen = visit(watched=True)
    seen.page.context.set_offline(True)
    seen.page.goto(file.as_uri())
    complete_all(seen, Keys(seen))
    seen.page.go_back()
    scene_shown(seen, 7)
    assert seen.page.url.endswith("#scene=7")
    assert [url for url in seen.elsewhere if url != file.as_uri()] == []
    assert seen.errors == []


def test_a_scene_in_a_frame_needs_no_session(visit):
    seen = visit(watched=True)
    sockets = []
    seen.page.on("websocket", lambda socket: sockets.append(socket.url))
    seen.page.goto(f"{seen.url}/scene/4")
    scene_shown(seen, 4)
    complete(seen, Mouse(seen), 4)
    whole = seen.page.locator(".rv-learn a.rv-next")
    assert whole.evaluate("({ href }) => href") == f"{seen.url}/learn?learn.scene=4"
    assert sockets == []
    assert seen.elsewhere == []
    assert violations(seen.page, {}) == []
    assert seen.errors == []


def test_copied_embed_code_shows_this_scene(visit):
    seen = visit(permissions=["clipboard-read", "clipboard-write"]).open("/learn?learn.scene=5")
    seen.page.locator("[data-do=embed]").click()
    code = seen.page.locator(".rv-code code").inner_text()
    assert f'src="{seen.url}/scene/5"' in code
    expect(seen.page.locator(".rv-code")).to_contain_text("ROPE_VIZ_FRAMED_BY")


def recorded(seen, start, stop):
    """Return name and content of the video that a button starts and another one stops."""
    with seen.page.expect_download() as caught:
        start()
        seen.page.wait_for_timeout(1200)
        stop()
    return caught.value.suggested_filename, caught.value.path().read_bytes()


def assert_is_video(name, content):
    assert content.startswith(b"\x1aE\xdf\xa3") if name.endswith(".webm") else content[4:8] == b"ftyp"
    assert len(content) > 10_000


@pytest.mark.parametrize("number", [3, 7])
def test_scene_moves_in_its_video_and_then_is_where_it_was(visit, number):
    seen = visit().open(f"/learn?learn.scene={number}")
    button, values = seen.page.locator("[data-do=video]"), f"JSON.stringify({ROOT}.__learn.states[{number - 1}].v)"
    before = seen.page.evaluate(values)
    moved = []
    name, content = recorded(seen, button.click, lambda: (moved.append(seen.page.evaluate(values)), button.click()))
    assert_is_video(name, content)
    assert name.startswith(f"rope-scene-{number}.")
    assert (moved[0] != before) == (number == 3), "in a second scene 7 has not changed its method yet"
    assert seen.page.evaluate(values) == before
    expect(button).to_have_text("Video")
    assert seen.page.evaluate(f"{ROOT}.dataset.done") == "false"


def test_the_table_of_scene_8_has_no_video(visit):
    seen = visit().open("/learn?learn.scene=8")
    assert seen.page.locator("[data-do=video]").count() == 0


def test_home_gives_a_video_and_an_embed_of_the_shown_model(visit):
    seen = visit(permissions=["clipboard-read", "clipboard-write"]).open("/?model=qwen3-8b")
    share = seen.page.locator(".rv-hands [data-do=share]")

    def start():
        share.click()
        seen.page.locator(".rv-hands [data-item=record]").click()

    name, content = recorded(seen, start, seen.page.get_by_role("button", name="Stop and save").click)
    assert_is_video(name, content)
    share.click()
    entry = seen.page.locator(".rv-hands [data-item=embed]")
    expect(entry).to_contain_text("ROPE_VIZ_FRAMED_BY")
    entry.click()
    code = seen.page.evaluate("navigator.clipboard.readText()")
    assert f'src="{seen.url}/scene/home?model=qwen3-8b"' in code
    sockets = []
    seen.page.on("websocket", lambda socket: sockets.append(socket.url))
    seen.page.goto(f"{seen.url}/scene/home?model=qwen3-8b")
    expect(seen.page.locator(".rv-hands .rv-now")).to_contain_text("of Qwen3 8B")
    link = seen.page.get_by_role("link", name="Open in RoPE Viz")
    assert link.evaluate("({ href }) => href") == f"{seen.url}/?model=qwen3-8b"
    assert violations(seen.page, {}) == []
    assert sockets == []
    assert seen.errors == []
    answer = seen.page.request.get(f"{seen.url}/scene/home?model=nothing")
    assert answer.status == 400


def test_reduced_motion_shows_the_repair_at_once(visit):
    seen = visit().open("/learn?learn.scene=7")
    seen.page.locator("[data-do=method][value=linear]").click()
    facts(seen)
    drawn = seen.page.evaluate(f"{ROOT}.dataset.drawn")
    seen.page.wait_for_timeout(300)
    assert seen.page.evaluate(f"{ROOT}.dataset.drawn") == drawn
