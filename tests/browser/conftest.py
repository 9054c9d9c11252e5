"""A real server and a real Chromium. Without one the tests skip and say so; in CI that is a failure."""

import contextlib
import os
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Error, expect, sync_playwright

from rope_viz.pictures.doors import DOORS, TITLES, door_of
from tests.browser.processes import (
    BROWSER_NAMES,
    BROWSER_OPTIONS,
    HEALTH_PATH,
    find_browser,
    find_free_port,
    running_server,
)

LIMIT = 120.0
"""Seconds after which a wait for a condition fails: waits end with the condition, and a busy machine takes longer."""
expect.set_options(timeout=1000 * LIMIT)

HERE = str(Path(__file__).parent) + os.sep


def pytest_collection_modifyitems(items):
    for item in items:
        if str(item.path).startswith(HERE):
            item.add_marker(pytest.mark.browser)
            # A loaded machine can lose a click; the summary names what had to run again.
            item.add_marker(pytest.mark.flaky(reruns=1))


def skip_unless_required(reason):
    """Skip a test that needs a program which is not installed, or fail it where ROPE_VIZ_NO_SKIP is set, as in CI."""
    pytest.fail(reason) if os.environ.get("ROPE_VIZ_NO_SKIP") else pytest.skip(reason)


@pytest.fixture(scope="session")
def playwright():
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="session")
def program():
    """Return the arguments with which Playwright launches the browser."""
    path = find_browser()
    if path is None:
        skip_unless_required(f"no Chrome or Chromium found (looked for {', '.join(BROWSER_NAMES)})")
    arguments = [*BROWSER_OPTIONS, "--disable-background-networking", "--disable-component-update"]
    arguments.append("--window-size=1440,900")
    # Modules that stream in are parsed anew at every visit: without that they come from what was compiled before. And a
    # page that lives for seconds does not earn what V8 spends on code that is called a few hundred times.
    rarely = "--invocation-count-for-maglev=4000 --invocation-count-for-turbofan=20000"
    arguments.append(f"--js-flags=--no-script-streaming {rarely}")
    return {"executable_path": path, "args": arguments}


@pytest.fixture(scope="session")
def chromium(playwright, program):
    """A browser for contexts of one's own, which begin with nothing."""
    browser = playwright.chromium.launch(**program)
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def reader(playwright, program, server, tmp_path_factory):
    """reader(0) is a browser that keeps what it has loaded and compiled, as a reader's does: half the time.

    All pages of this machine are one process of it, and its first page, of nothing but a word, keeps that alive.
    Another number is another reader, who knows nothing of the first.
    """
    running = {}
    options = program | {"args": [*program["args"], "--process-per-site"]}

    def launched(number, has_touch=False):
        if (number, has_touch) not in running:
            folder = tmp_path_factory.mktemp("profile")
            context = playwright.chromium.launch_persistent_context(
                folder, has_touch=has_touch, no_viewport=True, **options
            )
            context.pages[0].goto(server + HEALTH_PATH)
            running[number, has_touch] = context
        return running[number, has_touch]

    yield launched
    for context in running.values():
        context.close()


@pytest.fixture(scope="session")
def server():
    """Run one server for the whole session and give its address."""
    with running_server() as started:
        yield started.url


@pytest.fixture
def new_server():
    """new_server("--option", "value", base="path") gives the address of one more server, with these options."""
    with contextlib.ExitStack() as running:
        yield lambda *options, base="": running.enter_context(running_server(*options, base=base)).url


@pytest.fixture
def fresh_server(new_server):
    """A server nobody has visited yet."""
    return new_server()


class Mortal:
    """A server that can be killed, and started again at the same address."""

    def __init__(self, port=0):
        self.port = port or find_free_port()
        self.revive()

    def kill(self):
        self.process.kill()
        self.running.close()

    def revive(self):
        self.running = contextlib.ExitStack()
        self.url, self.process = self.running.enter_context(running_server(port=self.port))


@pytest.fixture(scope="session")
def its_port():
    return find_free_port()


@pytest.fixture
def mortal(its_port):
    """A server of its own to kill, at the address of the one before: the browser has its scripts from then."""
    server = Mortal(its_port)
    yield server
    server.kill()


class Visit:
    """A page in the browser, with all that went wrong on it; `watched`, what it asked for elsewhere too.

    A page asks for 135 files: hearing of each takes a twentieth of the time of the whole page.
    """

    def __init__(self, page, url, watched=True):
        self.page, self.url, self.errors, self.elsewhere = page, url, [], [] if watched else None
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        if watched:
            page.on("request", self._request)

    def _console(self, message):
        if message.type == "error":
            self.errors.append(f"{message.text} {message.location.get('url', '')}")

    def _request(self, request):
        if not request.url.startswith((self.url, "data:", "blob:", self.url.replace("http", "ws"))):
            self.elsewhere.append(request.url)

    def resize(self, width, height):
        """The window, and with it the page: a size that is only emulated has Chromium forget all that it had loaded."""
        session = self.page.context.new_cdp_session(self.page)
        window = session.send("Browser.getWindowForTarget")["windowId"]
        session.send("Browser.setWindowBounds", {"windowId": window, "bounds": {"width": width, "height": height}})
        session.detach()
        if self.page.evaluate("[innerWidth, innerHeight]") != [width, height]:  # where a frame is around the page
            self.page.set_viewport_size({"width": width, "height": height})

    def open(self, path):
        self.page.goto(self.url + path)
        self.settle()
        return self

    def go(self, title):
        """To another page by the header: its door, then its tab, as a hand goes on with what it chose."""
        name = next(name for name, each in TITLES.items() if each == title)
        door = door_of(name)
        header = self.page.locator("#rv-header")
        if not door:
            header.locator(".rv-logo").click()
        elif self.page.evaluate("document.documentElement.dataset.door") != door or DOORS[door][0] == name:
            header.locator(f"[data-door={door}]").click()
            self._arrive(DOORS[door][0])
        if door and DOORS[door][0] != name:
            header.locator(f"#rv-tabs [data-to={name}]").click()
        self._arrive(name)

    def _arrive(self, name):
        """Wait until the page of this name is there and rests."""
        path = "" if name == "home" else name
        self.page.wait_for_url(lambda url: urlsplit(url).path.rpartition("/")[2] == path)
        self.settle()

    def settle(self):
        """Wait until the script rests and every chart shows what it last received."""
        self.page.wait_for_selector('[data-testid="stApp"][data-test-connection-state="CONNECTED"]')
        assert self.stays(RESTS, 4, LIMIT), "the page did not come to rest"

    def look(self, name):
        """Scroll to a picture, by its address, and wait until it is there; then this is the whole page's rest."""
        place = self.page.locator(f'.rv-picture[data-picture="{name}"]')
        place.scroll_into_view_if_needed()
        # The browser says only with its next frame that it is near, and a busy one has few.
        expect(place).not_to_have_attribute("data-state", "far")
        self.settle()
        return place

    def until(self, expression):
        """Wait until a JavaScript expression is true; Playwright's own waiting needs eval, which the policy forbids."""
        assert self.stays(f"() => {expression}", 1, LIMIT), f"never true: {expression}"

    def stays(self, function, times, seconds):
        """Whether a function in the page is true so many times running: asked there, which is less work than here."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            try:
                return self.page.evaluate(f"({STAYS})({function}, {times}, {1000 * left})")
            except Error as error:
                # Another page came, or the same one anew: it is asked there.
                if not any(words in error.message for words in ("context was destroyed", "navigat")):
                    raise
        return False

    def is_alone(self):
        """Whether there is no other tab, but the reader's first."""
        return [other for other in self.page.context.pages if not other.url.endswith(HEALTH_PATH)] == [self.page]

    def drawn(self, index=0):
        return int(self.page.locator(".rv-chart").nth(index).get_attribute("data-drawn"))

    def knob(self, name):
        return self.page.locator(f"[data-knob={name}] input[type=text]")

    def slider(self, name):
        return self.page.locator(f"[data-knob={name}] input[type=range]")


STAYS = """async (holds, times, limit) => {
  const end = performance.now() + limit;
  for (let calm = 0; performance.now() < end; ) {
    await new Promise((go) => setTimeout(go, 75));
    calm = holds() ? calm + 1 : 0;
    if (calm === times) return true;
  }
  return false;
}"""

RESTS = """() => {
  const app = document.querySelector('[data-testid="stApp"]');
  const pictures = [...document.querySelectorAll('.rv-picture')];
  if (!pictures.length && !document.querySelector('.rv-rejected, [data-testid="stMain"] h1')) return false;
  return app.dataset.testScriptState === "notRunning" && !document.querySelector("[data-moving]")
    && pictures.every(({ dataset }) => ["shown", "far", "failed"].includes(dataset.state) && !dataset.waiting)
    && pictures.every((at) => at.dataset.state !== "shown" || (at.dataset.drawn && !at.__place.outbox.inFlight))
    && !document.querySelector("[data-place]:not(:has(> .rv-picture))");
}"""


@pytest.fixture
def visit(reader, server):
    """visit(width=390, dark=True).open("/scaling"): nothing of tests before is left; a second is another reader.

    Without `motion` the reader has asked for less of it: dials that play take most of a core.
    """
    opened = []

    def start(
        url=server,
        *,
        width=1440,
        height=900,
        dark=False,
        motion=False,
        has_touch=False,
        permissions=(),
        watched=False,
    ):
        context = reader(len(opened), has_touch)
        page = context.new_page()
        page.set_default_timeout(1000 * LIMIT)
        forget(context, page, url)
        opened.append(context)
        page.emulate_media(
            color_scheme="dark" if dark else "light", reduced_motion="no-preference" if motion else "reduce"
        )
        context.grant_permissions(list(permissions))
        seen = Visit(page, url, watched)
        seen.resize(width, height)
        return seen

    yield start
    for context in opened:
        with contextlib.suppress(Error):
            context.set_offline(False)
            context.clear_permissions()
            leave(context)


def forget(context, page, url):
    """Close what another test left, and let what it stored go."""
    leave(context, page)
    origin = "/".join(url.split("/")[:3])
    session = context.new_cdp_session(page)
    session.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "cookies,local_storage,indexeddb"})
    session.detach()


def leave(context, kept=None):
    """Close all pages but the first and perhaps one more, so that no server is asked any more."""
    for page in context.pages[1:]:
        if page != kept:
            page.close()
