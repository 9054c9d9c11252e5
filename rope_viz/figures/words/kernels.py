"""Sentences of the Kernels page, with the current numbers."""

from __future__ import annotations

from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures import kernels
from rope_viz.kernels.measurement_process import Report
from rope_viz.texts.numbers import format_number, format_tokens

ERRORS = "Largest error of cos or sin against the position, by how the angle is made"
SPEEDS = "Bytes moved per second by each way to rotate, beside a copy of the same bytes"
COMPILED = (
    "Also measures torch.compile, which takes 10 to 20 seconds to compile the first time, and needs a C++ compiler."
)
BEFORE = (
    "Rotate random q `[1, tokens, 32, 128]` on the machine that serves this page: the kernels here, the usual ways, "
    "torch.compile, the dense matrix, and other projects' kernels where they are installed; and see how well pairings, "
    "dtypes and backends agree. Some 20 seconds; nothing starts by itself."
)
UNMEASURED = "Nothing has been measured yet: press Measure on the page Kernels, or name a measurement it downloaded."
AGREEMENT = (
    "Every pairing, dtype and backend against float64 at positions from 1,000,000 on. The difference should be about "
    "what rounding the result once to its dtype makes inevitable: half a step at the largest value."
)


def errors(spec: RopeSpec, *, quick: bool = False) -> str:
    """Give the error of the usual ways near the target length, and the largest drawn error of our kernel."""
    angle = _rounded(kernels.error_near(spec, spec.target, "float32 angle"))
    position = _rounded(kernels.error_near(spec, spec.target, "bf16 positions"))
    ours = _rounded(kernels.error_anywhere(spec, "fixed-point phase", quick=quick))
    return (
        f"Near position {format_tokens(spec.target)} the usual float32 angle puts cos and sin off by up to **{angle}**, a "
        f"bf16 position by {position}. The 64-bit phase of the kernels here errs by up to **{ours}** wherever it was "
        f"tried, up to {format_tokens(kernels.FARTHEST)}."
    )


def measured(report: Report) -> str:
    """Compare our throughput with a copy and the usual way; by best rounds instead of medians on a busy machine."""
    ran = {way["name"]: way for way in report.ran}
    if "ours, out=" not in ran:
        return machine(report)
    usual = next((way for name, way in ran.items() if name.startswith("eager")), None)
    busy = kernels.slowed([way for way in (ran["copy"], ran["ours, out="], usual) if way])
    by = "best_s" if busy else "median_s"
    ours, copy = ran["ours, out="][by], ran["copy"][by]
    moved = f"**{format_number(report.machine['bytes'] / ours / 1e9)} GB/s, {copy / ours:.0%} of a copy**"
    comparison = f", {_rounded(usual[by] / ours)} times as fast as {usual['name']}" if usual else ""
    if not busy:
        return f"Ours moves {moved}{comparison}. {machine(report)}"
    return (
        "**The machine was busy with something else**: bars (medians) lie far from ticks (best rounds). Compare the "
        f"ticks, or measure again. By its best round ours moves {moved}{comparison}. {machine(report)}"
    )


def machine(report: Report) -> str:
    """Describe the measured workload and the machine."""
    load, found = report.workload, report.machine
    shape = f"[1, {load['tokens']:,}, {load['heads']}, {load['head_dim']}]"
    pairing = kernels.PAIRING_NAMES[load["pairing"]].lower()
    if found["gpu"]:
        where = f"the GPU ({found['device']})"
    else:
        none = "" if found["gpu_found"] else "No GPU here, so this is the CPU: "
        where = f"{none}{found['device']}, {found['threads']} threads"
    return f"Measured: {pairing}, {load['dtype']}, q {shape}. {where}, torch {found['torch']}."


def left_out(report: Report) -> str:
    """List the ways that did not run, with reasons, "" if all ran."""
    reasons = ", ".join(f"{name} ({why})" for name, why in report.left_out.items())
    return f"Did not run: {reasons}." if reasons else ""


def _rounded(value: float) -> str:
    return format_number(float(f"{value:.1e}"))
