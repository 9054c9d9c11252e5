"""Start the servers and browsers that tests and scripts need, and end them when the block that needs them ends."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import Browser, sync_playwright

from rope_viz.cli.app import tied

ROOT = Path(__file__).parents[2]
# Full browsers first: Debian's headless shell takes less processor time, but it is not what users have.
BROWSER_NAMES = (
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"),
    "chromium-headless-shell",
)
BROWSER_OPTIONS = ("--no-sandbox", "--disable-gpu")
HEALTH_PATH = "/_stcore/health"


class Server(NamedTuple):
    """A server that answers: its address and its process."""

    url: str
    process: subprocess.Popen[bytes]


def find_browser() -> str | None:
    """Return the path of the first Chrome or Chromium that is installed."""
    return next((found for name in BROWSER_NAMES if (found := shutil.which(name))), None)


def require_browser() -> str:
    """Return the path of Chrome or Chromium. Raises `SystemExit` if neither is installed."""
    path = find_browser()
    if path is None:
        raise SystemExit("no Chrome or Chromium was found; on Debian: apt install chromium")
    return path


@contextlib.contextmanager
def running_browser() -> Iterator[Browser]:
    """Run Chrome or Chromium without a window, driven by Playwright."""
    path = require_browser()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=BROWSER_OPTIONS)
        yield browser
        browser.close()


def find_free_port() -> int:
    """Return a port of this machine on which nothing listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextlib.contextmanager
def running_process(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program, given by its full path; end it, with its own children, however the block ends.

    On Linux the program also ends if this process is killed. `options` are those of `subprocess.Popen`.
    """
    quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    process = subprocess.Popen(tied(command), start_new_session=True, **{**quiet, **options})
    try:
        yield process
    finally:
        end_processes(process)


def end_processes(*processes: subprocess.Popen[Any]) -> None:
    """End processes that lead a session of their own, and the children that they started."""
    for process in processes:
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, number)
                process.wait(timeout=20)
            except ProcessLookupError:
                break
            except subprocess.TimeoutExpired:
                continue


@contextlib.contextmanager
def running_server(
    *options: str,
    base: str = "",
    port: int = 0,
    root: Path = ROOT,
    app: str = "app.py",
    program: Sequence[str] = ("-m", "streamlit"),
    environment: Mapping[str, str] | None = None,
) -> Iterator[Server]:
    """Run a Streamlit server that answers before the block starts and ends with the block.

    `options` are those of `streamlit run`, `root` is the folder of `app` (a checkout), `program` is what Python runs,
    and `environment` is added to this process's own. Without `port`, a free one is taken.
    """
    port = port or find_free_port()
    command = [sys.executable, *program, "run", app, "--server.headless", "true", "--server.port", str(port), *options]
    if base:
        command += ["--server.baseUrlPath", base]
    url = f"http://127.0.0.1:{port}" + (f"/{base}" if base else "")
    with running_process(command, cwd=root, env={**os.environ, **(environment or {})}) as process:
        wait_for_answer(process, url + HEALTH_PATH)
        yield Server(url, process)


def running_script_server(script: Path) -> contextlib.AbstractContextManager[Server]:
    """Run a Streamlit server for one script, which can import rope_viz."""
    options = ("--server.address", "127.0.0.1", "--server.fileWatcherType", "none")
    quiet = ("--browser.gatherUsageStats", "false")
    return running_server(*options, *quiet, root=script.parent, app=script.name, environment={"PYTHONPATH": str(ROOT)})


def wait_for_answer(process: subprocess.Popen[bytes], address: str, seconds: float = 120) -> None:
    """Wait until a server answers at an address. Raises `RuntimeError` if it ends first, or after so many seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=1):
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"no server answered at {address}")
