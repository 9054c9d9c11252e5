"""A user's config as one value of an address: what may be shown of it, as compressed JSON in base64url."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import zlib

from rope_viz.models.read_upload import read_upload
from rope_viz.models.user_config import Upload
from rope_viz.own_files.config_cache import cache_by_config
from rope_viz.own_files.config_keys import cut_config, find_catalog_name
from rope_viz.own_files.configs import prove_cheap, upload_of
from rope_viz.own_files.outside import read_outside
from rope_viz.storage.byte_cache import ByteCache
from rope_viz.storage.limits import LINK_CHARACTERS, LINK_CONFIG_BYTES, LINK_JSON_BYTES, LINK_RESULT_BYTES
from rope_viz.texts import Texts

TEXTS = Texts("app")
KEY = "config"
"""The key of the value in an address."""


class Links:
    """The configs of links that were read, by the digest of the value; the least recently used ones are evicted."""

    def __init__(self, most: int = LINK_CONFIG_BYTES) -> None:
        self._configs = ByteCache[bytes, Upload](most)

    def __len__(self) -> int:
        return len(self._configs)

    @property
    def size(self) -> int:
        return self._configs.size

    def get(self, text: str) -> Upload | None:
        return self._configs.get(digest(text))

    def keep(self, text: str, own: Upload, size: int) -> None:
        self._configs.add(digest(text), own, size + LINK_RESULT_BYTES)


LINKS = Links()
"""The links of this process."""


@cache_by_config(1)
def write_config(own: Upload) -> str:
    """Return the value for a user's config, which `read_config` turns back.

    Return "" if it would be too long, or if what is read from it would not be the same model.
    """
    try:
        written = json.dumps(cut_config(own.config), separators=(",", ":"), sort_keys=True)
        text = base64.urlsafe_b64encode(zlib.compress(written.encode(), 9)).decode().rstrip("=")
        found = read_here(text)
    except (ValueError, RecursionError):
        return ""
    same = found.specs == own.specs and find_catalog_name(found.model_config) == find_catalog_name(own.model_config)
    return text if same else ""


def digest(text: str) -> bytes:
    """Return a short name of a value."""
    return hashlib.sha256(text.encode()).digest()


def read_config(text: str) -> Upload:
    """Return the config of a value. Raise `ValueError` with a sentence if the value is broken or too large."""
    if (known := LINKS.get(text)) is not None:
        return known
    found, size = read_outside(read_link, text)
    LINKS.keep(text, found, size)
    return found


def read_link(text: str) -> Upload:
    """Read the config of a value as `read_here` does, and prove that its pages are computed quickly."""
    own = prove_cheap(read_here(text))
    write_config(own)
    return own


def read_here(text: str) -> Upload:
    """Read the config of a value in this process; see `read_config`. What may not be shown to others is dropped."""
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
    try:
        own = read_upload(written)
        cut = cut_config(own.config)
        # Links of older releases hold more. What was said about the rest may repeat it.
        return own if cut == own.config else upload_of(json.dumps(cut).encode())
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise ValueError(TEXTS("link.unreadable", error=error)) from None
