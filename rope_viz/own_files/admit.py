"""What admits a user's config: one order of rules for every door that a config comes in by.

Parse it within limits, make an upload of it (`models.read_upload.make_upload`), add what the files next to it say,
prove that its pages are computed quickly, and write its link.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rope_viz.advice.lint import check, summary
from rope_viz.advice.memory.stored_size import keep_storage
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.read_upload import make_upload
from rope_viz.models.user_config import Upload, parse_config
from rope_viz.own_files.config_cache import cache_by_config
from rope_viz.own_files.config_keys import cut_config
from rope_viz.own_files.link_text import unpack_link, write_config
from rope_viz.storage.decode_json import decode_json
from rope_viz.storage.limits import CHECK_SECONDS, STORED_CONFIG_BYTES
from rope_viz.texts import Texts

TEXTS = Texts("app")


class UnfitError(ValueError):
    """A config that can be read is refused: a file next to it is broken, or its pages would take too long."""


@dataclass(frozen=True)
class Dropped:
    """The text of a config and the files that were dropped with it, by name."""

    content: str | bytes
    files: Mapping[str, bytes] = field(default_factory=dict)


def admit(
    config: Mapping[str, Any],
    notes: Sequence[str] = (),
    *,
    current: RopeSpec | None = None,
    name: str = "",
    dropped: Dropped | None = None,
) -> Upload:
    """Return the upload of a parsed config, with its link. Raise `ValueError` with a sentence if it is refused.

    `notes` say what was odd about its text. A bare rope_scaling takes missing sizes from `current`, called `name`.
    Raise `UnfitError` for a config that can be read.
    """
    began = time.process_time()
    own = make_upload(config, notes, current=current, name=name)

    if dropped is not None:
        try:
            own = keep_storage(own, dropped.content, dropped.files)
        except ValueError as error:
            raise UnfitError(str(error)) from error

    summarise_findings(own)  # the upload holds this and its link from now on
    if time.process_time() - began > CHECK_SECONDS:
        raise UnfitError(TEXTS("stored.slow"))

    write_config(own)
    return own


@cache_by_config(1)
def summarise_findings(own: Upload) -> str:
    """Return how many findings of each severity the check of a config has, "" if it has none."""
    return summary(check(own.model_config))


def admit_text(
    text: str | bytes,
    current: RopeSpec | None = None,
    name: str = "",
    *,
    files: Mapping[str, bytes] | None = None,
) -> Upload:
    """Return the upload of a text that a user dropped or pasted, or that the browser stored. Raise as `admit` does.

    `files` are those that were dropped with it, by name.
    """
    notes: list[str] = []
    config = parse_config(text, notes, skip_lists=True)
    dropped = None if files is None else Dropped(text, files)
    return admit(config, notes, current=current or RopeSpec(), name=name, dropped=dropped)


def admit_stored(content: bytes) -> Upload:
    """Return the upload of a stored content. Raise `ValueError` if the content is no config."""
    config = decode_stored(content)
    if not isinstance(config, dict):
        raise ValueError(TEXTS("stored.no_config"))
    return admit(config)


def admit_link(text: str) -> Upload:
    """Return the upload of a link's value, without what may not be shown to others. Raise `ValueError` as `admit`."""
    written = unpack_link(text)
    try:
        own = admit_text(written)
        # Links of older releases hold more. What was noted about the rest may repeat it.
        cut = cut_config(own.config, own.model_config)
        return own if cut == own.config else admit(cut, current=RopeSpec())
    except UnfitError:
        raise
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise ValueError(TEXTS("link.unreadable", error=error)) from None


def decode_stored(content: bytes) -> Any:
    """Return the value of a stored JSON text. Raise `ValueError` if it is too large or none."""
    if len(content) > STORED_CONFIG_BYTES:
        raise ValueError(TEXTS("stored.too_large", most=STORED_CONFIG_BYTES >> 20, size=len(content) >> 20))
    return decode_json(content, TEXTS("stored.no_json"))
