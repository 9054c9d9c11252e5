"""Servers of their own for what is measured beside the app."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "browser"))
from conftest import answering, find_browser, free_port, serve  # noqa: E402

__all__ = ["ROOT", "answering", "find_browser", "free_port", "serve", "serve_script"]


def serve_script(script: Path) -> tuple[str, subprocess.Popen[bytes]]:
    """Address and process of a Streamlit server for one script, which can import rope_viz; it answers already."""
    port = free_port()
    command = [sys.executable, "-m", "streamlit", "run", str(script), "--server.headless", "true"]
    options = ["--server.port", str(port), "--server.address", "127.0.0.1", "--server.fileWatcherType", "none"]
    options += ["--browser.gatherUsageStats", "false"]
    process = subprocess.Popen(
        [*command, *options],
        cwd=script.parent,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    return url, answering(process, f"{url}/_stcore/health")
