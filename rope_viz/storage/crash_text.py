"""An unexpected error for a log: where it was raised and of what type, without the values that its message quotes."""

from __future__ import annotations

import logging
import traceback


def format_crash(error: BaseException | None) -> str:
    """Return the lines of code that led to an error, and its type; then the same of the errors that caused it.

    A message such as that of a `KeyError` repeats what a user's config holds, and logs are read by others.
    """
    parts: list[str] = []
    known: set[int] = set()
    while error is not None and id(error) not in known:
        known.add(id(error))
        frames = "".join(traceback.format_tb(error.__traceback__))
        parts.append(f"{frames}{type(error).__module__}.{type(error).__qualname__}")
        error = error.__cause__ or error.__context__
    return "\nwhile handling\n".join(parts)


def keep_messages_out_of_logs() -> None:
    """Let every logger of this process write errors as `format_crash` does, those of libraries included."""
    make_record = logging.getLogRecordFactory()
    if getattr(make_record, "is_without_messages", False):
        return

    def make_without_message(*arguments: object, **named: object) -> logging.LogRecord:
        record = make_record(*arguments, **named)
        if record.exc_info and record.exc_info[1] is not None:
            # A formatter writes this text in place of the traceback.
            record.exc_text = format_crash(record.exc_info[1])
        return record

    make_without_message.is_without_messages = True  # type: ignore[attr-defined]
    logging.setLogRecordFactory(make_without_message)
