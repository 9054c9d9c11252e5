"""The user's own config in this session: a file that was dropped or pasted, or a config that a link carried."""

from __future__ import annotations

from rope_viz.models.user_config import Upload
from rope_viz.own_files import config_link, configs
from rope_viz.storage.limits import (
    REMEMBERED_CONFIG_BYTES,
    REMEMBERED_CONFIG_BYTES_OF_VISITOR,
    REMEMBERED_CONFIGS,
)
from rope_viz.storage.shares import Holdings, Shares
from rope_viz.texts import Texts
from rope_viz.ui.session import session, session_id
from rope_viz.ui.visitors import session_visitor

HELD = Holdings(Shares(REMEMBERED_CONFIG_BYTES, REMEMBERED_CONFIG_BYTES_OF_VISITOR))

TEXTS = Texts("app")


def own() -> Upload | None:
    """Return the user's own config, or None."""
    return session().own


def set_own(config: Upload | None) -> None:
    """Make this the user's own config; None removes it."""
    session().own = config


def remember_upload(upload: Upload, size: int = 0) -> None:
    """Make a file the user's own config, and keep it for a return to its address.

    `size` is its bytes in memory. Older files of the session are forgotten until it has room. Raise `ValueError` with
    a sentence if there is none.
    """
    link = config_link.write_config(upload)
    uploads = {name: other for name, other in session().uploads.items() if name != link}
    holder, visitor = session_id(), session_visitor()
    while len(uploads) >= REMEMBERED_CONFIGS or not HELD.put(holder, visitor, link, size):
        if not uploads:
            session().uploads = uploads
            raise ValueError(TEXTS("messages.full"))
        oldest = next(iter(uploads))
        del uploads[oldest]
        HELD.drop(holder, oldest)
    session().uploads = uploads | {link: upload}
    session().is_forgotten = False
    set_own(upload)


def has_room(size: int) -> bool:
    """Return whether the session may remember a file of so many bytes, perhaps in place of its others."""
    return HELD.shares.has_room(session_visitor(), size - HELD.amount_of(session_id()))


def find_upload(link: str) -> Upload | None:
    """Return the file of this session whose link has this value, None if there is none."""
    return session().uploads.get(link)


def is_from_link() -> bool:
    """True if a link carried the config, so that it has only what may be shown to others."""
    mine = own()
    return mine is not None and mine not in session().uploads.values()


def own_text() -> str:
    """Return the user's file in the form stored by the browser, "" if there is none."""
    mine = own()
    return "" if mine is None or is_from_link() else configs.upload_bytes(mine).decode()


def forget() -> None:
    """Remove the user's own config from this session, and let the browser remove it."""
    session().own, session().uploads, session().is_forgotten = None, {}, True
    HELD.end(session_id())
    session().stored.pop("own", None)
