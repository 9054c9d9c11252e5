"""Learn: every scene is completed by mouse, touch and keys; its text and picture agree with the numbers."""

import math
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pytest
from playwright.sync_api import expect

from rope_viz.pages.learn import figures as learn
from rope_viz.reports.story_page import story_page
from tests.browser.page_ends import SIZES, load_ends, turn_wheel
from tests.browser.test_every_page import check_page, find_violations

STORY = learn.message()
TITLES = [scene["texts"]["title"] for scene in STORY["scenes"]]
LLAMA, SMOL = (base ** (-np.arange(pairs) / pairs) for base, pairs in ((500_000.0, 64), (100_000.0, 32)))
STEP = math.degrees(LLAMA[8])
ROOT = "document.querySelector('.rv-learn')"

# {scene: (slider of its task, a value that completes it, keys that reach it)}
TASKS = {
    1: ("asks", 2, ["Home", "ArrowRight", "ArrowRight"]),
    2: ("at", 6, ["Home", "PageUp", "PageUp"]),
    3: ("offset", 10, ["PageUp"]),
    4: ("b", 16, ["ArrowRight"] * 4),
    5: ("base", 10_000, ["Home"]),
    6: ("at", 13_000, ["End"]),
}
# The pixels of a slider: x and y of its thumb, and x of a value.
THUMB_POSITION = f"""([name, value]) => {{
  const {{ thumbs, states, at }} = {ROOT}.__learn, {{ row }} = thumbs[name];
  const thumb = document.querySelector(`.rv-thumb[data-do=${{name}}]`), tall = thumb.getBoundingClientRect();
  const {{ left, right, width }} = thumb.parentElement.getBoundingClientRect(), room = width - 52;
  const {{ log }} = Math, y = tall.top + tall.height / 2;
  if (row.ruler) return [right - 30, y, right - 30 - (value * room) / row.cells];
  const place = (to) => left + 26 + room * (row.log ? log(to / row.low) / log(row.high / row.low)
    : (to - row.low) / (row.high - row.low));
  return [place(states[at - 1].v[name]), y, place(value)];
}}"""


def wait_for_scene(view, number):
    expect(view.page.locator(".rv-learn h2")).to_have_text(TITLES[number - 1])
    view.until(f"{ROOT}.dataset.scene === '{number}' && {ROOT}.dataset.drawn")


def read_data(view):
    """Return the data attributes of the picture, after the next frame."""
    view.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return view.page.evaluate(f"({{ ...{ROOT}.dataset }})")


class Mouse:
    width = 1440

    def __init__(self, view):
        self.page = view.page

    def press(self, found):
        found.click()

    def slide(self, name, value, keys):
        x, y, to = self.page.evaluate(THUMB_POSITION, [name, value])
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


# True as soon as the node was clicked, False after two seconds.
WAS_CLICKED = """(node) => node.clicked || new Promise((done) => {
  node.addEventListener("click", () => done(true));
  setTimeout(() => done(false), 2000);
})"""


class Touch(Mouse):
    width = 390

    def press(self, found):
        """Tap until there is a click: Chromium makes none after a drag, or from a long press on a busy machine."""
        node = found.element_handle()
        node.evaluate("(node) => node.addEventListener('click', () => (node.clicked = true), { capture: true })")
        for _ in range(20):
            node.tap()
            if node.evaluate(WAS_CLICKED):
                return
        raise AssertionError("no tap made a click")

    def slide(self, name, value, keys):
        x, y, to = self.page.evaluate(THUMB_POSITION, [name, value])
        session = self.page.context.new_cdp_session(self.page)
        session.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
        for share in np.linspace(0.125, 1, 8):
            point = {"x": x + share * (to - x), "y": y}
            session.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [point]})
        session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        session.detach()


def complete(view, device, number):
    """Answer the question and do the task of the open scene; then its step is marked as complete."""
    story = view.page.locator(".rv-learn")
    scene = STORY["scenes"][number - 1]
    wrong = (scene["texts"]["right"] + 1) % 3 if number == 2 else scene["texts"]["right"]
    device.press(story.locator(f"[data-answer='{wrong}']"))
    expect(story.locator(".rv-why").first).to_have_text(scene["texts"]["why"])
    if number in TASKS:
        device.slide(*TASKS[number])
    elif number == 7:
        for method in ("linear", "ntk", "yarn"):
            device.press(story.locator(f"[data-do=method][value={method}]"))
    else:
        for at, question in enumerate(scene["numbers"]["quiz"], start=1):
            expect(story.locator(".rv-quiz")).to_contain_text(question["question"])
            device.press(story.locator(f"[data-quiz='{question['right']}']"))
            expect(story.locator(".rv-quiz .rv-why")).to_have_text(question["why"])
            if at < 5:
                device.press(story.locator("[data-do=more]"))
        expect(story.locator(".rv-quiz [data-do=sheet]")).to_be_visible()
    view.until(f"{ROOT}.dataset.done === 'true'")
    expect(story.locator(f"[data-step='{number}']")).to_have_class("rv-over")


def complete_all(view, device):
    for number in range(1, 9):
        wait_for_scene(view, number)
        complete(view, device, number)
        if number < 8:
            device.press(view.page.locator(".rv-learn [data-do=next]"))


@pytest.mark.parametrize("input_device", [Mouse, Touch])
def test_every_scene_is_completed(visit, input_device):
    view = visit(width=input_device.width, height=844, has_touch=input_device is Touch).open("/learn")
    device = input_device(view)
    complete_all(view, device)
    assert view.page.locator(".rv-learn .rv-over").count() == 8
    assert view.errors == []
    view.settle()
    device.press(view.page.locator(".rv-way [data-do=sheet]"))
    expect(view.page.locator(".rv-learn a.rv-next")).to_have_text("Your own model →")
    device.press(view.page.locator(".rv-learn a.rv-next"))
    view.page.wait_for_url("**/model**")


def predict(view):
    """Answer the open scene's question: before that nothing can be moved."""
    view.page.locator(".rv-learn [data-answer]").first.click()


def slide_by_keys(view, name, keys):
    Keys(view).slide(name, 0, keys)


def read_sentence(view):
    read_data(view)
    return view.page.locator(".rv-see p").inner_text()


def test_sentences_follow_the_sliders_and_are_right(visit):
    view = visit().open("/learn?learn.scene=2")
    predict(view)
    slide_by_keys(view, "at", ["End"])
    assert read_sentence(view).startswith(f"11 × {STEP:.2f}° = {11 * STEP:.1f}°.")
    assert f"{11 * STEP:.1f}°" in view.page.locator(".rv-picture-of").inner_text()
    view.open("/learn?learn.scene=3")
    predict(view)
    slide_by_keys(view, "offset", ["PageUp"] * 10)
    assert read_sentence(view).startswith("Both words have moved by 100, to 101 and 107.")
    assert f"{6 * STEP:.1f}° and the score {math.cos(6 * LLAMA[8]):.2f}" in read_sentence(view)
    slide_by_keys(view, "content", ["PageUp"] * 3)
    assert f"score {math.cos(6 * LLAMA[8] + math.pi / 2):.2f}".replace("-", "−") in read_sentence(view)
    view.open("/learn?learn.scene=5")
    predict(view)
    for key, base in (("Home", 1e4), ("End", 1e7)):
        slide_by_keys(view, "base", [key])
        count = int(np.sum(8192 * base ** (-np.arange(64) / 64) < 2 * math.pi))
        assert f"{count} of 64 hands" in read_sentence(view)
    assert view.errors == []


def round_half_up(value):
    """Format a number with two decimals like JavaScript's toFixed."""
    return str(Decimal(value).quantize(Decimal("0.01"), ROUND_HALF_UP))


def test_scene_6_counts_only_new_angles_as_unseen(visit):
    """A hand at an angle seen in training is not counted, and no trained position has an unseen angle."""
    view = visit().open("/learn?learn.scene=6")
    loss = learn.read_measurements()["loss"]["methods"]
    for at in (0, 4096, 8064, 8191, 8320, 12_000, 16_383):
        view.page.evaluate(f"{ROOT}.__learn.states[5].v.at = {at}")
        view.page.locator(".rv-learn [data-answer]").first.click()
        found, rates = read_data(view), SMOL[list(learn.SEEN_PAIRS)]
        share = 8192 * rates / (2 * math.pi)
        new = int(np.sum((share < 1) & ((at * rates / (2 * math.pi)) % 1 > share)))
        assert int(found["unseen"]) == new == (3 if at > 8192 else 0)
        assert found["plain"] == round_half_up(loss["none"][at // 1024])
        assert found["repaired"] == round_half_up(loss["yarn"][at // 1024])


def test_back_returns_one_scene_and_reload_stays(visit):
    view = visit().open("/?base=77000")
    opened = view.page.evaluate("history.length")
    view.page.locator("main").get_by_role("link").first.click()
    wait_for_scene(view, 1)
    view.settle()
    before = view.page.evaluate("history.length")
    assert before == opened + 1
    for number in (2, 3):
        view.page.locator(".rv-learn [data-do=next]").click()
        wait_for_scene(view, number)
        view.page.wait_for_url(f"**learn.scene={number}**")
        view.settle()
    assert view.page.evaluate("history.length") == before + 2
    view.page.go_back()
    wait_for_scene(view, 2)
    view.page.go_back()
    wait_for_scene(view, 1)
    view.page.go_back()
    expect(view.page.locator("h1")).to_contain_text("RoPE rotates")
    view.settle()
    assert view.page.url == f"{view.url}/?base=77000"
    view.page.go_forward()
    wait_for_scene(view, 1)
    view.page.go_forward()
    wait_for_scene(view, 2)
    view.settle()
    view.page.reload()
    wait_for_scene(view, 2)
    assert view.errors == []


def test_old_link_opens_the_scene_that_replaced_it(visit):
    view = visit().open("/learn?learn.step=9&model=llama-2-7b&target=16384")
    wait_for_scene(view, 6)
    view.until("!location.search.includes('learn.step')")
    assert view.page.locator("[data-testid=stAlert]").count() == 0


def test_learn_does_not_change_the_users_model(visit):
    view = visit().open("/scaling?model=qwen3-8b-yarn")
    view.go("Learn")
    view.page.locator(".rv-learn [data-do=next]").click()
    wait_for_scene(view, 2)
    view.settle()
    view.go("Scaling")
    assert "model=qwen3-8b-yarn" in view.page.url


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_every_scene_has_next_in_the_window_and_is_clean_in_axe(visit, width, height):
    """Next before and after the answer, at the start of the page and at its end; axe in a wide and a narrow window."""
    view = visit(width=width, height=height, dark=width == 390, watched=True).open("/learn")
    load_ends(view)
    following = view.page.locator(".rv-learn .rv-next")
    for number in range(1, len(TITLES) + 1):
        wait_for_scene(view, number)
        turn_wheel(view, "stMain", -1)
        for _ in ("asked", "answered"):
            box = following.bounding_box()
            assert box["y"] >= 0, number
            assert box["y"] + box["height"] <= height, number
            view.page.locator(".rv-learn [data-answer]").first.click()
        turn_wheel(view, "stMain", 1)
        box = following.bounding_box()
        assert box["y"] + box["height"] <= height, number
        if width != 1280:
            view.page.locator(".rv-maths summary").click()
            view.settle()
            check_page(view)
        assert view.page.locator("[data-do=video]").count() == (number < 8), "the table of scene 8 has no video"
        if number < len(TITLES):
            following.click()


def test_saved_story_works_offline(visit, tmp_path):
    """Complete every scene by keys."""
    file = tmp_path / "learn.html"
    file.write_bytes(story_page())
    view = visit(watched=True)
    view.page.context.set_offline(True)
    view.page.goto(file.as_uri())
    complete_all(view, Keys(view))
    view.page.go_back()
    wait_for_scene(view, 7)
    assert view.page.url.endswith("#scene=7")
    assert [url for url in view.foreign_requests if url != file.as_uri()] == []
    assert view.errors == []


def test_a_scene_in_a_frame_needs_no_session(visit):
    view = visit(watched=True)
    sockets = []
    view.page.on("websocket", lambda socket: sockets.append(socket.url))
    view.page.goto(f"{view.url}/scene/4")
    wait_for_scene(view, 4)
    complete(view, Mouse(view), 4)
    whole = view.page.locator(".rv-learn a.rv-next")
    assert whole.evaluate("({ href }) => href") == f"{view.url}/learn?learn.scene=4"
    assert sockets == []
    assert view.foreign_requests == []
    assert find_violations(view.page, {}) == []
    assert view.errors == []


def test_copied_embed_code_shows_this_scene(visit):
    view = visit(permissions=["clipboard-read", "clipboard-write"]).open("/learn?learn.scene=5")
    view.page.locator("[data-do=embed]").click()
    code = view.page.locator(".rv-code code").inner_text()
    assert f'src="{view.url}/scene/5"' in code
    expect(view.page.locator(".rv-code")).to_contain_text("ROPE_VIZ_FRAMED_BY")


def record_video(view, start, stop):
    """Record a video; return its name and content."""
    with view.page.expect_download() as caught:
        start()
        view.page.wait_for_timeout(1200)  # the subject: the length of the video
        stop()
    return caught.value.suggested_filename, caught.value.path().read_bytes()


def assert_is_video(name, content):
    assert content.startswith(b"\x1aE\xdf\xa3") if name.endswith(".webm") else content[4:8] == b"ftyp"
    assert len(content) > 10_000


@pytest.mark.parametrize("number", [3, 7])
def test_scene_moves_in_its_video_and_returns(visit, number):
    view = visit().open(f"/learn?learn.scene={number}")
    predict(view)
    button, values = view.page.locator("[data-do=video]"), f"JSON.stringify({ROOT}.__learn.states[{number - 1}].v)"
    before = view.page.evaluate(values)
    moved = []
    name, content = record_video(view, button.click, lambda: (moved.append(view.page.evaluate(values)), button.click()))
    assert_is_video(name, content)
    assert name.startswith(f"rope-scene-{number}.")
    assert (moved[0] != before) == (number == 3), "scene 7 changes its method only after a second"
    assert view.page.evaluate(values) == before
    expect(button).to_have_text("Video")
    assert view.page.evaluate(f"{ROOT}.dataset.done") == "false"


def test_home_records_and_embeds_the_chosen_model(visit):
    view = visit(permissions=["clipboard-read", "clipboard-write"]).open("/?model=qwen3-8b")
    share = view.page.locator(".rv-hands [data-do=share]")

    def start():
        share.click()
        view.page.locator(".rv-hands [data-item=record]").click()

    name, content = record_video(view, start, view.page.get_by_role("button", name="Stop and save").click)
    assert_is_video(name, content)
    share.click()
    entry = view.page.locator(".rv-hands [data-item=embed]")
    expect(entry).to_contain_text("ROPE_VIZ_FRAMED_BY")
    entry.click()
    code = view.page.evaluate("navigator.clipboard.readText()")
    assert f'src="{view.url}/scene/home?model=qwen3-8b"' in code
    sockets = []
    view.page.on("websocket", lambda socket: sockets.append(socket.url))
    view.page.goto(f"{view.url}/scene/home?model=qwen3-8b")
    expect(view.page.locator(".rv-hands .rv-now")).to_contain_text("of Qwen3 8B")
    link = view.page.get_by_role("link", name="Open in RoPE Viz")
    assert link.evaluate("({ href }) => href") == f"{view.url}/?model=qwen3-8b"
    assert find_violations(view.page, {}) == []
    assert sockets == []
    assert view.errors == []
    answer = view.page.request.get(f"{view.url}/scene/home?model=nothing")
    assert answer.status == 400


def test_reduced_motion_shows_the_repair_at_once(visit):
    view = visit().open("/learn?learn.scene=7")
    predict(view)
    view.page.locator("[data-do=method][value=linear]").click()
    read_data(view)
    drawn = view.page.evaluate(f"{ROOT}.dataset.drawn")
    view.wait_frames()
    assert view.page.evaluate(f"{ROOT}.dataset.drawn") == drawn
