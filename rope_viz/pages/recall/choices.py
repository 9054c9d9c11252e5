"""Choices of the page Recall."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from rope_viz.embedding.spec import Knob, RopeSpec
from rope_viz.evaluation.evaluation_plan import read_evaluation
from rope_viz.evaluation.search_results import read_search
from rope_viz.figures.band_words import TEXTS as BAND_TEXTS
from rope_viz.figures.compared import short_label
from rope_viz.pages.recall.figures import TEXTS
from rope_viz.picture import choices
from rope_viz.picture.band_choices import make_change_menu, make_pairs_menu
from rope_viz.picture.choices import Number, Pick, Several, StoredChoice, length, make_tab_choice
from rope_viz.picture.page import Page
from rope_viz.picture.picture_request import Choice, PictureRequest, T
from rope_viz.real_models.band_table import BandTable, load_band_table
from rope_viz.real_models.measured_file import read_measured
from rope_viz.real_models.text_results import read_found_keys, read_text_losses
from rope_viz.storage.limits import CONTENT_BYTES
from rope_viz.tiny_lm import attention_diagnosis, checkpoints
from rope_viz.tiny_lm.numpy_model import TinyLm
from rope_viz.tiny_lm.recall import LONGEST, How, Recall, interval, recall

TRAINED = RopeSpec(head_dim=32, base=10_000.0, context=256)
"""The spec of tiny_lm in training, known before a checkpoint is loaded."""

HEADS = ("previous_token", "finder")

MOST = 4096
"""Number of evaluations remembered in `_known`."""


def explain_misfit(request: PictureRequest) -> str:
    """Return why tiny_lm cannot use the chosen method, "" if it can."""
    try:
        tiny_lm_spec(request)
    except ValueError:
        return TEXTS("refused", method=name_method(request.spec))
    return ""


def tiny_lm_spec(request: PictureRequest) -> RopeSpec:
    """Return the spec used by tiny_lm: the chosen one, or the chosen method on its own sizes."""
    return _fit(request.spec, TRAINED)


_fit = functools.lru_cache(1024)(checkpoints.spec_for)


def load_models() -> list[TinyLm]:
    """Return the three seeds of tiny_lm."""
    return [checkpoints.load_tiny_lm(name) for name in checkpoints.SEEDS]


def name_method(spec: RopeSpec) -> str:
    """Return a method's short name, for the end of a line."""
    return short_label(spec.scaling.name)


_known: set[tuple[RopeSpec, int, int, int]] = set()

_known_lock = threading.Lock()


def measure_recall(spec: RopeSpec, tokens: int, sequences: int, seeds: int = 3) -> Recall:
    """Return the recall of the first seeds on this many texts, cached."""
    found = recall(load_models()[:seeds], spec, tokens, sequences=sequences)
    with _known_lock:
        if len(_known) >= MOST:
            _known.clear()
        _known.add((spec, tokens, sequences, seeds))
    return found


def is_known(spec: RopeSpec, tokens: int, sequences: int, seeds: int) -> bool:
    """True if this evaluation has been made before."""
    with _known_lock:
        return (spec, tokens, sequences, seeds) in _known


@functools.lru_cache(maxsize=256)
def measure_kept_attention(spec: RopeSpec, tokens: int) -> tuple[float, float]:
    """Return the shares of their trained attention on the correct tokens that the two heads of the first seed keep."""
    model = load_models()[0]
    works = [
        (
            getattr(attention_diagnosis, name)(model, spec, tokens),
            getattr(attention_diagnosis, name)(model, TRAINED, 256),
        )
        for name in HEADS
    ]
    first, second = (request.hit / max(then.hit, 1e-9) for request, then in works)
    return first, second


def find_interval(row: dict[str, Any]) -> tuple[float, float]:
    """Return the 95 % interval of a recall measured in training."""
    counted = checkpoints.measured()["questions"]
    texts = counted["sequences"] * checkpoints.TUNED_LENGTH // row["length"]
    return interval(np.array([row["recall"]]), texts * counted["facts"])


QUICK = 2048
"""The longest text, in tokens, that is evaluated while a knob moves."""


def default_longest(request: PictureRequest) -> float:
    """Return the default longest length: twice the target, from 2,048 to 4,096."""
    return float(2048 if explain_misfit(request) else min(max(2 * tiny_lm_spec(request).target, 2048), 4096))


def default_length(request: PictureRequest) -> float:
    """Return the target, or four times the trained length for a target within it, at most `QUICK`."""
    target = TRAINED.context if explain_misfit(request) else tiny_lm_spec(request).target
    return float(min(target if target > TRAINED.context else 4 * TRAINED.context, QUICK))


def default_carry_length(request: PictureRequest) -> float:
    """Return `default_length`, at most 512: short enough to be evaluated once per pair."""
    return min(default_length(request), 512.0)


def is_range(request: PictureRequest) -> bool:
    """True if a range of pairs is chosen rather than a band."""
    return request[BAND] == "range"


COMPARE = Several(
    key="recall.with",
    label=TEXTS("choices.compare"),
    options={name: short_label(name) for name in checkpoints.MAIN_METHODS},
    offered=lambda request: {
        name: short_label(name) for name in checkpoints.MAIN_METHODS if name != request.spec.scaling.name
    },
    usual=lambda request: [name for name in ("none", "linear", "yarn", "ntk") if name != request.spec.scaling.name][:3],
)
UP_TO = length("recall.length", TEXTS("choices.length"), default_longest, least=512, most=LONGEST)
AT = length("recall.at", TEXTS("choices.carry_length"), default_carry_length, least=64, most=1024)
BAND = Pick(key="recall.band", label=TEXTS("choices.band"), options=TEXTS.group("bands"))
TURNS = cast(dict[How, str], TEXTS.group("frequencies"))
HOW: Pick[How] = Pick(key="recall.how", label=TEXTS("choices.how"), options=TURNS)
FIRST = Number(
    key="recall.first",
    knob=Knob(TEXTS("choices.first"), 0, 15, "", integer=True),
    usual=0,
    when=is_range,
    needs=(BAND,),
)
LAST = Number(
    key="recall.last",
    knob=Knob(TEXTS("choices.last"), 0, 15, "", integer=True),
    usual=3,
    when=is_range,
    needs=(BAND,),
)
READ_TO = length("recall.chain", TEXTS("choices.chain"), 1024, least=128, most=QUICK)
TUNED = Several(
    key="recall.tuned",
    label=TEXTS("choices.tuned"),
    options={name: short_label(name) for name in checkpoints.MAIN_METHODS},
    usual=lambda request: ("none", "linear", "yarn"),
)
ASKED = choices.json_file(
    read_evaluation,
    largest=CONTENT_BYTES,
    key="recall.file",
    label=TEXTS("choices.file"),
    help=TEXTS("choices.file_help"),
    instead=TEXTS("choices.file_fallback"),
)


def measured_here(name: str, decode: Callable[[bytes], T]) -> StoredChoice[T]:
    """Make the choice of a result that a button of the page measures."""
    label, help = TEXTS(f"choices.{name}"), TEXTS(f"choices.{name}_help")
    return StoredChoice(key=f"recall.{name}", label=label, help=help, decode=decode, load=choices.load_bytes)


REPORT = measured_here("report", read_text_losses)
KEYS = measured_here("keys", read_found_keys)
SEARCHED = measured_here("searched", read_search)
SEARCH_FILE = choices.json_file(
    read_search,
    key="recall.search",
    label=TEXTS("choices.search"),
    help=TEXTS("choices.search_help"),
    instead=TEXTS("choices.search_fallback"),
    missing="",  # the sentence of the picture says what is shown
)
MEASURED = choices.json_file(
    read_measured,
    key="recall.measured",
    label=TEXTS("choices.measured"),
    help=TEXTS("choices.measured_help"),
    instead=TEXTS("choices.file_fallback"),
    missing="",  # without a file nothing is shown
)


def band_table(request: PictureRequest) -> BandTable:
    """Return the table of the user's measured model, where it has one, or that of the real model."""
    held = request[MEASURED]
    own = None if held is None else held.value.bands
    return load_band_table() if own is None else own


def name_band_model(request: PictureRequest) -> str:
    """Return the name of the model whose table is shown."""
    held = request[MEASURED]
    return str(BAND_TEXTS("model")) if held is None or held.value.bands is None else held.value.name


GROUP = make_pairs_menu("recall", band_table, (MEASURED,))
CHANGE = make_change_menu("recall", band_table, (MEASURED,), GROUP)
TABS: dict[str, tuple[Choice[Any], ...]] = {
    "real": (),
    "pairs": (GROUP, CHANGE, AT, BAND, HOW, FIRST, LAST),
    "training": (READ_TO, TUNED, SEARCHED, SEARCH_FILE),
    "own": (ASKED, REPORT, KEYS, MEASURED),
}
"""{tab: the choices that it shows}."""
TAB = make_tab_choice("recall", TABS, TEXTS)
PAGE = Page(
    "recall",
    (
        TAB,
        COMPARE,
        UP_TO,
        AT,
        BAND,
        HOW,
        FIRST,
        LAST,
        READ_TO,
        TUNED,
        ASKED,
        REPORT,
        KEYS,
        MEASURED,
        SEARCHED,
        SEARCH_FILE,
        GROUP,
        CHANGE,
    ),
    sees=lambda request: explain_misfit(request) or tiny_lm_spec(request),
    door="lab",
)
