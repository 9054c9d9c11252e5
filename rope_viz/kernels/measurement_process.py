"""Measurements in a separate process, one at a time, so that the server neither loads torch nor dies with it.

A crash, lack of memory or a hanging driver ends only that process, and the user gets a sentence about it.
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
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rope_viz.texts import Texts, current_language, join, use_language

TEXTS = Texts("measurement")
LIMIT_SECONDS = 240.0
ROOT = Path(__file__).parents[2]

_one_at_a_time = threading.Lock()


class BusyError(RuntimeError):
    """Another measurement is running; two at once would distort each other."""


@dataclass
class MeasurementReport:
    """The result of a measurement, as plain data for its download. `ways` are by name, in the order they ran."""

    workload: dict[str, Any]
    machine: dict[str, Any] = field(default_factory=dict)
    agreement: list[dict[str, Any]] = field(default_factory=list)
    ways: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add_line(self, line: dict[str, Any]) -> None:
        self.machine = line.get("machine", self.machine)
        self.agreement = line.get("agreement", self.agreement)
        if "way" in line:
            self.ways[line["name"]] = line["way"]

    @property
    def ran(self) -> list[dict[str, Any]]:
        return [way for way in self.ways.values() if way["median_s"]]

    @property
    def left_out(self) -> dict[str, str]:
        """Return why the others were not timed: name -> reason."""
        return {name: way["note"] for name, way in self.ways.items() if way["note"]}


class Run:
    """A running measurement: `fraction` and `step` are its progress, `problem` the reason if it failed.

    A subclass names another `module` to run, and variables of its `environment`. The module reads its arguments as
    JSON from the standard input, and the language of its lines from its command line.
    """

    module = "rope_viz.kernels.report"
    environment: Mapping[str, str] = MappingProxyType({})

    def __init__(self, workload: dict[str, Any], *, limit: float = LIMIT_SECONDS, **options: Any) -> None:
        """Start it. workload and options: see `rope_viz.kernels.report`. Raises `BusyError` while another one runs."""
        if not _one_at_a_time.acquire(blocking=False):
            raise BusyError("another measurement is running")
        self.fraction, self.step, self.problem = 0.0, self.first_step, ""
        self.report: Any = self.make_report(workload)
        self._arguments = json.dumps({**workload, **options})
        self._ended, self._language = threading.Event(), current_language()
        try:
            self._process = _start_process(self.module, self.environment, self._language)
        except OSError as error:
            self.problem = TEXTS("problems.not_started", error=error)
            self._finish()
            return
        self._timer = threading.Timer(limit, self.stop, [TEXTS("problems.too_long", seconds=limit)])
        self._timer.daemon = True
        self._timer.start()
        atexit.register(self.stop)
        threading.Thread(target=self._read_lines, daemon=True, name="measurement").start()

    def make_report(self, workload: dict[str, Any]) -> Any:
        """Return an empty result, whose `add_line` takes each line of the process."""
        return MeasurementReport(workload)

    @property
    def first_step(self) -> str:
        return TEXTS("measure.loading")

    @property
    def is_alive(self) -> bool:
        return not self._ended.is_set()

    def stop(self, why: str = "") -> None:
        if not self.is_alive or self._process.poll() is not None:
            return
        self.problem = self.problem or why or TEXTS("problems.stopped")
        with contextlib.suppress(ProcessLookupError):
            # The whole process group, which may include a compiler.
            os.killpg(self._process.pid, signal.SIGKILL) if hasattr(os, "killpg") else self._process.kill()

    def wait(self, seconds: float) -> bool:
        """Wait until it ends, at most this many seconds; return whether it has ended."""
        return self._ended.wait(seconds)

    def _read_lines(self) -> None:
        with use_language(self._language):
            self._read()

    def _read(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            # Here and not in the server's thread, because a pipe takes a long text only while the process reads it.
            with contextlib.suppress(BrokenPipeError), self._process.stdin as pipe:
                pipe.write(self._arguments)
            for text in self._process.stdout:
                if not text.endswith("\n"):
                    break  # killed in the middle of a line
                line = json.loads(text)
                self.report.add_line(line)
                self.problem = line.get("problem", self.problem)
                self.fraction, self.step = line.get("fraction", 0.0), line.get("name", TEXTS("measure.inputs"))
            code = self._process.wait()
            if code and not self.problem:
                self.problem = join(TEXTS("problems.failed", code=code), TEXTS("problems.see_log"))
        finally:
            self._finish()

    def _finish(self) -> None:
        if hasattr(self, "_timer"):
            self._timer.cancel()
            atexit.unregister(self.stop)
        self._ended.set()
        _one_at_a_time.release()


def _start_process(module: str, variables: Mapping[str, str], language: str) -> subprocess.Popen[str]:
    # The server limits its BLAS to one thread; a measurement may use all.
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    environment |= variables
    return subprocess.Popen(
        [sys.executable, "-m", module, language],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    )
