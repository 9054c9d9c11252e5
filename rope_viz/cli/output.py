"""Standard output and standard error whose reader may leave, as `head` does once it has seen enough.

What is printed after that goes nowhere, and the command runs to its end: its exit code says what was found.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from rope_viz.embedding.spec import UNCOMPUTABLE
from rope_viz.models.no_rope_types import NoRope


class Patient:
    """A stream that goes on where its reader has left; everything else is the stream's own."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """As the stream does; into nothing once nobody reads."""
        try:
            return self.stream.write(text)
        except BrokenPipeError:
            self.let_go()
        except UnicodeEncodeError:
            # A terminal without θ, or a file's name that is no text.
            encoding = self.stream.encoding
            self.stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        return len(text)

    def flush(self) -> None:
        """As the stream does."""
        try:
            self.stream.flush()
        except BrokenPipeError:
            self.let_go()

    def let_go(self) -> None:
        """Let the rest, also what the interpreter flushes when it ends, go into nothing."""
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, self.stream.fileno())
        os.close(nothing)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextlib.contextmanager
def patient() -> Iterator[None]:
    """Within it both streams are patient; at its end what was printed is written."""
    streams = [stream and Patient(stream) for stream in (sys.stdout, sys.stderr)]  # None where there is no such stream
    with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
        try:
            yield
        finally:
            for stream in streams:
                if stream is not None:
                    stream.flush()


def one_line(error: Exception) -> str:
    """What an error says, in one line, without the system's number of it."""
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return next(iter(str(error).splitlines()), type(error).__name__)


@contextlib.contextmanager
def named(name: str) -> Iterator[None]:
    """Put the config's name before what is wrong with it."""
    try:
        yield
    except NoRope:
        raise
    except ArithmeticError:
        raise ValueError(f"{name}: {UNCOMPUTABLE}") from None
    except (ValueError, OSError) as error:
        raise ValueError(f"{name}: {one_line(error)}") from None
