"""A sentence of the user's own on Home and in scene 3 of Learn: in the link, escaped, and in no request."""

from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.browser.test_every_page import find_violations
from tests.browser.test_learn import predict, wait_for_scene

HOSTILE = {
    "<script>alert(1)</script> <img src=x onerror=alert(2)> & \"b\" 'c'": "It is part of this page’s link",
    "\u202eabc \u2066def\u2069 \u200fשלום עולם": "It is part of this page’s link",
    "👩‍👩‍👧 eats 🍕 {at} $& ``": "It is part of this page’s link",
    "word " * 2000: "at most 120 characters",
    "x" * 10_000: "at least two words",
    "a b c d e f g h i j k l m n": "at most 12 words",
    "one": "at least two words",
    "\x00\x07 \t": "at least two words",
}


def type_sentence(view, text):
    form = view.page.locator(".rv-own")
    if not form.evaluate("(node) => node.open"):
        form.locator("summary").click()
    form.locator("input").fill(text)
    form.locator("form button").click()
    return form


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("address", ["/", "/learn?learn.scene=3"])
def test_hostile_sentence_is_shown_as_text(visit, address, width):
    view = visit(width=width, height=844).open(address)
    view.page.on("dialog", lambda dialog: view.errors.append(dialog.message))
    if address != "/":
        predict(view)
    for text, problem in HOSTILE.items():
        form = type_sentence(view, text)
        expect(form.locator(".rv-problem")).to_contain_text(problem)
        assert form.locator("input").input_value().startswith("x") or len(form.locator("input").input_value()) <= 120
        assert view.page.evaluate("document.documentElement.scrollWidth") <= width
        assert view.page.locator(".rv-picture :is(script, img, b b)").count() == 0
    assert view.errors == []


def test_words_are_dragged_and_the_link_carries_them(visit):
    view = visit(watched=True)
    requests = []
    view.page.on("request", lambda request: requests.append(request.url + (request.post_data or "")))
    view.open("/")
    form = type_sentence(view, "Tokens far apart see each other")
    expect(form).to_contain_text("No server stores it")
    expect(view.page.locator(".rv-hands [data-do=key]")).to_have_text("far")
    form.locator("[data-do=word]", has_text="each").click()
    expect(view.page.locator(".rv-hands [data-do=query]")).to_have_text("each")
    expect(view.page.locator(".rv-now")).to_contain_text("3 tokens apart")
    view.page.locator(".rv-hands [data-do=query]").focus()
    view.page.keyboard.press("ArrowRight")
    expect(view.page.locator(".rv-now")).to_contain_text("4 tokens apart")
    link = view.page.url
    assert f"words={quote('Tokens far apart see each other')}&two=1,4" in link
    view.page.locator("main").get_by_role("link", name="Learn it").click()
    wait_for_scene(view, 1)
    view.settle()
    for number in (2, 3):
        view.page.locator(".rv-learn [data-do=next]").click()
        wait_for_scene(view, number)
        view.page.wait_for_url(f"**learn.scene={number}**")
        view.settle()
    predict(view)
    assert [each.inner_text() for each in view.page.locator(".rv-track i").all()[:2]] == ["far", "each"]
    expect(view.page.locator(".rv-lead")).to_contain_text("key of “far”")
    view.until("location.hash.includes('words=Tokens')")
    view.page.reload()
    wait_for_scene(view, 3)
    assert [each.inner_text() for each in view.page.locator(".rv-track i").all()[:2]] == ["far", "each"]
    assert [each for each in requests if "Tokens" in each] == [], "a request holds the sentence"
    assert find_violations(view.page, {}) == []
    other = visit()
    other.page.goto(link)
    expect(other.page.locator(".rv-hands [data-do=query]")).to_have_text("each")
    assert view.errors == []
    assert other.errors == []


@pytest.mark.parametrize("fragment", ["words=%", "words=one", "words=a%20b&two=9,1", "words=a%20b&two=x", "two=1,2"])
def test_damaged_link_opens_the_page(visit, fragment):
    view = visit()
    view.page.goto(f"{view.url}/#{fragment}")
    view.settle()
    words = ["a", "b"] if "a%20b" in fragment else ["cat", "it"]
    assert [view.page.locator(f".rv-hands [data-do={name}]").inner_text() for name in ("key", "query")] == words
    assert view.errors == []


def test_empty_sentence_returns_to_the_usual_one(visit):
    view = visit().open("/#words=Dogs%20bite&two=0,1")
    expect(view.page.locator(".rv-hands [data-do=query]")).to_have_text("bite")
    type_sentence(view, "")
    expect(view.page.locator(".rv-hands [data-do=query]")).to_have_text("it")
    assert "words" not in view.page.url
    assert view.errors == []
