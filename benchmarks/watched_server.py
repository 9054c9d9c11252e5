"""A server of a checkout whose memory, threads and log are watched. Linux only."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rope_viz.picture import public_address
from tests.browser.processes import HEALTH_PATH, find_free_port, running_process, wait_for_answer

ROOT = Path(__file__).resolve().parents[1]
# Runs Streamlit, and writes what the caches hold by their own count into a file, whose name is the first argument.
COUNTING = """
import pathlib, sys, threading, time
from rope_viz.own_files import blob_store, config_link
from rope_viz.serving import picture_route
path = pathlib.Path(sys.argv.pop(1))
CACHES = (blob_store.STORE, config_link.LINKS, picture_route.GALLERY)
def count():
    while True:
        path.write_text(str(sum(cache.size for cache in CACHES)))
        time.sleep(1)
threading.Thread(target=count, daemon=True).start()
from streamlit.web.cli import main
main()
"""


@dataclass(frozen=True)
class WatchedServer:
    """A running server: its address, its process, and the folder with its log and the count of its caches."""

    url: str
    pid: int
    folder: Path

    def read_memory(self) -> float:
        """Return the resident memory of the server's process in MB."""
        return read_memory(self.pid)

    def read_peak(self) -> float:
        """Return the largest resident memory that the server's process ever had, in MB."""
        return read_status(self.pid, "VmHWM") / 1024

    def count_threads(self) -> int:
        """Return the number of threads of the server's process."""
        return read_status(self.pid, "Threads")

    def read_cached(self) -> float:
        """Return what the caches hold by their own count, in MB."""
        return int((self.folder / "count").read_text() or 0) / (1 << 20)

    def read_log(self) -> str:
        """Return what the server wrote to its standard error."""
        return (self.folder / "log").read_text(errors="replace")


@contextlib.contextmanager
def watched_server(root: Path = ROOT, port: int = 0) -> Iterator[WatchedServer]:
    """Run a server of a checkout that answers before the block starts, and ends with the block."""
    port = port or find_free_port()
    url = f"http://127.0.0.1:{port}"
    environment = {**os.environ, public_address.SETTING: url}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [sys.executable, "-c", COUNTING, str(folder / "count"), "run", "app.py"]
        command += ["--server.headless", "true", "--server.port", str(port)]
        with (
            (folder / "log").open("wb") as log,
            running_process(command, cwd=root, stderr=log, env=environment) as process,
        ):
            wait_for_answer(process, url + HEALTH_PATH)
            yield WatchedServer(url, process.pid, folder)


def read_status(pid: int, name: str) -> int:
    """Return a number of a process from /proc, 0 if the process has ended."""
    with contextlib.suppress(OSError, StopIteration):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))
    return 0


def read_memory(pid: int) -> float:
    """Return the resident memory of a process in MB, 0 if it has ended."""
    return read_status(pid, "VmRSS") / 1024


def list_descendants(pid: int) -> list[int]:
    """Return the processes that a process started, and theirs."""
    children: list[int] = []
    for folder in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError):
            children += [int(child) for child in (folder / "children").read_text().split()]
    return children + [below for child in children for below in list_descendants(child)]


def read_cpu_seconds(pid: int) -> float:
    """Return the processor time of a process, 0 if it has ended."""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0
