"""Positions of packed documents: what is wrong with them, and the distances that attention sees.

Several documents in one row of a batch are packed. Where attention is limited to documents, each begins at position 0
again; `cu_seqlens` lists where each begins in the row, and where the last ends.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rope_viz.embedding.spec import FloatArray, short_repr
from rope_viz.storage.decode_json import decode_json
from rope_viz.studies.vectors import read_arrays
from rope_viz.texts import Texts
from rope_viz.texts.texts import join_items

TEXTS = Texts("studies")

Positions: TypeAlias = NDArray[np.int64]
Form: TypeAlias = Literal["reset", "continued"]

SUFFIXES = (".json", ".npy", ".npz")
MOST_TOKENS = 1 << 22
MOST_POSITION = 1 << 40
MOST_RUNS = 2048
"""Runs of consecutive positions in a row whose distances to each other are counted."""
MOST_DISTANCE = 1 << 24
NAMES = {"position_ids": "positions", "positions": "positions", "cu_seqlens": "bounds", "cu_seq_lens": "bounds"} | {
    name: "bounds" for name in ("cu_seqlens_q", "cu_seq_lens_q")
}
EXAMPLE = '{"position_ids": [[0, 1, 2, 0, 1]], "cu_seqlens": [0, 3, 5]}'


@dataclass(frozen=True, eq=False)
class Row:
    """One row of a batch: the position of every token, the documents as (first, end), and which tokens count.

    `is_known`: the documents were given; else they begin where a position is smaller than the one before.
    """

    positions: Positions
    documents: tuple[tuple[int, int], ...]
    counts: NDArray[np.bool_]
    is_known: bool


@dataclass(frozen=True)
class PositionFault:
    """Something in a row: where (tokens `first` to `last`), and a sentence. A note is not wrong."""

    kind: str
    row: int
    first: int
    last: int
    text: str
    is_wrong: bool = True


@dataclass(frozen=True, eq=False)
class DistanceCounts:
    """How many pairs of a query and an earlier token have each distance: `values[i]` that of distance `start + i`."""

    start: int
    values: FloatArray

    @property
    def total(self) -> float:
        return float(self.values.sum())

    @property
    def largest(self) -> int:
        """Return the largest distance of any pair."""
        return self.start + int(np.flatnonzero(self.values).max())

    @property
    def negative(self) -> float:
        """Return the share of pairs whose query has the smaller position."""
        return float(self.values[: max(0, -self.start)].sum()) / self.total

    def quantile(self, share: float) -> int:
        """Return the distance up to which this share of all pairs is."""
        return self.start + int(np.searchsorted(np.cumsum(self.values), share * self.total))


def make_rows(lengths: Sequence[int], form: Form = "reset") -> list[Row]:
    """Return one row of documents of these lengths, with the positions of a form."""
    if not lengths or min(lengths) < 1 or sum(lengths) > MOST_TOKENS:
        raise ValueError(TEXTS("positions.lengths", most=MOST_TOKENS))
    bounds = np.cumsum([0, *lengths])
    parts = [np.arange(length) for length in lengths] if form == "reset" else [np.arange(bounds[-1])]
    return [Row(np.concatenate(parts), to_documents(bounds), np.ones(int(bounds[-1]), bool), True)]


def parse_lengths(text: str) -> tuple[int, ...]:
    """Parse lengths of documents, such as "512, 300, 4096". Raises `ValueError` for anything else."""
    words = text.replace(",", " ").split()
    if not words or not all(word.isascii() and word.isdecimal() and len(word) < 9 for word in words):
        raise ValueError(TEXTS("positions.no_lengths", given=short_repr(text)))
    lengths = tuple(int(word) for word in words)
    make_rows(lengths)
    return lengths


def read_rows(name: str, data: bytes, lengths: Sequence[int] | None = None) -> list[Row]:
    """Read position_ids, with cu_seqlens and attention_mask if they are there, from a file.

    `lengths` are those of the documents of every row. Raises `ValueError` for other content.
    """
    suffix = PurePath(name).suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(TEXTS("file.suffix", suffixes=join_items(SUFFIXES), name=short_repr(PurePath(name).name)))
    found: Any = decode_json(data, TEXTS("positions.no_json", example=EXAMPLE)) if suffix == ".json" else None
    found = read_arrays(name, data) if found is None else found
    if not isinstance(found, Mapping):
        found = {"position_ids": found}
    elif suffix == ".npy":
        found = {"position_ids": next(iter(found.values()))}
    named = {NAMES.get(str(key), str(key)): value for key, value in found.items()}
    if "positions" not in named:
        raise ValueError(TEXTS("positions.none", example=EXAMPLE))
    positions = to_whole(named["positions"], "position_ids")
    if positions.ndim == 1:
        positions = positions[None]
    if positions.ndim != 2 or not 1 <= positions.size <= MOST_TOKENS:
        raise ValueError(TEXTS("positions.shape", most=MOST_TOKENS, shape=str(positions.shape)))
    mask = named.get("attention_mask")
    counts = np.ones(positions.shape, bool) if mask is None else to_whole(mask, "attention_mask").astype(bool)
    counts = counts[None] if counts.ndim == 1 else counts
    if counts.shape != positions.shape:
        raise ValueError(TEXTS("positions.mask", shape=str(positions.shape), mask=str(counts.shape)))
    bounds = None if lengths is None else np.cumsum([0, *lengths])
    if bounds is None and named.get("bounds") is not None:
        bounds = to_whole(named["bounds"], "cu_seqlens").ravel()
    return [
        make_row(*each, bounds, index, len(positions)) for index, each in enumerate(zip(positions, counts, strict=True))
    ]


def make_row(positions: Positions, counts: NDArray[np.bool_], bounds: Positions | None, index: int, rows: int) -> Row:
    """Return a row with its documents. Bounds that exceed one row are those of all rows, one after the other."""
    size = len(positions)
    if bounds is None:
        falls = np.flatnonzero(np.diff(positions) < 0) + 1
        return Row(positions, to_documents(np.array([0, *falls, size])), counts, False)
    if bounds.size < 2 or bounds[0] != 0 or (np.diff(bounds) < 0).any():
        raise ValueError(TEXTS("positions.bounds"))
    if bounds[-1] > size * rows:
        raise ValueError(TEXTS("positions.end", end=int(bounds[-1]), size=size * rows))
    if bounds[-1] > size:
        inside = bounds[(bounds >= index * size) & (bounds <= (index + 1) * size)] - index * size
        bounds = np.array([0, *inside, *([size] if bounds[-1] >= (index + 1) * size else [])])
    return Row(positions, to_documents(bounds), counts, True)


def to_documents(bounds: Positions) -> tuple[tuple[int, int], ...]:
    """Return (first, end) of every document that has tokens."""
    return tuple((int(first), int(end)) for first, end in itertools.pairwise(bounds) if end > first)


def to_whole(values: Any, name: str) -> Positions:
    """Return whole numbers as int64. Raises `ValueError` for anything else."""
    try:
        array = np.asarray(values, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(TEXTS("positions.rows", name=name)) from None
    if not np.isfinite(array).all() or (array != np.round(array)).any() or (np.abs(array) > MOST_POSITION).any():
        raise ValueError(TEXTS("positions.whole", name=name))
    return array.astype(np.int64)


def find_faults(rows: Sequence[Row], *, form: Form = "reset", limit: int | None = None) -> list[PositionFault]:
    """Return what is wrong with the positions of rows, and notes on padding.

    `form` is "reset" where every document must begin at position 0, "continued" where a whole row counts on. `limit`
    is the number of positions that the model knows.
    """
    faults: list[PositionFault] = []
    for index, row in enumerate(rows):
        documents = row.documents if form == "reset" else ((0, len(row.positions)),)
        for first, end in documents:
            faults += find_document_faults(row, index, first, end)
        end = documents[-1][1]
        if row.counts[end:].any():
            size = len(row.positions)
            text = f"{size - end:,} tokens belong to no document: let cu_seqlens end with {size:,}, or cut the row"
            is_padding = bool((np.diff(row.positions[end:]) == 0).all())
            faults.append(PositionFault("outside", index, end, len(row.positions) - 1, text, not is_padding))
        beyond = np.flatnonzero(row.counts & (row.positions >= (limit or MOST_POSITION + 1)))
        if beyond.size:
            most = int(row.positions[beyond].max())
            text = f"positions reach {most:,}, and the model knows those below {limit:,}"
            faults.append(PositionFault("beyond", index, int(beyond[0]), int(beyond[-1]), text))
    return faults


def find_document_faults(row: Row, index: int, first: int, end: int) -> Iterator[PositionFault]:
    """Yield what is wrong with one document, tokens `first` to `end` - 1 of a row."""
    positions = row.positions
    tokens = first + np.flatnonzero(row.counts[first:end])
    if not tokens.size:
        return
    begin, stop = int(tokens[0]), int(tokens[-1]) + 1
    steps = np.diff(positions[begin:stop])
    moves = np.flatnonzero(steps != 0)
    # Repeated positions at either end are padding that no mask names.
    head, tail = (int(moves[0]), int(steps.size - 1 - moves[-1])) if moves.size else (steps.size, 0)
    for size, at in ((head, begin), (tail, stop - 1 - tail)):
        if size:
            times = f"position {positions[at]:,} is repeated {size + 1:,} times"
            text = f"{times}: if that is padding, attention must not see it"
            yield PositionFault("padding", index, at, at + size, text, is_wrong=False)
    if head and not moves.size:
        return
    begin, stop = begin + head, stop - tail
    # The last token of such a run belongs to the document only where the positions count on from it.
    begin += bool(head) and positions[begin + 1] <= positions[begin]
    stop -= bool(tail) and positions[stop - 1] <= positions[stop - 2]
    start = int(positions[begin])
    if start != 0:
        before = int(positions[first - 1]) if first else None
        is_continued = before is not None and start == before + 1
        text = (
            f"the document begins at position {start:,}, not at 0: positions are not reset where it begins"
            if is_continued
            else f"the document begins at position {start:,}, not at 0: all its positions are {start:+,} off"
        )
        yield PositionFault("not reset" if is_continued else "offset", index, begin, stop - 1, text)
    steps = np.diff(positions[begin:stop])
    for kind, wrong, what in (
        ("repeated", steps == 0, "is repeated"),
        ("gap", steps > 1, "is followed by {then:,}: positions are left out"),
        ("backwards", steps < 0, "is followed by {then:,}: a position falls inside the document"),
    ):
        places = np.flatnonzero(wrong)
        if places.size:
            at = begin + int(places[0])
            more = f", and {places.size - 1:,} more times" if places.size > 1 else ""
            text = f"position {positions[at]:,} {what.format(then=positions[at + 1])}{more}"
            yield PositionFault(kind, index, at, begin + int(places[-1]) + 1, text)


def count_distances(rows: Sequence[Row], *, crossing: bool = False) -> DistanceCounts:
    """Count the pairs of a query and itself or an earlier token by the difference of their positions.

    Within documents only, or with `crossing` in the whole row, as without a mask of documents. Exact, from the runs of
    consecutive positions. Raises `ValueError` for a row of too many runs or distances that are too large.
    """
    low, high = 0, 1
    runs_by_row = [list_runs(row) for row in rows]
    for runs in runs_by_row:
        if len(runs) > MOST_RUNS:
            raise ValueError(TEXTS("positions.runs", count=len(runs), most=MOST_RUNS))
        if len(runs):
            low = min(low, int(runs[:, 0].min() - (runs[:, 0] + runs[:, 1]).max()))
            high = max(high, int((runs[:, 0] + runs[:, 1]).max() - runs[:, 0].min()))
    if high - low > MOST_DISTANCE:
        raise ValueError(TEXTS("positions.distances", low=low, high=high, most=MOST_DISTANCE))
    second = np.zeros(high - low + 3)
    for runs in runs_by_row:
        starts, sizes, documents = runs.T
        # Within a run of n tokens there are n − d pairs at distance d: the second differences of a triangle.
        np.add.at(second, -low + 0 * sizes, sizes)
        np.add.at(second, -low + 1 + 0 * sizes, -(sizes + 1))
        np.add.at(second, -low + 1 + sizes, 1)
        for later in range(1, len(runs)):
            # Between two runs the counts are a trapezoid: the convolution of two boxes.
            earlier = np.arange(later)[crossing | (documents[:later] == documents[later])]
            least = starts[later] - (starts[earlier] + sizes[earlier] - 1) - low
            for places, sign in (
                (least, 1),
                (least + sizes[earlier], -1),
                (least + sizes[later], -1),
                (least + sizes[earlier] + sizes[later], 1),
            ):
                np.add.at(second, places, sign)
    values = np.cumsum(np.cumsum(second))
    seen = np.flatnonzero(values)
    if not seen.size:
        raise ValueError(TEXTS("positions.no_token"))
    return DistanceCounts(low + int(seen[0]), values[seen[0] : seen[-1] + 1])


def list_runs(row: Row) -> NDArray[np.int64]:
    """Return (first position, tokens, document) of every run of consecutive positions, shape (runs, 3)."""
    number = np.zeros(len(row.positions), np.int64) - 1
    for index, (first, end) in enumerate(row.documents):
        number[first:end] = index
    tokens = np.flatnonzero(row.counts & (number >= 0))
    positions, number = row.positions[tokens], number[tokens]
    if not tokens.size:
        return np.zeros((0, 3), np.int64)
    breaks = (np.diff(positions) != 1) | (np.diff(number) != 0) | (np.diff(tokens) != 1)
    firsts = np.array([0, *(np.flatnonzero(breaks) + 1)])
    sizes = np.diff([*firsts, len(tokens)])
    return np.stack([positions[firsts], sizes, number[firsts]], axis=1)
