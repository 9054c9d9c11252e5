"""The cache key of a picture's request."""

from __future__ import annotations

from collections.abc import Hashable

from rope_viz.picture import config_link
from rope_viz.picture.page import Picture
from rope_viz.picture.picture_request import Now


def key(now: Now, picture: Picture) -> tuple[Hashable, ...]:
    """Return the cache key: equal for all requests that lead to the same picture."""
    return (
        picture.address,
        now.model,
        now.layer,
        now.spec,
        _own_key(now) if picture.config else None,
        now.pin if picture.pin else None,
        tuple(now.variants.items()) if picture.variants else None,
        now.view if picture.zooms else None,
        now.coarse,
        min(now.part, picture.parts(now) - 1),
        # Of the needed choices too: the value of a used one may be the same while they differ.
        *(choice.text(now[choice]) for choice in picture.choices if choice.key in picture.depends),
    )


def _own_key(now: Now) -> str | None:
    return now.held.get("own") or (None if now.own is None else config_link.write_config(now.own))
