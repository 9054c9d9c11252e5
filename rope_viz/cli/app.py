"""`rope-viz app`: the dashboard, by Streamlit's own server, or by several of uvicorn's workers on one port."""

from __future__ import annotations

import argparse
import importlib.util
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
import webbrowser
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[1]
NEEDED = ("streamlit", "plotly", "matplotlib")


def add(commands: Any) -> None:
    """The command and its flags."""
    served = commands.add_parser("app", help="open the dashboard in a browser; what `rope-viz` alone does")
    add_flags(served)


def add_flags(served: argparse.ArgumentParser) -> None:
    """The flags of the dashboard."""
    served.add_argument("--port", type=int, default=8501, help="8501 unless told otherwise")
    served.add_argument("--host", default="127.0.0.1", help="127.0.0.1, this machine alone, unless told otherwise")
    served.add_argument("--workers", type=int, default=1, help="server processes that share the port")
    served.add_argument("--base-path", default="", metavar="PATH", help="path behind a proxy, such as rope")
    served.add_argument("--no-browser", action="store_true", help="open no browser")
    served.add_argument(
        "--health", action="store_true", help="ask a running dashboard whether it is well: exit code 0 or 1"
    )
    served.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """`app`: serve until interrupted. Raises `ValueError` for what cannot be served."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ValueError(f"the dashboard needs {', '.join(missing)}: pip install 'rope-viz[app]'")
    if not 0 < parsed.port < 65536:
        raise ValueError(f"--port must be from 1 to 65535, got {parsed.port}")
    if not 1 <= parsed.workers <= 64:
        raise ValueError(f"--workers must be from 1 to 64, got {parsed.workers}")
    base = parsed.base_path.strip("/")
    shown = parsed.host if parsed.host not in ("0.0.0.0", "::") else "localhost"
    address = f"http://{shown}:{parsed.port}/{base}".rstrip("/")
    if parsed.health:
        return 0 if healthy(address) else 1
    folder = root()
    process = subprocess.Popen(command(folder, parsed, base), cwd=folder, env=environment(base))
    if not parsed.no_browser:
        threading.Thread(target=browse, args=(address,), daemon=True).start()
    # Who stops this command stops the server.
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    try:
        return max(process.wait(), 0)
    except KeyboardInterrupt:
        process.terminate()
        process.wait(timeout=20)
        return 0


def root() -> Path:
    """Where app.py and pages/ are: inside the installed package, or beside it in a checkout."""
    inside = PACKAGE / "app"
    return inside if (inside / "app.py").is_file() else PACKAGE.parent


def command(folder: Path, parsed: argparse.Namespace, base: str) -> list[str]:
    """Streamlit's server for one process, uvicorn's for several."""
    if parsed.workers == 1:
        options = {"server.port": str(parsed.port), "server.address": parsed.host, "server.headless": "true"}
        if base:
            options["server.baseUrlPath"] = base
        flags = [part for name, value in options.items() for part in (f"--{name}", value)]
        return [sys.executable, "-m", "streamlit", "run", str(folder / "app.py"), *flags]
    flags = ["--host", parsed.host, "--port", str(parsed.port), "--workers", str(parsed.workers)]
    return [sys.executable, "-m", "uvicorn", "app:app", *flags, "--log-level", "warning"]


def environment(base: str) -> dict[str, str]:
    """A worker of uvicorn has no flags of Streamlit's: `ui/server.py` reads the path from here."""
    return os.environ | {"ROPE_VIZ_BASE_PATH": base}


def healthy(address: str) -> bool:
    """Whether a dashboard answers there."""
    try:
        with urllib.request.urlopen(f"{address}/_stcore/health", timeout=4) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def browse(address: str, patience: float = 60.0) -> None:
    """Open a browser once the server answers."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if healthy(address):
            webbrowser.open(address)
            return
        time.sleep(0.2)
