"""The servers of `evaluate`: which addresses each method has, and the workers that ask them."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rope_viz.embedding.spec import short_repr
from rope_viz.evaluation.completion_clients import Counted, Server, choose_key
from rope_viz.evaluation.dispatch import Worker

ADDRESS = re.compile(r"https?://", re.IGNORECASE)
HOW = "a server must be METHOD=URL"


def read_servers(given: Sequence[str], file: str | None) -> dict[str, list[str]]:
    """Return {method: addresses} of --server flags and of the lines of a file. Raises `ValueError`."""
    servers: dict[str, list[str]] = {}
    for written in [*given, *(read_lines(Path(file)) if file else ())]:
        method, equals, urls = written.partition("=")
        if ADDRESS.match(written):
            raise ValueError(f"{HOW}, and {short_repr(written)} names no method: such as none={written}")
        if not equals or not method.strip():
            raise ValueError(f"{HOW}, or METHOD=URL1,URL2, got {short_repr(written)}")
        for url in re.split(r",(?=\s*https?://)", urls.strip(), flags=re.IGNORECASE):
            Server(url.strip(), "")  # reject an invalid address before any request
            servers.setdefault(method.strip(), []).append(url.strip().rstrip("/"))
    for method, urls_of_method in servers.items():
        if double := [url for url in urls_of_method if urls_of_method.count(url) > 1]:
            raise ValueError(f"each server of a method must be named once, got {double[0]} twice for {method}")
    return servers


def read_lines(path: Path) -> list[str]:
    """Return the lines METHOD=URL of a file; empty lines and comments (#) are left out."""
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    found = [line for line in lines if line and not line.startswith("#")]
    if not found:
        raise ValueError(f"{path} names no server: write one METHOD=URL in each line")
    return found


def describe_servers(servers: Mapping[str, Sequence[str]], *, chat: bool) -> dict[str, dict[str, object]]:
    """Return {method: description} for the file of the results."""
    return {
        method: {"engine": "server", "url": urls[0] if len(urls) == 1 else list(urls), "chat": chat}
        for method, urls in servers.items()
    }


def connect_servers(
    parsed: argparse.Namespace, servers: Mapping[str, Sequence[str]]
) -> tuple[list[Worker], dict[str, str]]:
    """Return a worker for every server of every method, and {method: name of its model}.

    A server that is down gets the model of the method's others. Raises `ValueError` if all are down, or if servers of
    one method have different models.
    """
    workers, models = [], {}
    for method, urls in servers.items():
        engines = [connect_server(parsed, url) for url in urls]
        if not parsed.served_model:
            name_models(method, engines)
        models[method] = engines[0].model
        for engine in engines:
            counted = Counted(engine, parsed.tokenizer) if parsed.tokenizer else engine
            workers.append(Worker(f"{method} at {engine.url}", {method: counted}, slots=parsed.concurrency))
    return workers, models


def name_models(method: str, engines: Sequence[Server]) -> None:
    """Give each server of a method the model that it lists first. Raises `ValueError`."""
    names: dict[str, str] = {}
    problem: ValueError | None = None
    for engine in engines:
        try:
            names.setdefault(engine.models()[0], engine.url)
        except ValueError as error:
            problem = error
            if len(engines) > 1:
                print(f"rope-viz: {error}; the other servers of {method} go on", file=sys.stderr)
    if not names:
        raise problem or ValueError(f"{method} has no server")
    if len(names) > 1:
        listed = " and ".join(f"{name} at {url}" for name, url in names.items())
        raise ValueError(f"the servers of {method} have different models ({listed}): name one (--served-model)")
    for engine in engines:
        engine.model = next(iter(names))


def connect_server(parsed: argparse.Namespace, url: str) -> Server:
    """Return one server, with the key only where it may be sent."""
    remedy = "use https, or --key-over-http"
    key = choose_key(url, parsed.key_env, over_http=parsed.key_over_http, remedy=remedy)
    return Server(url, parsed.served_model or "", chat=parsed.chat, key=key, timeout=parsed.timeout)
