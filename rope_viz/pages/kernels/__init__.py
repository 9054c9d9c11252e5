"""Pictures of the page Kernels: how exactly and how fast kernels rotate q and k."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from rope_viz.kernels.card_files import CardMeasurement, read_cards
from rope_viz.kernels.measurement_process import MeasurementReport
from rope_viz.kernels.report import parse_report
from rope_viz.pages.kernels import card_figures, figures, words
from rope_viz.pages.kernels.figures import TEXTS
from rope_viz.picture.choices import Pick, StoredChoice, Switch, load_bytes
from rope_viz.picture.outputs import Figure, Table
from rope_viz.picture.page import MAIN_HEIGHT, Page, embedding
from rope_viz.picture.picture_request import PictureRequest

PAIRING = Pick(key="kernels.pairing", label=TEXTS("choices.pairing"), options=figures.PAIRING_NAMES)
DTYPE = Pick(key="kernels.dtype", label=TEXTS("choices.dtype"), options=figures.DTYPES)
TOKENS = Pick(key="kernels.tokens", label=TEXTS("choices.tokens"), options=figures.TOKENS)
DEVICE = Pick(key="kernels.device", label=TEXTS("choices.device"), options=figures.DEVICES)
COMPILE = Switch(key="kernels.compile", label=TEXTS("choices.compile"), on=True, help=TEXTS("choices.compile_help"))

CARD = Pick(
    key="kernels.card",
    label=TEXTS("choices.card"),
    options={name: f"{card.device}, {card.measured}" for name, card in read_cards().items()},
)


def pack_report(report: MeasurementReport) -> bytes:
    """Encode a measurement for the store and for download."""
    return json.dumps(dataclasses.asdict(report), indent=1, allow_nan=False).encode()


def decode_report(content: bytes) -> MeasurementReport:
    """Decode a stored measurement. Raise `ValueError` with a sentence if the content is none."""
    return parse_report(content, TEXTS("problems.no_report"))


REPORT = StoredChoice(
    key="kernels.report",
    label=TEXTS("choices.report"),
    help=TEXTS("choices.report_help"),
    decode=decode_report,
    load=load_bytes,
)
PAGE = Page(
    "kernels",
    (CARD, PAIRING, DTYPE, TOKENS, DEVICE, COMPILE, REPORT),
    sees=lambda request: embedding(request, without=("pairing", "attention")),
    door="lab",
)


@PAGE.picture()
def errors(request: PictureRequest) -> Figure:
    """Largest error of cos or sin by position, by how the angle is made."""
    quick = request.coarse
    return Figure(
        figures.errors(request.spec, quick=quick),
        TEXTS("errors_title"),
        words.describe_errors(request.spec, quick=quick),
    )


@PAGE.picture(
    REPORT,
    height=lambda request: 96 + 46 * len(read_report(request).ran) if request[REPORT] else MAIN_HEIGHT,
    still=True,
)
def speeds(request: PictureRequest) -> Figure:
    """The speed of every way to rotate q and k, as it was measured."""
    report = read_report(request)
    return Figure(figures.speeds(report), TEXTS("speeds_title"), words.describe_speed(report))


@PAGE.picture(REPORT, height=424, still=True)
def ways(request: PictureRequest) -> Table:
    """The speed and the error of every way in numbers."""
    report = read_report(request)
    return Table(figures.ways_table(report), TEXTS("ways_title"), words.list_left_out(report))


@PAGE.picture(REPORT, height=320, still=True)
def agreement(request: PictureRequest) -> Table:
    """How well pairings, dtypes and backends agree."""
    return Table(figures.agreement_table(read_report(request)), TEXTS("agreement_title"), words.explain_agreement())


@PAGE.picture(CARD, height=lambda request: card_figures.height(read_card(request)), still=True)
def cards(request: PictureRequest) -> Figure:
    """The speed of every way as a share of a copy's, on a GPU, in every case that was measured there."""
    card = read_card(request)
    return Figure(card_figures.shares(card), TEXTS("cards_title", device=card.device), words.describe_card(card))


@PAGE.picture(CARD, height=600, still=True)
def card_times(request: PictureRequest) -> Table:
    """The same in numbers."""
    card = read_card(request)
    return Table(card_figures.shares_table(card), TEXTS("cards_title", device=card.device), words.list_missing(card))


def read_card(request: PictureRequest) -> CardMeasurement:
    """Return the chosen measurement of a GPU; the newest is the default."""
    return read_cards()[request[CARD]]


def workload(request: PictureRequest) -> dict[str, Any]:
    """Return the arguments of a measurement."""
    rotated = figures.workload(request[PAIRING], request[DTYPE], request[TOKENS], request[DEVICE])
    return {"workload": rotated, "rounds": figures.ROUNDS, "compiled": request[COMPILE]}


def read_report(request: PictureRequest) -> MeasurementReport:
    """Return the measurement, an empty one if there is none."""
    stored = request[REPORT]
    return MeasurementReport({}) if stored is None else stored.value
