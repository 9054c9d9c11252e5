"""A presented picture: one figure without navigation, controlled by keys, touch and a thin bar."""

import pytest
from playwright.sync_api import expect

from tests.browser.figure_tools import pick
from tests.browser.test_every_page import check_page, check_page_in_both_themes, emulate_touch
from tests.browser.test_touch import drag_finger, middle_of

STATE = "document.querySelector('.rv-clocks').dataset"
SHOWN = "document.querySelector('.st-key-present .rv-picture')?.dataset.state === 'shown'"
SCROLLS = """[document.documentElement, ...document.querySelectorAll('[data-testid=stMain], .rv-picture')]
.some((each) => each.scrollHeight > each.clientHeight + 1 || each.scrollWidth > each.clientWidth + 1)"""
SIZES = """[...document.querySelectorAll('[data-testid=stMain], .rv-picture')]
.map((each) => [each.className, each.scrollHeight, each.clientHeight, each.scrollWidth, each.clientWidth])"""
PRESENTED = ("rotation", "frequencies", "scaling", "decay", "attention", "recall")


@pytest.fixture
def presented_page(visit):
    """presented(page, **options) presents the main picture of a page."""

    def start(page, **options):
        query = "" if "present=" in page else "&present=1" if "?" in page else "?present=1"
        view = visit(**options).open(f"/{page}{query}")
        view.until(SHOWN)
        return view

    return start


def read_knob(view, name):
    return view.page.locator(f".st-key-present [data-knob={name}] input[type=text]").input_value()


@pytest.mark.parametrize("page", PRESENTED)
def test_presented_figure_has_no_navigation_or_scrolling(visit, page):
    """First on a phone, then in a wide window."""
    view = visit(width=390, height=844, has_touch=True, watched=True).open(f"/{page}?present=1")
    check_presented(view)
    emulate_touch(view, False)
    view.page.emulate_media(color_scheme="light")
    view.resize(1280, 720)
    view.until("innerWidth === 1280")
    view.settle()
    check_presented(view)


def check_presented(view):
    view.until(SHOWN)
    assert view.page.locator(".rv-picture").count() == 1
    for hidden in ("#rv-header", "[data-testid=stSidebar]", ".rv-tools", "#rv-chip"):
        assert view.page.locator(f"{hidden}:visible").count() == 0, hidden
    assert view.becomes_true(f"() => !({SCROLLS})", 1, 20), view.page.evaluate(SIZES)
    check_page_in_both_themes(view)


def test_presented_text_is_larger_than_on_the_page(presented_page):
    view = presented_page("decay", width=1280, height=720)
    sizes = "[...document.querySelectorAll('.xtick text')].map((each) => each.getBoundingClientRect().height)"
    large = max(view.page.evaluate(sizes))
    view.page.keyboard.press("Escape")
    view.until("!document.querySelector('.st-key-present')")
    view.settle()
    assert large >= 1.5 * max(view.page.evaluate(sizes))


def test_keys_move_position_base_and_length(presented_page):
    view = presented_page("rotation?rotation.at=100,0", width=1280, height=720)
    press = view.page.keyboard.press
    for key, position in (("ArrowRight", 101), ("Shift+ArrowRight", 111), ("ArrowLeft", 110), ("Shift+ArrowLeft", 100)):
        press(key)
        view.until(f"{STATE}.m === '{position}'")
    assert read_knob(view, "base") == "500000"
    press("b")
    view.page.wait_for_url("**base=1000000**")
    press("Shift+B")
    view.page.wait_for_url(lambda url: "base=" not in url)
    assert read_knob(view, "context") == "8k"
    press("n")
    view.page.wait_for_url("**trained=16384**")
    press("Shift+N")
    view.page.wait_for_url(lambda url: "trained=16384" not in url)
    assert read_knob(view, "context") == "8k"


def test_space_plays_and_escape_leaves(presented_page):
    view = presented_page("rotation?rotation.at=100,0", width=1280, height=720)
    playing = view.page.locator(".rv-clocks [data-do=play]")
    view.page.keyboard.press("Space")
    expect(playing).to_have_text("Pause")
    view.until("document.querySelector('.rv-clocks [data-do=scrub]').valueAsNumber > 100")
    view.page.keyboard.press("Space")
    expect(playing).to_have_text("Play")
    view.until(f"Number({STATE}.m) > 100")
    view.page.keyboard.press("Escape")
    view.page.wait_for_url(lambda url: "present" not in url)
    expect(view.page.locator("#rv-header")).to_be_visible()
    view.settle()
    assert view.page.locator(".rv-picture").count() > 1


def test_presented_chart_plays_its_position(presented_page):
    view = presented_page("decay?present=pairs&decay.at=100", width=1280, height=720)
    view.page.keyboard.press("ArrowRight")
    view.page.wait_for_url("**decay.at=101**")
    button = view.page.locator(".rv-present [data-do=play]")
    view.page.keyboard.press("Space")
    expect(button).to_have_attribute("aria-label", "Pause")
    view.until("document.querySelector('[data-knob=at]').__knob.value > 105")
    view.page.keyboard.press("Space")
    view.page.wait_for_url(lambda url: "decay.at=101" not in url)
    expect(button).to_have_attribute("aria-label", "Play")


def test_help_lists_the_keys_that_work_here(presented_page):
    view = presented_page("rotation", width=1280, height=720, watched=True)
    for page, keys in (("rotation", ["Space", "←", "→", "B", "N", "?", "Esc"]), ("decay", ["B", "N", "?", "Esc"])):
        view.open(f"/{page}?present=1")
        view.until(SHOWN)
        view.page.keyboard.press("?")
        listed = view.page.get_by_role("dialog", name="Keys")
        expect(listed).to_be_visible()
        assert listed.locator("kbd").all_inner_texts() == keys
        check_page(view)
        view.page.keyboard.press("Escape")
        expect(listed).to_be_hidden()
        assert "present=1" in view.page.url


def test_a_finger_moves_the_position(presented_page):
    view = presented_page("rotation?rotation.at=100,0", width=390, height=844, has_touch=True)
    x, y = middle_of(view.page.locator(".rv-clocks canvas"))
    drag_finger(view, (x + 60, y), (x - 60, y + 6), 12)
    view.until(f"{STATE}.m === '105'")
    drag_finger(view, (x - 60, y), (x + 60, y + 6), 12)
    view.until(f"{STATE}.m === '100'")
    view.page.locator(".rv-present [data-do=close]").tap()
    view.page.wait_for_url(lambda url: "present" not in url)


def test_figure_menu_presents_the_figure(visit):
    view = visit(width=1280, height=720).open("/decay")
    place = view.scroll_to("decay/pairs")
    pick(place, "full", "present")
    view.page.wait_for_url("**present=pairs**")
    view.until("document.querySelector('.st-key-present .rv-picture')?.dataset.picture === 'decay/pairs'")
    view.page.locator(".rv-present [data-do=close]").click()
    view.page.wait_for_url(lambda url: "present" not in url)
    view.page.go_back()
    view.until("Boolean(document.querySelector('.st-key-present'))")
