"""Write a file whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import platform
import re
import secrets
import stat
import time
import zlib
from collections.abc import Iterable
from pathlib import Path

from rope_viz.storage.limits import WRITE_SECONDS

MACHINE = f"{zlib.crc32(platform.node().encode()):08x}"
TEMPORARY = re.compile(r"\.rope-viz-(?:([0-9a-f]{8})-([0-9]+)-)?[0-9a-f]{16}\.tmp")
"""The name of a temporary file: machine and process that write it, which older releases did not name."""


def write_file(path: str | Path, content: bytes | Iterable[bytes]) -> None:
    """Replace a file's content; after a kill or on a full disk the old content is still there, whole.

    The content, one or several byte strings, is first written to a temporary file in the same folder. A symbolic link
    keeps its target, and an existing file its permissions and, where allowed, its owner. What is not a regular file,
    such as a pipe or a device, is written directly. Temporary files that killed processes left in the folder are
    removed. Raises `OSError` that names `path`.
    """
    parts = [content] if isinstance(content, bytes) else content
    try:
        # `os.stat` and not `Path.exists`, which hides the reason why a path cannot be looked at.
        before = os.stat(path)
    except FileNotFoundError:
        before = None
    if before is not None and not stat.S_ISREG(before.st_mode):
        with open(path, "wb") as file:
            file.writelines(parts)
        return
    target = Path(os.path.realpath(path))
    # Short, because a file's name may already have the longest length that the system allows.
    temporary = target.with_name(f".rope-viz-{MACHINE}-{os.getpid()}-{secrets.token_hex(8)}.tmp")
    try:
        if before is not None and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        try:
            # The mode x fails if the name is taken, and the new file has the permissions of the user's umask.
            with open(temporary, "xb") as file:
                file.writelines(parts)
                file.flush()
                os.fsync(file.fileno())
            if before is not None:
                keep_permissions(temporary, before)
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    sync_folder(target.parent)
    remove_abandoned(target.parent)


@functools.lru_cache(maxsize=1024)
def remove_abandoned(folder: Path) -> None:
    """Remove the temporary files of killed processes from a folder, once per process: listing a folder takes time."""
    with contextlib.suppress(OSError):
        for each in folder.iterdir():
            if is_temporary(each.name):
                with contextlib.suppress(OSError):
                    if is_abandoned(each):
                        each.unlink()


def is_temporary(name: str) -> bool:
    """Return whether a file's name is one that `write_file` gives to a temporary file."""
    return TEMPORARY.fullmatch(name) is not None


def is_abandoned(temporary: Path) -> bool:
    """Return whether a temporary file is abandoned: its process on this machine ended, or it is old."""
    machine, number = re.findall(TEMPORARY, temporary.name)[0]
    if machine == MACHINE and os.name == "posix":
        try:
            os.kill(int(number), 0)  # signal 0 only asks whether the process exists
        except ProcessLookupError:
            return True
        except (PermissionError, OverflowError):
            pass
    return time.time() - temporary.stat().st_mtime > WRITE_SECONDS


def keep_permissions(path: Path, before: os.stat_result) -> None:
    """Give a file the permissions of the one that it replaces, and its owner if this user may do that."""
    if hasattr(os, "chown"):
        with contextlib.suppress(PermissionError):
            os.chown(path, before.st_uid, before.st_gid)
    os.chmod(path, stat.S_IMODE(before.st_mode))


def sync_folder(folder: Path) -> None:
    """Write the folder's entries to the disk, on systems that allow to open a folder."""
    with contextlib.suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
