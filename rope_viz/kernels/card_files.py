"""Measurements of the kernels on GPUs: one JSON file per card, written by benchmarks/rotate.py and shipped here."""

from __future__ import annotations

import functools
import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from rope_viz.storage.write_file import write_file

FOLDER = Path(__file__).parent / "cards"


@dataclass(frozen=True)
class CardTime:
    """One way's time in one case: microseconds, as a share of a copy, and the relative error against float64.

    relative_error and host_us (the host's time per call) are None where they were not measured.
    """

    us: float
    share_of_copy: float
    relative_error: float | None = None
    host_us: float | None = None


@dataclass(frozen=True)
class CardCase:
    """The ways to rotate q and k (None: q alone) of these shapes, (batch, tokens, heads, head_dim)."""

    case: str
    direction: str
    pairing: str
    dtype: str
    q: list[int]
    k: list[int] | None
    rotary_dim: int
    ways: dict[str, CardTime]


@dataclass(frozen=True)
class CardMeasurement:
    """What was measured on one card. not_measured: what a reader could expect here and does not find."""

    device: str
    measured: str
    commit: str
    torch: str
    triton: str
    rounds: int
    not_measured: list[str]
    cases: list[CardCase]


@functools.cache
def read_cards() -> dict[str, CardMeasurement]:
    """Return the shipped measurements by the name of their file, newest first."""
    found = {path.stem: read_card(path) for path in FOLDER.glob("*.json")}
    return dict(sorted(found.items(), key=lambda item: item[1].measured, reverse=True))


def read_card(path: Path) -> CardMeasurement:
    """Return the measurement in a file."""
    found = json.loads(path.read_text(encoding="utf-8"))
    cases = [
        CardCase(**case | {"ways": {name: CardTime(**times) for name, times in case["ways"].items()}})
        for case in found["cases"]
    ]
    return CardMeasurement(**found | {"cases": cases})


def write_card(card: CardMeasurement, folder: Path = FOLDER) -> Path:
    """Write the measurement to the file of its card and return the path.

    Raises `ValueError` if the file is that of another card, which is never replaced.
    """
    path = folder / f"{re.sub('[^a-z0-9]+', '_', card.device.lower()).strip('_')}.json"
    if path.exists() and read_card(path).device != card.device:
        raise ValueError(f"{path} holds a measurement of {read_card(path).device}; choose another folder")
    text = json.dumps(asdict(card), indent=1)
    # One line for each way and each shape.
    for opening, closing in ((r"\[(?=\s+\d)", r"\]"), (r'\{(?=\s+"us")', r"\}")):
        text = re.sub(f"{opening}[^]}}]*{closing}", lambda match: re.sub(r"\s+", " ", match[0]), text)
    text = text.replace("[ ", "[").replace(" ]", "]").replace("{ ", "{").replace(" }", "}") + "\n"
    write_file(path, text.encode())
    return path
