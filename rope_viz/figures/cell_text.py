"""CSV columns for figures with more values than screen columns: a row per distance or position, or binned rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rope_viz.embedding import spectrum
from rope_viz.embedding.spec import FloatArray
from rope_viz.studies import scores
from rope_viz.studies.scores import Parts, Thinning, column_edges

MOST_ROWS = 1 << 16
DISTANCE = "distance m − n (tokens)"


def score_table(
    lines: Sequence[tuple[str, FloatArray, Parts]], distances: Thinning, *, columns: int, log: bool
) -> dict[str, Any]:
    """Return the scores by distance of each line, given as (name, inv_freq, parts of q and k).

    Up to `MOST_ROWS` distances, each has its own row. Beyond, a row is one of about `columns` bins, as in the figure:
    the distances `from` … `to`, the smallest and largest computed score and the exact mean over the whole bin.
    """
    start, stop = distances.start, distances.stop
    ends: dict[str, Any] = {"start": start, "stop": stop, "thinning": distances}
    if stop - start <= MOST_ROWS and distances.step == 1:
        out: dict[str, Any] = {DISTANCE: np.arange(start, stop)}
        for name, inv_freq, (a, b, unrotated) in lines:
            # Same call as for the figure, so that the figure's values match these to the last digit.
            out[name] = scores.curve_envelope(inv_freq, a, b, columns=stop - start, **ends)[1] + unrotated
        return out
    edges = column_edges(start, stop, columns, log=log)
    out = {"from": edges[:-1], "to": edges[1:] - 1}
    for name, inv_freq, (a, b, unrotated) in lines:
        _, low, high = scores.curve_envelope(inv_freq, a, b, columns=columns, log=log, **ends)
        mean = spectrum.bin_mean(inv_freq, edges)
        out[f"{name} min"], out[f"{name} max"] = low + unrotated, high + unrotated
        out[f"{name} mean"] = a @ mean.real + b @ mean.imag + unrotated
    return out


def binned_table(edges: ArrayLike, values: FloatArray, kind: str, *, axis: str = "position") -> dict[str, Any]:
    """Return values (bins, pairs) with a row for each bin of positions: `from` … `to`, or a single position.

    `edges` (bins + 1,) must be whole; `kind` names what a column holds, such as "mean of cos".
    """
    bounds = np.asarray(edges).astype(np.int64)
    single = bool(np.all(np.diff(bounds) == 1))
    places: dict[str, Any] = {axis: bounds[:-1]} if single else {"from": bounds[:-1], "to": bounds[1:] - 1}
    return places | {f"pair {pair}: {kind}": column for pair, column in enumerate(values.T)}


def subscript(number: int) -> str:
    """Format a whole number in subscript digits."""
    return str(number).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))
