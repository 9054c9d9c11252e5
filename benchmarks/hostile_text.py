"""Hostile text: lone surrogates, NUL and control characters by every door of a real server.

Run by hand: python benchmarks/hostile_text.py --addresses 10000 --contents 5000 --pages 300. Starts its own server and
sends it addresses, contents and, over WebSocket, links to pages; `tests/hostile_text.py` makes them. Each answer must
be UTF-8 without a character that nothing shows, none may be 500, no page may show an exception, and the log must hold
no traceback. Prints what was answered and each fault, and ends with 1 if there was one.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import random
import struct
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from rope_viz.own_files import blob_store
from rope_viz.pages import registry
from rope_viz.pages.registry import titles
from rope_viz.texts.outside_text import BROKEN, HIDDEN
from tests.browser.processes import find_free_port, running_process, wait_for_answer
from tests.hostile_text import (
    check_answer,
    make_address,
    make_config,
    make_content,
    make_query,
    write_link,
    write_query,
)

ROOT = Path(__file__).resolve().parents[1]
PREFIX = "/rope-viz/"
HEALTH = "/_stcore/health"


class Client:
    """One connection to the server, opened again where the server has closed it."""

    def __init__(self, url: str) -> None:
        self.host = urlsplit(url).netloc
        self.connection = http.client.HTTPConnection(self.host, timeout=180)

    def ask(self, path: str, body: bytes | None = None) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body of an answer."""
        for again in (True, False):
            try:
                self.connection.request("GET" if body is None else "POST", path, body, {"rope-viz": "kept"})
                answer = self.connection.getresponse()
                return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
            except (http.client.HTTPException, ConnectionError):
                self.connection.close()
                if not again:
                    raise
        raise AssertionError


def send_addresses(url: str, numbers: range, seed: int, answers: Counter[int]) -> list[str]:
    """Send hostile addresses; count the answers by status, and return the faults."""
    client, faults = Client(url), []
    for number in numbers:
        path, query = make_address(random.Random(f"{seed} address {number}"))
        answer = client.ask(f"{PREFIX}{path}?{query}")
        answers[answer[0]] += 1
        faults += [f"address {number}: {fault}: {path}?{query[:500]}" for fault in check_answer(*answer)]
    return faults


def send_contents(url: str, numbers: range, seed: int, answers: Counter[int]) -> list[str]:
    """Send hostile contents; count the answers by status, and return the faults."""
    client, faults = Client(url), []
    for number in numbers:
        chance = random.Random(f"{seed} content {number}")
        page, key, content = make_content(chance)
        salted = blob_store.salt() + content
        picture = chance.choice([*registry.page(page).pictures.values()])
        query = f"{key}={blob_store.name_of(salted)}" + ("&model=custom" if key == "own" else "")
        form = chance.choice(("packed", "json", "csv", "svg"))
        body = struct.pack("<I", len(salted)) + salted
        answer = client.ask(f"{PREFIX}picture/{picture.address}.{form}?{query}", body)
        answers[answer[0]] += 1
        faults += [f"content {number}: {fault}: {picture.address} {content[:500]!r}" for fault in check_answer(*answer)]
    return faults


async def open_pages(url: str, count: int, seed: int) -> list[str]:
    """Open pages by hostile links in sessions, with messages of components; return the faults."""
    faults: list[str] = []
    address = url.replace("http", "ws") + "/_stcore/stream"
    for number in range(count):
        chance = random.Random(f"{seed} page {number}")
        page = chance.choice([*titles()])
        query = make_query(page if page in registry.PAGES else "scaling", chance)
        if chance.random() < 0.5:
            query = {"model": "custom", "config": write_link(make_config(chance))}
        connecting = websockets.connect(address, subprotocols=["streamlit"], origin=url, max_size=None)
        async with asyncio.timeout(120), connecting as socket:
            components: list[str] = []
            for run in range(2):
                message = BackMsg()
                message.rerun_script.page_name = "" if page == "home" else page
                message.rerun_script.query_string = write_query(query)
                for name in components:
                    state = message.rerun_script.widget_states.widgets.add()
                    state.id = name
                    state.json_value = json.dumps({"message": make_message(chance)})
                faults += [
                    f"page {number}, run {run}: {page} {query}: {fault}"
                    for fault in await run_page(socket, message, components)
                ]
    return faults


def make_message(chance: random.Random) -> object:
    """Return what a component's script might send, with letters that no text may have."""
    own = json.dumps(make_config(chance))
    values = ("\ud800", make_config(chance), {"query": {"words": "\ud800\0"}, "page": "\ud800"}, {"own": {"text": own}})
    name = chance.choice(("\ud800", "words", "stored", "go", "scaling/comparison pin", "scaling/comparison present"))
    return {"turn": chance.choice((1, "\udfff")), "name": name, "value": chance.choice(values)}


async def run_page(socket: websockets.ClientConnection, message: BackMsg, components: list[str]) -> list[str]:
    """Run a page; return the exceptions that it shows, and its texts that hide something."""
    await socket.send(message.SerializeToString())
    faults: list[str] = []
    while True:
        answer = ForwardMsg()
        answer.ParseFromString(await asyncio.wait_for(socket.recv(), 60))
        kind = answer.WhichOneof("type")
        if kind == "delta":
            element = answer.delta.new_element
            if element.WhichOneof("type") == "exception":
                faults.append(f"{element.exception.type}: {element.exception.message}")
            if element.WhichOneof("type") == "bidi_component":
                components.append(element.bidi_component.id)
            faults += find_hidden(element)
        if kind == "script_finished":
            return faults


def find_hidden(element: object) -> list[str]:
    """Return the texts of an element that hide something."""
    texts = []
    for field, value in element.ListFields():  # type: ignore[attr-defined]
        values = value if isinstance(value, str | bytes) or not hasattr(value, "__iter__") else [*value]
        for each in values if isinstance(values, list) else [values]:
            if isinstance(each, str) and HIDDEN.search(each):
                texts.append(f"{field.name} {each[:200]!r}")
            elif hasattr(each, "ListFields"):
                texts += find_hidden(each)
    return texts


def main() -> int:
    """Run what the command line asks for; return 1 if there was a fault."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--addresses", type=int, default=1000)
    options.add_argument("--contents", type=int, default=500)
    options.add_argument("--pages", type=int, default=100)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--at-once", type=int, default=2, help="connections of each kind")
    options.add_argument("--port", type=int, default=0, help="default: a free one")
    options.add_argument("--smallest", action="store_true", help="a few of each, to try the script")
    given = options.parse_args()
    if given.smallest:
        given.addresses = given.contents = given.pages = 2
    port = given.port or find_free_port()
    url = f"http://127.0.0.1:{port}"
    flags = ["--server.headless", "true", "--server.port", str(port), "--server.address", "127.0.0.1"]
    command = [sys.executable, "-m", "streamlit", "run", str(ROOT / "app.py"), *flags]
    answers: dict[str, Counter[int]] = {"addresses": Counter(), "contents": Counter()}
    with tempfile.TemporaryFile() as log:
        with running_process(command, cwd=ROOT, stdout=log, stderr=log) as process:
            wait_for_answer(process, url + HEALTH)
            jobs = []
            with ThreadPoolExecutor(2 * given.at_once + 1) as pool:
                jobs.append(pool.submit(lambda: asyncio.run(open_pages(url, given.pages, given.seed))))
                for first in range(given.at_once):
                    addresses = range(first, given.addresses, given.at_once)
                    contents = range(first, given.contents, given.at_once)
                    jobs.append(pool.submit(send_addresses, url, addresses, given.seed, answers["addresses"]))
                    jobs.append(pool.submit(send_contents, url, contents, given.seed, answers["contents"]))
            faults = [fault for job in jobs for fault in job.result()]
        log.seek(0)
        lines = log.read().decode("utf-8", "surrogateescape")
    if "Traceback" in lines or BROKEN.search(lines) or HIDDEN.search(lines.replace("\x1b[", "")):
        faults.append(f"the log: {lines[-4000:]}")
    for kind, counts in answers.items():
        print(f"{kind}: {sum(counts.values())}, by status {dict(sorted(counts.items()))}")
    print(f"pages: {given.pages}, each run twice")
    for fault in faults[:100]:
        print(ascii(fault))
    print(f"{len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
