"""What an engine answered to the prompts of a probe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rope_viz.embedding.spec import FloatArray

Entry: TypeAlias = "float | Mapping[int, float] | None"
"""What is known of the token after one row: the log-probability of the prompt's own, or of several tokens by id."""
Answers: TypeAlias = "Sequence[Entry] | None"
"""An entry for every token of a prompt but the last, None for a prompt that was not answered."""
Targets: TypeAlias = NDArray[np.intp]
"""Rows and tokens whose log-probabilities are compared, shape (targets, 2)."""

MOST_ROWS = 512
"""Rows of a prompt that are compared."""


def list_targets(prompt: Sequence[int], answers: Answers) -> tuple[Targets, FloatArray]:
    """Return the targets of a prompt that are compared, and the log-probabilities that the engine gave for them."""
    known = [row for row, entry in enumerate(answers or ()) if entry is not None]
    found = [one for row in choose_rows(known) for one in list_entry(row, prompt[row + 1], (answers or ())[row])]
    places = np.array([one[:2] for one in found], dtype=np.intp).reshape(-1, 2)
    return places, np.array([one[2] for one in found], dtype=np.float64)


def list_entry(row: int, token: int, entry: Entry) -> Iterator[tuple[int, int, float]]:
    """Yield row, token and log-probability of what one entry says."""
    if isinstance(entry, Mapping):
        yield from ((row, id, value) for id, value in sorted(entry.items()))
    elif entry is not None:
        yield row, token, entry


def choose_rows(known: Sequence[int]) -> list[int]:
    """Return which of these rows are compared: the first and last ones, and more evenly between them."""
    if len(known) <= MOST_ROWS:
        return list(known)
    edge = MOST_ROWS // 4
    between = np.linspace(edge, len(known) - edge - 1, MOST_ROWS - 2 * edge).astype(np.intp)
    places = np.unique(np.concatenate([np.arange(edge), between, np.arange(len(known) - edge, len(known))]))
    return [known[place] for place in places]
