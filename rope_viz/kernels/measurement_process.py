"""Measurements in a separate process, one at a time, so that the server neither loads torch nor dies with it.

A crash, lack of memory or a hanging driver ends only that process, and the user gets a sentence about it.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from rope_viz.storage.limits import MEASUREMENT_SECONDS
from rope_viz.storage.processes import EndedError, Job, Limits, OutOfTimeError, Process, ProcessError
from rope_viz.texts import Texts, current_language, join, use_language

TEXTS = Texts("measurement")

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

    A subclass names another `function`, which is called with the arguments and a function that
    writes one line of the report, and the limits and variables of its process.
    """

    function = "rope_viz.kernels.report:run_measurement"
    limits = Limits()
    # The server limits its BLAS to one thread; a measurement may use all.
    variables: Mapping[str, str | None] = MappingProxyType({"OPENBLAS_NUM_THREADS": None})

    def __init__(self, workload: dict[str, Any], *, limit: float = MEASUREMENT_SECONDS, **options: Any) -> None:
        """Start it. Raise `BusyError` while another one runs.

        workload and options: see `rope_viz.kernels.report`.
        """
        if not _one_at_a_time.acquire(blocking=False):
            raise BusyError("another measurement is running")
        self.fraction = 0.0
        self.step = self.first_step
        self.problem = ""
        self.report: Any = self.make_report(workload)
        self._ended = threading.Event()
        self._language = current_language()
        self._process: Process | None = None
        try:
            limits = dataclasses.replace(self.limits, wall_seconds=limit)
            self._process = Process(limits, name="measurement", variables=self.variables)
        except OSError as error:
            self.problem = TEXTS("problems.not_started", error=error)
            self._finish()
            return
        job = Job(self.function, ({**workload, **options},))
        threading.Thread(target=self._do, args=(self._process, job), daemon=True, name="measurement").start()

    def make_report(self, workload: dict[str, Any]) -> Any:
        """Return an empty result, whose `add_line` takes each line of the process."""
        return MeasurementReport(workload)

    def describe(self, error: Exception) -> str:
        """Return a sentence for an error of the function, or of its process."""
        code = error.code if isinstance(error, EndedError) else 1
        return join(TEXTS("problems.failed", code=code), TEXTS("problems.see_log"))

    @property
    def first_step(self) -> str:
        return TEXTS("measure.loading")

    @property
    def is_alive(self) -> bool:
        return not self._ended.is_set()

    def stop(self) -> None:
        if self._process is None or not self._process.is_alive:
            return
        self.problem = self.problem or TEXTS("problems.stopped")
        self._process.kill()

    def wait(self, seconds: float) -> bool:
        """Wait until it ends, at most this many seconds; return whether it has ended."""
        return self._ended.wait(seconds)

    def _do(self, process: Process, job: Job) -> None:
        with use_language(self._language):
            try:
                process.do(job, listen=self._add_line)
            except OutOfTimeError as error:
                self.problem = self.problem or TEXTS("problems.too_long", seconds=error.seconds)
            except (ProcessError, ValueError, OSError) as error:
                self.problem = self.problem or self.describe(error)
            finally:
                process.close()
                self._finish()

    def _add_line(self, line: dict[str, Any]) -> None:
        self.report.add_line(line)
        self.problem = line.get("problem", self.problem)
        self.fraction = line.get("fraction", 0.0)
        self.step = line.get("name", TEXTS("measure.inputs"))

    def _finish(self) -> None:
        self._ended.set()
        _one_at_a_time.release()
