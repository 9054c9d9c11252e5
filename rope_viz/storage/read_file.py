"""Read a file that a user named, up to a size and without waiting for ever.

A name may be that of a device that never ends, of a pipe into which nobody writes, or of a file in /proc, which has no
size. Every command reads such files here, and `tests/test_architecture.py` finds those that do not.
"""

from __future__ import annotations

import errno
import io
import os
import select
import stat
import sys
import time
from pathlib import Path
from typing import BinaryIO

from rope_viz.storage.limits import PIPE_SILENCE_SECONDS, PIPE_WRITER_SECONDS, TEXT_FILE_BYTES

CHUNK = 1 << 20
NONBLOCK = getattr(os, "O_NONBLOCK", 0)


class UnreadableFileError(OSError, ValueError):
    """A file that is not read because of its size or its kind; `filename` and `strerror` are set as in any `OSError`.

    Also a `ValueError`, which is what readers of contents raise.
    """

    def __init__(self, path: str | Path, reason: str, number: int = errno.EINVAL) -> None:
        super().__init__(number, reason, str(path))


class LargeFileError(UnreadableFileError):
    """A file that is larger than any of its kind."""

    def __init__(self, path: str | Path, most: int) -> None:
        size = f"{most >> 20} MiB" if most >= 1 << 20 else f"{most >> 10} KiB"
        super().__init__(path, f"it has more than {size}, so it is not a file of this kind", errno.EFBIG)


def read_limited(path: str | Path, most: int) -> bytes:
    """Return the content of a file of at most `most` bytes. A pipe is read to its end, within limits of time.

    Raises `OSError`, and `UnreadableFileError` for a larger file, a device, or a pipe that brings nothing.
    """
    # Without blocking, because opening a pipe would wait for somebody who writes into it.
    number = os.open(path, os.O_RDONLY | NONBLOCK | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0))
    try:
        about = os.fstat(number)
        require_readable(path, about, is_terminal=os.isatty(number))
        if stat.S_ISREG(about.st_mode) and about.st_size > most:
            raise LargeFileError(path, most)
        content = read_parts(path, number, most, is_pipe=stat.S_ISFIFO(about.st_mode))
    except OSError as error:
        if error.filename is None:
            # Reading a number says no name.
            raise type(error)(error.errno, error.strerror, str(path)) from None
        raise
    finally:
        os.close(number)
    if len(content) > most:
        raise LargeFileError(path, most)
    return bytes(content)


def read_limited_text(path: str | Path, most: int = TEXT_FILE_BYTES) -> str:
    """Return the content of a UTF-8 file. Raises `OSError` as `read_limited` does, and `UnicodeDecodeError`."""
    # As Python reads texts: the ends of lines of other systems become "\n".
    return read_limited(path, most).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


def read_standard_input(most: int) -> bytes:
    """Return what is on standard input, at most `most` bytes. Raises `UnreadableFileError` if there is more."""
    if sys.stdin is None:
        raise UnreadableFileError("-", "there is no standard input", errno.EBADF)
    found = getattr(sys.stdin, "buffer", sys.stdin).read(most + 1)
    content = found if isinstance(found, bytes) else found.encode()
    if len(content) > most:
        raise LargeFileError("-", most)
    return content


def open_regular(path: str | Path) -> BinaryIO:
    """Open a file that is read in parts, as its header says. Raises `OSError` if it is not a regular file.

    A file without a size, such as those in /proc, is empty here: reading some of them waits for ever.
    """
    about = os.stat(path)
    require_readable(path, about, is_terminal=False)
    if not stat.S_ISREG(about.st_mode):
        raise UnreadableFileError(path, "it is no regular file: write it to one", errno.ESPIPE)
    return open(path, "rb") if about.st_size else io.BytesIO()


def require_readable(path: str | Path, about: os.stat_result, *, is_terminal: bool) -> None:
    """Raise `OSError` for a folder, and for a device other than a terminal and the null device."""
    if stat.S_ISDIR(about.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if stat.S_ISBLK(about.st_mode) or (stat.S_ISCHR(about.st_mode) and not is_terminal and not is_null(about)):
        raise UnreadableFileError(path, "it is a device, not a file", errno.ENODEV)


def is_null(about: os.stat_result) -> bool:
    """Return whether a device is the null device, which is an empty file."""
    try:
        return about.st_rdev == os.stat(os.devnull).st_rdev
    except OSError:
        return False


def read_parts(path: str | Path, number: int, most: int, *, is_pipe: bool) -> bytearray:
    """Return what an open file brings, at most one byte more than `most`. Raises `UnreadableFileError`."""
    content = bytearray()
    started = heard = time.monotonic()
    is_opened = False
    while len(content) <= most:
        try:
            part = os.read(number, min(CHUNK, most + 1 - len(content)))
        except BlockingIOError:
            is_opened = True
            if time.monotonic() - heard > PIPE_SILENCE_SECONDS:
                reason = f"it brought nothing for {PIPE_SILENCE_SECONDS:g} seconds"
                raise UnreadableFileError(path, reason, errno.ETIMEDOUT) from None
            wait_for_more(number, PIPE_SILENCE_SECONDS)
            continue
        if part:
            content += part
            heard = time.monotonic()
        elif is_pipe and not content and not is_opened and not is_hung_up(number):
            # Nobody has opened the pipe for writing yet.
            if time.monotonic() - started > PIPE_WRITER_SECONDS:
                raise UnreadableFileError(path, "it is a pipe into which nobody writes", errno.ETIMEDOUT)
            time.sleep(0.01)
        else:
            break
    return content


def wait_for_more(number: int, seconds: float) -> None:
    """Wait for at most so long until there is something to read."""
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(number, select.POLLIN)
        poll.poll(1000 * seconds)
    else:
        time.sleep(0.01)


def is_hung_up(number: int) -> bool:
    """Return whether somebody had opened a pipe for writing and has closed it."""
    if not hasattr(select, "poll"):
        return True
    poll = select.poll()
    poll.register(number, select.POLLIN)
    return any(event & select.POLLHUP for _, event in poll.poll(0))
