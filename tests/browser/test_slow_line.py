"""On a slow connection a static picture is shown until the scripts arrive."""

import pytest
from playwright.sync_api import expect

from tests.addresses import check_address

SLOW = {"offline": False, "latency": 50, "downloadThroughput": 40_000, "uploadThroughput": 40_000}
FAST = SLOW | {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}


def test_slow_connection_shows_a_static_first_picture(visit):
    view = visit(width=390, dark=True)
    page, line = view.page, view.page.context.new_cdp_session(view.page)
    line.send("Network.enable")
    line.send("Network.setCacheDisabled", {"cacheDisabled": True})
    line.send("Network.emulateNetworkConditions", SLOW)
    path = "/frequencies?model=qwen3-8b-yarn"
    check_address(path)
    page.goto(view.url + path, wait_until="commit")
    image = page.locator("#rv-coming img")
    expect(image).to_be_visible(timeout=60_000)
    src = image.get_attribute("src")
    assert "/rope-viz/picture/frequencies/wavelengths.svg?" in src
    assert all(word in src for word in ("model=qwen3-8b-yarn", "theme=dark", "width=342px"))
    assert image.evaluate("image => image.naturalWidth") == 342
    line.send("Network.emulateNetworkConditions", FAST)
    expect(page.locator("[data-picture='frequencies/wavelengths'][data-state=shown]")).to_be_visible(timeout=60_000)
    expect(image).to_be_hidden()
    expect(page.locator("img.rv-coming")).to_have_count(0)
    view.settle()
    assert view.errors == []


# Store the callback of the ten-second timer instead of waiting.
HOLD_TIMER = """const later = window.setTimeout;
window.setTimeout = (act, time, ...more) => (time === 10000 ? (window.__late = act) : later(act, time, ...more));"""


def test_static_first_picture_is_not_requested_again(visit):
    view = visit()
    view.page.add_init_script(HOLD_TIMER)
    view.open("/frequencies")
    requests = []
    view.page.on("request", lambda request: requests.append(request.url))
    # The state during a change of page.
    view.page.evaluate("for (const node of document.querySelectorAll('[data-place], h1')) node.remove()")
    view.page.evaluate("window.__late()")
    assert not [address for address in requests if ".svg" in address]


@pytest.mark.parametrize(
    ("path", "picture"),
    [
        ("/decay?present=1&decay.length=4096&axes-decay-curves=ymin:0", "decay/curves"),
        ("/frequencies?present=heatmap", "frequencies/heatmap"),
        ("/rotation?embed=true&utm_source=mail", "rotation/turning"),
    ],
)
def test_static_first_picture_is_what_the_page_shows(visit, path, picture):
    """Keys that only the page reads are not sent: the picture's address would be refused."""
    view = visit()
    page, held = view.page, []
    page.route("**/static/js/**", lambda route: held.append(route))
    check_address(path)
    with page.expect_response(lambda answer: ".svg" in answer.url) as found:
        page.goto(view.url + path, wait_until="commit")
    assert found.value.status == 200
    assert f"/picture/{picture}.svg" in found.value.url
    for route in held:
        route.abort()
