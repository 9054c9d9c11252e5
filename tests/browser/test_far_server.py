"""A server far away: the next control is used before the answer to the one before has come, and both count."""

import asyncio
import contextlib
import threading
from urllib.parse import parse_qs, urlsplit

import pytest

DELAY = 0.3
"""Seconds for each way."""


async def late(source, target):
    """Everything that comes from one side to the other, as late as it is far."""
    loop, queue = asyncio.get_running_loop(), asyncio.Queue()

    async def given():
        while (due := await queue.get())[1]:
            await asyncio.sleep(due[0] - loop.time())
            target.write(due[1])
        target.close()

    giving = loop.create_task(given())
    with contextlib.suppress(OSError):
        while content := await source.read(1 << 16):
            queue.put_nowait((loop.time() + DELAY, content))
    queue.put_nowait((0, b""))
    await giving


@pytest.fixture
def far(server):
    """The address of the server behind a long line."""
    loop = asyncio.new_event_loop()
    port = int(server.rpartition(":")[2])

    async def connected(reader, writer):
        other, to = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(late(reader, to), late(other, writer), return_exceptions=True)

    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    line = asyncio.run_coroutine_threadsafe(asyncio.start_server(connected, "127.0.0.1", 0), loop).result(10)
    yield f"http://127.0.0.1:{line.sockets[0].getsockname()[1]}"

    async def end():
        line.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for each in others:
            each.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    asyncio.run_coroutine_threadsafe(end(), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(timeout=10)
    loop.close()


def test_two_quick_changes_both_take_effect(visit, far):
    seen = visit(far).open("/scaling?model=llama-2-7b")
    main, knob = seen.page.locator("main"), seen.knob("base")

    def asks(**wanted):
        seen.page.wait_for_url(lambda url: parse_qs(urlsplit(url).query) == {key: [wanted[key]] for key in wanted})
        seen.settle()

    def type_base(value):
        knob.fill(value)
        knob.press("Enter")

    def choose_method():
        seen.page.get_by_test_id("stSidebar").get_by_role("combobox", name="Scaling method").focus()
        seen.page.keyboard.type("linear")
        seen.page.keyboard.press("Enter")

    type_base("777000")
    main.get_by_text("Wavelengths", exact=True).click()
    now = {"model": "llama-2-7b", "base": "777000", "scaling.show": "wavelength"}
    asks(**now)
    main.get_by_text("Ramp γ", exact=True).click()
    choose_method()
    asks(**now | {"scaling.show": "ramp", "method": "linear"})
    type_base("888000")
    seen.page.locator("#rv-tabs").get_by_role("link", name="Decay", exact=True).click()
    asks(model="llama-2-7b", base="888000", method="linear")
    assert urlsplit(seen.page.url).path == "/decay"
    assert knob.input_value() == "888000"
    assert seen.errors == []
