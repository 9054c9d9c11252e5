"""A measurement as JSON: the lines that a process reports, and the reading of a file that was saved.

The arguments of `run_measurement`, which `measurement_process` calls, are the fields of `Workload`, device
"auto" for the GPU if there is one, and `rounds` and `compiled` of `measure`. The first line is
{"machine", "agreement"}, then one {"fraction", "name", "way"} per step.
"""

from __future__ import annotations

import contextlib
import math
import os
import platform
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rope_viz.embedding.spec import PAIRINGS, require_number, short_repr
from rope_viz.kernels.measurement_process import TEXTS, MeasurementReport
from rope_viz.storage.decode_json import decode_json
from rope_viz.storage.processes import Tell
from rope_viz.texts.texts import join_items

if TYPE_CHECKING:
    from rope_viz.kernels.measure import Measurement, Workload

# Where pairings and backends are compared: far enough that a float32 angle is wrong in the second digit.
FAR = 1_000_000

MOST_ROWS = 1000
LONGEST = 1000
"""Characters of one text."""
TIMES = ("median_s", "best_s", "bytes_per_second", "fraction_of_copy")


def run_measurement(arguments: dict[str, Any], tell: Tell) -> None:
    """Tell the lines of a measurement."""
    # A pool of compiler processes would outlive this one.
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    try:
        for line in report_lines(arguments):
            tell(line)
    except (ValueError, OSError) as error:
        # The page sends only what can be measured: the process logs this as an error of ours.
        raise RuntimeError("the measurement failed") from error


def report_lines(arguments: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the lines that the process reports."""
    # Here, because a page reads saved files with this module, and does not load torch.
    import torch

    from rope_viz.kernels.measure import Workload, agreement, measure

    options = {name: arguments.pop(name) for name in ("rounds", "compiled") if name in arguments}
    if arguments.get("device") == "auto":
        arguments["device"] = "cuda" if torch.cuda.is_available() else "cpu"
    workload = Workload(**arguments)
    names = ("pairing", "dtype", "backend", "difference", "half_step")
    compared = [dict(zip(names, row, strict=True)) for row in agreement(start=FAR)]
    yield {"machine": describe_machine(workload), "agreement": compared}
    for name, fraction, result in measure(workload, **options):
        yield {"fraction": fraction, "name": name, "way": format_row(result)}


def describe_machine(workload: Workload) -> dict[str, Any]:
    """Return a description of the machine."""
    import torch

    on_gpu = workload.device.startswith("cuda")
    return {
        "device": torch.cuda.get_device_name() if on_gpu else find_processor(),
        "gpu": on_gpu,
        "gpu_found": torch.cuda.is_available(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "bytes": workload.bytes_moved,
    }


def format_row(result: Measurement) -> dict[str, Any]:
    """Return a way's numbers so far; unknown ones are None."""
    row = {
        "name": result.name,
        "median_s": result.median,
        "best_s": min(result.seconds, default=math.nan),
        "bytes_per_second": result.bytes_per_second,
        "fraction_of_copy": result.fraction_of_copy,
        "host_s": statistics.median(result.host_seconds) if result.host_seconds else math.nan,
        "error": math.nan if result.error is None else result.error,
    }
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in row.items()
    } | {"note": result.note, "rounds": len(result.seconds)}


def find_processor() -> str:
    """Return the processor's name, as far as the system reports it."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine() or "CPU"


def parse_report(content: bytes, problem: str) -> MeasurementReport:
    """Return the measurement in a JSON text; raise `ValueError`, with the sentence `problem` for no measurement.

    A measurement that was stopped is one too: ways without times, or none at all.
    """
    found = decode_json(content, problem)
    if not isinstance(found, dict) or not {"workload"} <= set(found) <= {"workload", "machine", "agreement", "ways"}:
        raise ValueError(problem)
    report = MeasurementReport(**found)
    named = (report.workload, report.machine, report.ways)
    if not all(isinstance(part, dict) for part in named) or not isinstance(report.agreement, list):
        raise ValueError(problem)
    if len(report.ways) > MOST_ROWS or len(report.agreement) > MOST_ROWS:
        raise ValueError(TEXTS("report.rows", most_rows=MOST_ROWS))
    for name, way in report.ways.items():
        check_way(name, way)
    for row in report.agreement:
        check_agreement(row)
    if report.ways:
        check_workload(report.workload)
        check_machine(report.machine)
    if report.ran and "copy" not in {way["name"] for way in report.ran}:
        raise ValueError(TEXTS("report.copy"))
    return report


def check_way(name: str, way: Any) -> None:
    """Raise `ValueError` unless this is one way: timed, with all its numbers, or not timed, with a note."""
    label = TEXTS("report.way", name=short_repr(name))
    check_object(way, label, texts=("name", "note"))
    if way["name"] != name:
        raise ValueError(TEXTS("report.other_name", label=label, name=short_repr(way["name"])))
    timed = [key for key in TIMES if way.get(key) is not None]
    for key in TIMES if timed else ():
        require_number(way.get(key), TEXTS("report.part", key=key, label=label), least=1e-15, most=1e18)
    for key in (*TIMES, "error", "host_s"):
        way.setdefault(key, None)
    if way["host_s"] is not None:
        require_number(way["host_s"], TEXTS("report.host", label=label), least=0.0, most=1e6)
    if way["error"] is not None:
        require_number(way["error"], TEXTS("report.error", label=label), least=0.0, most=1e30)


def check_agreement(row: Any) -> None:
    """Raise `ValueError` unless this is one row of the comparison with float64."""
    check_object(row, TEXTS("report.row"), texts=("dtype", "backend"))
    check_pairing(row)
    for key in ("difference", "half_step"):
        require_number(row.get(key), TEXTS("report.agreement", key=key), least=0.0, most=1e30)


def check_workload(load: dict[str, Any]) -> None:
    """Raise `ValueError` unless the measured tensors are described."""
    check_object(load, TEXTS("report.workload"), texts=("dtype",))
    check_pairing(load)
    for key in ("tokens", "heads", "head_dim"):
        require_number(load.get(key), TEXTS("report.workload_part", key=key), least=1, most=1e12, integer=True)


def check_machine(machine: dict[str, Any]) -> None:
    """Raise `ValueError` unless the machine is described."""
    check_object(machine, TEXTS("report.machine"), texts=("device", "torch"))
    for key in ("gpu", "gpu_found"):
        if not isinstance(machine.get(key), bool):
            raise ValueError(TEXTS("report.flag", key=key, got=short_repr(machine.get(key))))
    require_number(machine.get("threads"), TEXTS("report.threads"), least=1, most=1e6, integer=True)
    require_number(machine.get("bytes"), TEXTS("report.bytes"), least=1, most=1e18)


def check_object(value: Any, label: str, *, texts: Sequence[str]) -> None:
    """Raise `ValueError` unless this is a JSON object with these keys, each a text that is not too long."""
    if not isinstance(value, dict):
        raise ValueError(TEXTS("report.object", label=label, got=short_repr(value)))
    for key in texts:
        if not isinstance(value.get(key), str) or len(value[key]) > LONGEST:
            raise ValueError(TEXTS("report.text", key=key, label=label, longest=LONGEST))


def check_pairing(value: dict[str, Any]) -> None:
    """Raise `ValueError` unless the object names a pairing."""
    if value.get("pairing") not in PAIRINGS:
        raise ValueError(TEXTS("report.pairing", pairings=join_items(PAIRINGS), got=short_repr(value.get("pairing"))))
