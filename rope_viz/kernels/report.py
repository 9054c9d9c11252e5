"""A measurement as JSON lines, for `measurement_process`: `python -m rope_viz.kernels.report`.

It reads a JSON object from the standard input: the fields of `Workload`, device "auto" for the GPU if there is one,
and `rounds` and `compiled` of `measure`. The first line is {"machine", "agreement"}, then one {"fraction", "name",
"way"} per step.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from rope_viz.kernels.measure import Measurement, Workload, agreement, measure

# Where pairings and backends are compared: far enough that a float32 angle is wrong in the second digit.
FAR = 1_000_000


def report_lines(arguments: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the lines that the process prints."""
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


def main() -> None:
    """Print the lines; redirect all other output to stderr."""
    # A pool of compiler processes would outlive this one.
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    # A broken pipe means that the server has ended: end too.
    with contextlib.suppress(BrokenPipeError), os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)
        for line in report_lines(json.load(sys.stdin)):
            print(json.dumps(line, allow_nan=False), file=out, flush=True)


if __name__ == "__main__":
    main()
