"""Pictures of the page Kernels: how exactly and how fast real kernels rotate q and k."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from rope_viz.figures import kernels
from rope_viz.figures.words import kernels as words
from rope_viz.kernels.measurement_process import Report
from rope_viz.pictures.choices import Held, Kept, Pick, Switch
from rope_viz.pictures.outputs import Figure, Table
from rope_viz.pictures.page import MAIN_HEIGHT, Page
from rope_viz.pictures.picture_request import Now

PAIRING = Pick(key="kernels.pairing", label="Pairing", options=kernels.PAIRING_NAMES)
DTYPE = Pick(key="kernels.dtype", label="Dtype", options=kernels.DTYPES)
TOKENS = Pick(key="kernels.tokens", label="Tokens", options=kernels.TOKENS)
DEVICE = Pick(key="kernels.device", label="Device", options=kernels.DEVICES)
COMPILE = Switch(key="kernels.compile", label="torch.compile", on=True, help=words.COMPILED)


def packed(report: Report) -> bytes:
    """Encode a measurement for the store and for download."""
    return json.dumps(dataclasses.asdict(report), indent=1, allow_nan=False).encode()


def _report(content: bytes) -> Report:
    try:
        return Report(**json.loads(content))
    except (TypeError, json.JSONDecodeError):
        raise ValueError("this is no measurement as the page Kernels downloads it") from None


REPORT = Kept(
    key="kernels.report",
    label="A measurement",
    help="The file that the page downloads.",
    decode=_report,
    load=lambda written: Path(written).read_bytes(),
)
PAGE = Page("kernels", (PAIRING, DTYPE, TOKENS, DEVICE, COMPILE, REPORT))


@PAGE.picture()
def errors(now: Now) -> Figure:
    """Largest error of cos or sin by position, by how the angle is made."""
    quick = now.coarse
    return Figure(kernels.errors(now.spec, quick=quick), words.ERRORS, words.errors(now.spec, quick=quick))


@PAGE.picture(
    REPORT, height=lambda now: 96 + 46 * len(measured(now[REPORT]).ran) if now[REPORT] else MAIN_HEIGHT, still=True
)
def speeds(now: Now) -> Figure:
    """The speed of every way to rotate q and k, as it was measured."""
    report = measured(now[REPORT])
    return Figure(kernels.speeds(report), words.SPEEDS, words.measured(report) if report.ways else words.UNMEASURED)


@PAGE.picture(REPORT, height=424, still=True)
def ways(now: Now) -> Table:
    """The speed and the error of every way in numbers."""
    report = measured(now[REPORT])
    return Table(kernels.ways_table(report), "Every way to rotate, as measured", words.left_out(report))


@PAGE.picture(REPORT, height=320, still=True)
def agreement(now: Now) -> Table:
    """How well pairings, dtypes and backends agree."""
    return Table(kernels.agreement_table(measured(now[REPORT])), "Pairings and backends agree", words.AGREEMENT)


def workload(now: Now) -> dict[str, Any]:
    """Return the arguments of a measurement."""
    rotated = kernels.workload(now[PAIRING], now[DTYPE], now[TOKENS], now[DEVICE])
    return {"workload": rotated, "rounds": kernels.ROUNDS, "compiled": now[COMPILE]}


def measured(held: Held[Report] | None) -> Report:
    """Return the measurement, an empty one if there is none."""
    return Report({}) if held is None else held.value
