"""The value that carries a user's config in an address: what may be shown of it, as compressed JSON in base64url."""

from __future__ import annotations

import base64
import binascii
import json
import zlib

from rope_viz.models.user_config import Upload
from rope_viz.own_files.config_cache import cache_by_config
from rope_viz.own_files.config_keys import find_catalog_name
from rope_viz.own_files.shared_config import hide, read_shown
from rope_viz.texts import Texts

TEXTS = Texts("app")
KEY = "config"
"""The key of the value in an address."""

LONGEST = 4000
"""Characters of the value; a link to a larger config carries its numbers only."""
MOST = 32 << 10
"""Bytes of JSON that a value may decompress to."""


@cache_by_config(1)
def write_config(own: Upload) -> str:
    """Return the value for a user's config.

    Return "" if it would be too long, or if what is read from it would not be the same model.
    """
    try:
        shown = read_shown(own)
        written = json.dumps(shown.config, separators=(",", ":"), sort_keys=True).encode()
        if shown.upload is None or len(written) > MOST:
            return ""
        text = base64.urlsafe_b64encode(zlib.compress(written, 9)).decode().rstrip("=")
        if len(text) > LONGEST:
            return ""
        return text if shown.upload is own or is_same_model(hide(shown.upload), own) else ""
    except (ValueError, RecursionError):
        return ""


def is_same_model(opened: Upload, own: Upload) -> bool:
    """Return whether what a link opens has the embeddings of a config and is recognised as the same model."""
    if opened.specs != own.specs:
        return False
    return find_catalog_name(opened.model_config) == find_catalog_name(own.model_config)


def unpack_link(text: str) -> bytes:
    """Return the JSON text of a value. Raise `ValueError` with a sentence if the value is broken or too large."""
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
    return written
