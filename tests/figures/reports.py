"""Measurements made up for the tests of the Kernels page."""

from rope_viz.kernels.measurement_process import MeasurementReport
from rope_viz.pages.kernels import figures as kernels


def make_way(name, median, *, best=None, error=1e-7, note=""):
    timed = {"median_s": median, "best_s": best or median, "bytes_per_second": 1e9 / median if median else None}
    fraction = 0.05 / median if median else None
    return timed | {
        "name": name,
        "fraction_of_copy": fraction,
        "error": error,
        "note": note,
        "rounds": 15,
        "host_s": None,
    }


def make_report(*more, gpu=False):
    ways = [
        make_way("copy", 0.05, error=None),
        make_way("ours, out=", 0.1),
        make_way("eager rotate_half", 0.8, error=1e-3),
    ]
    ways += [make_way("FLA", None, error=None, note="not installed"), *more]
    machine = {"device": "Z80", "gpu": gpu, "gpu_found": gpu, "threads": 2, "torch": "2.13.0", "bytes": 10**9}
    load = kernels.workload("half", "float32", "1024", "auto")
    rows = [{"pairing": "half", "dtype": "float32", "backend": "CPU", "difference": 2e-7, "half_step": 2.4e-7}]
    return MeasurementReport(load, machine, rows, {item["name"]: item for item in ways})
