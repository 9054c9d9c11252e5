"""Memory that was freed goes back to the system.

glibc keeps freed blocks below `server.LARGE` for later. After many answers or bodies of a megabyte each it would keep
hundreds of megabytes, as long as one block above them is in use.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
from pathlib import Path

EVERY = 10.0
"""Seconds between two looks at the memory."""
GROWN = 24 << 20
"""Bytes that the process must have grown by before it looks for free memory."""


async def keep_memory_small() -> None:
    """Give freed memory back whenever the process has grown, for as long as the server runs (Linux with glibc)."""
    last = resident()
    while last:
        await asyncio.sleep(EVERY)
        if resident() > last + GROWN:
            # Some milliseconds per hundred megabytes, without the interpreter's lock.
            await asyncio.get_running_loop().run_in_executor(None, give_back)
            last = resident()
        else:
            last = min(last, resident())


def give_back() -> None:
    """Give the free memory of all heaps back to the system. With another C library this does nothing."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def resident() -> int:
    """Return the bytes of this process in memory, 0 where that is unknown."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0
