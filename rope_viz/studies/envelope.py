"""Smallest and largest value in each pixel column: a long curve without smoothing or skipped values."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rope_viz.embedding.spec import FloatArray, require_number

Edges: TypeAlias = NDArray[np.int64]

MAX_COLUMNS = 1 << 16


def envelope(
    values: ArrayLike, columns: int, *, start: int = 0, log: bool = False
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return (x, low, high), each (columns,), of values (n,) at the positions start, start + 1, …

    Columns share the positions equally, or their logarithm if `log` (then start must be at least 1). `x` is the middle
    of a column. With no more values than columns, each has its own column, and low and high are the value.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"values must have shape (n,), got {array.shape}")
    edges = column_edges(start, start + len(array), columns, log=log)
    low = np.full(len(edges) - 1, np.inf)
    high = np.full(len(edges) - 1, -np.inf)
    reduce_block(array, edges - start, low, high)
    return centers(edges), low, high


def column_edges(start: int, stop: int, columns: int, *, log: bool = False) -> Edges:
    """Return borders of the columns, int64 (columns + 1,): column c holds the positions edges[c] … edges[c + 1] − 1.

    No column is empty, so there may be fewer than requested.
    """
    require_number(columns, "columns", least=1, most=MAX_COLUMNS, integer=True)
    require_number(start, "start", least=1 if log else None, integer=True)
    require_number(stop, "stop", above=float(start), integer=True)
    start, stop, columns = int(start), int(stop), int(columns)
    if not log:
        columns = min(columns, stop - start)
        return np.asarray(start + np.arange(columns + 1, dtype=np.int64) * (stop - start) // columns)
    edges = np.rint(np.geomspace(start, stop, columns + 1)).astype(np.int64)
    edges[0], edges[-1] = start, stop
    return np.unique(edges)


def centers(edges: Edges) -> FloatArray:
    """Return the middle position of each column, float64 (columns,)."""
    return np.asarray((edges[:-1] + edges[1:] - 1) / 2.0)


def reduce_block(block: FloatArray, edges: Edges, low: FloatArray, high: FloatArray) -> None:
    """Update `low` and `high` with a block of consecutive values; `edges` count from the block's first value.

    Columns may begin before the block or end after it, so that a curve can be reduced block by block.
    """
    first = int(np.searchsorted(edges, 0, side="right")) - 1
    last = int(np.searchsorted(edges, len(block), side="left"))
    cuts = np.maximum(edges[first:last], 0)
    np.minimum(low[first:last], np.minimum.reduceat(block, cuts), out=low[first:last])
    np.maximum(high[first:last], np.maximum.reduceat(block, cuts), out=high[first:last])
