"""What a browser shows when the places for pages are taken: a sentence, and a page that sleeps until it is used."""

import asyncio
import contextlib
import threading

import pytest
import websockets
from playwright.sync_api import expect
from streamlit.proto.BackMsg_pb2 import BackMsg

from tests.browser.processes import running_server

PLACES = 22
# Streamlit's program, with few places of which none is kept for visitors with few pages.
PROGRAM = f"""
from rope_viz.serving import session_limits
session_limits.OpenPages.__init__.__kwdefaults__["most"] = {PLACES}
session_limits.RESERVED_PAGES = 0
from streamlit.web.cli import main
main()
"""


@pytest.fixture(scope="module")
def small_server():
    with running_server(program=("-c", PROGRAM)) as running:
        yield running.url


@contextlib.contextmanager
def open_pages(url, source, count):
    """Hold so many pages open from an address of this machine; each has asked for one run."""
    opened, end = threading.Event(), threading.Event()

    async def hold():
        address = url.replace("http", "ws") + "/_stcore/stream"
        options = {"subprotocols": ["streamlit"], "origin": url, "max_size": None, "local_addr": (source, 0)}
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(count):
                socket = await stack.enter_async_context(websockets.connect(address, **options))
                message = BackMsg()
                message.rerun_script.page_name = "learn"
                await socket.send(message.SerializeToString())
            opened.set()
            await asyncio.to_thread(end.wait, 120)

    thread = threading.Thread(target=lambda: asyncio.run(hold()))
    thread.start()
    try:
        assert opened.wait(60)
        yield
    finally:
        end.set()
        thread.join(60)


def test_quietest_page_sleeps_until_it_is_used(visit, small_server):
    view = visit(small_server).open("/scaling")
    view.settle()
    page = view.page
    asleep = page.locator("#rv-asleep")
    with open_pages(small_server, "127.0.0.1", PLACES // 2 - 1), open_pages(small_server, "127.0.0.2", PLACES // 2):
        expect(asleep).to_have_count(0)
        with open_pages(small_server, "127.0.0.3", 1):
            expect(asleep).to_contain_text("comes back when you use it")
            page.wait_for_timeout(3000)
            assert page.locator(".rv-banner").count() == 0
            expect(page.locator("[data-testid=stApp]")).not_to_have_attribute("data-test-connection-state", "CONNECTED")
    page.keyboard.press("Shift")
    expect(asleep).to_have_count(0)
    expect(page.locator("[data-testid=stApp]")).to_have_attribute("data-test-connection-state", "CONNECTED")
    view.settle()


CASES = {"en": "pages of RoPE Viz open", "zh": "个 RoPE Viz 页面"}


@pytest.mark.parametrize("language", CASES)
def test_page_whose_connection_alone_was_refused_says_why(visit, small_server, language):
    page = visit(small_server).page
    scripts = []
    page.route("**/static/js/index.*", lambda route: scripts.append(route), times=1)
    # The page itself arrives while a place is free; its connection comes when none is left.
    page.goto(f"{small_server}/scaling?lang={language}", wait_until="commit")
    with open_pages(small_server, "127.0.0.1", PLACES // 2):
        page.wait_for_function("document.querySelector('#rv-coming')")
        for script in scripts:
            script.continue_()
        expect(page.locator("#rv-coming")).to_contain_text(CASES[language], timeout=60_000)
    expect(page.locator("[data-testid=stMain] h1").first).to_be_visible()
