"""Make the tables of limits in `docs/serving.md` from `rope_viz/storage/limits.py`.

    python tools/limits_table.py

`tests/test_limits.py` fails if the tables differ from the limits.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from rope_viz.storage import limits

DOCUMENT = Path(__file__).parents[1] / "docs" / "serving.md"
HEADS = ("| what | limit | where to change it |", "| part | at most |")
"""The first lines of the two tables."""
START = 135
"""MB of the server process after each page was opened once, as measured; it starts at about 115."""
SESSION = 0.12
"""MB of one session, as measured with 120 of them."""


def mib(size: int) -> str:
    """Format a size, exactly if it is a multiple of some KiB."""
    return f"{size / (1 << 20):g} MiB" if size >= 1 << 20 else f"{size / (1 << 10):g} KiB"


def list_limits() -> list[tuple[str, str, str]]:
    """Return what is limited, to how much, and by which names in `limits.py` or by whom else."""
    it = limits
    pages = it.OPEN_PAGES // it.SHARE_OF_PAGES
    return [
        (
            "one request's body",
            f"{mib(it.REQUEST_BYTES)}, {it.REQUEST_CONTENTS} contents",
            "REQUEST_…; `client_max_body_size` in nginx, for less",
        ),
        (
            "request bodies that arrive at once",
            f"{it.ARRIVING_BODIES}, and {mib(it.ARRIVING_BYTES)} together",
            "ARRIVING_BODIES, ARRIVING_BYTES",
        ),
        (
            f"small bodies (below {mib(it.SMALL_BODY_BYTES)}) besides those",
            f"{it.SMALL_BODIES}",
            "SMALL_BODIES, SMALL_BODY_BYTES",
        ),
        (
            "a slow body",
            f"{it.BODY_PAUSE_SECONDS:g} s without a byte; below {mib(it.BODY_RATE)}/s after "
            f"{it.BODY_GRACE_SECONDS:g} s; {it.BODY_SECONDS:g} s",
            "BODY_…",
        ),
        ("one stored content", mib(it.CONTENT_BYTES), "CONTENT_BYTES"),
        (
            f"all stored contents, decoded values included, and {mib(it.CONTENT_OVERHEAD_BYTES)} for each",
            mib(it.STORE_BYTES),
            "STORE_BYTES",
        ),
        ("open pages", f"{it.OPEN_PAGES}; {pages} of one user", "OPEN_PAGES, SHARE_OF_PAGES"),
        (
            f"the last {it.RESERVED_PAGES} of them",
            f"for users with fewer than {it.FEW_PAGES} open pages",
            "RESERVED_PAGES, FEW_PAGES",
        ),
        ("a page that asks for no run", f"{it.FIRST_RUN_SECONDS:g} seconds", "FIRST_RUN_SECONDS"),
        (
            "one message of a page; what sessions keep",
            f"{mib(it.MESSAGE_BYTES)}; {mib(it.ALL_MESSAGE_BYTES)} of all pages",
            "…MESSAGE_BYTES; `maxWidgetStateSize`",
        ),
        (
            "a control; a text field; a pasted config",
            f"{mib(it.COMPONENT_VALUE)}; {it.TEXT_FIELD_BYTES / 1000:g} kB; {mib(it.CONFIG_BYTES)}",
            "COMPONENT_VALUE, TEXT_FIELD_…, CONFIG_BYTES",
        ),
        (
            "messages of one page; of one user",
            f"{it.MESSAGE_RATE:g} per second after {it.MESSAGE_BURST:g}; "
            f"{it.MESSAGE_RATE_OF_VISITOR:g} after {it.MESSAGE_BURST_OF_VISITOR:,g}",
            "MESSAGE_RATE…, MESSAGE_BURST…",
        ),
        (
            "configs that sessions remember",
            f"{it.REMEMBERED_CONFIGS} of a session, {mib(it.REMEMBERED_CONFIG_BYTES)} of all; "
            f"{mib(it.REMEMBERED_CONFIG_BYTES_OF_VISITOR)} of one user",
            "REMEMBERED_CONFIG…",
        ),
        (
            "runs of pages",
            f"{it.PAGE_RUNS_AT_ONCE} at once, {it.PAGE_RUNS_OF_VISITOR} of one user; {it.PAGE_THREADS} threads",
            "PAGE_RUNS_…, PAGE_THREADS",
        ),
        (
            "dropped files that no page has read yet",
            f"{mib(it.UPLOAD_BYTES)}; {mib(it.UPLOAD_BYTES_OF_VISITOR)} of one user",
            "UPLOAD_BYTES…",
        ),
        (
            "a session without its page",
            f"{it.LOST_SESSION_SECONDS:g} seconds; {it.LOST_SESSIONS} at once",
            "LOST_SESSION…",
        ),
        ("a client that takes nothing", f"{it.ANSWER_IDLE_SECONDS} seconds (Linux)", "ANSWER_IDLE_SECONDS"),
        (
            "a client that takes little",
            f"{mib(it.ANSWER_RATE)}/s after {it.ANSWER_GRACE_SECONDS:g} s; {it.ANSWER_SECONDS:g} s",
            "ANSWER_…",
        ),
        (
            "a value of a small content",
            f"{it.LARGE_VALUE_BYTES / 1e6:g} MB, then a process for long pictures",
            "LARGE_VALUE_BYTES",
        ),
        (
            "a dropped or pasted config",
            f"{mib(it.CONFIG_BYTES)}; {mib(it.CONFIG_FILE_BYTES)} with long lists",
            "CONFIG_BYTES, CONFIG_FILE_BYTES",
        ),
        (
            "a config in a link",
            f"{it.LINK_CHARACTERS:,} characters, {mib(it.LINK_JSON_BYTES)} of JSON; "
            f"{mib(it.LINK_CONFIG_BYTES)} of configs of links",
            "LINK_…",
        ),
        (
            "a name in a config, such as `model_type`",
            f"{it.NAME_CHARACTERS} characters are read",
            "NAME_CHARACTERS",
        ),
        (
            "reading a config, a link, a file",
            f"{it.READINGS_AT_ONCE} at once, {it.READINGS_AT_ONCE - 1} of them large, 1 of one user; "
            f"{it.READING_SECONDS} s of CPU, {mib(it.READING_MEMORY)} each",
            "READING…",
        ),
        (
            "readings of one user that wait",
            f"{it.WAITING_READINGS}, then 503 or a sentence",
            "WAITING_READINGS",
        ),
        (
            "a dropped JSON file of numbers",
            f"{mib(it.NUMBERS_FILE_BYTES)}; results of `evaluate` {mib(it.CONTENT_BYTES)}",
            "NUMBERS_FILE_BYTES",
        ),
        (
            "one address",
            f"{it.ADDRESS_CHARACTERS:,} characters",
            "ADDRESS_CHARACTERS; `large_client_header_buffers` in nginx, for less",
        ),
        (
            f"rendered pictures, of which {mib(it.UNREAD_ANSWER_BYTES)} are being read",
            mib(it.PICTURE_BYTES),
            "PICTURE_BYTES, UNREAD_ANSWER_BYTES",
        ),
        ("pictures of one user that wait", f"{it.WAITING_PICTURES}, then 503", "WAITING_PICTURES"),
        (
            "pictures that can take long",
            f"{it.LONG_JOBS_AT_ONCE} at once; {it.JOB_SECONDS} s of CPU time and "
            f"{it.JOB_MEMORY / (1 << 30):g} GiB each",
            "LONG_JOBS_AT_ONCE, JOB_…",
        ),
        ("one measurement", f"{it.MEASUREMENT_SECONDS:g} seconds, one at a time", "MEASUREMENT_SECONDS"),
        ("slow heads, connections, requests per second", "none in the app", "; nginx, as below"),
    ]


def list_sizes() -> dict[str, int]:
    """Return the MB that each part of the server process may take."""
    pages = limits.OPEN_PAGES + limits.LOST_SESSIONS
    sizes = {
        "stored contents": limits.STORE_BYTES,
        "request bodies": limits.ARRIVING_BYTES,
        "uploaded files": limits.UPLOAD_BYTES,
        "rendered pictures": limits.PICTURE_BYTES,
        "messages and texts": limits.ALL_MESSAGE_BYTES,
        "static files": limits.STATIC_FILE_BYTES,
        "configs of links": limits.LINK_CONFIG_BYTES,
        "configs of sessions": limits.REMEMBERED_CONFIG_BYTES,
    }
    in_mb = {name: round(size / 1e6) for name, size in sizes.items()}
    return {"start": START, **in_mb, "sessions": round(SESSION * pages)}


def format_where(where: str) -> str:
    """Return the names of limits as code, and the rest as it is."""
    names, _, rest = where.partition(";")
    code = ", ".join(f"`{name}`" for name in names.split(", ") if name)
    return "; ".join(filter(None, (code, rest.strip())))


def make_tables() -> tuple[str, str]:
    """Return the rows of both tables."""
    rows = [f"| {what} | {limit} | {format_where(where)} |" for what, limit, where in list_limits()]
    sizes = list_sizes()
    parts = [f"| {part} | {size} MB |" for part, size in (sizes | {"sum": sum(sizes.values())}).items()]
    return "\n".join(rows), "\n".join(parts)


def write_tables(text: str) -> str:
    """Return the document with both tables made anew."""
    for head, table in zip(HEADS, make_tables(), strict=True):
        before, found, rest = text.partition(f"{head}\n")
        if not found:
            raise ValueError(f"{DOCUMENT.name} has no table that begins with {head}")
        rule, _, rest = rest.partition("\n")
        after = rest.partition("\n\n")[2]
        text = f"{before}{head}\n{rule}\n{table}\n\n{after}"
    return text


if __name__ == "__main__":
    DOCUMENT.write_text(write_tables(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
