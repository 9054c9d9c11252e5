"""A real server and a real Chromium. Without Chromium the tests are skipped with a reason; in CI they fail.

Playwright leaves a running event loop in its thread, in which nothing else can run one. So Playwright and its browsers
have the scope of this folder: they end before a test of another folder begins.
"""

import contextlib
import json
import os
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Error, expect, sync_playwright

from rope_viz.pages.registry import door_of, doors, titles
from tests.addresses import check_address
from tests.browser.processes import (
    BROWSER_NAMES,
    BROWSER_OPTIONS,
    HEALTH_PATH,
    find_browser,
    find_free_port,
    running_server,
)

LIMIT = 120.0
"""Seconds after which waiting for a condition fails. Waits end as soon as the condition holds."""
expect.set_options(timeout=1000 * LIMIT)

HERE = str(Path(__file__).parent) + os.sep


def pytest_collection_modifyitems(items):
    for item in items:
        if str(item.path).startswith(HERE):
            item.add_marker(pytest.mark.browser)
            if item.path.name != "test_smoke.py":
                item.add_marker(pytest.mark.slow)
            # A loaded machine can lose a click; the summary lists the tests that were run again.
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture(scope="package")
def playwright():
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="session")
def program():
    """Return the arguments with which Playwright launches the browser."""
    path = find_browser()
    if path is None:
        pytest.skip(f"no Chrome or Chromium found (looked for {', '.join(BROWSER_NAMES)})")
    arguments = [*BROWSER_OPTIONS, "--disable-background-networking", "--disable-component-update"]
    arguments.append("--window-size=1440,900")
    # Streamed modules are parsed at every visit; others come from V8's cache. And pages that live for seconds do not
    # repay the time that V8 spends on optimising functions that are called a few hundred times.
    rarely = "--invocation-count-for-maglev=4000 --invocation-count-for-turbofan=20000"
    arguments.append(f"--js-flags=--no-script-streaming {rarely}")
    return {"executable_path": path, "args": arguments}


@pytest.fixture(scope="package")
def chromium(playwright, program):
    """A browser for tests that need a context with an empty cache."""
    browser = playwright.chromium.launch(**program)
    yield browser
    browser.close()


@pytest.fixture(scope="package")
def browser_with_cache(playwright, program, server, tmp_path_factory):
    """browser_with_cache(0) is a browser profile whose cache is shared by all tests, which halves their time.

    All its pages share one renderer process, which the first tab, an almost empty page, keeps alive. Each number is a
    profile of its own.
    """
    running = {}
    options = program | {"args": [*program["args"], "--process-per-site"]}

    def launch(number, has_touch=False):
        if (number, has_touch) not in running:
            folder = tmp_path_factory.mktemp("profile")
            context = playwright.chromium.launch_persistent_context(
                folder, has_touch=has_touch, no_viewport=True, **options
            )
            context.pages[0].goto(server + HEALTH_PATH)
            running[number, has_touch] = context
        return running[number, has_touch]

    yield launch
    for context in running.values():
        context.close()


@pytest.fixture(scope="session")
def server():
    """Run one server for the whole session and return its address."""
    with running_server() as started:
        yield started.url


@pytest.fixture
def new_server():
    """new_server("--option", "value", base="path") starts another server with these options and returns its address."""
    with contextlib.ExitStack() as running:
        yield lambda *options, base="": running.enter_context(running_server(*options, base=base)).url


@pytest.fixture(scope="module")
def second_server():
    """Run a server that has no sessions and stored contents of the first, one for each file."""
    with running_server() as started:
        yield started.url


class KillableServer:
    """A server that can be killed and restarted at the same address."""

    def __init__(self, port=0):
        self.port = port or find_free_port()
        self.restart()

    def kill(self):
        self.process.kill()
        self.running.close()

    def restart(self):
        self.running = contextlib.ExitStack()
        self.url, self.process = self.running.enter_context(running_server(port=self.port))


@pytest.fixture(scope="session")
def killable_port():
    return find_free_port()


@pytest.fixture
def killable_server(killable_port):
    """A server to kill. All use one address, so that the browser has cached its scripts."""
    server = KillableServer(killable_port)
    yield server
    server.kill()


class Visit:
    """A page in the browser and its console errors; if `watched`, also its requests to other hosts.

    Watching costs 5 % of a page's time: it makes 135 requests.
    """

    def __init__(self, page, url, watched=True):
        self.page, self.url, self.errors, self.foreign_requests = page, url, [], [] if watched else None
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        if watched:
            page.on("request", self._request)

    def _console(self, message):
        if message.type == "error":
            self.errors.append(f"{message.text} {message.location.get('url', '')}")

    def _request(self, request):
        if not request.url.startswith((self.url, "data:", "blob:", self.url.replace("http", "ws"))):
            self.foreign_requests.append(request.url)

    def resize(self, width, height):
        """Resize the window. An emulated size would make Chromium drop its cache."""
        session = self.page.context.new_cdp_session(self.page)
        window = session.send("Browser.getWindowForTarget")["windowId"]
        session.send("Browser.setWindowBounds", {"windowId": window, "bounds": {"width": width, "height": height}})
        session.detach()
        if self.page.evaluate("[innerWidth, innerHeight]") != [width, height]:  # the window has a frame
            self.page.set_viewport_size({"width": width, "height": height})

    def open(self, path, *, is_valid=True):
        """Open an address and wait until the page is settled; is_valid=False is for an address with a fault."""
        check_address(path, is_valid=is_valid)
        self.page.goto(self.url + path)
        self.settle()
        return self

    def go(self, title):
        """Open another page by the header, first its door and then its tab; choices in the address are kept."""
        name = next(name for name, each in titles().items() if each == title)
        door = door_of(name)
        header = self.page.locator("#rv-header")
        if not door:
            header.locator(".rv-logo").click()
        elif self.page.evaluate("document.documentElement.dataset.door") != door or doors()[door][0] == name:
            header.locator(f"[data-door={door}]").click()
            self._arrive(doors()[door][0])
        if door and doors()[door][0] != name:
            header.locator(f"#rv-tabs [data-to={name}]").click()
        self._arrive(name)

    def _arrive(self, name):
        """Wait until the page of this name is open and settled."""
        path = "" if name == "home" else name
        self.page.wait_for_url(lambda url: urlsplit(url).path.rpartition("/")[2] == path)
        self.settle()

    def drop(self, content, name="config.json"):
        """Put a file into the page's field for configs; a dict is written as JSON."""
        content = json.dumps(content).encode() if isinstance(content, dict) else content
        field = self.page.locator("[data-testid=stFileUploader] input[type=file]").first
        field.set_input_files({"name": name, "mimeType": "application/json", "buffer": content})

    def settle(self):
        """Wait until the script has finished and every chart shows its last data."""
        self.page.wait_for_selector('[data-testid="stApp"][data-test-connection-state="CONNECTED"]')
        assert self.becomes_true(IS_SETTLED, 4, LIMIT), "the page did not settle"

    def scroll_to(self, name):
        """Scroll to a picture, given by its address, wait until the page is settled, and return its element."""
        place = self.page.locator(f'.rv-picture[data-picture="{name}"]')
        place.scroll_into_view_if_needed()
        # The browser reports an element in view only with its next frame; on a busy machine that takes a while.
        expect(place).not_to_have_attribute("data-state", "far")
        self.settle()
        return place

    def until(self, expression):
        """Wait until a JavaScript expression is true; Playwright's own waiting needs eval, which the policy forbids."""
        assert self.becomes_true(f"() => {expression}", 1, LIMIT), f"never true: {expression}"

    def becomes_true(self, function, times, seconds):
        """Return True once a function of the page was true so many times in a row, False after so many seconds."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            try:
                return self.page.evaluate(f"({WAIT_UNTIL_TRUE})({function}, {times}, {1000 * left})")
            except Error as error:
                # The page was replaced or reloaded: repeat the wait on the new one.
                if not any(words in error.message for words in ("context was destroyed", "navigat")):
                    raise
        return False

    def wait_frames(self, count=20):
        """Wait for so many animation frames: an animation would have drawn in each of them."""
        self.page.evaluate(f"({WAIT_FRAMES})({count})")

    def is_only_tab(self):
        """Return True if no other tab is open except the profile's first."""
        return [other for other in self.page.context.pages if not other.url.endswith(HEALTH_PATH)] == [self.page]

    def count_draws(self, index=0):
        return int(self.page.locator(".rv-chart").nth(index).get_attribute("data-drawn"))

    def knob(self, name):
        return self.page.locator(f"[data-knob={name}] input[type=text]")

    def slider(self, name):
        return self.page.locator(f"[data-knob={name}] input[type=range]")


WAIT_FRAMES = """(count) => new Promise((done) => {
  const wait = () => (count-- > 0 ? requestAnimationFrame(wait) : done());
  wait();
})"""

WAIT_UNTIL_TRUE = """async (holds, times, limit) => {
  const end = performance.now() + limit;
  for (let calm = 0; performance.now() < end; ) {
    await new Promise((go) => setTimeout(go, 75));
    calm = holds() ? calm + 1 : 0;
    if (calm === times) return true;
  }
  return false;
}"""

# A picture in view is "far" until the browser's next frame, which takes a while on a busy machine.
IS_SETTLED = """() => {
  const app = document.querySelector('[data-testid="stApp"]');
  const pictures = [...document.querySelectorAll('.rv-picture')];
  const isInView = ({ left, right, top, bottom }) =>
    right > 0 && left < innerWidth && bottom > 0 && top < innerHeight && right > left;
  if (pictures.some((node) => node.dataset.state === "far" && isInView(node.getBoundingClientRect()))) return false;
  if (!pictures.length && !document.querySelector('.rv-rejected, [data-testid="stMain"] h1')) return false;
  return app.dataset.testScriptState === "notRunning" && !document.querySelector("[data-moving]")
    && pictures.every(({ dataset }) => ["shown", "far", "failed"].includes(dataset.state) && !dataset.waiting)
    && pictures.every((at) => at.dataset.state !== "shown" || (at.dataset.drawn && !at.__place.outbox.inFlight))
    && !document.querySelector("[data-place]:not(:has(> .rv-picture))");
}"""


@pytest.fixture
def visit(browser_with_cache, server):
    """visit(width=390, dark=True).open("/scaling") opens a page without stored data; a second visit is another user.

    Without `motion`, the browser asks for reduced motion: dials that play take most of a core.
    """
    contexts = []

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
        context = browser_with_cache(len(contexts), has_touch)
        page = context.new_page()
        page.set_default_timeout(1000 * LIMIT)
        clear_site_data(context, page, url)
        contexts.append(context)
        page.emulate_media(
            color_scheme="dark" if dark else "light", reduced_motion="no-preference" if motion else "reduce"
        )
        context.grant_permissions(list(permissions))
        view = Visit(page, url, watched)
        view.resize(width, height)
        return view

    yield start
    for context in contexts:
        with contextlib.suppress(Error):
            context.set_offline(False)
            context.clear_permissions()
            close_pages(context)


def clear_site_data(context, page, url):
    """Close the pages of earlier tests and delete what they stored."""
    close_pages(context, page)
    origin = "/".join(url.split("/")[:3])
    session = context.new_cdp_session(page)
    session.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "cookies,local_storage,indexeddb"})
    session.detach()


def close_pages(context, remaining_page=None):
    """Close all pages except the first and `remaining_page`, so that they request nothing more."""
    for page in context.pages[1:]:
        if page != remaining_page:
            page.close()
