"""Frame rate of what moves: the clocks compared with 128 Plotly frames and with the widget for notebooks, Home and the
scenes of Learn while dragged.

    python benchmarks/animation.py               # all; --smallest only shows that it runs
    python benchmarks/animation.py --dragged     # Home and Learn only, in about three minutes

Needs the dev requirements and Chromium. Each picture is alone on a bare page of its own server, and all are measured in
turn in one run: the canvas of RoPE Viz, the same clocks as a page that the widget saves, and `st.plotly_chart` with 128
frames (rings as one trace, hands as another, no redraw, duration 0). A frame counts only if the picture changed: for
the canvas by its paint counter, checked by pixels, for Plotly by the drawn path. A dragged word, ruler or slider
follows one mouse move per frame of the browser. Prints Markdown tables.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from rope_viz import METHODS, RopeSpec
from rope_viz.widgets import Clocks
from tests.browser.processes import running_browser, running_script_server, running_server

# Seconds per measurement, CPU throttling rates, and numbers of pairs.
SECONDS, THROTTLES, PAIRS = 4.0, (1, 4, 6), (64, 256)

ENTRY = """
import streamlit as st
from rope_viz.serving import server
app = st.App("page.py", routes=server.routes(), middleware=server.middleware())
"""
CLOCKS = """
import streamlit as st
from rope_viz.models.spec_url import Subject
from rope_viz.embedding.scaling import Yarn
from rope_viz.embedding.spec import RopeSpec
from rope_viz.pages import registry
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.ui.components import picture
pairs = int(st.query_params.get("pairs", "64"))
spec = RopeSpec(head_dim=2 * pairs, context=4096, target=32768, scaling=Yarn(8.0))
st.set_page_config(layout="wide")
with picture.places():
    picture.place(registry.picture("rotation", "turning"), PictureRequest(Subject(spec)))
"""
FRAMES = """
import numpy as np, plotly.graph_objects as go, streamlit as st
pairs = int(st.query_params.get("pairs", "64"))
columns = 13 if pairs == 64 else 29
i = np.arange(pairs)
x, y = i % columns, -(i // columns)
rate = 10000.0 ** (-i / pairs)
turn = np.linspace(0, 2 * np.pi, 33)
gap = np.full((pairs, 1), np.nan)
def flat(a): return np.hstack([a, gap]).ravel().astype(np.float32)
def hands(m):
    ends = x + 0.4 * np.cos(m * rate), y + 0.4 * np.sin(m * rate)
    return {"x": flat(np.stack([x, ends[0]], 1)), "y": flat(np.stack([y, ends[1]], 1))}
rings = go.Scatter(x=flat(x[:, None] + 0.42 * np.cos(turn)), y=flat(y[:, None] + 0.42 * np.sin(turn)), mode="lines")
fig = go.Figure([rings, go.Scatter(mode="lines", **hands(0))])
fig.frames = [go.Frame(data=[hands(m)], traces=[1], name=str(m)) for m in range(128)]
play = {"frame": {"duration": 0, "redraw": False}, "transition": {"duration": 0}, "fromcurrent": False}
fig.update_layout(height=512, showlegend=False, updatemenus=[{"type": "buttons", "buttons": [
    {"label": "Play", "method": "animate", "args": [None, play]}]}])
st.set_page_config(layout="wide")
st.plotly_chart(fig)
"""

CANVAS = ":is(.rv-clocks, .rv-hands)"
SIZES = {"1440x900": (1440, 900), "1280x720": (1280, 720), "390x844": (390, 844)}
DRAGGED_SECONDS, DRAGGED_THROTTLES = 2.0, (1, 6)
HANDLES = {1: "asks", 2: "at", 3: "offset", 4: "b", 5: "base", 6: "at"}
"""Scene of Learn: the slider that is dragged."""
# Drag to and fro, one pointer move in each frame, and count the frames in which the picture was painted. The page's
# own events are used, because a mouse driven from outside waits for each answer of the browser.
DRAG = """([place, handle, seconds]) => new Promise((done) => {
  const root = document.querySelector(place), node = root.querySelector(`[data-do=${handle}]`);
  const box = (node.querySelector("i") ?? node).getBoundingClientRect();
  const x = box.x + box.width / 2, y = box.y + box.height / 2;
  const target = node.closest(".rv-track, .rv-ruler") ?? node;
  const fire = (kind, at) => node.dispatchEvent(new PointerEvent(kind, { bubbles: true, cancelable: true, pointerId: 1,
    isPrimary: true, button: kind === "pointermove" ? -1 : 0, buttons: 1, clientX: at, clientY: y }));
  for (const each of [node, target]) each.setPointerCapture = () => {};
  fire("pointerdown", x);
  const begun = performance.now(), first = Number(root.dataset.drawn);
  const step = () => {
    const passed = (performance.now() - begun) / 1000;
    if (passed < seconds) {
      fire("pointermove", x + 60 * Math.sin(3 * passed));
      return requestAnimationFrame(step);
    }
    fire("pointerup", x);
    done((Number(root.dataset.drawn) - first) / passed);
  };
  requestAnimationFrame(step);
})"""

COUNT_PATHS = """() => {
  window.__frames = [];
  let last = "";
  const look = () => {
    const lines = [...document.querySelectorAll(".js-plotly-plot .scatterlayer .js-line")];
    const now = lines.at(-1)?.getAttribute("d") ?? "";
    if (now !== last) { last = now; window.__frames.push(performance.now()); }
    requestAnimationFrame(look);
  };
  look();
}"""


def main() -> None:
    """Measure both pictures at every size and throttle, then two pages of the app."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smallest", action="store_true", help="one size, a moment each: its numbers say nothing")
    parser.add_argument("--dragged", action="store_true", help="only Home and the scenes of Learn")
    parsed = parser.parse_args()
    small = parsed.smallest
    seconds, throttles = (0.5, (1,)) if small else (SECONDS, THROTTLES)
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as running:
        folder = Path(name)
        for file, text in (("entry.py", ENTRY), ("page.py", CLOCKS), ("frames.py", FRAMES)):
            (folder / file).write_text(text)
        app_url = running.enter_context(running_server()).url
        clocks, frames = (
            running.enter_context(running_script_server(folder / file)).url for file in ("entry.py", "frames.py")
        )
        browser = running.enter_context(running_browser())
        print_dragged(measure_dragged(browser, app_url, small=small), small=small)
        if parsed.dragged:
            return
        pictures = [
            picture
            for pairs in PAIRS[: 1 if small else 2]
            for picture in (
                (f"canvas, {pairs} pairs", f"{clocks}/?pairs={pairs}", measure_canvas_rate),
                (f"widget, {pairs} pairs", save_widget(folder, pairs), measure_canvas_rate),
                (f"Plotly frames, {pairs} pairs", f"{frames}/?pairs={pairs}", measure_plotly_rate),
            )
        ]
        pictures += [("RoPE Viz, Home", f"{app_url}/", measure_canvas_rate)]
        pictures += [("RoPE Viz, Rotation", f"{app_url}/rotation", measure_canvas_rate)] * (not small)
        rows = [measure(browser, *picture, seconds, throttles) for picture in pictures]
    print_report(rows, throttles)
    print_ratios(rows, throttles)


def save_widget(folder: Path, pairs: int) -> str:
    """Save the widget with the clocks of `CLOCKS` as a page, and return its address."""
    spec = RopeSpec(head_dim=2 * pairs, context=4096, target=32768, scaling=METHODS["yarn"](8.0))
    path = folder / f"widget-{pairs}.html"
    Clocks(spec).save_html(path)
    return path.as_uri()


def measure_dragged(browser: Any, url: str, *, small: bool) -> dict[str, list[float]]:
    """Return frames per second of each gesture, by size of the screen and throttle: {gesture: rates}."""
    found: dict[str, list[float]] = {}
    for width, height in list(SIZES.values())[: 1 if small else None]:
        context = browser.new_context(viewport={"width": width, "height": height})
        page = context.new_page()
        session = context.new_cdp_session(page)
        gestures = [("/", ".rv-hands", name) for name in ("", "query", "ruler")]
        gestures += [
            (f"/learn?learn.scene={scene}", ".rv-learn", handle)
            for scene, handle in list(HANDLES.items())[: 1 if small else None]
        ]
        for path, place, handle in gestures:
            session.send("Emulation.setCPUThrottlingRate", {"rate": 1})
            if page.url != f"{url}{path}":
                page.goto(f"{url}{path}")
                page.wait_for_selector(f"{place}[data-drawn]", timeout=60_000)
                for answer in page.locator("[data-answer]").all()[:1]:
                    answer.click()  # a scene shows its whole picture after the prediction
                page.wait_for_timeout(1500)
            for throttle in DRAGGED_THROTTLES[: 1 if small else None]:
                session.send("Emulation.setCPUThrottlingRate", {"rate": throttle})
                page.wait_for_timeout(300)
                name = f"Learn, scene {path[-1]}: {handle}" if path != "/" else f"Home: {handle or 'playing'}"
                wait = 0.5 if small else DRAGGED_SECONDS
                rate = page.evaluate(DRAG, [place, handle, wait]) if handle else measure_canvas_rate(page, wait)
                found.setdefault(name, []).append(rate)
        context.close()
    return found


def print_dragged(rates: dict[str, list[float]], *, small: bool) -> None:
    """Print a Markdown table of frames per second by gesture."""
    columns = [f"{size}, {throttle}×" for size in SIZES for throttle in DRAGGED_THROTTLES][: 1 if small else None]
    print(f"| frames/s | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
    for name, each in rates.items():
        print(f"| {name} | {' | '.join(f'{rate:.0f}' for rate in each)} |")
    print(flush=True)


def measure(browser: Any, name: str, url: str, rate: Any, seconds: float, throttles: tuple[int, ...]) -> dict[str, Any]:
    """Measure the first frame and bytes in a cold browser context, after one warm-up of the server, then the rates.

    A single throttle means a smoke test, so the warm-up is skipped.
    """
    for warm in (False, True) if len(throttles) > 1 else (True,):
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        page = context.new_page()
        received = [0]
        page.on(
            "websocket", lambda socket, total=received: socket.on("framereceived", lambda data: add_bytes(total, data))
        )
        begun = time.perf_counter()
        page.goto(url)
        picture = f"{CANVAS}[data-drawn]" if rate is measure_canvas_rate else ".js-plotly-plot .scatterlayer .js-line"
        page.wait_for_selector(picture, state="attached", timeout=60_000)
        first = time.perf_counter() - begun
        page.wait_for_timeout(600 * seconds)
        if warm:
            break
        context.close()
    size = received[0]
    session = context.new_cdp_session(page)
    rates = []
    for throttle in throttles:
        session.send("Emulation.setCPUThrottlingRate", {"rate": throttle})
        page.wait_for_timeout(500)
        rates.append(rate(page, seconds))
    context.close()
    return {"name": name, "first": first, "bytes": size, "rates": rates}


def add_bytes(total: list[int], data: str | bytes) -> None:
    """Count the bytes of one message."""
    total[0] += len(data)


def measure_canvas_rate(page: Page, seconds: float) -> float:
    """Return paints per second while it plays; the pixels must differ before and after."""
    look = f"[Number(document.querySelector('{CANVAS}').dataset.drawn), performance.now()]"
    pixels = f"document.querySelector('{CANVAS} canvas').toDataURL()"
    before = page.evaluate(pixels)
    count, begun = page.evaluate(look)
    page.wait_for_timeout(1000 * seconds)
    after, ended = page.evaluate(look)
    assert page.evaluate(pixels) != before, "counted frames, but the picture did not change"
    return 1000 * (after - count) / (ended - begun)


def measure_plotly_rate(page: Page, seconds: float) -> float:
    """Return changes of the drawn path per second, over one run of the 128 frames."""
    page.evaluate(COUNT_PATHS)
    page.evaluate("document.querySelector('.js-plotly-plot .updatemenu-button').dispatchEvent(new MouseEvent('click'))")
    page.wait_for_timeout(1000 * seconds)
    seen = page.evaluate("window.__frames.slice(1)")
    return 1000 * (len(seen) - 1) / (seen[-1] - seen[0]) if len(seen) > 1 else 0.0


def print_report(rows: list[dict[str, Any]], throttles: tuple[int, ...]) -> None:
    """Print a Markdown table and the machine's load, since frame rates mean little on a busy machine."""
    print(f"Load of this machine at the end: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.\n")
    rates = " | ".join(f"frames/s at {throttle}×" for throttle in throttles)
    print(f"| picture | first frame, s | websocket bytes | {rates} |")
    print("|---|---|---|" + "---|" * len(throttles))
    for row in rows:
        shown = " | ".join(f"{rate:.0f}" for rate in row["rates"])
        print(f"| {row['name']} | {row['first']:.2f} | {row['bytes']:,} | {shown} |")


def print_ratios(rows: list[dict[str, Any]], throttles: tuple[int, ...]) -> None:
    """Print the frame rate of the widget's clocks over that of the app's, by number of pairs and throttle."""
    rates = {row["name"]: row["rates"] for row in rows}
    for name, ours in rates.items():
        if name.startswith("widget, "):
            app = rates[name.replace("widget", "canvas")]
            ratios = [f"{one / other:.2f} at {rate}×" for one, other, rate in zip(ours, app, throttles, strict=True)]
            print(f"\n{name}, frames over the app's: {', '.join(ratios)}")


if __name__ == "__main__":
    main()
