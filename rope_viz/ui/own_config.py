"""The user's own config in this session: a file that was dropped or pasted, or a config that a link carried."""

from __future__ import annotations

from rope_viz.models.user_config import Upload
from rope_viz.picture import config_link, configs
from rope_viz.ui.session import session

MOST = 8
"""Number of the user's files that a session remembers, for Back."""


def own() -> Upload | None:
    """Return the user's own config, or None."""
    return session().own


def set_own(config: Upload | None) -> None:
    """Make this the user's own config; None removes it."""
    session().own = config


def remember_upload(upload: Upload) -> None:
    """Make a file the user's own config, and keep it for a return to its address."""
    uploads = {**session().uploads, config_link.write_config(upload): upload}
    session().uploads = dict(list(uploads.items())[-MOST:])
    session().is_forgotten = False
    set_own(upload)


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
    session().stored.pop("own", None)
