"""What commands write: files and standard output, and errors as one line."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from rope_viz.embedding.spec import UNCOMPUTABLE
from rope_viz.models.no_rope_types import NoRope
from rope_viz.storage.write_file import write_file


# Standard output and error survive a broken pipe, as `head` causes: output after that is discarded, and the command
# runs to its end, so that its exit code is right.
class Patient:
    """A stream that survives a broken pipe; all else is delegated to the wrapped stream."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write, and discard output once the pipe is broken."""
        try:
            return self.stream.write(text)
        except BrokenPipeError:
            self.let_go()
        except UnicodeEncodeError:
            # A terminal without θ, or a file name that is not text.
            encoding = self.stream.encoding
            self.stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        return len(text)

    def flush(self) -> None:
        """Flush, and discard output once the pipe is broken."""
        try:
            self.stream.flush()
        except BrokenPipeError:
            self.let_go()

    def let_go(self) -> None:
        """Redirect all later output, including the interpreter's final flush, to the null device."""
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, self.stream.fileno())
        os.close(nothing)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextlib.contextmanager
def ignore_broken_pipe() -> Iterator[None]:
    """Wrap both streams within this context and flush them at its end."""
    streams = [stream and Patient(stream) for stream in (sys.stdout, sys.stderr)]  # None: there is no such stream
    with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
        try:
            yield
        finally:
            for stream in streams:
                if stream is not None:
                    stream.flush()


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
