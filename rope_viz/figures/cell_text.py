"""The numbers behind pictures that show more than a screen has columns for: every distance, or labelled bins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rope_viz.embedding import spectrum
from rope_viz.embedding.spec import FloatArray
from rope_viz.studies import scores
from rope_viz.studies.envelope import column_edges
from rope_viz.studies.error_budget import Thinning
from rope_viz.studies.scores import Parts

MOST_ROWS = 1 << 16
DISTANCE = "distance m − n (tokens)"


def score_table(
    lines: Sequence[tuple[str, FloatArray, Parts]], distances: Thinning, *, columns: int, log: bool
) -> dict[str, Any]:
    """The scores at these distances by line: (name, inv_freq, parts of q and k).

    Up to `MOST_ROWS` distances each has its own row. Beyond, a row is a bin: the distances `from` … `to`, and of every
    line the smallest and largest score that was computed and the exact mean over all distances of the bin, where a
    picture of as many `columns` has its columns.
    """
    start, stop = distances.start, distances.stop
    ends: dict[str, Any] = {"start": start, "stop": stop, "thinning": distances}
    if stop - start <= MOST_ROWS and distances.step == 1:
        out: dict[str, Any] = {DISTANCE: np.arange(start, stop)}
        for name, inv_freq, (a, b, unrotated) in lines:
            # Computed as for the picture, so that its numbers are among these to the last digit.
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
    """Values (bins, pairs) with a row for each bin of whole positions: `from` … `to`, or one position.

    `edges` (bins + 1,) are whole; `kind` is what a column holds, as "mean of cos".
    """
    bounds = np.asarray(edges).astype(np.int64)
    single = bool(np.all(np.diff(bounds) == 1))
    places: dict[str, Any] = {axis: bounds[:-1]} if single else {"from": bounds[:-1], "to": bounds[1:] - 1}
    return places | {f"pair {pair}: {kind}": column for pair, column in enumerate(values.T)}
