"""The address at which users reach the app: link previews, files and videos bear it."""

from __future__ import annotations

import os

SETTING = "ROPE_VIZ_PUBLIC_URL"
"""The environment variable with this address, without a slash at its end."""


def read_public_address() -> str:
    """Return the app's address, "" for none. The Host header is not trusted for that."""
    return os.environ.get(SETTING, "")
