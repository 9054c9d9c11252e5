"""The sentences of the Kernels page, with the current numbers in them."""

from __future__ import annotations

from rope_viz.figures import kernels
from rope_viz.figures.theme import digits, tokens
from rope_viz.kernels.process import Report
from rope_viz.spec import RopeSpec

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
AGREEMENT = (
    "Every pairing, dtype and backend against float64 at positions from 1,000,000 on. The difference should be about "
    "what rounding the result once to its dtype makes inevitable: half a step at the largest value."
)


def errors(spec: RopeSpec) -> str:
    """How wrong each way is near the target length."""
    angle = _rounded(kernels.error_near(spec, spec.target, "float32 angle"))
    position = _rounded(kernels.error_near(spec, spec.target, "bf16 positions"))
    ours = _rounded(kernels.error_anywhere(spec, "fixed-point phase"))
    return (
        f"Near position {tokens(spec.target)} the usual float32 angle puts cos and sin off by up to **{angle}**, a "
        f"bf16 position by {position}. The 64-bit phase of the kernels here errs by **{ours}** at most, at every position."
    )


def measured(report: Report) -> str:
    """Our speed beside the usual way's, what it ran on, and whether it can be relied on."""
    ran = {way["name"]: way for way in report.ran}
    parts = []
    if "ours, out=" in ran:
        ours, usual = ran["ours, out="], next((way for name, way in ran.items() if name.startswith("eager")), None)
        text = f"Ours moves **{digits(ours['bytes_per_second'] / 1e9)} GB/s, {ours['fraction_of_copy']:.0%} of a copy**"
        if usual:
            text += f", {_rounded(usual['median_s'] / ours['median_s'])} times as fast as {usual['name']}"
        parts.append(f"{text}.")
        if kernels.slowed(report.ran):
            share = ran["copy"]["best_s"] / ours["best_s"]
            parts.append(
                "**The machine was busy with something else**: medians lie far below the best rounds (the ticks). In "
                f"its best round ours moved {digits(report.machine['bytes'] / ours['best_s'] / 1e9)} GB/s, {share:.0%} "
                "of the best copy."
            )
    return " ".join([*parts, machine(report)])


def machine(report: Report) -> str:
    """What was rotated, and on what."""
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
    """The ways that did not run, each with its reason."""
    reasons = ", ".join(f"{name} ({why})" for name, why in report.left_out.items())
    return f"Did not run: {reasons}." if reasons else ""


def _rounded(value: float) -> str:
    return digits(float(f"{value:.1e}"))
