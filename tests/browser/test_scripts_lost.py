"""If a script cannot be loaded, the picture reports it and a button loads it again."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.figure_tools import customise, pick

# A picture retries after 1 second and then after twice as long each time; here the short waits are shortened.
SHORT_WAITS = """const slow = setTimeout, waits = (window.waits = []);
window.setTimeout = (does, time, ...given) => {
  const own = [1000, 2000, 4000, 8000, 16000].includes(time) && waits.push(time);
  return slow(does, own && time < 16000 ? time / 50 : time, ...given);
};"""


@pytest.mark.parametrize("name", ["plotly.min.js", "chart.js"])
def test_lost_script_is_retried_with_backoff_and_by_button(chromium, server, name):
    context = chromium.new_context()
    try:
        context.add_init_script(SHORT_WAITS)
        page, address = context.new_page(), re.compile(rf"/{re.escape(name)}(\?|$)")
        context.route(address, lambda route: route.abort())
        page.goto(server + "/frequencies")
        place = page.locator('[data-picture="frequencies/wavelengths"]')
        button = place.get_by_role("button", name="Try again")
        expect(button).to_be_visible()
        observer = (
            "new MutationObserver((all) => all.some((each) => each.removedNodes.length) && (window.removed = true))"
        )
        place.evaluate(f"(place) => {observer}.observe(place, {{ childList: true }})")
        near = "document.querySelectorAll('.rv-picture:not([data-state=far])').length"
        longest = f"waits.filter((time) => time === 16000).length >= {near}"
        Visit(page, server).until(longest)
        context.unroute(address)
        assert not page.evaluate("window.removed"), "the button must stay, since it may have the keyboard focus"
        button.click()
        expect(place.locator(".js-line").first).to_be_visible()
        expect(button).to_be_hidden()
    finally:
        context.close()


def test_lost_picture_script_is_sent_again(chromium, server):
    context = chromium.new_context()
    try:
        page, address, lost = context.new_page(), re.compile(r"/picture\.js$"), []
        context.route(address, lambda route: (lost.append(route), route.abort()))
        page.goto(server + "/frequencies")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        page.wait_for_event("requestfailed", lambda request: len(lost) >= 3)
        context.unroute(address)
        expect(page.locator('[data-picture="frequencies/wavelengths"] .js-line').first).to_be_visible()
    finally:
        context.close()


def test_the_library_loads_once_and_no_request_fails(chromium, server):
    """With a deep link, Streamlit's client would request a wrong address first."""
    context = chromium.new_context()
    try:
        page, answers = context.new_page(), []
        page.on("response", lambda answer: answers.append((answer.url, answer.status)))
        page.goto(server + "/frequencies")
        expect(page.locator('[data-picture="frequencies/wavelengths"] .js-line').first).to_be_visible()
        assert [answer for answer in answers if answer[1] >= 400] == []
        requests = page.evaluate(
            "performance.getEntriesByType('resource').map(({ name, startTime }) => [startTime, name])"
        )
        names = [name.split("?")[0] for _, name in sorted(requests)]
        library = next(at for at, name in enumerate(names) if name.endswith("/plotly.min.js"))
        # The page itself requests its first picture at once; whatever the scripts request comes after the library.
        first, *others = dict.fromkeys(name for name in names if "/picture/" in name)
        assert first.endswith("/frequencies/wavelengths.packed")
        assert all(library < names.index(name) for name in others)
        assert len(set(names)) > 50
        assert sum(name.endswith("/plotly.min.js") for name in names) == 1
    finally:
        context.close()


@pytest.mark.parametrize(
    ("path", "picture", "form"),
    [("/frequencies", "frequencies/wavelengths", "svg"), ("/rotation", "rotation/turning", "html")],
)
def test_failed_dialog_or_file_is_reported_and_retried(chromium, server, path, picture, form):
    """Both scripts are loaded on first use, here without a connection."""
    context = chromium.new_context()
    try:
        page, errors = context.new_page(), []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(server + path)
        place = page.locator(f'[data-picture="{picture}"]')
        expect(place.locator("[data-do=customise]")).to_be_visible()
        expect(page.locator('[data-test-script-state="notRunning"]')).to_be_visible()
        message, dialog = place.locator(".rv-failed"), page.get_by_role("dialog")
        context.set_offline(True)
        for what in ("the file", "the dialog", "the file"):
            customise(place) if what == "the dialog" else pick(place, "download", form)
            expect(message).to_contain_text(f"Could not load {what}")
            message.get_by_role("button").click()
            expect(message).to_contain_text(f"Could not load {what}")
        context.set_offline(False)
        with page.expect_download():
            message.get_by_role("button").click()
        expect(message).to_have_count(0)
        customise(place)
        expect(dialog).to_be_visible()
        assert errors == []
    finally:
        context.close()
