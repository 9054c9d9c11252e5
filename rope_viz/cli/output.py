"""What commands write: files and standard output, and errors as one line."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from rope_viz.cli.broken_pipe import Patient, shorten_name
from rope_viz.embedding import TEXTS
from rope_viz.embedding.spec import short_repr
from rope_viz.models.no_rope_types import NoRope
from rope_viz.storage.write_file import is_temporary, write_file

STDOUT = "-"
ADDRESS = re.compile(r"https?://[^\s\"'<>?#]+")


def write_output(name: str | Path, content: bytes) -> None:
    """Write what a command makes: to standard output for "-", else to a file, whole or not at all."""
    if str(name) != STDOUT:
        write_file(name, content)
        return
    if sys.stdout is None:
        raise ValueError("there is no standard output: name a file")
    sys.stdout.flush()
    try:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        if isinstance(sys.stdout, Patient):
            sys.stdout.let_go()


def check_folder(folder: Path, marker: str) -> None:
    """Raise `ValueError` if the folder has files of somebody else: it must be missing, empty or have the marker."""
    if folder.is_dir():
        names = {each.name for each in folder.iterdir() if not is_temporary(each.name)}
        if names and marker not in names:
            raise ValueError(f"{folder} has other files: move them, or name another folder")
    elif folder.exists():
        raise ValueError(f"{folder} is a file, and a folder of this name is needed: name another one")


def read_address(flag: str, written: str) -> str:
    """Return a dashboard's address without a slash at its end, "" for none. Raise `ValueError` for other texts."""
    if written and not (ADDRESS.fullmatch(written) and urlsplit(written).hostname):
        raise ValueError(f"{flag} must be like https://example.org/rope, got {short_repr(written)}")
    return written.rstrip("/")


def one_line(error: Exception) -> str:
    """Return an error's message as one line, without the system's error number."""
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return next(iter(str(error).splitlines()), type(error).__name__)


@contextlib.contextmanager
def named(name: str) -> Iterator[None]:
    """Prefix errors raised within this context with the config's name, or with that of the file they are about."""
    try:
        yield
    except NoRope:
        raise
    except ArithmeticError:
        raise ValueError(f"{shorten_name(name)}: {TEXTS('errors.uncomputable')}") from None
    except (ValueError, OSError) as error:
        # The system's errors name the file: another one than the config where a disk is full.
        file = getattr(error, "filename", None) or name
        raise ValueError(f"{shorten_name(str(file))}: {one_line(error)}") from None
