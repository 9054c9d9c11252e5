"""Pictures of the page Rotation: what rotating q and k does, and why only the distance matters."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np

from rope_viz.embedding.spec import FloatArray, Knob, Pairing, RopeSpec
from rope_viz.figures import clocks
from rope_viz.figures.compared import compared
from rope_viz.models.catalog import catalog
from rope_viz.models.variant import Variant
from rope_viz.pages.rotation import figures, seen_arcs, words
from rope_viz.pages.rotation.figures import TEXTS
from rope_viz.picture import vectors
from rope_viz.picture.choices import Number, Pick, PositionPair, Switch, length
from rope_viz.picture.outputs import ROW, Clocks, Figure, Table
from rope_viz.picture.page import Page, embedding
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.studies import conversion
from rope_viz.studies import rotation as study
from rope_viz.studies.vectors import draw_normals

HEADS_KNOB = Knob(TEXTS("choices.heads"), 1, 128, TEXTS("choices.heads_help"), integer=True)
VECTOR = "A vector of your own"
"""The name of the user's vector in stored contents."""


def has_matrix(request: PictureRequest) -> bool:
    """True if the matrix of a head is small enough to show."""
    return request.spec.head_dim <= study.MAX_DENSE_DIM


def too_large(request: PictureRequest) -> str:
    """Return why there is no matrix, "" if there is one."""
    return "" if has_matrix(request) else words.describe_matrix(request.spec)


SHOW = Pick(key="rotation.show", label=TEXTS("choices.show"), options=clocks.MODES)
PLAIN = Switch(
    key="rotation.plain",
    label=TEXTS("choices.plain"),
    on=True,
    when=lambda request: clocks.has_two_hands(request.spec, request[SHOW]),
    needs=(SHOW,),
)
AT = PositionPair(
    key="rotation.at",
    label=TEXTS("choices.at"),
    usual=lambda request: clocks.STARTS[request[SHOW]],
    most=clocks.LAST_POSITION,
    needs=(SHOW,),
)
PART = Pick(key="rotation.part", label=TEXTS("choices.part"), options=figures.PARTS, when=has_matrix)
M = length("rotation.m", TEXTS("choices.m"), 1000, least=1, when=has_matrix)
N = length("rotation.n", TEXTS("choices.n"), 900, least=1, when=has_matrix)
X = vectors.texts(
    "rotation.x",
    lambda request: _worked(request.spec),
    names={VECTOR: TEXTS("choices.vector")},
    label=TEXTS("choices.vector"),
    when=has_matrix,
)
POSITION = length("rotation.position", TEXTS("choices.position"), 1000, least=1, when=has_matrix)
FROM = Pick(key="rotation.from", label=TEXTS("choices.from"), options=figures.WAYS)
LIBRARY = Pick(key="rotation.library", label=TEXTS("choices.library"), options=figures.LIBRARIES)
HEADS = Number(key="rotation.heads", knob=HEADS_KNOB, usual=lambda request: _heads(request.model))
PAGE = Page(
    "rotation",
    (SHOW, PLAIN, AT, PART, M, N, X, POSITION, FROM, LIBRARY, HEADS),
    sees=lambda request: embedding(request, without=("attention",)),
    door="explore",
)


def drawn_variants(request: PictureRequest) -> Mapping[int, Variant]:
    """Return the pinned curves that have hands: those of a single position."""
    return request.variants if request[SHOW] == "turn" else {}


@PAGE.picture(
    SHOW,
    PLAIN,
    AT,
    pin=True,
    variants=True,
    sets=AT,
    height=lambda request: clocks.heights(request[SHOW], len(drawn_variants(request)))[0],
    narrow=lambda request: clocks.heights(request[SHOW], len(drawn_variants(request)))[1],
)
def turning(request: PictureRequest) -> Clocks:
    """The pairs as clocks: one position, or a query and a key."""
    variants = compared(request.spec, [], drawn_variants(request), current=request.current)[1:]
    message = clocks.message(
        request.spec, pin=request.pin, mode=request[SHOW], plain=request[PLAIN], start=request[AT], variants=variants
    )
    return Clocks(message, words.describe_dials(request.spec, request[SHOW]), variant="clocks")


@PAGE.picture(height=seen_arcs.HEIGHT, narrow=seen_arcs.NARROW)
def arcs(request: PictureRequest) -> Figure:
    """The angles between q and k that training has shown, and those at the target length, for every pair."""
    return Figure(seen_arcs.draw(request.spec), TEXTS("arcs_title"), seen_arcs.describe(request.spec))


@PAGE.picture(PART, M, refuses=too_large)
def matrices(request: PictureRequest) -> Figure:
    """The rotation matrix of a position in both pairings, with the permutation between them."""
    figure = figures.matrices(request.spec, request[M], part=request[PART])
    return Figure(figure, TEXTS("matrices_title", position=request[M]), words.describe_matrix(request.spec))


@PAGE.picture(M, N, height=5 * ROW, refuses=too_large)
def laws(request: PictureRequest) -> Table:
    """The laws of rotation, each with its largest error."""
    rows = words.list_laws(_laws(request.spec, request[M], request[N]), request[M], request[N])
    return Table(rows, TEXTS("laws_title"), words=True)


@PAGE.picture(X, POSITION, height=5 * ROW, refuses=too_large)
def forms(request: PictureRequest) -> Table:
    """The cost of each of the equivalent forms: what it computes and moves."""
    return Table(figures.costs(_forms(request)), TEXTS("forms_title"), words.compare_forms(request.spec))


@PAGE.picture(X, POSITION, height=220, refuses=too_large)
def rotated(request: PictureRequest) -> Table:
    """One vector rotated by every equivalent form."""
    return Table(figures.results(_forms(request), vector(request)), TEXTS("rotated_title"))


@PAGE.picture(FROM, HEADS, height=270, shown_on="conversion")
def permutation(request: PictureRequest) -> Figure:
    """The new place of every row of a q or k weight when its pairing is converted."""
    source, to = pairings_of(request)
    figure = figures.permutation(request.spec, request[HEADS], source, to)
    return Figure(figure, TEXTS("permutation_title", **name_ends(source, to)), words.explain_converting(request.spec))


@PAGE.picture(height=340, shown_on="conversion")
def mistakes(request: PictureRequest) -> Figure:
    """The scores by distance when the conversion is forgotten."""
    found = _mistakes(request.spec)
    return Figure(figures.mistakes(found), TEXTS("mistakes_title"), words.describe_mistakes(request.spec, found))


@PAGE.picture(height=320, still=True, shown_on="pairings")
def pairings(request: PictureRequest) -> Table:
    """The pairing of every model of the list, with its source."""
    return Table(figures.pairings(), TEXTS("pairings_title"), words.explain_pairings())


def pairings_of(request: PictureRequest) -> tuple[Pairing, Pairing]:
    """Return the pairings that a weight is converted from and to."""
    return ("interleaved", "half") if request[FROM] == "interleaved" else ("half", "interleaved")


def name_ends(source: Pairing, to: Pairing) -> dict[str, str]:
    """Return the names of both pairings, for a sentence."""
    return {"source": figures.PAIRING_WORDS[source], "to": figures.PAIRING_WORDS[to]}


def code(request: PictureRequest) -> str:
    """Return Python code for the conversion."""
    source, to = pairings_of(request)
    return conversion.conversion_code(
        request.spec, request[HEADS], source, to, "numpy" if request[LIBRARY] == "numpy" else "torch"
    )


def pairing_here(request: PictureRequest) -> str:
    """Describe the current model's pairing."""
    known = catalog().get(request.model)
    if known is not None:
        return TEXTS("pairings.model", name=known.name, pairing=figures.PAIRING_WORDS.get(known.pairing, known.pairing))
    return TEXTS("pairings.embedding", pairing=figures.PAIRING_NAMES[request.spec.pairing])


def vector(request: PictureRequest) -> FloatArray:
    """Return the user's vector; a fixed random one if there is none or it does not fit the head."""
    usual = _worked(request.spec)
    try:
        return vectors.typed(request[X], request.spec, usual)[0]
    except ValueError:
        return usual[VECTOR]  # the control shows the problem


def _worked(spec: RopeSpec) -> dict[str, FloatArray]:
    return {VECTOR: np.round(draw_normals("worked vector", spec.head_dim), 3)}


def _forms(request: PictureRequest) -> tuple[study.Form, ...]:
    return study.equivalent_forms(request.spec, vector(request), request[POSITION], length=request.spec.target)


def _heads(model: str) -> int:
    known = catalog().get(model)
    counted = known.config.get("num_attention_heads") if known else None
    return counted if isinstance(counted, int) else 32


@functools.lru_cache(maxsize=64)
def _laws(spec: RopeSpec, m: int, n: int) -> tuple[study.Law, ...]:
    return study.matrix_laws(spec, m, n, length=spec.target)


@functools.lru_cache(maxsize=64)
def _mistakes(spec: RopeSpec) -> tuple[conversion.Mistake, ...]:
    return conversion.conversion_mistakes(spec, np.arange(figures.DISTANCES), length=spec.target)
