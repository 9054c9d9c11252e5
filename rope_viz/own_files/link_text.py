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
from rope_viz.storage.limits import LINK_CHARACTERS, LINK_JSON_BYTES
from rope_viz.texts import Texts

TEXTS = Texts("app")
KEY = "config"
"""The key of the value in an address."""


@cache_by_config(1)
def write_config(own: Upload) -> str:
    """Return the value for a user's config.

    Return "" if it would be too long, or if what is read from it would not be the same model.
    """
    try:
        shown = read_shown(own)
        written = json.dumps(shown.config, separators=(",", ":"), sort_keys=True).encode()
        if shown.upload is None or len(written) > LINK_JSON_BYTES:
            return ""
        text = base64.urlsafe_b64encode(zlib.compress(written, 9)).decode().rstrip("=")
        if len(text) > LINK_CHARACTERS:
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
    if len(text) > LINK_CHARACTERS:
        raise ValueError(TEXTS("link.too_long", most=LINK_CHARACTERS))
    try:
        packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        reader = zlib.decompressobj()
        written = reader.decompress(packed, LINK_JSON_BYTES)
    except (ValueError, binascii.Error, zlib.error):
        raise ValueError(TEXTS("link.broken")) from None
    if reader.unconsumed_tail:
        raise ValueError(TEXTS("link.too_large", most=LINK_JSON_BYTES >> 10))
    if not reader.eof:
        raise ValueError(TEXTS("link.broken"))
    return written
