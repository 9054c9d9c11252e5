"""Time to the first picture: on a new server, on a warm one, in the same browser again, and after a reload.

    python benchmarks/first_picture.py                      # Scaling, five rounds in turns with a bare page
    python benchmarks/first_picture.py --beside ../before  # and with another checkout
    python benchmarks/first_picture.py --smallest           # one round, only to show that it runs

Needs the dev requirements and Chromium. Chromium is driven by its protocol without the debugger domain: with a debugger
attached (as by Playwright), it locates every error that a script throws and catches, and for those in plotly.js it
parses the library again, which takes 0.4 s. Prints medians in milliseconds from the page request.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import statistics
import sys
import tempfile
import time
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import checkouts
from page_latency import BARE, running_peer
from websockets.sync.client import ClientConnection, connect

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.browser.processes import Server, require_browser, running_process, running_server

WATCH = """window.__first = {};
new MutationObserver(() => {
  const plots = ".js-plotly-plot :is(.scatterlayer .js-line, .heatmaplayer image)";
  const pictures = `${plots}, :is(.rv-clocks, .rv-hands)[data-drawn]`;
  const seen = { heading: "h1", picture: pictures };
  for (const [name, which] of Object.entries(seen)) {
    if (!(name in __first) && document.querySelector(which)) __first[name] = performance.now();
  }
}).observe(document, { subtree: true, childList: true, attributeFilter: ["data-drawn"] });"""
REST = 2.0
CASES = ("a new server", "a warm server", "the same browser again", "reload")


def main() -> None:
    """Visit every server in turn and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beside", dest="compare", type=Path, action="append", default=[], help="another checkout")
    parser.add_argument("--path", default="/scaling", help="the page; its first picture has lines, cells or clocks")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--smallest", action="store_true", help="one round")
    options = parser.parse_args()
    ours, *others = checkouts.read_checkouts(parser, options.compare)
    page = urlsplit(options.path).path.strip("/") or next(iter(ours.pages))
    if page not in ours.pages:
        parser.error(f"there is no page {options.path}; the pages are {', '.join(ours.pages)}")
    # {name: (path of the page, function that starts its server)}
    servers: dict[str, tuple[str, Callable[[], AbstractContextManager[Server]]]] = {BARE: ("", running_peer)}
    servers[ours.name] = options.path, running_server
    for other in others:
        same = checkouts.match_pages([page], ours, other)
        if page in same:
            path = urlsplit(options.path)._replace(path=other.path(same[page])).geturl()
            servers[other.name] = path, partial(running_server, root=other.root)
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    for turn in range(1 if options.smallest else options.rounds):
        for name in checkouts.in_turns(list(servers), turn):
            path, start = servers[name]
            with start() as server:
                rest = 0.0 if options.smallest else REST
                for case, times_of_case in zip(CASES, time_visits(server.url + path, rest), strict=True):
                    times[name, case].append(times_of_case["picture"])
    print(f"| ms to the first picture of {options.path} | {' | '.join(CASES)} |")
    print(f"|---|{'---|' * len(CASES)}")
    for name in servers:
        print(f"| {name} | {' | '.join(f'{statistics.median(times[name, case]):,.0f}' for case in CASES)} |")
    for other in list(servers):
        if other != ours.name:
            ratios = [checkouts.format_ratios(times[ours.name, case], times[other, case]) for case in CASES]
            print(f"| {ours.name} ÷ {other}: median (by round) | {' | '.join(ratios)} |")


def time_visits(url: str, rest: float) -> Iterator[dict[str, float]]:
    """Yield the times of the four cases: two new browsers, the second one again, and its reload."""
    with chromium() as browser, tab(browser) as send:
        yield open_page(send, rest, "Page.navigate", url=url)
    with chromium() as browser:
        with tab(browser) as send:
            yield open_page(send, rest, "Page.navigate", url=url)
        with tab(browser) as send:
            yield open_page(send, rest, "Page.navigate", url=url)
            yield open_page(send, rest, "Page.reload")


@contextlib.contextmanager
def chromium() -> Iterator[str]:
    """Run a new Chromium with an empty profile and yield its debugging address."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1440,900"]
        options += [f"--user-data-dir={profile}", "--remote-debugging-port=0", "about:blank"]
        with running_process([require_browser(), *options]) as process:
            port, end = Path(profile) / "DevToolsActivePort", time.monotonic() + 20
            while not (port.exists() and port.read_text(encoding="utf-8").count("\n")):
                if process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError("Chromium did not start")
                time.sleep(0.05)
            yield f"127.0.0.1:{port.read_text(encoding='utf-8').splitlines()[0]}"


@contextlib.contextmanager
def tab(browser: str) -> Iterator[Callable[..., dict[str, Any]]]:
    """Open a tab that records when the picture appears, and yield a function that sends it commands."""
    request = urllib.request.Request(f"http://{browser}/json/new?about:blank", method="PUT")
    with urllib.request.urlopen(request, timeout=20) as answer:
        address = json.load(answer)["webSocketDebuggerUrl"]
    with connect(address, max_size=None) as line:
        numbers = itertools.count(1)
        _command(line, next(numbers), "Page.enable")
        _command(line, next(numbers), "Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        yield lambda method, **params: _command(line, next(numbers), method, **params)
        _command(line, next(numbers), "Page.close")


def _command(line: ClientConnection, number: int, method: str, **params: Any) -> dict[str, Any]:
    line.send(json.dumps({"id": number, "method": method, "params": params}))
    while (answer := json.loads(line.recv(timeout=60))).get("id") != number:
        pass
    return dict(answer.get("result", {}))


def open_page(send: Callable[..., dict[str, Any]], rest: float, method: str, **params: Any) -> dict[str, float]:
    """Return when heading and picture appeared, in milliseconds, then rest for some seconds."""
    send(method, **params)
    for _ in range(600):
        time.sleep(0.1)
        found = send("Runtime.evaluate", expression="JSON.stringify(window.__first ?? {})").get("result", {})
        times = json.loads(found.get("value", "{}"))
        if "picture" in times:
            time.sleep(rest)
            return dict(times)
    raise RuntimeError(f"no picture came within a minute: {params.get('url', 'reload')}")


if __name__ == "__main__":
    main()
