"""From key press to redrawn picture, and redraws while a knob is dragged, against a bare Streamlit page.

    python benchmarks/page_latency.py               # every page; --smallest only shows that it runs

Needs the dev requirements and Chromium. The peer is one `st.slider` and one `st.plotly_chart` of the same curves, on a
server of its own, measured in turn with ours in the same run. Prints medians, 95th percentiles and ratios; quote the
ratios, since machines differ. Bytes per redraw are of all the pictures in view while one is dragged, bytes per release
those of the run that follows; `st.slider` redraws on release only.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Page, sync_playwright
from servers import find_browser, serve, serve_script

# Key presses and seconds of dragging on each page.
PRESSES, DRAG_SECONDS = 40, 5.0

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
    """Measure our pages and the peer, in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smallest", action="store_true", help="one page, two presses: its numbers say nothing")
    smallest = parser.parse_args().smallest
    ours, process = serve()
    peer, peer_process = serve_peer()
    pages = [
        ("bare st.plotly_chart", peer, "input[type=range]"),
        ("RoPE Viz, /frequencies", f"{ours}/frequencies", "[data-knob=base] input[type=range]"),
        ("RoPE Viz, /scaling", f"{ours}/scaling", "[data-knob=base] input[type=range]"),
        ("RoPE Viz, /decay, 4k", f"{ours}/decay?decay.length=4096", "[data-knob=base] input[type=range]"),
        ("RoPE Viz, /decay, 1M", f"{ours}/decay?decay.length=1048576", "[data-knob=base] input[type=range]"),
    ]
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox", "--disable-gpu"])
            rows = {
                name: measure(browser, url, slider, smallest) for name, url, slider in pages[: 2 if smallest else 5]
            }
            browser.close()
    finally:
        process.terminate()
        peer_process.terminate()
    report(rows)


def measure(browser, url: str, slider: str, smallest: bool) -> dict[str, float]:
    """Cold first picture, key press to redraw, redraws per second of dragging, bytes per change."""
    count, seconds = (2, 0.3) if smallest else (PRESSES, DRAG_SECONDS)
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    received = [0, 0]

    def add(index: int, size: int) -> None:
        received[index] += size

    page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: add(0, len(frame))))
    page.on(
        "response",
        lambda answer: "/rope-viz/picture/" in answer.url and add(1, int(answer.headers.get("content-length", 0))),
    )
    start = time.perf_counter()
    page.goto(url)
    page.wait_for_selector(".js-plotly-plot .scatterlayer .js-line", state="attached", timeout=60_000)
    first = time.perf_counter() - start
    page.wait_for_timeout(600 * seconds)
    page.evaluate(WATCH)
    page.wait_for_timeout(300)
    before = received[0]
    presses = key_presses(page, slider, count)
    if not presses:
        raise RuntimeError(f"no key press changed the picture of {url}: is its slider still found by {slider}?")
    size = (received[0] - before) / len(presses)
    before = received[1]
    rate = drag(page, slider, seconds)
    moving = (received[1] - before) / max(1.0, rate * seconds)
    context.close()
    return {
        "first": first,
        "p50": statistics.median(presses),
        "p95": statistics.quantiles(presses, n=20)[-1] if len(presses) > 1 else presses[0],
        "rate": rate,
        "bytes": size,
        "moving": moving,
    }


def key_presses(page: Page, slider: str, times: int) -> list[float]:
    """Milliseconds from an arrow key to the changed curve."""
    page.locator(slider).first.focus()
    out = []
    for press in range(times):
        count = page.evaluate("window.__redraws.length")
        start = page.evaluate("performance.now()")
        page.keyboard.press("ArrowRight" if press % 20 < 10 else "ArrowLeft")
        for _ in range(400):
            if page.evaluate("window.__redraws.length") > count:
                out.append(page.evaluate("window.__redraws.at(-1)") - start)
                break
            page.wait_for_timeout(5)
        page.wait_for_timeout(250)
    return out


def drag(page: Page, slider: str, seconds: float) -> float:
    """Redraws per second while the slider is dragged to and fro."""
    box = page.locator(slider).first.bounding_box()
    middle = box["y"] + box["height"] / 2
    count = page.evaluate("window.__redraws.length")
    page.mouse.move(box["x"] + 0.4 * box["width"], middle)
    page.mouse.down()
    start = time.perf_counter()
    step = 0
    while time.perf_counter() - start < seconds:
        step += 1
        share = 0.4 + 0.2 * abs((step % 100) / 50 - 1)
        page.mouse.move(box["x"] + share * box["width"], middle)
        page.wait_for_timeout(10)
    page.mouse.up()
    return (page.evaluate("window.__redraws.length") - count) / (time.perf_counter() - start)


def serve_peer() -> tuple[str, subprocess.Popen[bytes]]:
    """The bare page on a server of its own."""
    folder = Path(tempfile.mkdtemp())
    script = folder / "bare.py"
    script.write_text(PEER)
    return serve_script(script)


def report(rows: dict[str, dict[str, float]]) -> None:
    """A Markdown table; ratios are to the bare page."""
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
