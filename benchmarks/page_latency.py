"""Time from key press to new picture, and redraws while a knob is dragged, compared with a bare Streamlit page.

    python benchmarks/page_latency.py               # every page; --smallest only shows that it runs

Needs the dev requirements and Chromium. The peer is one `st.slider` and one `st.plotly_chart` of the same curves on its
own server, measured in turn with ours in one run. Prints medians, 95th percentiles and ratios; quote the ratios, since
machines differ. The mouse moves 60 times a second without waiting for the page: a script that waits for each move, as
this one once did, sends 15 to 20 and measures itself. Bytes per redraw cover all pictures in view during a drag, bytes
per release the run that follows; `st.slider` redraws on release only.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from playwright.async_api import Browser, Page, async_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.browser.processes import (
    BROWSER_OPTIONS,
    Server,
    require_browser,
    running_script_server,
    running_server,
)

# Key presses and seconds of dragging per page; mouse moves per second.
PRESSES, DRAG_SECONDS, MOVES = 40, 5.0, 60.0

PEER = """
import numpy as np, plotly.graph_objects as go, streamlit as st
base = st.slider("base", 100, 1000, 500)
pair = np.arange(64)
plain = 2 * np.pi * float(base) ** (pair / 32)
fig = go.Figure([go.Scatter(x=pair, y=plain), go.Scatter(x=pair, y=plain * 8)])
fig.update_yaxes(type="log")
fig.update_layout(height=430)
st.plotly_chart(fig)
"""

# Counts changes of the drawn curves of the first chart, so that an event without a new picture does not count.
WATCH = """() => {
  window.__redraws = [];
  let last = "";
  const look = () => {
    const chart = document.querySelector(".js-plotly-plot");
    const now = [...(chart?.querySelectorAll(".js-line") ?? [])].map((path) => path.getAttribute("d")).join();
    if (now && now !== last) { last = now; window.__redraws.push(performance.now()); }
  };
  const changes = { subtree: true, childList: true, attributes: true, attributeFilter: ["d"] };
  new MutationObserver(look).observe(document.body, changes);
  look();
}"""


def main() -> None:
    """Measure our pages and the peer in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smallest", action="store_true", help="one page, two presses: its numbers say nothing")
    smallest = parser.parse_args().smallest
    with running_server() as app, running_peer() as bare:
        rows = asyncio.run(measure_pages(list_pages(app.url, bare.url)[: 2 if smallest else 5], smallest))
    print_report(rows)


def list_pages(app_url: str, bare_url: str) -> list[tuple[str, str, str]]:
    """Return name, address and slider of every page, the bare page first, given the addresses of both servers."""
    return [
        ("bare st.plotly_chart", bare_url, "input[type=range]"),
        ("RoPE Viz, /frequencies", f"{app_url}/frequencies", "[data-knob=base] input[type=range]"),
        ("RoPE Viz, /scaling", f"{app_url}/scaling", "[data-knob=base] input[type=range]"),
        ("RoPE Viz, /decay, 4k", f"{app_url}/decay?decay.length=4096", "[data-knob=base] input[type=range]"),
        ("RoPE Viz, /decay, 1M", f"{app_url}/decay?decay.length=1048576", "[data-knob=base] input[type=range]"),
    ]


async def measure_pages(pages: list[tuple[str, str, str]], smallest: bool) -> dict[str, dict[str, float]]:
    """Measure every page in one browser."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=require_browser(), args=BROWSER_OPTIONS)
        rows = {name: await measure(browser, url, slider, smallest) for name, url, slider in pages}
        await browser.close()
    return rows


async def measure(browser: Browser, url: str, slider: str, smallest: bool) -> dict[str, float]:
    """Measure the cold first picture, key press to redraw, redraws per second of dragging, and bytes."""
    count, seconds = (2, 0.3) if smallest else (PRESSES, DRAG_SECONDS)
    context = await browser.new_context(viewport={"width": 1440, "height": 900})
    page = await context.new_page()
    received = [0, 0]

    def add(index: int, size: int) -> None:
        received[index] += size

    page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: add(0, len(frame))))
    page.on(
        "response",
        lambda answer: "/rope-viz/picture/" in answer.url and add(1, int(answer.headers.get("content-length", 0))),
    )
    start = time.perf_counter()
    await page.goto(url)
    await page.wait_for_selector(".js-plotly-plot .scatterlayer .js-line", state="attached", timeout=60_000)
    first = time.perf_counter() - start
    await page.wait_for_timeout(600 * seconds)
    await page.evaluate(WATCH)
    await page.wait_for_timeout(300)
    before = received[0]
    presses = await time_key_presses(page, slider, count)
    if not presses:
        raise RuntimeError(f"no key press changed the picture of {url}: is its slider still found by {slider}?")
    size = (received[0] - before) / len(presses)
    before = received[1]
    rate = await measure_drag(page, slider, seconds)
    moving = (received[1] - before) / max(1.0, rate * seconds)
    await context.close()
    return {
        "first": first,
        "p50": statistics.median(presses),
        "p95": statistics.quantiles(presses, n=20)[-1] if len(presses) > 1 else presses[0],
        "rate": rate,
        "bytes": size,
        "moving": moving,
    }


async def time_key_presses(page: Page, slider: str, times: int) -> list[float]:
    """Return the milliseconds from an arrow key to the changed curve, for each press."""
    await page.locator(slider).first.focus()
    out = []
    for press in range(times):
        count = await page.evaluate("window.__redraws.length")
        start = await page.evaluate("performance.now()")
        await page.keyboard.press("ArrowRight" if press % 20 < 10 else "ArrowLeft")
        for _ in range(400):
            if await page.evaluate("window.__redraws.length") > count:
                out.append(await page.evaluate("window.__redraws.at(-1)") - start)
                break
            await page.wait_for_timeout(5)
        await page.wait_for_timeout(250)
    return out


async def measure_drag(page: Page, slider: str, seconds: float) -> float:
    """Return redraws per second while the slider is dragged back and forth without waiting."""
    box = await page.locator(slider).first.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    count = await page.evaluate("window.__redraws.length")
    await page.mouse.move(box["x"] + 0.4 * box["width"], middle)
    await page.mouse.down()
    start, moves = time.perf_counter(), []
    while (now := time.perf_counter() - start) < seconds:
        share = 0.3 + 0.4 * abs(now % 3.0 / 1.5 - 1)
        moves.append(asyncio.ensure_future(page.mouse.move(box["x"] + share * box["width"], middle)))
        await asyncio.sleep(max(0.0, start + len(moves) / MOVES - time.perf_counter()))
    rate = (await page.evaluate("window.__redraws.length") - count) / (time.perf_counter() - start)
    await asyncio.gather(*moves)
    await page.mouse.up()
    return float(rate)


@contextlib.contextmanager
def running_peer() -> Iterator[Server]:
    """Run the bare page on its own server."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "bare.py"
        script.write_text(PEER)
        with running_script_server(script) as server:
            yield server


def print_report(rows: dict[str, dict[str, float]]) -> None:
    """Print a Markdown table with ratios to the bare page."""
    bare = rows["bare st.plotly_chart"]
    print(
        "| page | first picture, s | key to picture p50, ms | p95, ms | ÷ bare | redraws/s dragged "
        "| bytes per redraw | per release |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name, row in rows.items():
        print(
            f"| {name} | {row['first']:.2f} | {row['p50']:.0f} | {row['p95']:.0f} | {row['p50'] / bare['p50']:.2f} "
            f"| {row['rate']:.1f} | {row['moving']:,.0f} | {row['bytes']:,.0f} |"
        )


if __name__ == "__main__":
    main()
