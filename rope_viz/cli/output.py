"""What commands write: files and standard output, and errors as one line."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from rope_viz.cli.broken_pipe import Patient
from rope_viz.embedding.spec import UNCOMPUTABLE
from rope_viz.models.no_rope_types import NoRope
from rope_viz.storage.write_file import write_file

STDOUT = "-"


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


def one_line(error: Exception) -> str:
    """Return an error's message as one line, without the system's error number."""
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return next(iter(str(error).splitlines()), type(error).__name__)


@contextlib.contextmanager
def named(name: str) -> Iterator[None]:
    """Prefix errors raised within this context with the config's name."""
    try:
        yield
    except NoRope:
        raise
    except ArithmeticError:
        raise ValueError(f"{name}: {UNCOMPUTABLE}") from None
    except (ValueError, OSError) as error:
        raise ValueError(f"{name}: {one_line(error)}") from None
