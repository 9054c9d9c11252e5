"""Learn's predictions are hidden until answered, answers outlive Back and reload, and the end shows them all."""

import math

import numpy as np
import pytest
from playwright.sync_api import expect

from rope_viz.pages.learn import figures as learn
from rope_viz.reports.story_page import story_page
from tests.browser.test_learn import ROOT, STORY, TASKS, THUMB_POSITION, Touch, predict, read_data, wait_for_scene

SCENES = range(1, 9)
ANSWERED = f"() => !{ROOT}.hasAttribute('data-unanswered')"

# What would give each scene's answer away: words and numbers of its screen, and shapes of its picture.
HIDDEN_WORDS = {
    1: ["both score the same", "same vectors", "their vectors are the same", "cannot tell them apart"],
    2: ["6 ×", "11.11°", "adds the same angle: 6"],
    3: ["only the angle", "still", "turn by the same angle", "it stays at"],
    4: ["ambiguous", "confuses", "until the fastest hand shows the same", "Together they name every position"],
    5: ["turn more slowly", "slower each pair", "Drag the base down"],
    6: ["10k", "12,000", "YaRN", "no scaling", "broken"],
    7: ["keeps", "kept", "divided", "back in the grey", "Fast hands completed"],
    8: ["finds 5 of 5", "YaRN 5 of 5"],
}
HIDDEN_SHAPES = {
    1: "text:text-is('1.42')",
    2: "text:text-is('6')",
    6: "path[stroke='var(--query)']",
    7: "rect",
}


@pytest.fixture
def saved_story(visit, tmp_path):
    """saved_story(width=390, ...) opens learn.html from a file and returns a function that opens its scenes."""
    file = tmp_path / "learn.html"
    file.write_bytes(story_page())

    def start(**options):
        view = visit(**options)

        def open_scene(number):
            view.page.goto(f"{file.as_uri()}#scene={number}")
            wait_for_scene(view, number)
            return view

        return open_scene

    return start


def read_screen(view):
    """Return all that a scene's screen shows or names, without its question's answers and the strip."""
    return view.page.evaluate(f"""() => {{
      const root = {ROOT}, hidden = [...root.querySelectorAll('.rv-answers, .rv-steps')];
      for (const node of hidden) node.hidden = true, node.style.display = 'none';
      const texts = [...root.querySelectorAll('svg text')].filter((node) => node.checkVisibility());
      const shown = [root.innerText, ...texts.map((node) => node.textContent)];
      for (const node of root.querySelectorAll('[aria-valuetext], [aria-label]'))
        if (!node.closest('[inert]')) shown.push(node.getAttribute('aria-valuetext'), node.getAttribute('aria-label'));
      for (const node of hidden) node.hidden = false, node.style.display = '';
      return shown.filter(Boolean).join('\\n');
    }}""")


@pytest.mark.parametrize("width", [1440, 390])
def test_nothing_gives_a_prediction_away(saved_story, width):
    """The right answer, its reason and what shows it appear with the answer, and nothing moves before."""
    open_scene = saved_story(width=width, height=844)
    for number in SCENES:
        view = open_scene(number)
        words = STORY["scenes"][number - 1]["texts"]
        screen = read_screen(view)
        right = words["answers"][words["right"]]
        assert len(right) < 3 or right not in screen, number
        shown = [each for each in (*HIDDEN_WORDS[number], words["why"], words["note"]) if each in screen]
        assert shown == [], number
        shape = view.page.locator(f".rv-picture-of svg {HIDDEN_SHAPES.get(number, 'nothing')}")
        assert shape.count() == 0, number
        assert view.page.locator(".rv-controls").evaluate("(node) => node.inert"), number
        values = view.page.evaluate(f"JSON.stringify({ROOT}.__learn.states[{number - 1}].v)")
        box = view.page.locator(".rv-picture-of").bounding_box()
        view.page.mouse.move(box["x"] + 40, box["y"] + 40)
        view.page.mouse.down()
        view.page.mouse.move(box["x"] + 200, box["y"] + 90, steps=3)
        view.page.mouse.up()
        assert view.page.evaluate(f"JSON.stringify({ROOT}.__learn.states[{number - 1}].v)") == values, number
        predict(view)
        read_data(view)
        screen = read_screen(view)
        for each in (words["why"], *([words["note"]] if "<" not in words["note"] else [])):
            assert each in screen, number
        assert number not in HIDDEN_SHAPES or shape.count() > 0, number
        view.page.evaluate("sessionStorage.clear()")


def test_order_base_pair_and_hand_are_explained_first():
    """Where each word is used for the first time, the same screen says what it is."""
    texts = [scene["texts"] for scene in STORY["scenes"]]
    shown = [
        " ".join([each["title"], each["lead"], each["question"], *each["picture"].values(), *each["see"].values()])
        for each in texts
    ]
    assert "bites" in texts[0]["lead"]
    assert "asks" not in shown[0] + texts[0]["task"]
    for word, scene, meaning in (
        ("hand", 2, "drawn as an arrow"),
        ("pair", 2, "two by two"),
        ("base", 5, "One number sets all their frequencies: the <b>base</b>"),
    ):
        assert not any(word in each for each in shown[: scene - 1]), word
        assert meaning in texts[scene - 1]["lead"], word
    lead = texts[1]["lead"]
    assert lead.index("two by two") < lead.index("pair")
    assert lead.index("arrow") < lead.index("hand")


def swipe(view, name, value):
    """Slide by one touch from the thumb and return the pixels of the way."""
    x, _, to = view.page.evaluate(THUMB_POSITION, [name, value])
    Touch(view).slide(name, value, [])
    return abs(to - x)


def test_one_swipe_reaches_every_task(saved_story):
    open_scene = saved_story(width=390, height=844, has_touch=True)
    for number, (name, value, _) in TASKS.items():
        view = open_scene(number)
        predict(view)
        view.page.evaluate("scrollTo(0, 0)")
        pixels = swipe(view, name, 5 if number == 3 else value)
        assert 20 <= pixels <= 250, (number, pixels)
        view.until(f"{ROOT}.dataset.done === 'true'")


def test_answers_outlive_back_and_reload_in_the_app(visit):
    view = visit().open("/learn?learn.scene=2")
    predict(view)
    view.page.locator("[data-do=at]").focus()
    for key in ("PageUp", "ArrowRight", "ArrowRight"):
        view.page.keyboard.press(key)
    step = view.page.locator("[data-step='2']")
    expect(step).to_have_class("rv-over")
    assert "finished" in step.inner_text()
    view.page.locator("[data-do=next]").click()
    wait_for_scene(view, 3)
    view.page.wait_for_url("**learn.scene=3**")
    view.settle()
    view.page.go_back()
    wait_for_scene(view, 2)
    expect(view.page.locator(".rv-why").first).to_have_text(STORY["scenes"][1]["texts"]["why"])
    view.settle()
    view.page.reload()
    wait_for_scene(view, 2)
    expect(view.page.locator(".rv-why").first).to_have_text(STORY["scenes"][1]["texts"]["why"])
    expect(view.page.locator("[data-step='2']")).to_have_class("rv-over")
    assert read_data(view)["at"] == "6"
    view.page.locator(".rv-text [data-do=restart]").click()
    wait_for_scene(view, 1)
    assert view.page.locator(".rv-over").count() == 0
    view.page.reload()
    wait_for_scene(view, 1)
    assert view.page.locator(".rv-over").count() == 0
    assert view.errors == []


@pytest.mark.parametrize(
    "stored", ["", "[]", "{}", "[1,2,3,4,5,6,7,8]", '[{"v":{"asks":"<b>"},"answer":9}]', "nonsense"]
)
def test_foreign_content_of_the_storage_is_ignored(saved_story, stored):
    open_scene = saved_story()
    view = open_scene(1)
    view.page.evaluate(
        "(text) => addEventListener('pagehide', () => sessionStorage.setItem('rope-viz.learn', text))", stored
    )
    view.page.reload()
    wait_for_scene(view, 1)
    assert not view.page.evaluate(f"({ANSWERED})()")
    assert view.errors == []


def test_clocks_return_as_the_numbers_say(saved_story):
    """The hands outside the grey, of each method and factor, are those that NumPy counts."""
    view = saved_story()(7)
    predict(view)
    scene = STORY["scenes"][6]["numbers"]
    rates, trained = np.array(scene["rates"]), scene["trained"]
    share = trained * rates / (2 * math.pi)
    counts = {}
    for factor in learn.FACTORS:
        view.page.locator(f"[data-do=factor][value='{factor}']").click()
        for method in learn.METHODS:
            view.page.locator(f"[data-do=method][value={method}]").click()
            ratio = np.array(scene["curves"][str(factor)][method]["ratio"])
            turn = ((factor * trained - 1) * rates * ratio / (2 * math.pi)) % 1
            counts[method, factor] = int(np.sum((share < 1) & (turn > share * (1 + 1e-9))))
            assert int(read_data(view)["unseen"]) == counts[method, factor], (method, factor)
            bold = view.page.locator(".rv-picture-of line[stroke-width='4'][stroke='var(--text)']").count()
            assert bold == counts[method, factor], (method, factor)
            wedge = view.page.locator(".rv-picture-of path[fill='var(--query)']").first.get_attribute("d")
            lame = view.page.evaluate(f"{ROOT}.__learn.states[6].memory.curve[0]")
            assert lame == pytest.approx(1 / factor if method == "linear" else 1), (method, factor)
            assert wedge.startswith("M")
    assert counts["none", 2] > 0
    assert [counts[method, factor] for method in ("linear", "yarn") for factor in learn.FACTORS] == [0] * 6


def test_hands_move_only_where_motion_is_wanted(visit):
    """With motion the hands of scene 7 need several frames to return; without it, one."""
    frames = {}
    for motion in (True, False):
        view = visit(motion=motion).open("/learn?learn.scene=7")
        predict(view)
        before = int(read_data(view)["drawn"])
        view.page.locator("[data-do=method][value=linear]").click()
        view.until(f"!{ROOT}.__learn.states[6].memory.isMoving && {ROOT}.dataset.see === 'linear'")
        frames[motion] = int(read_data(view)["drawn"]) - before
    assert frames[True] > 4
    assert frames[False] <= 2


def test_sheet_shows_state_score_and_where_to_look_again(saved_story):
    open_scene = saved_story()
    for number in SCENES:
        view = open_scene(number)
        right = STORY["scenes"][number - 1]["texts"]["right"]
        view.page.locator(f".rv-learn [data-answer='{right if number != 4 else 0}']").click()
        if number == 3:
            view.page.locator("[data-do=offset]").focus()
            view.page.keyboard.press("PageUp")
    quiz = STORY["scenes"][7]["numbers"]["quiz"]
    for at, question in enumerate(quiz):
        answer = question["right"] if at != 1 else (question["right"] + 1) % 3
        view.page.locator(f".rv-quiz [data-quiz='{answer}']").click()
        if at < 4:
            view.page.locator("[data-do=more]").click()
    view.page.locator(".rv-quiz [data-do=sheet]").click()
    sheet = view.page.locator(".rv-sheet")
    expect(sheet).to_contain_text("11 of 13 answers right.")
    assert sheet.locator(".rv-again li").count() == 2
    assert [each.get_attribute("data-step") for each in sheet.locator(".rv-again button").all()] == ["4", "3"]
    assert sheet.locator(".rv-eight svg").count() == 8
    assert "slept, 17" in sheet.locator(".rv-eight svg").nth(2).text_content(), "the ruler was moved by ten"
    expect(sheet.locator(".rv-cite")).to_contain_text(STORY["citation"])
    with view.page.expect_download() as caught:
        sheet.locator("[data-do=save]").click()
    content = caught.value.path().read_bytes()
    assert caught.value.suggested_filename == "rope-in-eight-scenes.png"
    assert content.startswith(b"\x89PNG")
    assert len(content) > 50_000
    assert view.page.evaluate("document.documentElement.scrollWidth") <= 1440
    sheet.locator(".rv-again button").first.click()
    wait_for_scene(view, 4)
    assert not sheet.is_visible()
    assert view.errors == []
