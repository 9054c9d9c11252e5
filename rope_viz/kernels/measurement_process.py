"""One measurement at a time, in a process of its own, so that the server neither loads torch nor dies with it.

A crash, too little memory or a driver that does not answer end that process alone, and what is left is a sentence.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LIMIT_SECONDS = 240.0
ROOT = Path(__file__).parents[2]

_one_at_a_time = threading.Lock()


class BusyError(RuntimeError):
    """Another measurement is running: two at once would measure each other."""


@dataclass
class Report:
    """What a measurement found: plain data, as in its download. `ways` by name, in the order they ran."""

    workload: dict[str, Any]
    machine: dict[str, Any] = field(default_factory=dict)
    agreement: list[dict[str, Any]] = field(default_factory=list)
    ways: dict[str, dict[str, Any]] = field(default_factory=dict)

    def take(self, line: dict[str, Any]) -> None:
        """One line of the process."""
        self.machine = line.get("machine", self.machine)
        self.agreement = line.get("agreement", self.agreement)
        if "way" in line:
            self.ways[line["name"]] = line["way"]

    @property
    def ran(self) -> list[dict[str, Any]]:
        """The ways that were timed."""
        return [way for way in self.ways.values() if way["median_s"]]

    @property
    def left_out(self) -> dict[str, str]:
        """Why the others were not: name -> reason."""
        return {name: way["note"] for name, way in self.ways.items() if way["note"]}


class Run:
    """A measurement under way: `fraction` and `step` say how far it is, `problem` why it came to nothing."""

    def __init__(self, workload: dict[str, Any], *, limit: float = LIMIT_SECONDS, **options: Any) -> None:
        """Start it. workload and options: see `rope_viz.kernels.report`. Raises `BusyError` while another one runs."""
        if not _one_at_a_time.acquire(blocking=False):
            raise BusyError("another measurement is running")
        self.fraction, self.step, self.problem = 0.0, "loading torch", ""
        self.report = Report(workload)
        self._ended = threading.Event()
        try:
            self._process = _started({**workload, **options})
        except OSError as error:
            self.problem = f"The measurement could not be started: {error}."
            self._finish()
            return
        self._timer = threading.Timer(limit, self.stop, [f"The measurement was stopped after {limit:.0f} seconds."])
        self._timer.daemon = True
        self._timer.start()
        atexit.register(self.stop)
        threading.Thread(target=self._read, daemon=True, name="measurement").start()

    @property
    def alive(self) -> bool:
        """Whether it goes on."""
        return not self._ended.is_set()

    def stop(self, why: str = "The measurement was stopped.") -> None:
        """End it now; nothing happens where it has ended."""
        if not self.alive or self._process.poll() is not None:
            return
        self.problem = self.problem or why
        with contextlib.suppress(ProcessLookupError):
            # Its whole group: a compiler may be at work for it.
            os.killpg(self._process.pid, signal.SIGKILL) if hasattr(os, "killpg") else self._process.kill()

    def wait(self, seconds: float) -> bool:
        """Until it ends, at most so long; whether it has ended."""
        return self._ended.wait(seconds)

    def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            for text in self._process.stdout:
                if not text.endswith("\n"):
                    break  # killed in the middle of a line
                line = json.loads(text)
                self.report.take(line)
                self.fraction, self.step = line.get("fraction", 0.0), line.get("name", "making q")
            code = self._process.wait()
            if code and not self.problem:
                self.problem = FAILED.format(code=code)
        finally:
            self._finish()

    def _finish(self) -> None:
        if hasattr(self, "_timer"):
            self._timer.cancel()
            atexit.unregister(self.stop)
        self._ended.set()
        _one_at_a_time.release()


FAILED = (
    "The measurement ended early (exit code {code}): torch may be missing, or memory too small for so many tokens. "
    "The server's log says more."
)


def _started(arguments: dict[str, Any]) -> subprocess.Popen[str]:
    # The server keeps its BLAS to one thread; what is measured may use them all.
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    return subprocess.Popen(
        [sys.executable, "-m", "rope_viz.kernels.report", json.dumps(arguments)],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    )
