"""Standard output and error that survive a broken pipe, as `head` causes, and that show no control characters.

Names of files and texts of configs are printed by every command, and a terminal would obey what is in them.
Output after that is discarded, and the command runs to its end, so that its exit code is right.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from rope_viz.storage.outside_text import printable


class Patient:
    """A stream that survives a broken pipe; all else is delegated to the wrapped stream."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write text in its printable form, and discard output once the pipe is broken."""
        shown = show_line(text)
        try:
            self.stream.write(shown)
        except BrokenPipeError:
            self.let_go()
        except UnicodeEncodeError:
            # A terminal without θ.
            encoding = self.stream.encoding
            self.stream.write(shown.encode(encoding, "backslashreplace").decode(encoding))
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


def show_line(text: str) -> str:
    """Return a text as it is printed. A carriage return that begins it stays: a progress bar replaces its line."""
    start = "\r" if text.startswith("\r") and not text.startswith("\r\n") else ""
    return start + printable(text.removeprefix(start))


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
