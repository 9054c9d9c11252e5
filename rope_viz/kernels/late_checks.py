"""Checks of values on a GPU that never wait for it: what they find is raised at a later call.

A kernel writes a position outside its table to memory of the host that the GPU can reach. Other values are copied to
such memory asynchronously. Every later call looks there, without waiting, and raises `ValueError` for what has
arrived. So the error is that of the first call after the GPU got to the wrong one, which used the nearest row.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import torch
from torch import Tensor

# (event after the copy, the copy, the check of its values), oldest first.
_pending: deque[tuple[torch.cuda.Event, Tensor, Callable[[list[int]], None]]] = deque()
_flags: dict[torch.device, Tensor] = {}


def row_flag(device: torch.device) -> Tensor:
    """Return two int64 for kernels on the device to write: how many rows the table has, and a position outside."""
    flag = _flags.get(device)
    if flag is None:
        with torch.inference_mode(False):
            flag = torch.zeros(2, dtype=torch.int64)
            # A kernel that is interpreted writes to plain memory.
            flag = _flags[device] = flag if device.type == "cpu" else flag.pin_memory()
    return flag


def check_later(values: Tensor, check: Callable[[list[int]], None]) -> None:
    """Copy integers on a GPU to the host without waiting; a later `raise_found` calls `check` with them."""
    arrived = torch.empty(values.shape, dtype=values.dtype).pin_memory()
    arrived.copy_(values.detach(), non_blocking=True)
    event = torch.cuda.Event()  # type: ignore[no-untyped-call]
    event.record(torch.cuda.current_stream(values.device))
    _pending.append((event, arrived, check))


def raise_found() -> None:
    """Raise `ValueError` for the first wrong value that has arrived. Never waits."""
    while _pending and not torch.cuda.is_current_stream_capturing():
        event, arrived, check = _pending.popleft()
        if not event.query():  # type: ignore[no-untyped-call]
            _pending.appendleft((event, arrived, check))
            break
        check(arrived.tolist())
    for flag in _flags.values():
        rows, position = flag.tolist()
        if rows:
            flag.zero_()
            refuse_rows(rows, position)


def check_rows(rows: int, bounds: list[int]) -> None:
    """Raise `ValueError` unless (smallest, largest) position are rows of a table of `rows`."""
    low, high = bounds
    if low < 0 or high >= rows:
        refuse_rows(rows, f"{low} to {high}")


def refuse_rows(rows: int, found: int | str) -> None:
    """Raise `ValueError` that names the rows of the table and what was found instead."""
    raise ValueError(f"positions must be rows of the table, from 0 to {rows - 1}, got {found}")
