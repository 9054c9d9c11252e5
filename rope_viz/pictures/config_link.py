"""A user's config as one value of an address: what the project reads of it, as compressed JSON in base64url."""

from __future__ import annotations

import base64
import binascii
import functools
import json
import zlib

from rope_viz.models.user_config import Upload
from rope_viz.multi_axis.read_upload import read_upload
from rope_viz.pictures.config_keys import cut_config, find_catalog_name
from rope_viz.texts import Texts

TEXTS = Texts("app")
KEY = "config"
"""The key of the value in an address."""

LONGEST = 4000
"""Characters of the value; a link to a larger config carries its numbers only."""
MOST = 256 << 10
"""Bytes of JSON that a value may decompress to."""


@functools.lru_cache(64)
def write_config(own: Upload) -> str:
    """Return the value for a user's config, which `read_config` turns back.

    Return "" if it would be too long, or if what is read from it would not be the same model.
    """
    try:
        written = json.dumps(cut_config(own.config), separators=(",", ":"), sort_keys=True)
        text = base64.urlsafe_b64encode(zlib.compress(written.encode(), 9)).decode().rstrip("=")
        found = read_config(text)
    except (ValueError, RecursionError):
        return ""
    same = found.specs == own.specs and find_catalog_name(found.model_config) == find_catalog_name(own.model_config)
    return text if same else ""


@functools.lru_cache(64)
def read_config(text: str) -> Upload:
    """Return the config of a value. Raise `ValueError` with a sentence if the value is broken or too large."""
    if len(text) > LONGEST:
        raise ValueError(TEXTS("link.too_long", most=LONGEST))
    try:
        packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        reader = zlib.decompressobj()
        written = reader.decompress(packed, MOST)
    except (ValueError, binascii.Error, zlib.error):
        raise ValueError(TEXTS("link.broken")) from None
    if reader.unconsumed_tail:
        raise ValueError(TEXTS("link.too_large", most=MOST >> 10))
    if not reader.eof:
        raise ValueError(TEXTS("link.broken"))
    try:
        return read_upload(written)
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise ValueError(TEXTS("link.unreadable", error=error)) from None
