"""The user's query and key: random by seed, typed, or from a file, for heads of any size."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from rope_viz.embedding.spec import FloatArray, Knob, RopeSpec
from rope_viz.picture import choices
from rope_viz.picture.choices import StoredChoice, StoredValue
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.storage.decode_json import decode_json
from rope_viz.studies import scores, vectors
from rope_viz.texts import Texts, translate

Sequence: TypeAlias = tuple[FloatArray, FloatArray]  # q and k of all tokens, (tokens, head_dim) each
TEXTS = Texts("vectors")
SOURCES = TEXTS.group("sources")
SEED = Knob(TEXTS("seed"), 0, 999, TEXTS("seed_help"), integer=True)


@dataclass(frozen=True, eq=False)
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
        """Return a, b and the score of the dimensions that do not rotate."""
        return self.a, self.b, self.unrotated

    @property
    def tokens(self) -> int:
        return 0 if self.sequence is None else len(self.sequence[0])


def texts(
    key: str,
    start: Callable[[PictureRequest], Mapping[str, FloatArray]],
    *,
    names: Mapping[str, str] | None = None,
    **more: Any,
) -> StoredChoice[Mapping[str, str]]:
    """Make a choice of typed vectors with the names of `start`, whose values are the defaults.

    `names` maps a stored name to the one that is shown. On the command line the choice takes the numbers of the first
    vector, or all as a JSON object.
    """

    def load(written: str) -> bytes:
        return written.encode() if written.lstrip().startswith("{") else json.dumps({"": written}).encode()

    def labels(request: PictureRequest) -> Mapping[str, tuple[str, str]]:
        return {
            name: (
                TEXTS("typed", name=translate((names or {}).get(name, name)), size=request.spec.head_dim),
                ", ".join(f"{value:.3f}" for value in vector[:6]) + ", …",
            )
            for name, vector in start(request).items()
        }

    return StoredChoice(
        key=key,
        decode=functools.partial(decode_typed, key),
        load=load,
        check=lambda held, request: typed(held, request.spec, start(request)),
        typed=labels,
        **more,
    )


def decode_typed(key: str, content: bytes) -> Mapping[str, str]:
    """Decode the stored texts of a choice's fields. Raise `ValueError` with a sentence if the content is none."""
    found = decode_json(content, TEXTS("errors.typed", choice=key))
    if not isinstance(found, dict) or not all(isinstance(text, str) for text in found.values()):
        raise ValueError(TEXTS("errors.typed", choice=key))
    return found


def decode_file(content: bytes) -> Mapping[str, vectors.Array]:
    """Decode a stored file with q and k. Raise `ValueError` with a sentence if the content is none."""
    return vectors.read_vectors(choices.name_of(content), choices.data_of(content))


def file(key: str, **more: Any) -> StoredChoice[Mapping[str, vectors.Array]]:
    """Make a choice of a file with q and k; the stored content is the file's name and data."""

    return StoredChoice(
        key=key,
        decode=decode_file,
        load=choices.load_file,
        check=lambda held, request: from_file(held, request.spec),
        suffixes=vectors.SUFFIXES,
        **more,
    )


def typed(
    given: StoredValue[Mapping[str, str]] | None, spec: RopeSpec, start: Mapping[str, FloatArray]
) -> list[FloatArray]:
    """Return typed vectors; empty ones are taken from `start`. Raise `ValueError` for invalid ones."""
    text = {} if given is None else given.value
    out = []
    for index, (name, vector) in enumerate(start.items()):
        written = text.get(name, text.get("", "") if index == 0 else "")
        out.append(vectors.parse_vector(written, spec.head_dim) if written.strip() else vector)
    return out


def from_file(given: StoredValue[Mapping[str, vectors.Array]], spec: RopeSpec) -> Own:
    """Return q and k of a file. Raise `ValueError` that says what the file holds."""
    q, k = vectors.query_and_key(given.value, spec.head_dim)
    return measured(spec, q, k) if q.ndim == 1 else measured(spec, q[0], k[0], (q, k))


def random(spec: RopeSpec, seed: int = 0) -> dict[str, FloatArray]:
    """Return a random q and k by name."""
    q, k = vectors.random_vectors(spec.head_dim, seed=seed, count=1)
    return {"q": q[0], "k": k[0]}


def select_head(
    request: PictureRequest,
    source: str,
    seed: int,
    text: StoredValue[Mapping[str, str]] | None,
    given: StoredValue[Mapping[str, vectors.Array]] | None,
) -> Own:
    """Return the chosen q and k; random ones if typed or uploaded ones do not fit the head's size."""
    start = random(request.spec, seed if source in ("seed", "same") else 0)
    try:
        if source == "file" and given is not None:
            return from_file(given, request.spec)
        if source == "typed":
            q, k = typed(text, request.spec, start)
            return measured(request.spec, q, k)
    except ValueError:
        pass  # the control shows the problem
    return measured(request.spec, start["q"], start["q"] if source == "same" else start["k"])


def measured(spec: RopeSpec, q: FloatArray, k: FloatArray, sequence: Sequence | None = None) -> Own:
    """Compute the coefficients of q and k over the rotated pairs, and the score of the other dimensions."""
    return Own(q, k, *scores.parts(spec, q, k), sequence)
