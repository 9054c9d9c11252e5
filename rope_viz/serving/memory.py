"""Memory that was freed goes back to the system.

glibc keeps freed blocks below `LARGE_BLOCK_BYTES` for later. After many answers or bodies of a megabyte each it
would keep hundreds of megabytes, as long as one block above them is in use.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
from pathlib import Path

from rope_viz.storage.limits import MEMORY_GROWTH_BYTES, MEMORY_LOOK_SECONDS


async def keep_memory_small() -> None:
    """Give freed memory back whenever the process has grown, for as long as the server runs (Linux with glibc)."""
    last = resident()
    while last:
        await asyncio.sleep(MEMORY_LOOK_SECONDS)
        if resident() > last + MEMORY_GROWTH_BYTES:
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
