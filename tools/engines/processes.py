"""Start a program in a group of its own, and end the whole group whatever happens."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

GRACE = 10.0  # seconds between the request to end and the end


@contextlib.contextmanager
def start(command: Sequence[str], environment: Mapping[str, str], log: Path, **more: Any) -> Iterator[Any]:
    """Start a program whose output goes to a file, and end everything that it started when the block is left."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as out:
        options = {"stderr": out, "env": {**os.environ, **environment}, "start_new_session": True, **more}
        process = subprocess.Popen(command, **{"stdout": out, **options})
        try:
            yield process
        finally:
            end_group(process)


def end_group(process: Any) -> None:
    """End a process and all that it started: first by request, then by force."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
            break
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def find_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def wait_until_healthy(process: Any, url: str, log: Path, seconds: float) -> None:
    """Wait for an answer of the server. Raise `RuntimeError` with the error in its log if it ends or takes too long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(read_error(log.read_text(errors="replace")))
        with contextlib.suppress(OSError, urllib.error.URLError), urllib.request.urlopen(url, timeout=5) as answer:
            if answer.status == 200:
                return
        time.sleep(1)
    raise RuntimeError(f"the server was not ready within {seconds:,.0f} seconds")


def read_error(log: str) -> str:
    """Return the last line of a log that names an error, without the name of its process."""
    lines = [line.strip() for line in log.splitlines() if "Error" in line]
    # The last error of a chain says only that another one happened.
    plain = [line for line in lines if "Engine core initialization failed" not in line]
    found = (plain or lines or ["it ended without a word"])[-1]
    return found.rsplit("] ", 1)[-1][:400]
