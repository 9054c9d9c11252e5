"""A reader's own query and key: random by seed, typed, or from a file; what cannot be read is said and replaced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import streamlit as st

from rope_viz.embedding.spec import FloatArray, Knob, RopeSpec
from rope_viz.studies import scores, vectors
from rope_viz.ui import choices
from rope_viz.ui.components.live import Now
from rope_viz.ui.notes import warn

Sequence: TypeAlias = tuple[FloatArray, FloatArray]  # q and k of all tokens, (tokens, head_dim) each

SOURCES = {"seed": "Random by seed", "same": "k = q", "typed": "Typed", "file": "From a file"}
SEED = Knob("Seed", 0, 999, "Another seed, another random q and k.", integer=True)


@dataclass(frozen=True)
class Own:
    """q and k, (head_dim,) each, their coefficients over the rotated pairs, and the whole sequence if there is one."""

    q: FloatArray
    k: FloatArray
    a: FloatArray
    b: FloatArray
    unrotated: float
    sequence: Sequence | None = None

    @property
    def parts(self) -> scores.Parts:
        """a, b and the score of the dimensions that do not rotate."""
        return self.a, self.b, self.unrotated

    @property
    def tokens(self) -> int:
        """How many tokens the sequence has; 0 where there is none."""
        return 0 if self.sequence is None else len(self.sequence[0])


def query_and_key(spec: RopeSpec, key: str, *, ask: bool = True) -> Callable[[Now], Own]:
    """The controls, and what gives the chosen q and k for the heads of any spec; without `ask`, the first random ones.

    Vectors that were typed or uploaded fit heads of their own size only; for others random ones are taken.
    """
    if not ask:
        return lambda now: measured(now.spec, *_random(now.spec, 0))
    source = choices.pick("Where q and k come from", SOURCES, f"{key}.source")
    if source in ("seed", "same"):
        choices.knob(f"{key}.seed", SEED, 0)

        def seeded(now: Now) -> Own:
            q, k = _random(now.spec, now.knob(f"{key}.seed"))
            return measured(now.spec, q, q if source == "same" else k)

        return seeded
    q, k = _random(spec, 0)
    try:
        q, k = (_typed if source == "typed" else _file)(spec, key, q, k)
    except ValueError as error:
        warn(f"Random vectors are shown instead: {error}.")

    def given(now: Now) -> Own:
        if q.shape[-1] != now.spec.head_dim:
            return measured(now.spec, *_random(now.spec, 0))
        return measured(now.spec, q, k) if q.ndim == 1 else measured(now.spec, q[0], k[0], (q, k))

    return given


def measured(spec: RopeSpec, q: FloatArray, k: FloatArray, sequence: Sequence | None = None) -> Own:
    """The coefficients of q and k over the pairs that rotate, and the score of the dimensions that do not."""
    return Own(q, k, *scores.parts(spec, q, k), sequence)


def _random(spec: RopeSpec, seed: int) -> tuple[FloatArray, FloatArray]:
    q, k = vectors.random_vectors(spec.head_dim, seed=seed, count=1)
    return q[0], k[0]


def _typed(spec: RopeSpec, key: str, q: FloatArray, k: FloatArray) -> tuple[FloatArray, FloatArray]:
    out = []
    for name, start in (("q", q), ("k", k)):
        placeholder = ", ".join(f"{value:.3f}" for value in start[:6]) + ", …"
        text = choices.typed(f"{name}: {spec.head_dim} numbers", f"{key}.{name}", placeholder=placeholder, most=100_000)
        out.append(vectors.parse_vector(text, spec.head_dim) if text.strip() else start)
    return out[0], out[1]


def _file(spec: RopeSpec, key: str, q: FloatArray, k: FloatArray) -> tuple[FloatArray, FloatArray]:
    types = [suffix[1:] for suffix in vectors.SUFFIXES]
    help_text = (
        f"Arrays named q and k of {spec.head_dim} numbers, or of (tokens, {spec.head_dim}): then token 0 is taken, "
        "and beside it the mean over the whole sequence is drawn."
    )
    file = st.file_uploader("q and k", type=types, key=f"{key}.file", help=help_text)
    if file is None:
        return q, k
    return vectors.query_and_key(vectors.read_vectors(file.name, file.getvalue()), spec.head_dim)
