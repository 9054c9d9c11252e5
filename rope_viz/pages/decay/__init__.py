"""Pictures of the page Decay: how the score of a query and a key changes with their distance."""

from __future__ import annotations

import functools
from typing import cast

from rope_viz.embedding.scaling import METHODS
from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures import compared
from rope_viz.figures.compared import name_variants
from rope_viz.figures.words import plain
from rope_viz.models.query_temperature import Temperature, find_temperature
from rope_viz.models.variant import Variant
from rope_viz.pages.decay import base_lengths, figures, packing, per_distance, words
from rope_viz.pages.decay.words import TEXTS
from rope_viz.picture import choices, vectors
from rope_viz.picture.axis_choice import axis_of, axis_sentence, looked
from rope_viz.picture.choices import Number, Pick, Several, StoredChoice, Switch, TextLine, length
from rope_viz.picture.outputs import Figure
from rope_viz.picture.page import Page
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.studies import packed_positions
from rope_viz.studies.packed_positions import Row
from rope_viz.studies.scores import even_parts
from rope_viz.texts import Texts, join
from rope_viz.texts.sentences import end_sentence
from rope_viz.texts.texts import join_list

APP = Texts("app")


def _has_qk(request: PictureRequest) -> bool:
    """True if the page shows a q and k chosen by the user."""
    return request[SHOW] in ("own", "softmax")


SHOW = Pick(key="decay.show", label=TEXTS("choices.show"), options=figures.VIEWS)
LENGTH = length(
    "decay.length", TEXTS("choices.length"), lambda request: request.spec.target, least=64, most=figures.LONGEST
)
LOG = Switch(key="decay.log", label=TEXTS("choices.log"), on=True)
KIND = Pick(
    key="decay.kind",
    label=TEXTS("choices.kind"),
    options=figures.KINDS,
    when=lambda request: request[SHOW] == "random",
    needs=(SHOW,),
)
SOURCE = Pick(key="decay.source", label=TEXTS("choices.source"), options=vectors.SOURCES, when=_has_qk, needs=(SHOW,))
SEED = Number(
    key="decay.seed",
    knob=vectors.SEED,
    usual=0,
    when=lambda request: _has_qk(request) and request[SOURCE] in ("seed", "same"),
    needs=(SHOW, SOURCE),
)
TYPED = vectors.texts(
    "decay.typed",
    lambda request: vectors.random(request.spec),
    label=TEXTS("choices.typed"),
    instead=TEXTS("choices.file_fallback"),
    when=lambda request: _has_qk(request) and request[SOURCE] == "typed",
    needs=(SHOW, SOURCE),
)
FILE = vectors.file(
    "decay.file",
    label=TEXTS("choices.file"),
    help=TEXTS("choices.file_help"),
    instead=TEXTS("choices.file_fallback"),
    when=lambda request: _has_qk(request) and request[SOURCE] == "file",
    needs=(SHOW, SOURCE),
)
COMPARE = Several(
    key="decay.with",
    label=TEXTS("choices.compare"),
    options={name: compared.short_label(name) for name in METHODS if name != "none"},
    offered=lambda request: compared.choices(request.spec),
    usual=lambda request: (),
    when=lambda request: request[SHOW] in ("mean", "own"),
    needs=(SHOW,),
)
BACKEND = Pick(
    key="decay.backend",
    label=TEXTS("choices.backend"),
    options=figures.BACKENDS,
    offered=lambda request: figures.backends(),
    menu=220,
)
AT = length(
    "decay.at",
    TEXTS("choices.at"),
    lambda request: min(1000, request[LENGTH] - 1),
    least=1,
    most=figures.LONGEST,
    limit=lambda request: request[LENGTH],
    needs=(LENGTH,),
)
WEIGHTS = Pick(key="decay.map", label=TEXTS("choices.map"), options=TEXTS.group("maps"))
FIRST = length("decay.first", TEXTS("choices.first"), 16, least=1, most=1_000_000)


def read_packed(content: bytes) -> list[Row]:
    """Read a stored file of positions. Raise `ValueError` with one sentence."""
    return packed_positions.read_rows(choices.name_of(content), choices.data_of(content))


PACKED = StoredChoice(
    key="decay.packed",
    label=TEXTS("choices.packed"),
    help=TEXTS("choices.packed_help"),
    decode=read_packed,
    load=choices.load_file,
    suffixes=packed_positions.SUFFIXES,
    instead=TEXTS("choices.packed_fallback"),
)
FORMS = cast(dict[packed_positions.Form, str], TEXTS.group("forms"))
DOCUMENTS = TextLine(
    key="decay.documents",
    label=TEXTS("choices.documents"),
    help=TEXTS("choices.documents_help"),
    usual="1024, 300, 2000, 772",
    check=packed_positions.parse_lengths,
    when=lambda request: request[PACKED] is None,
    needs=(PACKED,),
)
FORM = Pick(
    key="decay.form",
    label=TEXTS("choices.form"),
    options=FORMS,
    when=lambda request: request[PACKED] is None,
    needs=(PACKED,),
)
AXIS = axis_of("decay")
MINE = (SHOW, SOURCE, SEED, TYPED, FILE)
PAGE = Page(
    "decay",
    (*MINE, AXIS, LENGTH, LOG, KIND, COMPARE, BACKEND, AT, WEIGHTS, FIRST, PACKED, DOCUMENTS, FORM),
    door="explore",
)


def user_qk(request: PictureRequest) -> vectors.Own:
    """Return the q and k that the user chose, or the default random ones if the view needs none."""
    return vectors.select_head(
        request, request[SOURCE] if _has_qk(request) else "seed", request[SEED], request[TYPED], request[FILE]
    )


def other_methods(request: PictureRequest) -> list[RopeSpec]:
    """Return the spec under each method that the main figure compares."""
    names = request[COMPARE]
    return compared.alternatives(looked(request, AXIS), names)


def has_variants(request: PictureRequest) -> bool:
    """True if the main figure shows pinned curves: not in the views of one spec."""
    return request[SHOW] in ("mean", "own") and request[AXIS] == "all"


def variants_in_view(request: PictureRequest) -> tuple[dict[int, Variant], list[str]]:
    """Return the pinned curves that the main figure draws, and the names of those that q and k of the user do not fit.

    The user's q and k belong to the current head size.
    """
    if not has_variants(request):
        return {}, []
    sizes = request.spec.head_dim, request.spec.rotary_dim
    fits = {
        number: request[SHOW] == "mean" or (each.subject.spec.head_dim, each.subject.spec.rotary_dim) == sizes
        for number, each in request.variants.items()
    }
    names = name_variants(request.current, request.variants)
    drawn = {number: each for number, each in request.variants.items() if fits[number]}
    return drawn, [names[number] for number in request.variants if not fits[number]]


@PAGE.picture(*MINE, AXIS, LENGTH, LOG, KIND, COMPARE, BACKEND, variants=True, zooms=True, sets=AT, config=True)
def curves(request: PictureRequest) -> Figure:
    """The score over the distance."""
    spec, shown, log, length = looked(request, AXIS), request[SHOW], request[LOG], request[LENGTH]
    backend = figures.loaded_backend(request[BACKEND])
    where = figures.Range.from_length(
        length, request.visible_range(figures.whole(length, log)), log=log, quick=request.coarse, backend=backend
    )
    own = user_qk(request)
    drawn, left_out = variants_in_view(request)
    others = compared.compared(spec, other_methods(request), drawn, current=request.current)
    sequence = None if request.coarse else own.sequence
    figure, title = figures.main(shown, figures.with_plain(others), where, own.parts, request[KIND], sequence)
    sentence = join(
        axis_sentence(request, AXIS), words.decay(spec, shown, length, request[KIND], own.parts, tokens=own.tokens)
    )
    if left_out:
        sentence = join(sentence, APP("variants.other_dims", names=join_list(left_out)))
    if backend != request[BACKEND]:
        sentence = join(sentence, TEXTS("computed_with_numpy"))
    return Figure(figure, title, sentence, variant=f"{shown}-log" if log else shown, pins="x")


@PAGE.picture(*MINE, AXIS, AT, pin=True, height=340, config=True)
def pairs(request: PictureRequest) -> Figure:
    """What every pair adds to the score at one distance."""
    spec, at = looked(request, AXIS), request[AT]
    parts = user_qk(request).parts if request[SHOW] == "own" else even_parts(spec)
    return Figure(
        per_distance.contributions(spec, at, parts, pin=request.pin),
        TEXTS("pairs_title"),
        words.pair_by_pair(spec, at, parts),
        pins="x",
    )


@PAGE.picture(*MINE, AXIS, WEIGHTS, FIRST, config=True)
def attention(request: PictureRequest) -> Figure:
    """The scores or weights of a window of queries and keys."""
    figure = per_distance.attention_map(
        looked(request, AXIS), request[FIRST], user_qk(request).parts, request[WEIGHTS] == "weights"
    )
    return Figure(figure, TEXTS("map_title"))


@PAGE.picture(height=170)
def bases(request: PictureRequest) -> Figure:
    """The bases whose mean cosine stays at or above 0 up to the target length."""
    held = min(request.spec.target, per_distance.BASES_LONGEST)
    sentence = words.bases(request.spec, held, quick=request.coarse)
    return Figure(per_distance.bases(request.spec, held, quick=request.coarse), TEXTS("bases_title"), sentence)


@PAGE.picture(still=True, refuses=lambda request: base_lengths.explain_no_bound(request.spec))
def reach(request: PictureRequest) -> Figure:
    """The base that a length needs: how far every base reaches, two bounds, and the models of the list."""
    return Figure(base_lengths.draw(request.spec), TEXTS("reach.title"), base_lengths.describe(request.spec))


@functools.lru_cache(maxsize=8)
def typed_rows(documents: str, form: packed_positions.Form) -> tuple[Row, ...]:
    """Return the rows of the documents that the page names; the same objects for the same text."""
    return tuple(packed_positions.make_rows(packed_positions.parse_lengths(documents), form))


def packed_rows(request: PictureRequest) -> tuple[Row, ...]:
    """Return the rows of the user's file, or those of the documents that the page names."""
    held = request[PACKED]
    return typed_rows(request[DOCUMENTS], request[FORM]) if held is None else tuple(held.value)


def explain_no_distances(request: PictureRequest) -> str:
    """Return why the distances of a file cannot be counted, "" if they can."""
    try:
        packing.count_both(packed_rows(request))
    except ValueError as error:
        return end_sentence(str(error))
    return ""


@PAGE.picture(PACKED, DOCUMENTS, FORM, refuses=explain_no_distances)
def distances(request: PictureRequest) -> Figure:
    """How many pairs of a query and a key have each distance, where documents are packed for training."""
    rows = packed_rows(request)
    return Figure(packing.draw(rows, request.spec), TEXTS("packing.title"), packing.describe(rows, request.spec))


def temperature_of(request: PictureRequest) -> Temperature | None:
    """Return the attention temperature of the model, None where it has none or its numbers cannot be read."""
    try:
        return None if request.subject.model_config is None else find_temperature(request.subject.model_config)
    except ValueError:
        return None


def no_temperature(request: PictureRequest) -> str:
    """Return why there is no curve of the attention temperature, "" if there is one."""
    found = temperature_of(request)
    if found is None:
        return TEXTS("temperature.none", name=plain(request.subject.name))
    return TEXTS("temperature.learned") if found.is_learned else ""


@PAGE.picture(config=True, height=figures.HEIGHT, refuses=no_temperature)
def temperature(request: PictureRequest) -> Figure:
    """The factor that multiplies each query by its position, for models that have one."""
    found = temperature_of(request)
    if found is None:
        raise ValueError(no_temperature(request))
    stop = max(request.spec.target, 8 * found.length)
    figure = figures.curve(found, request.spec, stop)
    return Figure(figure, TEXTS("temperature.title"), words.temperature(found, stop))
