"""The parts of the Rotation page that compute from a reader's own input: the worked vector and the conversion."""

from __future__ import annotations

import functools

import numpy as np

from rope_viz.configs.catalog import catalog
from rope_viz.embedding.spec import FloatArray, Knob, Pairing, RopeSpec
from rope_viz.figures import rotation as figures
from rope_viz.figures.words import rotation as words_rotation
from rope_viz.studies import conversion, rotation
from rope_viz.studies.rotation import MAX_DENSE_DIM
from rope_viz.studies.vectors import normals, parse_vector
from rope_viz.ui import choices, page, state, tables
from rope_viz.ui.notes import warn

HEADS = Knob("Heads", 1, 128, "How many heads of this size the weight holds.", integer=True)


def matrix(spec: RopeSpec) -> None:
    """R in both pairings at a position, and the laws with the errors by which they fail."""
    page.section("The matrix", words_rotation.matrix(spec))
    if spec.head_dim > MAX_DENSE_DIM:
        return
    with page.row():
        part = choices.pick("Matrix", figures.PARTS, "rotation.part")
        m = choices.length("rotation.m", "Position m", 1000, least=1)
        n = choices.length("rotation.n", "Position n", 900, least=1)

    @page.follow()
    def matrices(now: page.Now) -> page.Figure:
        """R in both pairings."""
        m = now.knob("rotation.m")
        title = f"The rotation matrix of position {m} in both pairings, with the permutation between them"
        return page.Figure(figures.matrices(now.spec, m, part=part), "rotation.matrices", title)

    page.lines(*words_rotation.laws(_laws(spec, m, n), m, n))


def forms(spec: RopeSpec) -> None:
    """One vector through every equivalent form."""
    if spec.head_dim > MAX_DENSE_DIM:
        return
    page.section("One vector, four ways", words_rotation.forms(spec))
    vector = _own_vector(spec)
    position = choices.length("rotation.position", "Position", 1000, least=1)
    found = rotation.equivalent_forms(spec, vector, position, length=spec.target)
    tables.table(figures.costs(found), "forms")
    tables.table(figures.results(found, vector), "rotated", height=220)


def converting(spec: RopeSpec) -> None:
    """The permutation of rows as a picture and as code, and the scores when it is forgotten."""
    page.section("Converting weights", words_rotation.converting(spec))
    known = catalog().get(state.chosen().model)
    counted = known.config.get("num_attention_heads") if known else None
    with page.row():
        way = choices.pick("Direction", figures.WAYS, "rotation.from")
        library = choices.pick("Library", figures.LIBRARIES, "rotation.library")
        heads = choices.knob("rotation.heads", HEADS, counted if isinstance(counted, int) else 32)
    source: Pairing = "interleaved" if way == "interleaved" else "half"
    to: Pairing = "half" if source == "interleaved" else "interleaved"

    @page.follow()
    def permutation(now: page.Now) -> page.Figure:
        """Where every row of the weight goes."""
        figure = figures.permutation(now.spec, now.knob("rotation.heads"), source, to)
        return page.Figure(figure, "rotation.permutation", f"Where each row of a weight goes from {source} to {to}")

    page.code(conversion.conversion_code(spec, heads, source, to, "numpy" if library == "numpy" else "torch"))

    @page.follow(page.section("When it is forgotten"))
    def mistakes(now: page.Now) -> page.Figure:
        """The scores when the conversion is forgotten."""
        found = _mistakes(now.spec)
        return page.Figure(
            figures.mistakes(found),
            "rotation.mistakes",
            "Scores by distance when both, one or none of q and k were converted",
            sentence=words_rotation.mistakes(now.spec, found),
        )


def models() -> None:
    """Which models use which pairing."""
    page.section("Which models use which", words_rotation.models())
    known = catalog().get(state.chosen().model)
    spec = state.chosen().spec
    if known is not None:
        page.badge(f"{known.name}: {known.pairing}")
    else:
        page.badge(f"This embedding: {figures.PAIRING_NAMES[spec.pairing]}")
    tables.table(figures.pairings(), "pairings")


def _own_vector(spec: RopeSpec) -> FloatArray:
    """The reader's vector; a fixed random one where there is none, or where it cannot be read, which is said."""
    text = choices.typed(
        "A vector of your own",
        "rotation.x",
        placeholder=f"{spec.head_dim} numbers, with commas, spaces or lines between them; empty: a fixed random vector",
    )
    if text.strip():
        try:
            return parse_vector(text, spec.head_dim)
        except ValueError as error:
            warn(f"Not taken: {error}.")
    return np.round(normals("worked vector", spec.head_dim), 3)


@functools.lru_cache(maxsize=64)
def _laws(spec: RopeSpec, m: int, n: int) -> tuple[rotation.Law, ...]:
    return rotation.matrix_laws(spec, m, n, length=spec.target)


@functools.lru_cache(maxsize=64)
def _mistakes(spec: RopeSpec) -> tuple[conversion.Mistake, ...]:
    return conversion.conversion_mistakes(spec, np.arange(figures.DISTANCES), length=spec.target)
