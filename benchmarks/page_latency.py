"""Time from key press to new picture, and redraws while a knob is dragged, compared with a bare Streamlit page.

    python benchmarks/page_latency.py                      # every page; --smallest only shows that it runs
    python benchmarks/page_latency.py --beside ../before  # and those of another checkout

Needs the dev requirements and Chromium. The peer is one `st.slider` and one `st.plotly_chart` of the same curves on its
own server, measured in turn with ours in one run. Prints medians, 95th percentiles and, for each round, the ratio to
the peer. With another checkout, it prints the ratio of the two ratios as well, round by round, and its median. Quote
the ratios, since machines differ. The mouse moves 60 times a second without waiting for the page: a script that waits
for each move, as this one once did, sends 15 to 20 and measures itself. Bytes per redraw cover all pictures in view
during a drag, bytes per release the run that follows; `st.slider` redraws on release only.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import checkouts
from playwright.async_api import Browser, Page, async_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.browser.processes import (
    BROWSER_OPTIONS,
    Server,
    require_browser,
    running_script_server,
    running_server,
)

# Rounds; key presses and seconds of dragging per page and round; mouse moves per second.
ROUNDS, PRESSES, DRAG_SECONDS, MOVES = 5, 20, 2.0, 60.0
BARE = "bare st.plotly_chart"
BASE = "[data-knob=base] input[type=range]"
# Page, query, and how the row is called.
ROWS = (
    ("frequencies", "", "/frequencies"),
    ("scaling", "", "/scaling"),
    ("decay", "decay.length=4096", "/decay, 4k"),
    ("decay", "decay.length=1048576", "/decay, 1M"),
)

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


class Target(NamedTuple):
    """A page to measure: the name of its checkout and of its row, its address, and its slider."""

    checkout: str
    row: str
    url: str
    slider: str


Measured: TypeAlias = dict[tuple[str, str], list[dict[str, float]]]
"""{(checkout, row): the numbers of each round}"""


def main() -> None:
    """Measure our pages, those of another checkout and the peer in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beside", dest="compare", type=Path, action="append", default=[], help="another checkout")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--smallest", action="store_true", help="one page, two presses: its numbers say nothing")
    options = parser.parse_args()
    found = checkouts.read_checkouts(parser, options.compare)
    rows = ROWS[:1] if options.smallest else ROWS
    with contextlib.ExitStack() as running:
        groups = [[Target(BARE, BARE, running.enter_context(running_peer()).url, "input[type=range]")]]
        servers = [running.enter_context(running_server(root=each.root)).url for each in found]
        groups += list_pages(rows, found, servers)
        measured = asyncio.run(measure_rounds(groups, 1 if options.smallest else options.rounds, options.smallest))
    print_report(measured)
    for other in found[1:]:
        print_comparison(measured, found[0].name, other.name)


def list_pages(
    rows: Sequence[tuple[str, str, str]], found: Sequence[checkouts.Checkout], servers: Sequence[str]
) -> list[list[Target]]:
    """Return each row's page in every checkout that has it, this one first; `servers` are the checkouts' addresses."""
    pages = list(dict.fromkeys(page for page, _, _ in rows))
    matched = [{page: page for page in pages}, *(checkouts.match_pages(pages, found[0], other) for other in found[1:])]
    return [
        [
            Target(each.name, row, f"{url}{each.path(names[page])}{'?' if query else ''}{query}", BASE)
            for each, url, names in zip(found, servers, matched, strict=True)
            if page in names
        ]
        for page, query, row in rows
    ]


async def measure_rounds(groups: Sequence[Sequence[Target]], rounds: int, smallest: bool) -> Measured:
    """Measure every page once a round in one browser; the checkouts take turns to be first."""
    measured: Measured = {}
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=require_browser(), args=BROWSER_OPTIONS)
        for turn in range(rounds):
            for group in groups:
                for target in checkouts.in_turns(group, turn):
                    numbers = await measure(browser, target.url, target.slider, smallest)
                    measured.setdefault((target.checkout, target.row), []).append(numbers)
        await browser.close()
    return measured


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
    while (request := time.perf_counter() - start) < seconds:
        share = 0.3 + 0.4 * abs(request % 3.0 / 1.5 - 1)
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


def print_report(measured: Measured) -> None:
    """Print a Markdown table of medians over the rounds, with the ratio to the bare page in each round."""
    bare = [numbers["p50"] for numbers in measured[BARE, BARE]]
    print(
        "| page | first picture, s | key to picture p50, ms | p95, ms | ÷ bare (by round) | redraws/s dragged "
        "| bytes per redraw | per release |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for (checkout, row), rounds in measured.items():
        median = {key: statistics.median(numbers[key] for numbers in rounds) for key in rounds[0]}
        ratios = checkouts.format_ratios([numbers["p50"] for numbers in rounds], bare)
        name = row if row == BARE else f"{checkout} {row}"
        print(
            f"| {name} | {median['first']:.2f} | {median['p50']:.0f} | {median['p95']:.0f} | {ratios} "
            f"| {median['rate']:.1f} | {median['moving']:,.0f} | {median['bytes']:,.0f} |"
        )


def print_comparison(measured: Measured, ours: str, other: str) -> None:
    """Print, for each page, the ratio of this checkout's ratio to the bare page over that of another checkout."""
    print(f"\n| {ours} ÷ {other} | ratio of the ratios to the bare page: median (by round) |\n|---|---|")
    bare = [numbers["p50"] for numbers in measured[BARE, BARE]]
    for (checkout, row), rounds in measured.items():
        if checkout == ours and (other, row) in measured:
            pairs = zip(bare, rounds, measured[other, row], strict=True)
            ratios = [(mine["p50"] / base, theirs["p50"] / base) for base, mine, theirs in pairs]
            print(f"| {row} | {checkouts.format_ratios([a for a, _ in ratios], [b for _, b in ratios])} |")


if __name__ == "__main__":
    main()
