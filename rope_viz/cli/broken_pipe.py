"""Standard output and error that survive a broken pipe, as `head` causes.

Output after a broken pipe is discarded, and the command runs to its end, so that its exit code is right. Commands print
names of files and texts of configs: neither shows a control character, which a terminal would obey, and messages cut
endless names.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from rope_viz.texts.outside_text import printable

LONGEST_NAME = 300
"""Characters of a name in a message. The longest path that people use has some 250."""
LONG_WORD = re.compile(rf"\S{{{LONGEST_NAME + 1},}}")


def shorten_name(name: str) -> str:
    """Return a name for a message, cut in the middle where it is longer than `LONGEST_NAME`."""
    if len(name) <= LONGEST_NAME:
        return name
    half = LONGEST_NAME // 3
    return f"{name[: 2 * half - 1]}…{name[-half:]}"


def shorten_words(text: str) -> str:
    """Return a message with each of its long words cut, which are names, addresses or values that a user gave."""
    return LONG_WORD.sub(lambda found: shorten_name(found.group()), text)


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


class Messages(Patient):
    """Standard error: every message passes here, so a name that it repeats is cut here."""

    def write(self, text: str) -> int:
        """Write with long words cut."""
        super().write(shorten_words(text))
        return len(text)


@contextlib.contextmanager
def ignore_broken_pipe() -> Iterator[None]:
    """Wrap both streams within this context and flush them at its end."""
    # None: there is no such stream.
    streams = [sys.stdout and Patient(sys.stdout), sys.stderr and Messages(sys.stderr)]
    with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
        try:
            yield
        finally:
            for stream in streams:
                if stream is not None:
                    stream.flush()
