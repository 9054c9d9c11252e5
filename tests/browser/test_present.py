"""A presented picture: one figure without navigation, moved by keys, by a finger and by the thin bar."""

import pytest
from playwright.sync_api import expect

from tests.browser.figure_tools import pick
from tests.browser.test_every_page import is_clean, is_clean_in_both_themes
from tests.browser.test_touch import finger, middle

STATE = "document.querySelector('.rv-clocks').dataset"
SHOWN = "document.querySelector('.st-key-present .rv-picture')?.dataset.state === 'shown'"
SCROLLS = """[document.documentElement, ...document.querySelectorAll('[data-testid=stMain], .rv-picture')]
.some((each) => each.scrollHeight > each.clientHeight + 1 || each.scrollWidth > each.clientWidth + 1)"""
SIZES = """[...document.querySelectorAll('[data-testid=stMain], .rv-picture')]
.map((each) => [each.className, each.scrollHeight, each.clientHeight, each.scrollWidth, each.clientWidth])"""
PRESENTED = ("rotation", "frequencies", "scaling", "decay", "attention", "recall")


@pytest.fixture
def presented(visit):
    """presented(page, **options) presents the main picture of a page."""

    def start(page, **options):
        query = "" if "present=" in page else "&present=1" if "?" in page else "?present=1"
        seen = visit(**options).open(f"/{page}{query}")
        seen.until(SHOWN)
        return seen

    return start


def value(seen, name):
    return seen.page.locator(f".st-key-present [data-knob={name}] input[type=text]").input_value()


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (390, 844)])
def test_one_figure_is_shown_without_navigation_or_scrolling(visit, width, height):
    seen = visit(width=width, height=height, has_touch=width == 390, watched=True)
    for page in PRESENTED:
        seen.open(f"/{page}?present=1")
        seen.until(SHOWN)
        assert seen.page.locator(".rv-picture").count() == 1
        for gone in ("#rv-header", "[data-testid=stSidebar]", ".rv-tools", "#rv-chip"):
            assert seen.page.locator(f"{gone}:visible").count() == 0, (page, gone)
        assert seen.stays(f"() => !({SCROLLS})", 1, 20), (page, seen.page.evaluate(SIZES))
        is_clean_in_both_themes(seen)
        seen.page.emulate_media(color_scheme="light")


def test_type_is_larger_than_on_the_page(presented):
    seen = presented("decay", width=1280, height=720)
    sizes = "[...document.querySelectorAll('.xtick text')].map((each) => each.getBoundingClientRect().height)"
    large = max(seen.page.evaluate(sizes))
    seen.page.keyboard.press("Escape")
    seen.until("!document.querySelector('.st-key-present')")
    seen.settle()
    assert large >= 1.5 * max(seen.page.evaluate(sizes))


def test_keys_move_position_base_and_length(presented):
    seen = presented("rotation?rotation.at=100,0", width=1280, height=720)
    press = seen.page.keyboard.press
    for key, position in (("ArrowRight", 101), ("Shift+ArrowRight", 111), ("ArrowLeft", 110), ("Shift+ArrowLeft", 100)):
        press(key)
        seen.until(f"{STATE}.m === '{position}'")
    assert value(seen, "base") == "500000"
    press("b")
    seen.page.wait_for_url("**base=1000000**")
    press("Shift+B")
    seen.page.wait_for_url(lambda url: "base=" not in url)
    assert value(seen, "context") == "8k"
    press("n")
    seen.page.wait_for_url("**trained=16384**")
    press("Shift+N")
    seen.page.wait_for_url(lambda url: "trained=16384" not in url)
    assert value(seen, "context") == "8k"


def test_space_plays_and_escape_leaves(presented):
    seen = presented("rotation?rotation.at=100,0", width=1280, height=720)
    playing = seen.page.locator(".rv-clocks [data-do=play]")
    seen.page.keyboard.press("Space")
    expect(playing).to_have_text("Pause")
    seen.page.keyboard.press("Space")
    expect(playing).to_have_text("Play")
    seen.until(f"Number({STATE}.m) > 100")
    seen.page.keyboard.press("Escape")
    seen.page.wait_for_url(lambda url: "present" not in url)
    expect(seen.page.locator("#rv-header")).to_be_visible()
    seen.settle()
    assert seen.page.locator(".rv-picture").count() > 1


def test_a_chart_with_a_position_plays_it(presented):
    seen = presented("decay?present=pairs&decay.at=100", width=1280, height=720)
    seen.page.keyboard.press("ArrowRight")
    seen.page.wait_for_url("**decay.at=101**")
    button = seen.page.locator(".rv-present [data-do=play]")
    seen.page.keyboard.press("Space")
    expect(button).to_have_attribute("aria-label", "Pause")
    seen.until("document.querySelector('[data-knob=at]').__knob.value > 105")
    seen.page.keyboard.press("Space")
    seen.page.wait_for_url(lambda url: "decay.at=101" not in url)
    expect(button).to_have_attribute("aria-label", "Play")


def test_help_lists_the_keys_that_work_here(presented):
    seen = presented("rotation", width=1280, height=720, watched=True)
    for page, keys in (("rotation", ["Space", "←", "→", "B", "N", "?", "Esc"]), ("decay", ["B", "N", "?", "Esc"])):
        seen.open(f"/{page}?present=1")
        seen.until(SHOWN)
        seen.page.keyboard.press("?")
        listed = seen.page.get_by_role("dialog", name="Keys")
        expect(listed).to_be_visible()
        assert listed.locator("kbd").all_inner_texts() == keys
        is_clean(seen)
        seen.page.keyboard.press("Escape")
        expect(listed).to_be_hidden()
        assert "present=1" in seen.page.url


def test_a_finger_moves_the_position(presented):
    seen = presented("rotation?rotation.at=100,0", width=390, height=844, has_touch=True)
    x, y = middle(seen.page.locator(".rv-clocks canvas"))
    finger(seen, (x + 60, y), (x - 60, y + 6), 12)
    seen.until(f"{STATE}.m === '105'")
    finger(seen, (x - 60, y), (x + 60, y + 6), 12)
    seen.until(f"{STATE}.m === '100'")
    seen.page.locator(".rv-present [data-do=close]").tap()
    seen.page.wait_for_url(lambda url: "present" not in url)


def test_the_menu_of_a_figure_presents_it(visit):
    seen = visit(width=1280, height=720).open("/decay")
    place = seen.look("decay/pairs")
    pick(place, "full", "present")
    seen.page.wait_for_url("**present=pairs**")
    seen.until("document.querySelector('.st-key-present .rv-picture')?.dataset.picture === 'decay/pairs'")
    seen.page.locator(".rv-present [data-do=close]").click()
    seen.page.wait_for_url(lambda url: "present" not in url)
    seen.page.go_back()
    seen.until("Boolean(document.querySelector('.st-key-present'))")


def test_an_unknown_picture_is_named_and_the_page_shown(visit):
    seen = visit().open("/decay?present=nothing")
    expect(seen.page.get_by_text("has no picture 'nothing' to present")).to_be_visible()
    assert seen.page.locator(".rv-picture").count() > 1
