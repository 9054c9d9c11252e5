"""How long a reader waits for the first picture: on a server nobody has visited, on a warm one, again, and by a reload.

    python benchmarks/first_picture.py                      # Scaling, five rounds in turns with a bare page
    python benchmarks/first_picture.py --beside ../before   # and with another checkout
    python benchmarks/first_picture.py --smallest           # one round, of which the numbers say nothing

Needs the dev requirements and Chromium, which is driven by its protocol without what a debugger asks for: while one
listens (Playwright's does), Chromium looks up the place of every error that a script throws and catches, and for those
in plotly.js it reads the library again, for 0.4 s. Prints medians in milliseconds after the page was asked for.
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

from page_latency import running_peer
from websockets.sync.client import ClientConnection, connect

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.browser.processes import ROOT, Server, require_browser, running_process, running_server

WATCH = """window.__first = {};
new MutationObserver(() => {
  const seen = { heading: "h1", picture: ".js-plotly-plot .scatterlayer .js-line" };
  for (const [name, which] of Object.entries(seen)) {
    if (!(name in __first) && document.querySelector(which)) __first[name] = performance.now();
  }
}).observe(document, { subtree: true, childList: true });"""
REST = 2.0
CASES = ("a server nobody has visited", "a warm one", "the same browser again", "reload")


def main() -> None:
    """Visit every server in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beside", type=Path, action="append", default=[], help="another checkout, asked in turn")
    parser.add_argument("--path", default="/scaling", help="the page; its first chart has lines")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--smallest", action="store_true", help="one round")
    asked = parser.parse_args()
    for root in asked.beside:
        if not (root / "app.py").is_file():
            parser.error(f"there is no checkout at {root}: it has no app.py")
    # The path of the page and what starts its server.
    servers: dict[str, tuple[str, Callable[[], AbstractContextManager[Server]]]] = {
        "bare st.plotly_chart": ("", running_peer)
    }
    for root in (ROOT, *asked.beside):
        servers[root.resolve().name] = asked.path, partial(running_server, root=root)
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    for _ in range(1 if asked.smallest else asked.rounds):
        for name, (path, start) in servers.items():
            with start() as server:
                rest = 0.0 if asked.smallest else REST
                for case, taken in zip(CASES, visits(server.url + path, rest), strict=True):
                    times[name, case].append(taken["picture"])
    print(f"| ms to the first picture of {asked.path} | {' | '.join(CASES)} |")
    print(f"|---|{'---|' * len(CASES)}")
    for name in servers:
        print(f"| {name} | {' | '.join(f'{statistics.median(times[name, case]):,.0f}' for case in CASES)} |")


def visits(url: str, rest: float) -> Iterator[dict[str, float]]:
    """The four cases, one after the other: two browsers that know nothing, one of them again, and its reload."""
    with chromium() as browser, tab(browser) as send:
        yield opened(send, rest, "Page.navigate", url=url)
    with chromium() as browser:
        with tab(browser) as send:
            yield opened(send, rest, "Page.navigate", url=url)
        with tab(browser) as send:
            yield opened(send, rest, "Page.navigate", url=url)
            yield opened(send, rest, "Page.reload")


@contextlib.contextmanager
def chromium() -> Iterator[str]:
    """Run a new Chromium with an empty profile and give the address at which it takes commands."""
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
    """Commands to a new tab, which notes when what is waited for comes."""
    request = urllib.request.Request(f"http://{browser}/json/new?about:blank", method="PUT")
    with urllib.request.urlopen(request, timeout=20) as answer:
        address = json.load(answer)["webSocketDebuggerUrl"]
    with connect(address, max_size=None) as line:
        numbers = itertools.count(1)
        _told(line, next(numbers), "Page.enable")
        _told(line, next(numbers), "Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        yield lambda method, **params: _told(line, next(numbers), method, **params)
        _told(line, next(numbers), "Page.close")


def _told(line: ClientConnection, number: int, method: str, **params: Any) -> dict[str, Any]:
    line.send(json.dumps({"id": number, "method": method, "params": params}))
    while (answer := json.loads(line.recv(timeout=60))).get("id") != number:
        pass
    return dict(answer.get("result", {}))


def opened(send: Callable[..., dict[str, Any]], rest: float, method: str, **params: Any) -> dict[str, float]:
    """When what is waited for came, in milliseconds, and then a rest of some seconds."""
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
