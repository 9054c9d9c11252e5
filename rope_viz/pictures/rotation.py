"""Pictures of the page Rotation: what rotating q and k does, and why only the distance matters."""

from __future__ import annotations

import functools

import numpy as np

from rope_viz.embedding.spec import FloatArray, Knob, Pairing, RopeSpec
from rope_viz.figures import clocks, rotation
from rope_viz.figures.words import rotation as words
from rope_viz.models.catalog import catalog
from rope_viz.pictures import vectors
from rope_viz.pictures.choices import Number, Pick, Positions, Switch, length
from rope_viz.pictures.outputs import ROW, Clocks, Figure, Table
from rope_viz.pictures.page import Page
from rope_viz.pictures.picture_request import Now
from rope_viz.studies import conversion
from rope_viz.studies import rotation as study
from rope_viz.studies.vectors import draw_normals

HEADS_KNOB = Knob("Heads", 1, 128, "How many heads of this size the weight holds.", integer=True)


def has_matrix(now: Now) -> bool:
    """True if the matrix of a head is small enough to show."""
    return now.spec.head_dim <= study.MAX_DENSE_DIM


def too_large(now: Now) -> str:
    """Return why there is no matrix, "" if there is one."""
    return "" if has_matrix(now) else words.matrix(now.spec)


SHOW = Pick(key="rotation.show", label="Show", options=clocks.MODES)
PLAIN = Switch(
    key="rotation.plain",
    label="Hand before scaling",
    on=True,
    when=lambda now: clocks.has_two_hands(now.spec, now[SHOW]),
    needs=(SHOW,),
)
AT = Positions(
    key="rotation.at",
    label="Positions of query and key",
    usual=lambda now: clocks.STARTS[now[SHOW]],
    most=clocks.LAST_POSITION,
    needs=(SHOW,),
)
PART = Pick(key="rotation.part", label="Matrix", options=rotation.PARTS, when=has_matrix)
M = length("rotation.m", "Position m", 1000, least=1, when=has_matrix)
N = length("rotation.n", "Position n", 900, least=1, when=has_matrix)
X = vectors.texts("rotation.x", lambda now: _worked(now.spec), label="A vector of your own", when=has_matrix)
POSITION = length("rotation.position", "Position", 1000, least=1, when=has_matrix)
FROM = Pick(key="rotation.from", label="Direction", options=rotation.WAYS)
LIBRARY = Pick(key="rotation.library", label="Library", options=rotation.LIBRARIES)
HEADS = Number(key="rotation.heads", knob=HEADS_KNOB, usual=lambda now: _heads(now.model))
PAGE = Page("rotation", (SHOW, PLAIN, AT, PART, M, N, X, POSITION, FROM, LIBRARY, HEADS))


@PAGE.picture(
    SHOW,
    PLAIN,
    AT,
    pin=True,
    sets=AT,
    height=lambda now: clocks.HEIGHTS[now[SHOW]][0],
    narrow=lambda now: clocks.HEIGHTS[now[SHOW]][1],
)
def turning(now: Now) -> Clocks:
    """The pairs as clocks: one position, or a query and a key."""
    message = clocks.message(now.spec, pin=now.pin, mode=now[SHOW], plain=now[PLAIN], start=now[AT])
    return Clocks(message, words.rotation(now.spec, now[SHOW]), variant="clocks")


@PAGE.picture(PART, M, refuses=too_large)
def matrices(now: Now) -> Figure:
    """The rotation matrix of a position in both pairings, with the permutation between them."""
    title = f"The rotation matrix of position {now[M]} in both pairings, with the permutation between them"
    return Figure(rotation.matrices(now.spec, now[M], part=now[PART]), title, words.matrix(now.spec))


@PAGE.picture(M, N, height=5 * ROW, refuses=too_large)
def laws(now: Now) -> Table:
    """The laws of rotation, each with the largest error by which it fails."""
    rows = words.laws(_laws(now.spec, now[M], now[N]), now[M], now[N])
    return Table(rows, "The laws of rotation, each with the largest error by which it fails", words=True)


@PAGE.picture(X, POSITION, height=5 * ROW, refuses=too_large)
def forms(now: Now) -> Table:
    """The cost of each of the equivalent forms: what it computes and moves."""
    return Table(rotation.costs(_forms(now)), "Equivalent forms and what they cost", words.forms(now.spec))


@PAGE.picture(X, POSITION, height=220, refuses=too_large)
def rotated(now: Now) -> Table:
    """One vector rotated by every equivalent form."""
    return Table(rotation.results(_forms(now), vector(now)), "The vector, rotated by each form")


@PAGE.picture(FROM, HEADS, height=270)
def permutation(now: Now) -> Figure:
    """The new place of every row of a q or k weight when its pairing is converted."""
    source, to = pairings_of(now)
    figure = rotation.permutation(now.spec, now[HEADS], source, to)
    return Figure(figure, f"Where each row of a weight goes from {source} to {to}", words.converting(now.spec))


@PAGE.picture(height=340)
def mistakes(now: Now) -> Figure:
    """The scores by distance when the conversion is forgotten."""
    found = _mistakes(now.spec)
    title = "Scores by distance when both, one or none of q and k were converted"
    return Figure(rotation.mistakes(found), title, words.mistakes(now.spec, found))


@PAGE.picture(height=320, still=True)
def pairings(now: Now) -> Table:
    """The pairing of every model of the list, with its source."""
    return Table(rotation.pairings(), "The pairing of every model of the list", words.models())


def pairings_of(now: Now) -> tuple[Pairing, Pairing]:
    """Return the pairings that a weight is converted from and to."""
    return ("interleaved", "half") if now[FROM] == "interleaved" else ("half", "interleaved")


def code(now: Now) -> str:
    """Return Python code for the conversion."""
    source, to = pairings_of(now)
    return conversion.conversion_code(now.spec, now[HEADS], source, to, "numpy" if now[LIBRARY] == "numpy" else "torch")


def pairing_here(now: Now) -> str:
    """Describe the current model's pairing."""
    known = catalog().get(now.model)
    if known is not None:
        return f"{known.name}: {known.pairing}"
    return f"This embedding: {rotation.PAIRING_NAMES[now.spec.pairing]}"


def vector(now: Now) -> FloatArray:
    """Return the user's vector; a fixed random one if there is none or it does not fit the head."""
    usual = _worked(now.spec)
    try:
        return vectors.typed(now[X], now.spec, usual)[0]
    except ValueError:
        return usual["A vector of your own"]  # the control shows the problem


def _worked(spec: RopeSpec) -> dict[str, FloatArray]:
    return {"A vector of your own": np.round(draw_normals("worked vector", spec.head_dim), 3)}


def _forms(now: Now) -> tuple[study.Form, ...]:
    return study.equivalent_forms(now.spec, vector(now), now[POSITION], length=now.spec.target)


def _heads(model: str) -> int:
    known = catalog().get(model)
    counted = known.config.get("num_attention_heads") if known else None
    return counted if isinstance(counted, int) else 32


@functools.lru_cache(maxsize=64)
def _laws(spec: RopeSpec, m: int, n: int) -> tuple[study.Law, ...]:
    return study.matrix_laws(spec, m, n, length=spec.target)


@functools.lru_cache(maxsize=64)
def _mistakes(spec: RopeSpec) -> tuple[conversion.Mistake, ...]:
    return conversion.conversion_mistakes(spec, np.arange(rotation.DISTANCES), length=spec.target)
