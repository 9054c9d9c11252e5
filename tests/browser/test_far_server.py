"""With high latency, a control is used before the answer to the previous one arrives; both take effect."""

import asyncio
import contextlib
import threading
from urllib.parse import parse_qs, urlsplit

import pytest

DELAY = 0.3
"""Seconds in each direction."""


async def forward_late(source, target):
    """Forward all bytes from source to target with a delay."""
    loop, queue = asyncio.get_running_loop(), asyncio.Queue()

    async def deliver():
        while (due := await queue.get())[1]:
            await asyncio.sleep(due[0] - loop.time())
            target.write(due[1])
        target.close()

    delivery = loop.create_task(deliver())
    with contextlib.suppress(OSError):
        while content := await source.read(1 << 16):
            queue.put_nowait((loop.time() + DELAY, content))
    queue.put_nowait((0, b""))
    await delivery


@pytest.fixture
def far_server(server):
    """Return the address of a proxy that delays everything between browser and server."""
    loop = asyncio.new_event_loop()
    port = int(server.rpartition(":")[2])

    async def on_connection(incoming, outgoing):
        far_incoming, far_outgoing = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(
            forward_late(incoming, far_outgoing), forward_late(far_incoming, outgoing), return_exceptions=True
        )

    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    listener = asyncio.run_coroutine_threadsafe(asyncio.start_server(on_connection, "127.0.0.1", 0), loop).result(10)
    yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"

    async def close_all():
        listener.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for each in others:
            each.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    asyncio.run_coroutine_threadsafe(close_all(), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(timeout=10)
    loop.close()


def test_two_quick_changes_both_take_effect(visit, far_server):
    view = visit(far_server).open("/scaling?model=llama-2-7b")
    main, knob = view.page.locator("main"), view.knob("base")

    def wait_for_query(**expected):
        view.page.wait_for_url(lambda url: parse_qs(urlsplit(url).query) == {key: [expected[key]] for key in expected})
        view.settle()

    def type_base(value):
        knob.fill(value)
        knob.press("Enter")

    def choose_method():
        view.page.get_by_test_id("stSidebar").get_by_role("combobox", name="Scaling method").focus()
        view.page.keyboard.type("linear")
        view.page.keyboard.press("Enter")

    type_base("777000")
    main.get_by_text("Wavelengths", exact=True).click()
    request = {"model": "llama-2-7b", "base": "777000", "scaling.show": "wavelength"}
    wait_for_query(**request)
    main.get_by_text("Ramp γ", exact=True).click()
    choose_method()
    wait_for_query(**request | {"scaling.show": "ramp", "method": "linear", "target": "16384"})
    type_base("888000")
    view.page.locator("#rv-tabs").get_by_role("link", name="Decay", exact=True).click()
    wait_for_query(model="llama-2-7b", base="888000", method="linear", target="16384")
    assert urlsplit(view.page.url).path == "/decay"
    assert knob.input_value() == "888000"
    assert view.errors == []
